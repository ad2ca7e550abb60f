//! What follows for others when something about a job or an operation is decided: a list that one place carries out
//! (`Root::carry_out`), so that no verb has to know another.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::Status;
use phalanx_wire::{Info, Nspace, ProcId, Query, Text};

use crate::job::JobVerdict;
use crate::msg::{ControlRequest, Found, Members, ProcEnd, Programs, Stuck, Subject};
use crate::root::answer::Asker;

#[derive(Debug)]
pub(super) enum Consequence {
    /// The answer to a request of job control, remembered if the request has a name.
    Tell { asker: Asker, status: Status, results: Vec<Info> },
    /// The daemons have reported what the queries need.
    Answer { askers: Vec<Asker>, queries: Vec<Query>, found: BTreeMap<Subject, Found> },
    /// All daemons have finished the tasks of this operation, which has more to do.
    NextStep(u64),
    /// The job ends, for this reason unless there already is one.
    End { nspace: Nspace, verdict: JobVerdict },
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
    /// A rank has failed in a job that restarts failed ranks.
    Recover(ProcEnd),
    /// What the processes of a job were waiting for when its end was decided.
    Saw { nspace: Nspace, stuck: Vec<Stuck> },
}
