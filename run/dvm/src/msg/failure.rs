//! Why a process could not be started, in words and as a status. The numbers are those of Linux, the same on all our targets.

use std::fmt;

use crate::encoding::encoded;
use phalanx_spec::Status;
use phalanx_wire::plain;

/// Which step of a start failed, where, with which errno.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnFailure {
    pub step: SpawnStep,
    /// The path or name that the step was about.
    pub subject: String,
    pub errno: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnStep {
    /// Looking the program up in PATH, then in its working directory.
    Find,
    Pipe,
    Fork,
    Bind,
    Chdir,
    Exec,
}

impl SpawnFailure {
    /// The shell never answered the order to start a process.
    pub(crate) fn never_answered() -> SpawnFailure {
        SpawnFailure { step: SpawnStep::Fork, subject: String::new(), errno: ETIMEDOUT }
    }

    /// As a shell does: 127 for a program that does not exist, 126 for one that cannot be run.
    pub fn exit_code(&self) -> i32 {
        match (self.step, self.errno) {
            (SpawnStep::Find | SpawnStep::Exec, ENOENT) => 127,
            _ => 126,
        }
    }

    /// The status for the answer to a spawn.
    pub(crate) fn status(&self) -> Status {
        match (self.step, self.errno) {
            (SpawnStep::Find | SpawnStep::Exec, ENOENT) => Status::ERR_JOB_EXE_NOT_FOUND,
            (SpawnStep::Find, _) | (SpawnStep::Exec, EACCES | ENOEXEC | EISDIR | ENOTDIR | ETXTBSY) => {
                Status::ERR_JOB_APP_NOT_EXECUTABLE
            }
            (SpawnStep::Chdir, ENOENT) => Status::ERR_JOB_WDIR_NOT_FOUND,
            (SpawnStep::Chdir, _) => Status::ERR_JOB_WDIR_NOT_ACCESSIBLE,
            (SpawnStep::Pipe | SpawnStep::Fork | SpawnStep::Bind | SpawnStep::Exec, _) => {
                Status::ERR_JOB_SYS_OP_FAILED
            }
        }
    }

    /// Advice for common mistakes.
    fn advice(&self) -> Option<&'static str> {
        match (self.step, self.errno) {
            (SpawnStep::Find, ENOENT) => Some("if it is somewhere else, give its path"),
            (SpawnStep::Exec, EACCES) => Some("'chmod +x' makes a file executable"),
            (SpawnStep::Exec, ENOEXEC) => {
                Some("it is neither a program for this kind of machine nor a script that begins with #!")
            }
            _ => None,
        }
    }
}

impl fmt::Display for SpawnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.step {
            SpawnStep::Find => "looking for the program",
            SpawnStep::Pipe => "making a pipe",
            SpawnStep::Fork => "making the process",
            SpawnStep::Bind => "binding to CPUs",
            SpawnStep::Chdir => "changing to the directory",
            SpawnStep::Exec => "executing",
        };
        f.write_str(doing)?;
        if !self.subject.is_empty() {
            write!(f, " {}", plain::line(&self.subject))?;
        }
        if self.step == SpawnStep::Find {
            f.write_str(" in PATH and in its working directory")?;
        }
        match NAMES.iter().find(|(number, _)| *number == self.errno) {
            Some((number, name)) => write!(f, ": {name} (errno {number})")?,
            None if self.errno == 0 => {}
            None => write!(f, ": errno {}", self.errno)?,
        }
        self.advice().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

const ENOENT: i32 = 2;
const ENOEXEC: i32 = 8;
const EACCES: i32 = 13;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const ETXTBSY: i32 = 26;
const ETIMEDOUT: i32 = 110;

/// The wording of the C library, which people search for.
const NAMES: &[(i32, &str)] = &[
    (1, "Operation not permitted"),
    (ENOENT, "No such file or directory"),
    (5, "Input/output error"),
    (7, "Argument list too long"),
    (ENOEXEC, "Exec format error"),
    (11, "Resource temporarily unavailable: no more processes are allowed"),
    (12, "Cannot allocate memory"),
    (EACCES, "Permission denied"),
    (ENOTDIR, "Not a directory"),
    (EISDIR, "Is a directory"),
    (22, "Invalid argument"),
    (23, "Too many open files in system"),
    (24, "Too many open files"),
    (ETXTBSY, "Text file busy"),
    (28, "No space left on device"),
    (36, "File name too long"),
    (40, "Too many levels of symbolic links"),
    (ETIMEDOUT, "No answer in time"),
];

encoded!(struct SpawnFailure { step, subject, errno });
encoded!(enum SpawnStep { 0 Find, 1 Pipe, 2 Fork, 3 Bind, 4 Chdir, 5 Exec });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_mistakes_come_with_what_helps() {
        let said = |step, errno| SpawnFailure { step, subject: "prog".into(), errno }.to_string();
        assert_eq!(
            said(SpawnStep::Find, ENOENT),
            "looking for the program prog in PATH and in its working directory: \
             No such file or directory (errno 2); if it is somewhere else, give its path"
        );
        assert!(said(SpawnStep::Exec, EACCES).ends_with("(errno 13); 'chmod +x' makes a file executable"));
        assert!(said(SpawnStep::Exec, ENOEXEC).ends_with("nor a script that begins with #!"));
        assert!(said(SpawnStep::Chdir, ENOENT).ends_with("(errno 2)"));
    }

    #[test]
    fn each_step_that_fails_has_a_status_of_its_own() {
        let status = |step, errno| SpawnFailure { step, subject: String::new(), errno }.status();
        assert_eq!(status(SpawnStep::Find, ENOENT), Status::ERR_JOB_EXE_NOT_FOUND);
        assert_eq!(status(SpawnStep::Find, EACCES), Status::ERR_JOB_APP_NOT_EXECUTABLE);
        assert_eq!(status(SpawnStep::Exec, ENOENT), Status::ERR_JOB_EXE_NOT_FOUND);
        assert_eq!(status(SpawnStep::Exec, ENOEXEC), Status::ERR_JOB_APP_NOT_EXECUTABLE);
        assert_eq!(status(SpawnStep::Exec, 7), Status::ERR_JOB_SYS_OP_FAILED);
        assert_eq!(status(SpawnStep::Chdir, ENOENT), Status::ERR_JOB_WDIR_NOT_FOUND);
        assert_eq!(status(SpawnStep::Chdir, EACCES), Status::ERR_JOB_WDIR_NOT_ACCESSIBLE);
        assert_eq!(status(SpawnStep::Fork, 11), Status::ERR_JOB_SYS_OP_FAILED);
    }
}
