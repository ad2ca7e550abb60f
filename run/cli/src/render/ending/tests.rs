use std::time::Duration;

use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId};

use super::*;

fn job() -> Nspace {
    Nspace::new("px-1@1").expect("a name")
}

fn ended(rank: u32, status: ExitStatus, killed_by_us: bool) -> ProcEnd {
    ProcEnd {
        proc: ProcId::new(&job(), Rank(rank)),
        node: "n1".into(),
        pid: Some(4000 + rank),
        status: Some(status),
        after: Duration::from_millis(1234),
        killed_by_us,
        lost_connection: false,
    }
}

fn end(verdict: JobVerdict, exit_code: i32, procs: Vec<ProcEnd>) -> JobEnd {
    let duration = Duration::from_secs(2);
    JobEnd {
        waited: Vec::new(),
        restarts: vec![(1, 3)],
        nspace: job(),
        verdict,
        tool: None,
        enders: Vec::new(),
        exit_code,
        first: None,
        procs,
        duration,
        connected: false,
        mpi: None,
        phases: phases(),
    }
}

fn phases() -> Phases {
    Phases {
        placed: Some(Duration::ZERO),
        started: Some(Duration::from_millis(20)),
        exited: Some(Duration::from_millis(1254)),
        ended: Some(Duration::from_secs(2)),
        ..Phases::default()
    }
}

const TERM: ExitStatus = ExitStatus::Signal { number: 15, core_dumped: false };
const SEGV: ExitStatus = ExitStatus::Signal { number: 11, core_dumped: true };

#[test]
fn success_needs_no_words() {
    assert!(end(JobVerdict::Success, 0, vec![ended(0, ExitStatus::Code(0), false)]).lines().is_empty());
}

#[test]
fn the_first_failure_is_reported_with_place_and_cause() {
    let first = ended(2, SEGV, false);
    let procs = vec![
        ended(0, TERM, true),
        ended(1, TERM, true),
        first.clone(),
        ended(3, ExitStatus::Code(1), false),
        ended(4, ExitStatus::Code(0), false),
    ];
    assert_eq!(
        end(JobVerdict::Failed { first }, 139, procs).lines(),
        [
            "rank 2 was killed by SIGSEGV (core dumped) (on n1, pid 4002, after 1.2 s)",
            "rank 3 failed as well; ranks 0-1 were ended by px as a consequence",
        ]
    );
    let first = ended(0, ExitStatus::Code(3), false);
    assert_eq!(
        end(JobVerdict::Failed { first: first.clone() }, 3, vec![first]).lines(),
        ["rank 0 exited with code 3 (on n1, pid 4000, after 1.2 s)"]
    );
}

#[test]
fn other_endings() {
    let by = ProcId::new(&job(), Rank(1));
    let abort = JobVerdict::Aborted { by, status: Status(7), message: "no luck\n".into() };
    assert_eq!(
        end(abort, 7, vec![ended(0, TERM, true), ended(1, TERM, false)]).lines(),
        [
            "rank 1 called abort with status 7 (on n1, pid 4001, after 1.2 s): no luck",
            "rank 0 was ended by px as a consequence",
        ]
    );
    let limit = Duration::from_secs(90);
    // Rank 1 was ended long before, by job control.
    let at_limit = ProcEnd { after: limit, ..ended(0, TERM, true) };
    assert_eq!(
        end(JobVerdict::TimedOut { limit }, 124, vec![at_limit, ended(1, TERM, true)]).lines(),
        ["the job was ended after 1 min 30 s, its time limit; rank 0 was still running"]
    );
    assert_eq!(
        end(JobVerdict::Cancelled { signal: 2 }, 130, Vec::new()).lines(),
        ["the job was ended by SIGINT"]
    );
}

#[test]
fn the_report() {
    let first = ended(2, SEGV, false);
    let mut lost = ended(1, ExitStatus::Code(0), false);
    lost.lost_connection = true;
    let never = ProcEnd { pid: None, status: None, ..ended(0, TERM, false) };
    let report = json(&end(JobVerdict::Failed { first: first.clone() }, 139, vec![never, lost, first]));
    insta::assert_json_snapshot!(report);
}
