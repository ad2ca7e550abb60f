//! The answer to a client: accepted, and with which number.

use phalanx_spec::Status;

use super::HelloAnswer;

/// Clients put `index` into the header of every message; no server checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientWelcome {
    pub index: u32,
}

impl HelloAnswer<ClientWelcome> {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            HelloAnswer::Welcome(welcome) => {
                [Status::SUCCESS.0.to_be_bytes(), welcome.index.to_be_bytes()].concat()
            }
            HelloAnswer::Refused(status) => status.0.to_be_bytes().to_vec(),
        }
    }

    /// The answer at the start of `bytes` and its length. `None`: more bytes are needed.
    pub fn decode(bytes: &[u8]) -> Option<(HelloAnswer<ClientWelcome>, usize)> {
        let (status, rest) = bytes.split_first_chunk::<4>()?;
        match Status(i32::from_be_bytes(*status)) {
            Status::SUCCESS => {
                let index = u32::from_be_bytes(*rest.first_chunk::<4>()?);
                Some((HelloAnswer::Welcome(ClientWelcome { index }), 8))
            }
            refused => Some((HelloAnswer::Refused(refused), 4)),
        }
    }
}
