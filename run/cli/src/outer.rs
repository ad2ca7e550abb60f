//! The job in which this launcher runs, if it was started by a rank: whether the end of that job ends us.

use std::fs;

/// The job that ends us: its daemon has sent SIGTERM because it ends the rank that started us. None if SIGTERM is from another process, or from one
/// of that job itself.
pub(crate) fn job_that_ends_us() -> Option<String> {
    let job = job()?;
    let sender = phalanx_node::terminated_by()?;
    (descends_from(sender) && !is_of(sender, &job)).then_some(job)
}

/// The job of the rank that started this px, if any.
pub(crate) fn job() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|job| !job.is_empty())
}

fn descends_from(pid: u32) -> bool {
    std::iter::successors(Some(std::process::id()), |pid| parent(*pid)).skip(1).take(MOST).any(|up| up == pid)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, even parentheses.
    let parent = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(1)?.parse().ok()?;
    (parent != 0).then_some(parent)
}

/// Whether a process was started in this job.
fn is_of(pid: u32, job: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    let assignment = format!("{VARIABLE}={job}");
    environment.split(|byte| *byte == 0).any(|variable| variable == assignment.as_bytes())
}

const VARIABLE: &str = "PHALANX_JOB";
/// More than any tree of processes is deep.
const MOST: usize = 4096;
