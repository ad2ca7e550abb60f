#![allow(clippy::unwrap_used)]

use std::time::Duration;

use phalanx_spec::{IofChannel, Rank, Status};

use super::history::MOST_ENTRIES;
use super::*;
use crate::id::NodeId;
use crate::job::{JobVerdict, Phases};
use crate::msg::{
    EndGroup, Ends, ExitStatus, FailurePolicy, Places, ProcEnd, Programs, Reached, ReportedEnds,
    SpawnFailure, SpawnStep, StdinTarget,
};
use crate::ranges::Ranges;

fn desc(name: &str, size: u32) -> Arc<JobDesc> {
    Arc::new(JobDesc {
        nspace: Nspace::new(name).unwrap(),
        number: 1,
        parent: None,
        size,
        nodes: Ranges::first(1),
        crowded: Ranges::new(),
        places: Places::default(),
        env: Vec::new(),
        apps: Vec::new(),
        stdin: StdinTarget::None,
        forward: IofChannel::NONE,
        diag: false,
        on_failure: FailurePolicy::Continue,
        reported_ends: ReportedEnds::Bad,
        kill_after: None,
        checkpoint_command: None,
        restart_command: None,
        job: Arc::default(),
        session: Arc::default(),
        allocated: Default::default(),
    })
}

fn placed(desc: Arc<JobDesc>) -> (Arc<JobDesc>, Premises) {
    (desc, Premises::default())
}

fn journals(ended_jobs: u32, bytes: usize) -> Journals {
    Journals::new(&Limits { ended_jobs, journals: bytes, ..Limits::default() })
}

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn proc(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("job").unwrap(), Rank(rank))
}

fn failed(rank: u32, code: i32) -> What {
    let first = ProcEnd {
        proc: proc(rank),
        node: "n".into(),
        pid: Some(rank),
        status: Some(ExitStatus::Code(code)),
        after: seconds(u64::from(rank)),
        killed_by_us: false,
        lost_connection: false,
    };
    What::Failed { ranks: Ranges::single(rank), first, concerned: Arc::default() }
}

fn group(ranks: Ranges, code: i32, after: u64) -> EndGroup {
    EndGroup {
        ranks,
        status: Some(ExitStatus::Code(code)),
        killed_by_us: false,
        lost_connection: false,
        connected: true,
        after: seconds(after),
    }
}

#[test]
fn equal_failures_of_many_ranks_are_one_entry() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 100_000)), None);
    for rank in 0..100_000 {
        journals.append(&mut journal, at(1), failed(rank, if rank == 7 { 3 } else { 1 }));
    }
    let of = |code| {
        journal.entries().iter().find_map(|entry| match entry.what() {
            What::Failed { ranks, first, .. } if first.status == Some(ExitStatus::Code(code)) => {
                Some((ranks.clone(), first.proc.rank.0))
            }
            _ => None,
        })
    };
    assert_eq!(of(3), Some((Ranges::single(7), 7)));
    assert_eq!(of(1).map(|(ranks, first)| (ranks.count(), first)), Some((99_999, 0)));
    assert_eq!(journal.entries().len(), 4);
}

#[test]
fn repeated_failures_and_restarts_are_separate_entries() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 9)), None);
    for time in 1..=4 {
        journals.append(&mut journal, at(time), failed(1, 3));
        let again = || Ranges::single(1);
        journals.append(&mut journal, at(time), What::Restarting { ranks: again(), by: None, from: None });
        let (pids, concerned) = (Vec::new(), Arc::default());
        journals.append(
            &mut journal,
            at(time),
            What::Restarted { ranks: again(), pids, programs: Programs::default(), concerned },
        );
    }
    let times = |chosen: fn(&What) -> bool| {
        let chosen = journal.entries().iter().filter(|entry| chosen(entry.what()));
        chosen.flat_map(Entry::moments).map(|moment| moment.at).collect::<Vec<_>>()
    };
    let four = [at(1), at(2), at(3), at(4)];
    assert_eq!(times(|what| matches!(what, What::Failed { .. })), four);
    assert_eq!(times(|what| matches!(what, What::Restarted { .. })), four);
    let report = end_of(&journal, at(9), |_| String::new());
    assert_eq!(report.restarts, [(1, 4)]);
}

