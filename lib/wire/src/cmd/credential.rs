//! GET_CREDENTIAL and VALIDATE_CRED.

use phalanx_spec::Status;

use crate::info::Info;
use crate::text::Blob;

#[derive(Clone, Debug, PartialEq)]
pub struct GetCredential {
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ValidateCredential {
    pub credential: Blob,
    pub info: Vec<Info>,
}

/// The answer to GET_CREDENTIAL.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    pub credential: Blob,
    pub info: Vec<Info>,
}
