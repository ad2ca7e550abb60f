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

    /// What helps against the mistakes that everybody makes.
    fn advice(&self) -> Option<&'static str> {
        match (self.step, self.errno) {
            (SpawnStep::Find, ENOENT) => {
                Some("a program that is not there is named by its path, such as ./NAME")
            }
            (SpawnStep::Exec, EACCES) => Some("'chmod +x' makes a file executable"),
            (SpawnStep::Exec, ENOEXEC) => {
                Some("it is no program of this kind of machine, nor a script that begins with #!")
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
            write!(f, " {}", self.subject)?;
        }
        if self.step == SpawnStep::Find {
            f.write_str(" in PATH")?;
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
const ETIMEDOUT: i32 = 110;

/// In the words of the C library, which people search for.
const NAMES: &[(i32, &str)] = &[
    (1, "Operation not permitted"),
    (ENOENT, "No such file or directory"),
    (5, "Input/output error"),
    (7, "Argument list too long"),
    (ENOEXEC, "Exec format error"),
    (11, "Resource temporarily unavailable: no more processes are allowed"),
    (12, "Cannot allocate memory"),
    (EACCES, "Permission denied"),
    (20, "Not a directory"),
    (21, "Is a directory"),
    (22, "Invalid argument"),
    (23, "Too many open files in system"),
    (24, "Too many open files"),
    (26, "Text file busy"),
    (28, "No space left on device"),
    (36, "File name too long"),
    (40, "Too many levels of symbolic links"),
    (ETIMEDOUT, "No answer in time"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_mistakes_come_with_what_helps() {
        let said = |step, errno| SpawnFailure { step, subject: "prog".into(), errno }.to_string();
        assert_eq!(
            said(SpawnStep::Find, ENOENT),
            "looking for the program prog in PATH: No such file or directory (errno 2); \
             a program that is not there is named by its path, such as ./NAME"
        );
        assert!(said(SpawnStep::Exec, EACCES).ends_with("(errno 13); 'chmod +x' makes a file executable"));
        assert!(said(SpawnStep::Exec, ENOEXEC).ends_with("nor a script that begins with #!"));
        assert!(said(SpawnStep::Chdir, ENOENT).ends_with("(errno 2)"));
    }
}