#[test]
fn an_entry_has_the_time_of_each_of_its_ranks() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 9)), None);
    let mut numbers = Vec::new();
    for (rank, code, time) in [(0, 3, 1), (1, 3, 1), (2, 4, 2), (5, 3, 3), (4, 3, 3), (3, 4, 4)] {
        numbers.push(journals.append(&mut journal, at(time), failed(rank, code)));
    }
    let alike = journal.entries().iter().filter(|entry| matches!(entry.what(), What::Failed { .. }));
    let moments: Vec<Vec<Moment>> = alike.map(|entry| entry.moments().collect()).collect();
    let moment = |number: usize, seconds, ranks: &[u32]| Moment {
        number: numbers[number],
        at: at(seconds),
        ranks: ranks.iter().copied().collect(),
    };
    let expected =
        [vec![moment(0, 1, &[0, 1]), moment(3, 3, &[4, 5])], vec![moment(2, 2, &[2]), moment(5, 4, &[3])]];
    assert_eq!(moments, expected);
    assert_eq!((numbers[0], numbers[3]), (numbers[1], numbers[4]), "they are told under one number");
}

#[test]
fn pauses_and_resumptions_keep_their_order() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 9)), None);
    let paused = |rank, by: Option<u32>| What::Paused { ranks: Ranges::single(rank), by: by.map(proc) };
    for what in [paused(1, Some(0)), paused(2, Some(0)), paused(3, None)] {
        journals.append(&mut journal, at(1), what);
    }
    journals.append(&mut journal, at(2), What::Resumed { ranks: Ranges::single(1), by: None });
    journals.append(&mut journal, at(3), paused(1, None));
    let told = journal.entries().iter().filter_map(|entry| match entry.what() {
        What::Paused { ranks, by } => Some((format!("paused {ranks}"), by.is_some())),
        What::Resumed { ranks, by } => Some((format!("resumed {ranks}"), by.is_some())),
        _ => None,
    });
    let expected = [("paused 1-2", true), ("paused 3", false), ("resumed 1", false), ("paused 1", false)];
    assert_eq!(told.collect::<Vec<_>>(), expected.map(|(what, by)| (what.to_owned(), by)));
}

#[test]
fn repeated_entries_are_bounded_and_the_end_is_not() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 9)), None);
    for signal in 0..3000 {
        let (ranks, by) = (Ranges::single(1), proc(0));
        journals.append(&mut journal, at(1), What::Killed { ranks, by, signal });
    }
    journals.append(&mut journal, at(2), What::Ending(JobVerdict::Success));
    assert_eq!(journal.entries().len(), MOST_ENTRIES + 1);
    assert_eq!(journal.dropped(), 3002 - MOST_ENTRIES as u64);
    assert_eq!(journal.verdict(), Some(&JobVerdict::Success));
    let numbers: Vec<u64> = journal.entries().iter().map(|entry| entry.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.last() == Some(&3003));
}

#[test]
fn the_oldest_ended_jobs_go_first() {
    let mut all = journals(3, 1 << 20);
    for name in ["a", "b", "c", "d", "e"] {
        let journal = all.begin(at(0), at(0), placed(desc(name, 1)), None);
        all.keep(journal);
    }
    let kept = |all: &Journals| -> Vec<String> { all.iter().map(|j| j.desc().nspace.to_string()).collect() };
    assert_eq!(kept(&all), ["c", "d", "e"]);
    assert!(all.get(&Nspace::new("b").unwrap()).is_none());
    // A large job takes the room of many small ones.
    let pids = (0..10_000).map(|rank| (rank, rank)).collect();
    let mut large = all.begin(at(0), at(0), placed(desc("large", 10_000)), None);
    all.append(
        &mut large,
        at(1),
        What::Started {
            pids,
            programs: Programs::default(),
            after: seconds(1),
            whole: true,
            concerned: Arc::default(),
        },
    );
    assert!(large.weight() > 10_000 * 8, "{}", large.weight());
    all.keep(large);
    assert_eq!(kept(&all), ["d", "e", "large"]);
    let one = journals(3, 1000).begin(at(0), at(0), placed(desc("a", 9)), None).weight();
    let mut small = journals(3, one + one / 2);
    for name in ["a", "b"] {
        let journal = small.begin(at(0), at(0), placed(desc(name, 9)), None);
        small.keep(journal);
    }
    assert_eq!((kept(&small), small.bytes <= one), (vec!["b".to_owned()], true));
}

