//! Printing a status: its name with its number, since users see both in the messages of other programs.

use std::fmt;

use crate::Status;

impl Status {
    /// Whether the operation succeeded, which includes `OPERATION_SUCCEEDED`: it was completed at once.
    pub fn is_success(self) -> bool {
        self == Status::SUCCESS || self == Status::OPERATION_SUCCEEDED
    }
}

impl fmt::Display for Status {
    /// `PMIX_ERR_NOT_FOUND (-46)`, or `status -9999` for a number without a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "status {}", self.0),
        }
    }
}

impl std::error::Error for Status {}
