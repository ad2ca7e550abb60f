//! The names of the errors that starting a program can meet; Linux numbers, the same on all our targets.

use std::fmt;

use crate::effect::{SpawnFailure, SpawnStep};

impl SpawnFailure {
    /// The shell never said what became of the order to start a process.
    pub(crate) fn never_answered() -> SpawnFailure {
        SpawnFailure { step: SpawnStep::Fork, subject: String::new(), errno: ETIMEDOUT }
    }

    /// As a shell does: 127 for a program that does not exist, 126 for one that cannot be run.
    pub fn exit_code(&self) -> i32 {
        match (self.step, self.errno) {
            (SpawnStep::Find, _) | (SpawnStep::Exec, ENOENT) => 127,
            _ => 126,
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
            write!(f, " {}", self.subject)?;
        }
        match NAMES.iter().find(|(number, _)| *number == self.errno) {
            Some((_, name)) => write!(f, ": {name}"),
            None if self.errno == 0 => Ok(()),
            None => write!(f, ": error {}", self.errno),
        }
    }
}

const ENOENT: i32 = 2;
const ETIMEDOUT: i32 = 110;

const NAMES: &[(i32, &str)] = &[
    (1, "operation not permitted"),
    (ENOENT, "no such file or directory"),
    (5, "input/output error"),
    (7, "argument list and environment are too long"),
    (8, "not in a format that this machine executes"),
    (11, "no more processes are allowed"),
    (12, "not enough memory"),
    (13, "permission denied"),
    (20, "a part of the path is not a directory"),
    (21, "is a directory"),
    (22, "invalid argument"),
    (23, "too many open files in the system"),
    (24, "too many open files"),
    (26, "the program is being written to"),
    (28, "no space left"),
    (36, "the name is too long"),
    (40, "too many symbolic links"),
    (ETIMEDOUT, "timed out"),
];
