//! GET_CREDENTIAL and VALIDATE_CRED.

use phalanx_spec::{Command, Status, functions};

use super::Body;
use super::host::{AnswerBody, ForHost};
use crate::codec::{DecodeError, Dialect, Reader, Writer};
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

impl Body for GetCredential {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(GetCredential { info: from.get_list()? })
    }
}

impl Body for ValidateCredential {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.credential).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(ValidateCredential { credential: from.get()?, info: from.get_list()? })
    }
}

impl Body for Reply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() {
            to.put(&self.credential).put_list(&self.info);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let credential = if from.is_at_end() { Blob::default() } else { from.get()? };
        let info = if from.is_at_end() { Vec::new() } else { from.get_list()? };
        Ok(Reply { status, credential, info })
    }
}

impl ForHost for GetCredential {
    const COMMAND: Command = Command::GET_CREDENTIAL;
    const FUNCTION: &'static str = functions::GET_CREDENTIAL;
    const OPERATION: &'static str = "get credential";
    const ANSWER: AnswerBody = AnswerBody::Credential;

    fn directives(&self) -> &[Info] {
        &self.info
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        Some(&mut self.info)
    }
}

impl ForHost for ValidateCredential {
    const COMMAND: Command = Command::VALIDATE_CRED;
    const FUNCTION: &'static str = functions::VALIDATE_CREDENTIAL;
    const OPERATION: &'static str = "validate credential";

    fn directives(&self) -> &[Info] {
        &self.info
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        Some(&mut self.info)
    }
}
