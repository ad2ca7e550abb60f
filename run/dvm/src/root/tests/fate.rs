//! What follows for a job from a fact about it: the steps alone, without anything being done.

use super::*;
use crate::root::consequence::Step;
use crate::root::fate::{self, Fact};

struct Job {
    scene: RootScene,
    nspace: Nspace,
}

/// A job of eight ranks on two nodes.
fn job(on_failure: FailurePolicy) -> Job {
    let mut scene = RootScene::up(2);
    let nspace = scene.launch(JobRequest { on_failure, ..JobRequest::default() }, 8);
    Job { scene, nspace }
}

impl Job {
    fn steps(&self, fact: Fact<'_>) -> Vec<Step> {
        let job = &self.scene.root.dvm.jobs[&self.nspace];
        fate::steps(self.scene.now, job, &Vec::new().into(), fact)
    }

    /// The names of the steps.
    fn named(&self, fact: Fact<'_>) -> Vec<String> {
        let name =
            |step: &Step| format!("{step:?}").split([' ', '(', '{']).next().unwrap_or_default().to_owned();
        self.steps(fact).iter().map(name).collect()
    }

    fn end(&self, status: Option<ExitStatus>) -> ProcEnd {
        let Up::Failed(end) = failed(&self.nspace, 1) else { panic!("a failure") };
        ProcEnd { status, ..end }
    }
}

const FAILED: Option<ExitStatus> = Some(ExitStatus::Code(3));

#[test]
fn a_failure_ends_its_job_and_is_the_reason() {
    let job = job(FailurePolicy::KillJob);
    let end = job.end(FAILED);
    let steps = ["Begin", "Free", "Withdraw", "Enter", "Line", "End"];
    assert_eq!(job.named(Fact::Failed(&end)), steps);
    let last = job.steps(Fact::Failed(&end)).pop();
    assert!(matches!(last, Some(Step::End(JobVerdict::Failed { first })) if first == end));
}

#[test]
fn a_failure_that_a_job_survives_releases_what_waits() {
    let job = job(FailurePolicy::Continue);
    let end = job.end(FAILED);
    let steps = ["Begin", "Dead", "Free", "Withdraw", "Enter", "Survivors", "Line", "GoOnWithout"];
    assert_eq!(job.named(Fact::Failed(&end)), steps);
}

#[test]
fn a_rank_that_is_to_be_restarted_keeps_its_slot() {
    let job = job(FailurePolicy::Restart { most: 1 });
    let end = job.end(FAILED);
    let steps = ["Begin", "Dead", "Withdraw", "Enter", "Survivors", "Line", "GoOnWithout", "Recover"];
    assert_eq!(job.named(Fact::Failed(&end)), steps);
}

#[test]
fn a_process_that_never_ran_does_not_begin_the_job() {
    let job = job(FailurePolicy::KillJob);
    let end = job.end(None);
    assert_eq!(job.named(Fact::Failed(&end)), ["Free", "Withdraw", "Enter", "Line", "End"]);
}

#[test]
fn a_lost_node_ends_a_job_or_takes_its_ranks_away() {
    let lost = || Fact::NodeLost { node: NodeId(1), name: "n1", why: "cut off" };
    assert_eq!(job(FailurePolicy::KillJob).named(lost()), ["LoseStreams", "End", "AwaitDaemons"]);
    let survivor = job(FailurePolicy::Continue);
    let steps = ["LoseStreams", "Dead", "Withdraw", "Enter", "Survivors", "Note", "AwaitDaemons"];
    assert_eq!(survivor.named(lost()), steps);
    let lost = survivor.steps(lost());
    let [Step::LoseStreams(ranks), Step::Dead(dead), ..] = &lost[..] else { panic!("{lost:?}") };
    assert!(ranks == dead && ranks.count() == 4, "{ranks:?}");
    // What waits for them is released once they are dead for all jobs.
    let without = || Fact::WithoutNode(NodeId(1));
    assert_eq!(survivor.named(without()), ["GoOnWithout"]);
    assert_eq!(job(FailurePolicy::KillJob).named(without()), [""; 0]);
}

#[test]
fn only_the_first_reason_ends_a_job() {
    let mut job = job(FailurePolicy::KillJob);
    let steps = ["Reason", "LastLook", "ReportEnding", "WatchReaders", "Order"];
    let cancelled = || Fact::Doomed(JobVerdict::Cancelled { signal: 15 });
    assert_eq!(job.named(cancelled()), steps);
    let nspace = job.nspace.clone();
    job.scene.tell(ToRoot::Control { nspace, action: Control::Terminate { signal: 15 } });
    assert_eq!(job.named(cancelled()), [""; 0]);
    // A second, stronger order goes to the daemons all the same.
    let kill = Fact::Controlled(Control::Kill);
    assert_eq!(job.named(kill), ["Reason", "ReportEnding", "AbandonReaders", "Order"]);
}

#[test]
fn an_abort_of_some_ranks_spares_the_others_of_a_survivor() {
    let ranks: Ranges = [1, 2].into_iter().collect();
    let by = ProcId::new(&Nspace::new("other").unwrap(), Rank(0));
    let aborted = || Fact::Aborted { ranks: &ranks, by: &by, status: Status::ERROR, message: "" };
    assert_eq!(job(FailurePolicy::KillJob).named(aborted()), ["End"]);
    assert_eq!(job(FailurePolicy::Continue).named(aborted()), ["Kill", "Order"]);
}

#[test]
fn nothing_happens_to_a_job_whose_processes_have_ended() {
    let mut job = job(FailurePolicy::KillJob);
    let ends = || Box::<Ends>::default();
    let steps = ["Enter", "Enter", "FreeAll", "LineAboutEnd", "WithdrawAll", "Forget"];
    assert_eq!(job.named(Fact::Exited(ends())), steps);
    job.scene.gathered(OpId::Ended(job.nspace.clone()), Part::Ends(ends()));
    let end = job.end(FAILED);
    let lost = Fact::NodeLost { node: NodeId(1), name: "n1", why: "cut off" };
    let cancelled = Fact::Doomed(JobVerdict::Cancelled { signal: 15 });
    for fact in [Fact::Failed(&end), Fact::Left(&end), lost, cancelled, Fact::Exited(ends())] {
        assert_eq!(job.named(fact), [""; 0]);
    }
}