#[test]
fn phases_are_counted_from_the_submission() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(5), at(3), placed(desc("job", 2)), None);
    assert_eq!(journal.phases(), Phases { placed: Some(seconds(2)), ..Phases::default() });
    let (pids, concerned) = (vec![(0, 70), (1, 71)], Arc::default());
    journals.append(
        &mut journal,
        at(9),
        What::Started { pids, programs: Programs::default(), after: seconds(1), whole: true, concerned },
    );
    journals.append(&mut journal, at(9), What::Connected { count: 1, after: seconds(2) });
    assert_eq!((journal.phases().started, journal.phases().connected), (Some(seconds(3)), None));
    journals.append(&mut journal, at(9), What::Connected { count: 2, after: seconds(4) });
    assert_eq!(journal.phases().connected, Some(seconds(6)));
    let all = |after| Reached { count: 2, after: seconds(after) };
    let groups = vec![group(Ranges::first(2), 0, 8)];
    let ends = Ends {
        groups,
        connected: all(3),
        finalized: Reached { count: 1, after: seconds(7) },
        exited: all(8),
    };
    journals.append(&mut journal, at(20), What::Exited(Box::new(ends)));
    let report = end_of(&journal, at(23), |_| "n".into());
    let expected = Phases {
        placed: Some(seconds(2)),
        started: Some(seconds(3)),
        connected: Some(seconds(5)),
        finalized: None,
        exited: Some(seconds(10)),
        ended: Some(seconds(20)),
    };
    assert_eq!((report.phases, report.duration), (expected, seconds(18)));
    let words: Vec<_> = expected.iter().map(|(word, _)| word).collect();
    assert_eq!(words, ["placed", "started", "connected", "exited", "ended"]);
    let again = Phases::named(|name| expected.iter().find(|(word, _)| *word == name).map(|(_, time)| time));
    assert_eq!(again, expected);
}

#[test]
fn the_report_names_the_first_failure_and_lost_ranks() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 4)), None);
    let groups =
        vec![group(Ranges::single(0), 0, 1), group(Ranges::single(1), 4, 3), group(Ranges::single(2), 5, 2)];
    let ends = Ends { groups, ..Ends::default() };
    journals.append(&mut journal, at(6), What::Exited(Box::new(ends)));
    let report = end_of(&journal, at(7), |node| format!("n{}", node.0));
    assert_eq!(report.exit_code, 5);
    assert!(matches!(report.verdict, JobVerdict::Failed { first } if first.proc == proc(2)));
    let lost = report.procs.last().unwrap();
    assert_eq!((lost.status, lost.after, &*lost.node), (None, seconds(7), "n0"));
}

#[test]
fn the_first_failure_decides_though_the_job_has_gone_on() {
    let by = ProcId::new(&Nspace::new("tool").unwrap(), Rank(0));
    let kill = |rank| What::Killed { ranks: Ranges::single(rank), by: by.clone(), signal: 9 };
    let killed = || JobVerdict::Killed { by: by.clone(), signal: 9, first: None };
    let aborted = || JobVerdict::Aborted { by: proc(0), status: Status(7), message: "why".to_owned() };
    let lost = || JobVerdict::NodeLost { node: "n".to_owned(), why: String::new() };
    let again = |rank| What::Restarting { ranks: Ranges::single(rank), by: None, from: None };
    let ended = |verdict: JobVerdict, before: Vec<What>, after: Vec<What>| {
        let mut journals = journals(9, 1 << 20);
        let mut journal = journals.begin(at(0), at(0), placed(desc("job", 3)), None);
        let events = before.into_iter().chain([kill(0), What::Ending(verdict)]).chain(after);
        events.for_each(|what| {
            journals.append(&mut journal, at(3), what);
        });
        let mut groups = vec![group([1, 2].into_iter().collect(), 3, 2)];
        groups.push(EndGroup { killed_by_us: true, ..group(Ranges::single(0), 1, 4) });
        journals.append(&mut journal, at(4), What::Exited(Box::new(Ends { groups, ..Ends::default() })));
        let report = end_of(&journal, at(5), |_: NodeId| "n".to_owned());
        (report.exit_code, report.first.map(|proc| proc.rank.0))
    };
    let early = || vec![failed(2, 3), failed(1, 5)];
    for verdict in [killed(), aborted(), lost()] {
        assert_eq!(ended(verdict, early(), Vec::new()), (5, Some(1)), "rank 1 has failed before rank 2");
    }
    let cancelled = JobVerdict::Cancelled { signal: 2 };
    assert_eq!(ended(cancelled, early(), Vec::new()).0, 130, "the user has ended it");
    assert_eq!(ended(killed(), vec![failed(1, 5), again(1), failed(2, 3)], Vec::new()), (3, Some(2)));
    assert_eq!(ended(killed(), vec![failed(1, 5), again(1)], Vec::new()).0, 137);
    assert_eq!(ended(killed(), Vec::new(), early()).0, 137, "they may have failed because of it");
}

