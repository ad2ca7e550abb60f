//! Requests that a server passes to its host as the client sent them; the host's answer goes to the client.
//!
//! Such a verb is defined once: its fields, bytes and names are in its own file, and its row is in the table of
//! `cmd/mod.rs`. Client and server use only this table to pass it on.

use phalanx_spec::Command;

use super::Body;
use crate::info::Info;

/// A request that the host answers.
pub trait ForHost: Body {
    const COMMAND: Command;
    /// The function of the standard.
    const FUNCTION: &'static str;
    /// Name for messages.
    const OPERATION: &'static str;
    const ANSWER: AnswerBody = AnswerBody::Infos;
    const TAKES_DIRECTIVES: bool = true;

    /// Distinguishes this request from others of the same kind.
    fn subject(&self) -> String {
        String::new()
    }

    /// The directives of the request, if it takes any.
    fn directives(&self) -> &[Info];

    /// For the server to add the requester's identity.
    fn directives_mut(&mut self) -> Option<&mut Vec<Info>>;

    /// Whether everything that a host needs is present.
    fn is_complete(&self) -> bool {
        true
    }
}

/// What the answer contains besides a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerBody {
    Nothing,
    Infos,
    Credential,
}

macro_rules! host_requests {
    ($($variant:ident($body:ty))+) => {
        /// Any of these requests.
        #[derive(Clone, Debug, PartialEq)]
        pub enum HostRequest {
            $($variant($body),)+
        }

        $(impl From<$body> for HostRequest {
            fn from(body: $body) -> HostRequest {
                HostRequest::$variant(body)
            }
        })+

        /// The command comes first.
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
            /// The functions that make these requests, and whether each takes directives.
            pub const FUNCTIONS: &[(&str, bool)] = &[$((<$body>::FUNCTION, <$body>::TAKES_DIRECTIVES)),+];

            /// Reads the body that follows a command; `None` if the command is not the host's.
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

            /// The function that the client called.
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

            pub fn answer(&self) -> AnswerBody {
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
