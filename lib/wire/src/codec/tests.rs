use super::*;
use crate::info::{DataArray, Info, Kval};
use crate::name::Key;
use crate::value::Value;
use phalanx_spec::{MAX_KEYLEN, Rank, Status, keys};

fn format(generation: Generation) -> Format {
    Format { generation, described: false }
}

fn packed<T: Item>(format: Format, item: &T) -> Vec<u8> {
    let mut writer = Writer::new(format);
    writer.put(item);
    writer.into_bytes()
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn values_look_like_this() {
    let (flexible, fixed) = (Generation::V41, Generation::V21);
    for (generation, value, bytes) in [
        (flexible, Value::Int32(-5), "02 09 09"),
        (fixed, Value::Int32(-5), "00 00 00 01 00 09 ff ff ff fb"),
        (flexible, Value::Int32(-70000), "02 09 df c5 08"),
        (flexible, Value::Uint32(300), "02 0e ac 02"),
        (fixed, Value::Uint32(300), "00 00 00 01 00 0e 00 00 01 2c"),
        (flexible, Value::Uint32(0xdead_beef), "02 0e ef fd b6 f5 0d"),
        (flexible, Value::Uint64(u64::MAX), "02 0f ff ff ff ff ff ff ff ff ff"),
        (flexible, Value::Int64(i64::MIN), "02 0a ff ff ff ff ff ff ff ff ff"),
        (flexible, Value::Uint64(1 << 56), "02 0f 80 80 80 80 80 80 80 80 01"),
        (flexible, Value::Rank(Rank::WILDCARD), "02 28 fe ff ff ff 0f"),
        (flexible, Value::Pid(4242), "02 05 0e 92 21"),
        (fixed, Value::Pid(4242), "00 00 00 01 00 05 00 0e 00 00 10 92"),
        (flexible, Value::Uint(0xffff_fff0), "02 0b 1f"),
        (fixed, Value::Int(-1), "00 00 00 01 00 06 00 09 ff ff ff ff"),
        (fixed, Value::Size(2), "00 00 00 01 00 04 00 0f 00 00 00 00 00 00 00 02"),
        (flexible, Value::Double(3.25), "02 11 12 33 2e 32 35 30 30 30 30 00"),
        (flexible, Value::from(""), "02 03 02 00"),
        (flexible, Value::NullString, "02 03 00"),
    ] {
        assert_eq!(packed(format(generation), &value), hex(bytes), "{value:?}");
        assert_eq!(Reader::new(format(generation), &hex(bytes)).get(), Ok(value));
    }
}

#[test]
fn descriptions_stand_before_count_and_values() {
    let described = |generation| Format { generation, described: true };
    assert_eq!(packed(described(Generation::V41), &Status::SUCCESS), hex("09 02 14 00"));
    let fixed = hex("00 09 00 00 00 01 00 14 00 00 00 00");
    assert_eq!(packed(described(Generation::V21), &Status::SUCCESS), fixed);
    let wrong = Reader::new(described(Generation::V41), &hex("09 02 0e 00")).get::<Status>();
    assert_eq!(wrong, Err(DecodeError::Type { expected: 20, found: 14 }));
}

#[test]
fn numbers_beyond_their_type_are_refused() {
    let mut reader = Reader::new(format(Generation::V41), &[2, 0xff, 0xff, 0xff, 0xff, 0x1f]);
    assert_eq!(reader.get::<Rank>(), Err(DecodeError::Overflow { what: "UINT32" }));
}

#[test]
fn empty_array_is_read_in_both_forms() {
    let key = hex("02 04 78 00 27");
    let next = hex("02 04 79 00 01 01");
    for nothing in [&[0, 0][..], &[0]] {
        let bytes = [&key, nothing, &next].concat();
        let got: Vec<Kval> = Reader::new(format(Generation::V61), &bytes).get_rest().unwrap();
        assert_eq!(got[1].value, Value::Bool(true));
        assert_eq!(packed(format(Generation::V61), &got[0]), [&key[..], &[24, 0]].concat());
    }
}

/// As packed by 4.2.2 for three process ids.
#[test]
fn an_array_says_the_width_of_its_integers_once() {
    let array = |of, items| Value::from(DataArray { of, items });
    let pids = array(DataType::PID, [4242, 1, 300].map(Value::Pid).to_vec());
    let (flexible, fixed) = (format(Generation::V41), format(Generation::V21));
    for (format, value, bytes) in [
        (flexible, pids.clone(), "02 27 05 03 0e 92 21 01 ac 02"),
        (
            fixed,
            pids,
            "00 00 00 01 00 27 00 05 00 0f 00 00 00 00 00 00 00 03 00 0e 00 00 10 92 00 00 00 01 00 00 01 2c",
        ),
        (
            fixed,
            array(DataType::INT, [1, -1].map(Value::Int).to_vec()),
            "00 00 00 01 00 27 00 06 00 0f 00 00 00 00 00 00 00 02 00 09 00 00 00 01 ff ff ff ff",
        ),
        (flexible, array(DataType::UINT, [1, 2].map(Value::Uint).to_vec()), "02 27 0b 02 02 04"),
    ] {
        assert_eq!(packed(format, &value), hex(bytes), "{value:?}");
        assert_eq!(Reader::new(format, &hex(bytes)).get(), Ok(value));
    }
}

/// Also nested, and in sequence.
#[test]
fn arrays_of_all_lengths_come_back_in_every_generation() {
    let all: Vec<Value> = vec![
        Value::Bool(true),
        Value::Byte(1),
        Value::from("text"),
        Value::Size(2),
        Value::Pid(3),
        Value::Int(-4),
        Value::Int8(-5),
        Value::Int16(-6),
        Value::Int32(-7),
        Value::Int64(-8),
        Value::Uint(9),
        Value::Uint8(10),
        Value::Uint16(11),
        Value::Uint32(12),
        Value::Uint64(13),
        Value::Float(1.5),
        Value::Double(2.5),
        Value::Time(14),
        Value::Status(Status::ERROR),
        Value::Rank(Rank(15)),
        Value::ByteObject(vec![1, 2].into()),
        Value::Info(Box::new(Info::new(keys::HOSTNAME, "n1"))),
        Value::from(DataArray { of: DataType::PID, items: vec![Value::Pid(1), Value::Pid(2)] }),
    ];
    for generation in Generation::ALL {
        for value in &all {
            for count in 0..4 {
                let array = DataArray { of: value.data_type(), items: vec![value.clone(); count] };
                let nested =
                    DataArray { of: DataType::DATA_ARRAY, items: vec![Value::from(array.clone()); 2] };
                for value in [Value::from(array.clone()), Value::from(nested)] {
                    let mut writer = Writer::new(format(generation));
                    writer.put(&value).put(&Value::Bool(true));
                    let bytes = writer.into_bytes();
                    let mut reader = Reader::new(format(generation), &bytes);
                    assert_eq!(reader.get(), Ok(value), "{generation:?}");
                    assert_eq!(reader.get(), Ok(Value::Bool(true)), "{generation:?}: what stands behind it");
                }
            }
        }
    }
}

#[test]
fn types_given_up_with_4_0_are_read_as_their_successors() {
    let fixed = format(Generation::V3);
    let info = Info::new(keys::HOSTNAME, "n1");
    let array = Value::from(DataArray::of_infos([info.clone()]));
    let mut bytes = packed(fixed, &array);
    // VALUE { DATA_ARRAY { INFO, n, ... } } becomes VALUE { INFO_ARRAY { n, ... } }.
    bytes.splice(4..8, [0, 44]);
    assert_eq!(Reader::new(fixed, &bytes).get(), Ok(array));
    let blob = Value::ByteObject(vec![1, 2].into());
    let mut bytes = packed(fixed, &blob);
    bytes[5] = 29;
    assert_eq!(Reader::new(fixed, &bytes).get(), Ok(blob));
    assert_eq!(
        Reader::new(format(Generation::V4), &hex("02 1d 00")).get::<Value>(),
        Err(DecodeError::UnknownType { code: 29 })
    );
}

#[test]
fn a_decimal_comma_is_read() {
    let bytes = [&hex("02 10 12")[..], b"3,250000\0"].concat();
    assert_eq!(Reader::new(format(Generation::V41), &bytes).get(), Ok(Value::Float(3.25)));
}

#[test]
fn keys_must_be_short_text() {
    let kval = |key: &[u8]| {
        let mut bytes = vec![2];
        let length = u16::try_from(2 * (key.len() + 1)).unwrap();
        bytes.extend_from_slice(&[(length & 0x7f) as u8 | 0x80, (length >> 7) as u8]);
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(&[0, 1, 1]);
        Reader::new(format(Generation::V41), &bytes).get::<Kval>().map(|kval| kval.key)
    };
    assert_eq!(kval(&[b'k'; MAX_KEYLEN]), Ok(Key::new(&"k".repeat(MAX_KEYLEN)).unwrap()));
    assert!(matches!(kval(&[b'k'; MAX_KEYLEN + 1]), Err(DecodeError::TooLong { limit: 511, .. })));
    assert_eq!(kval(b"\xff"), Err(DecodeError::Malformed { what: "a key" }));
}

#[test]
fn nesting_has_a_limit() {
    let deep = |n| [&[2][..], &vec![21; n], &[0]].concat();
    assert!(Reader::new(format(Generation::V41), &deep(20)).get::<Value>().is_ok());
    assert_eq!(Reader::new(format(Generation::V41), &deep(40)).get::<Value>(), Err(DecodeError::TooDeep));
}

#[test]
fn generations_have_names() {
    for generation in Generation::ALL {
        assert_eq!(Generation::from_module_name(generation.module_name()), Some(generation));
    }
    assert_eq!(Generation::from_module_name("v20"), None);
}
