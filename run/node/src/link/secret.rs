//! What only the daemons of a DVM know: 32 random bytes.
//!
//! The first daemon makes it. Others read it from their standard input, as one line, so that it appears in no list of arguments, in no environment
//! and in no file.

use std::fmt;
use std::io::{self, Read};

use super::handshake::random_bytes;

#[derive(Clone)]
pub struct Secret([u8; 32]);

/// Why no secret could be read.
#[derive(Debug)]
pub enum NoSecret {
    Input(io::Error),
    /// The input ended within the line.
    Ended,
    /// The line is not a secret.
    Malformed,
}

impl Secret {
    /// A new one; none if the kernel gives no random bytes.
    pub fn new() -> Option<Secret> {
        let mut bytes = [0; 32];
        random_bytes(&mut bytes).then_some(Secret(bytes))
    }

    /// Reads one line, and not a byte after it.
    pub fn read(mut input: impl Read) -> Result<Secret, NoSecret> {
        let mut line = [0; 65];
        input.read_exact(&mut line).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => NoSecret::Ended,
            _ => NoSecret::Input(error),
        })?;
        let (digits, end) = line.split_at(64);
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let &[high, low] = pair else { return Err(NoSecret::Malformed) };
            let (Some(high), Some(low)) = (digit(high), digit(low)) else { return Err(NoSecret::Malformed) };
            *byte = high << 4 | low;
        }
        if end == b"\n" { Ok(Secret(bytes)) } else { Err(NoSecret::Malformed) }
    }

    /// The line that [`Secret::read`] reads.
    pub fn line(&self) -> String {
        let mut line: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        line.push('\n');
        line
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Secret {
    fn from(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }
}

/// Keeps it out of logs.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl fmt::Display for NoSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSecret::Input(error) => write!(f, "cannot read the secret of the DVM: {error}"),
            NoSecret::Ended => f.write_str("standard input ended before the secret of the DVM was read"),
            NoSecret::Malformed => f.write_str(
                "standard input does not begin with the secret of a DVM: expected 64 hexadecimal digits",
            ),
        }
    }
}

impl std::error::Error for NoSecret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_from_their_line_only() {
        let secret = Secret::new().unwrap();
        let text = secret.line() + "what follows";
        let mut input = text.as_bytes();
        assert_eq!(Secret::read(&mut input).unwrap().bytes(), secret.bytes());
        assert_eq!(input, b"what follows");
    }

    #[test]
    fn other_lines_are_refused() {
        assert!(matches!(Secret::read(&b"12"[..]), Err(NoSecret::Ended)));
        for line in ["g".repeat(64) + "\n", "0".repeat(65), "é".repeat(32) + "\n"] {
            assert!(matches!(Secret::read(line.as_bytes()), Err(NoSecret::Malformed)), "{line}");
        }
    }

    #[test]
    fn secrets_do_not_show_in_logs() {
        let secret = Secret::from([0xab; 32]);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
