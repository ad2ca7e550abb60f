//! What follows for others when something about a job or an operation is decided: a list that one place carries out
//! (`Root::carry_out`), so that no verb has to know another.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::Status;
use phalanx_wire::{Info, Nspace, ProcId, Query, Text};

use crate::job::JobVerdict;
use crate::msg::{Control, ControlRequest, Found, Members, ProcEnd, Programs, Stuck, Subject};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::journal::What;

#[derive(Debug)]
pub(super) enum Consequence {
    /// The answer to a request of job control, remembered if the request has a name.
    Tell { asker: Asker, status: Status, results: Vec<Info> },
    /// The daemons have reported what the queries need.
    Answer { askers: Vec<Asker>, queries: Vec<Query>, found: BTreeMap<Subject, Found> },
    /// The answer to a log request, and lines for the requester about what has failed or is ignored.
    Logged { askers: Vec<Asker>, from: ProcId, status: Status, notes: Vec<String> },
    /// All daemons have finished the tasks of this operation, which has more to do.
    NextStep(u64),
    /// What follows for a job from a fact about it.
    Of { nspace: Nspace, step: Step },
    /// Ranks were ended by this requester.
    Ended { members: Members, by: ProcId, signal: i32 },
    /// Ranks that this requester wanted to end had ended before.
    Spared { members: Members, by: ProcId, signal: i32 },
    /// Ranks were ended by this requester, and others of the job are known to go on.
    GoesOn { members: Members, by: ProcId, signal: i32 },
    /// All daemons have recorded these paths for the clean-up.
    Cleanup { members: Arc<[Members]>, request: Arc<ControlRequest> },
    /// These ranks have taken a checkpoint of this name.
    Checkpointed { members: Members, name: Text },
    /// What the asker wanted after its checkpoint.
    Control { asker: Asker, members: Vec<Members>, request: ControlRequest },
    /// The DVM is to end: this process or tool has requested it.
    Shutdown { by: ProcId },
    /// No restart of these is under way any more.
    RestartOver(Members),
    /// They run again, with these pids and programs.
    Restarted { members: Members, pids: Vec<(u32, u32)>, programs: Programs },
    /// What the processes of a job were waiting for when its end was decided.
    Saw { nspace: Nspace, stuck: Vec<Stuck> },
}

/// What follows for one job. Ranks are its own.
#[derive(Debug)]
pub(super) enum Step {
    /// Its first process runs, if that was not known yet.
    Begin,
    /// It is entered into the journal, and announced.
    Enter(What),
    /// The daemons are notified of ranks that have died, so that nothing waits for them.
    Dead(Ranges),
    /// Their slots are free.
    Free(Ranges),
    FreeAll,
    /// What they have published is withdrawn.
    Withdraw(Ranges),
    WithdrawAll,
    /// The other ranks are notified, if they survive failures.
    Survivors(Ranges),
    /// A line for the user, if the request asks for one of `wanted`.
    Line {
        wanted: &'static [&'static str],
        text: String,
    },
    /// The line for the user about how it has ended, if the request asks for it.
    LineAboutEnd,
    /// A line for the user.
    Note(String),
    /// Whatever waits for these ranks is released: the job goes on without them.
    GoOnWithout(Ranges),
    /// A rank that has failed is started again, or the job ends.
    Recover(ProcEnd),
    /// It ends, for this reason unless there already is one.
    End(JobVerdict),
    /// The reason of its end is recorded, unless there already is one.
    Reason(JobVerdict),
    /// Ranks are being ended by this requester.
    Kill {
        ranks: Ranges,
        by: ProcId,
        signal: i32,
    },
    /// The user pauses or resumes ranks.
    Pause {
        ranks: Ranges,
        control: Control,
    },
    /// The daemons act on these ranks, or on all.
    Order {
        ranks: Option<Ranges>,
        action: Control,
    },
    /// The daemons look what its processes are waiting for.
    LastLook,
    /// The user is notified that it is ending.
    ReportEnding,
    /// Its output is given up after a while if nobody reads it.
    WatchReaders,
    /// Its output is given up.
    AbandonReaders,
    /// The streams of these ranks are lost.
    LoseStreams(Ranges),
    /// Its start and end are complete without the daemons that are lost.
    AwaitDaemons,
    /// Each process runs, or never will.
    AnswerSpawn,
    /// All daemons forget it.
    Forget,
}
