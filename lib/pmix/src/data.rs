//! Values as bytes, for programs that send them themselves: a process in C or Rust can unpack what another has packed.

use phalanx_spec::DataType;
use phalanx_wire::Value;
use phalanx_wire::codec::{DecodeError, Format, Generation, Reader, Writer};

/// Packs values of one type (`PMIx_Data_pack`); the next packed bytes are appended to these.
pub fn pack(of: DataType, values: &[Value]) -> Vec<u8> {
    let mut writer = Writer::new(FORMAT);
    writer.put_values(of, values);
    writer.into_bytes()
}

/// Takes the values of one [`pack`] call off the bytes (`PMIx_Data_unpack`).
pub fn unpack(of: DataType, bytes: &mut &[u8]) -> Result<Vec<Value>, DecodeError> {
    let mut reader = Reader::new(FORMAT, bytes);
    let values = reader.get_values(of)?;
    *bytes = reader.rest();
    Ok(values)
}

/// All releases since 4.1 read it; they describe types only in debug builds.
const FORMAT: Format = Format { generation: Generation::V41, described: false };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_off_in_the_order_in_which_they_were_packed() {
        let (numbers, texts) = ([Value::Uint32(1), Value::Uint32(2)], [Value::from("text")]);
        let bytes = [pack(DataType::UINT32, &numbers), pack(DataType::STRING, &texts)].concat();
        let mut rest = &bytes[..];
        assert_eq!(unpack(DataType::UINT32, &mut rest).unwrap(), numbers);
        assert_eq!(unpack(DataType::STRING, &mut rest).unwrap(), texts);
        assert!(rest.is_empty() && unpack(DataType::STRING, &mut rest).is_err());
    }
}
