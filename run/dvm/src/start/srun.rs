//! Parses the messages of `srun` about its tasks. It ends only with the last task, so these messages are the first sign of
//! trouble.

/// A line of its standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remark<'a> {
    /// These tasks have ended: `srun: error: n2: task 0: Killed`.
    Ended(Vec<usize>, &'a str),
    /// The step or its job was ended by a person or a limit, which the text names.
    Cancelled(&'a str),
    /// A message about a consequence of such an end.
    Echo,
    /// Anything else, and the task concerned, if it names one.
    Other(Option<usize>, &'a str),
}

impl Remark<'_> {
    pub(super) fn of(line: &str) -> Remark<'_> {
        let line = line.trim_end();
        if let Some((_, rest)) = line.split_once("*** ")
            && let Some((what, _)) = rest.rsplit_once(" ***")
            && what.contains(" CANCELLED AT ")
        {
            return Remark::Cancelled(what);
        }
        if let Some(ended) = ended(line) {
            return ended;
        }
        if ECHOES.iter().any(|echo| line.starts_with(echo)) {
            return Remark::Echo;
        }
        // With `--label`, slurmstepd's messages about a task begin with the task's number.
        let labelled = line.split_once(": ").and_then(|(task, rest)| Some((task.trim().parse().ok()?, rest)));
        labelled.map_or(Remark::Other(None, line), |(task, rest)| Remark::Other(Some(task), rest))
    }
}

/// `srun: error: n[2-3]: tasks 0-1: Exited with exit code 2`
fn ended(line: &str) -> Option<Remark<'_>> {
    let (_, rest) = line.strip_prefix("srun: error: ")?.split_once(": task")?;
    let (tasks, how) = rest.trim_start_matches('s').trim_start().split_once(": ")?;
    let mut all = Vec::new();
    for part in tasks.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last.checked_sub(first)? > MOST_TASKS {
            return None;
        }
        all.extend(first..=last);
    }
    let how = match how {
        "Killed" => "it was killed by signal 9 (SIGKILL)",
        "Terminated" => "it was ended by signal 15 (SIGTERM)",
        how => how,
    };
    Some(Remark::Ended(all, how))
}

const ECHOES: [&str; 5] = [
    "srun: Job step aborted",
    "srun: Terminating ",
    "srun: forcing job termination",
    "srun: launch/slurm: ",
    "srun: First task exited",
];
const MOST_TASKS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_of_srun_are_distinguished() {
        for (line, remark) in [
            (
                "srun: error: n2: task 0: Killed",
                Remark::Ended(vec![0], "it was killed by signal 9 (SIGKILL)"),
            ),
            (
                "srun: error: n[2-4,7]: tasks 0-1,3: Exited with exit code 2",
                Remark::Ended(vec![0, 1, 3], "Exited with exit code 2"),
            ),
            (
                "0: slurmstepd-n2: error: *** STEP 1.1 ON n2 CANCELLED AT 2026-11-24T00:08:52 DUE TO TIME LIMIT ***",
                Remark::Cancelled("STEP 1.1 ON n2 CANCELLED AT 2026-11-24T00:08:52 DUE TO TIME LIMIT"),
            ),
            ("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.", Remark::Echo),
            (
                "1: slurmstepd-n3: error: execve(): /px: no",
                Remark::Other(Some(1), "slurmstepd-n3: error: execve(): /px: no"),
            ),
            ("srun: error: Unable to create step", Remark::Other(None, "srun: error: Unable to create step")),
            ("srun: error: n2: tasks 9-1: Killed", Remark::Other(None, "srun: error: n2: tasks 9-1: Killed")),
            ("srun: error: n2: task x: Killed", Remark::Other(None, "srun: error: n2: task x: Killed")),
        ] {
            assert_eq!(Remark::of(line), remark, "{line}");
        }
    }
}