#[test]
fn orders_that_ended_an_earlier_process_end_no_later_one() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 3)), None);
    let [first, second] = ["first", "second"].map(|name| ProcId::new(&Nspace::new(name).unwrap(), Rank(0)));
    let kill = |ranks, by: &ProcId| What::Killed { ranks, by: by.clone(), signal: 9 };
    journals.append(&mut journal, at(1), kill(Ranges::first(2), &first));
    let again = What::Restarting { ranks: Ranges::single(1), by: None, from: None };
    journals.append(&mut journal, at(2), again);
    journals.append(&mut journal, at(3), kill([1, 2].into_iter().collect(), &second));
    let groups = vec![EndGroup { killed_by_us: true, ..group(Ranges::first(3), 1, 3) }];
    journals.append(&mut journal, at(4), What::Exited(Box::new(Ends { groups, ..Ends::default() })));
    let enders = end_of(&journal, at(4), |_: NodeId| String::new()).enders;
    let enders: Vec<_> = enders.into_iter().map(|ender| (ender.by, ender.ranks.to_string())).collect();
    assert_eq!(enders, [(first, "0".to_owned()), (second, "1-2".to_owned())]);
}

#[test]
fn orders_that_came_too_late_have_ended_no_process() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 2)), None);
    let [first, second] = ["first", "second"].map(|name| ProcId::new(&Nspace::new(name).unwrap(), Rank(0)));
    let kill = |ranks, by: &ProcId| What::Killed { ranks, by: by.clone(), signal: 9 };
    let spared = |ranks, by: &ProcId| What::Spared { ranks, by: by.clone(), signal: 9 };
    journals.append(&mut journal, at(1), kill(Ranges::first(2), &first));
    journals.append(&mut journal, at(2), kill(Ranges::single(1), &second));
    journals.append(&mut journal, at(3), kill(Ranges::single(1), &first));
    journals.append(&mut journal, at(4), spared(Ranges::single(1), &second));
    journals.append(&mut journal, at(4), spared(Ranges::single(1), &first));
    let kills = journal.kills();
    let kills: Vec<_> = kills.iter().map(|kill| (kill.by, kill.ranks.to_string())).collect();
    assert_eq!(kills, [(&first, "0-1".to_owned()), (&second, String::new()), (&first, String::new())]);
}

#[test]
fn a_reason_found_later_replaces_the_first() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 4)), None);
    assert_eq!(journal.start_status(), Status::ERR_JOB_FAILED_TO_LAUNCH);
    let failure = SpawnFailure { step: SpawnStep::Exec, subject: "x".into(), errno: 2 };
    for rank in [0, 1] {
        let ranks = Ranges::single(rank);
        journals.append(&mut journal, at(1), What::StartFailed { ranks, failure: failure.clone() });
    }
    assert_eq!(journal.start_status(), Status::ERR_JOB_EXE_NOT_FOUND);
    for (at_second, signal) in [(2, 15), (3, 9)] {
        journals.append(&mut journal, at(at_second), What::Ending(JobVerdict::Cancelled { signal }));
    }
    assert_eq!(journal.verdict(), Some(&JobVerdict::Cancelled { signal: 9 }));
    assert_eq!(end_of(&journal, at(4), |_: NodeId| String::new()).exit_code, 127);
}

#[test]
fn a_rank_that_runs_only_in_a_later_life_has_started() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(5), at(3), placed(desc("job", 3)), None);
    let concerned = Arc::default();
    let pids = vec![(1, 71)];
    let (programs, after) = (Programs::default(), seconds(1));
    journals.append(&mut journal, at(6), What::Started { pids, programs, after, whole: false, concerned });
    for (second, rank, phase) in
        [(7, 1, None), (8, 0, None), (9, 2, Some(seconds(6))), (10, 0, Some(seconds(6)))]
    {
        let (ranks, concerned) = (Ranges::single(rank), Arc::default());
        let (pids, programs) = (vec![(rank, 500)], Programs::default());
        journals.append(&mut journal, at(second), What::Restarted { ranks, pids, programs, concerned });
        assert_eq!(journal.phases().started, phase, "after {second} s");
    }
}

#[test]
fn texts_that_are_logged_keep_no_events_apart() {
    let mut journals = journals(9, 1 << 20);
    let mut journal = journals.begin(at(0), at(0), placed(desc("job", 4)), None);
    let text = || What::Logged { by: proc(0), text: "text".to_owned(), stated: None };
    for rank in 0..4 {
        journals.append(&mut journal, at(1), failed(rank, 3));
        assert!(journals.log(&mut journal, at(1), text()));
    }
    let failures = journal.entries().iter().filter(|entry| matches!(entry.what(), What::Failed { .. }));
    assert_eq!(failures.count(), 1);
    let before = journal.weight();
    assert!(journals.log(&mut journal, at(1), text()) && journal.weight() > before);
    let large = What::Logged { by: proc(0), text: "x".repeat(1 << 20), stated: None };
    assert!(!journals.log(&mut journal, at(1), large), "there is not so much room");
}
