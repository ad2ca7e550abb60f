//! What a server hands to its host as a client has said it, and whose answer is the client's.
//!
//! Such a verb is said once: its fields, its bytes and its names stand in its own file, and its row is in the table of
//! `cmd/mod.rs`. Client and server pass it on by this table alone.

use phalanx_spec::Command;

use super::Body;
use crate::info::Info;

/// A request that is the host's to answer.
pub trait ForHost: Body {
    const COMMAND: Command;
    /// The function of the standard.
    const FUNCTION: &'static str;
    /// In messages.
    const OPERATION: &'static str;
    const ANSWER: Answer = Answer::Infos;
    const TAKES_DIRECTIVES: bool = true;

    /// What it is about, where that helps to tell two of them apart.
    fn subject(&self) -> String {
        String::new()
    }

    /// How it is to be done, as far as that can be said.
    fn directives(&self) -> &[Info];

    /// The server adds who asks.
    fn directives_mut(&mut self) -> Option<&mut Vec<Info>>;

    /// Whether there is all that a host must be given.
    fn is_complete(&self) -> bool {
        true
    }
}

/// What the answer holds beside a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Nothing,
    Infos,
    Credential,
}

macro_rules! host_requests {
    ($($variant:ident($body:ty))+) => {
        /// One of them.
        #[derive(Clone, Debug, PartialEq)]
        pub enum HostRequest {
            $($variant($body),)+
        }

        $(impl From<$body> for HostRequest {
            fn from(body: $body) -> HostRequest {
                HostRequest::$variant(body)
            }
        })+

        /// Its command first.
        impl Body for HostRequest {
            fn write(&self, to: &mut Writer, dialect: Dialect) {
                to.put(&self.command());
                self.write_body(to, dialect);
            }

            fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<HostRequest, DecodeError> {
                let command = from.get::<Command>()?;
                HostRequest::of(command, from, dialect)
                    .unwrap_or(Err(DecodeError::UnknownCommand { code: command.0 }))
            }
        }

        impl HostRequest {
            /// The functions by which they are asked, and whether these take directives.
            pub const FUNCTIONS: &[(&str, bool)] = &[$((<$body>::FUNCTION, <$body>::TAKES_DIRECTIVES)),+];

            /// What follows a command; `None` for a command that is not the host's.
            pub(super) fn of(
                command: Command,
                from: &mut Reader<'_>,
                dialect: Dialect,
            ) -> Option<Result<HostRequest, DecodeError>> {
                match command {
                    $(<$body>::COMMAND => Some(Body::read(from, dialect).map(HostRequest::$variant)),)+
                    _ => None,
                }
            }

            pub(super) fn write_body(&self, to: &mut Writer, dialect: Dialect) {
                match self {
                    $(HostRequest::$variant(body) => body.write(to, dialect),)+
                }
            }

            pub fn command(&self) -> Command {
                match self {
                    $(HostRequest::$variant(_) => <$body>::COMMAND,)+
                }
            }

            /// The function that a client has called.
            pub fn function(&self) -> &'static str {
                match self {
                    $(HostRequest::$variant(_) => <$body>::FUNCTION,)+
                }
            }

            pub fn operation(&self) -> &'static str {
                match self {
                    $(HostRequest::$variant(_) => <$body>::OPERATION,)+
                }
            }

            pub fn answer(&self) -> Answer {
                match self {
                    $(HostRequest::$variant(_) => <$body>::ANSWER,)+
                }
            }

            pub fn subject(&self) -> String {
                match self {
                    $(HostRequest::$variant(body) => body.subject(),)+
                }
            }

            pub fn directives(&self) -> &[Info] {
                match self {
                    $(HostRequest::$variant(body) => body.directives(),)+
                }
            }

            pub fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
                match self {
                    $(HostRequest::$variant(body) => body.directives_mut(),)+
                }
            }

            pub fn is_complete(&self) -> bool {
                match self {
                    $(HostRequest::$variant(body) => body.is_complete(),)+
                }
            }
        }
    };
}
