//! Log requests of processes and tools.
//!
//! The channels of a request are served in its order. Streams, records of jobs and publications are the root's own; daemons write to syslogs and
//! files, and run the command that sends mails. Channels that daemons serve are an operation. With `PMIX_LOG_ONCE` each waits for
//! the one before it, and the first that succeeds is the last.
//!
//! The answer is one status, so each channel that has failed is named in a line for the requester.

mod channel;
mod line;
mod mail;
mod request;

use std::collections::BTreeSet;
use std::time::Duration;

use phalanx_core::host::{Asked, LogRequest};
use phalanx_spec::{Persistence, Range, Status, keys};
use phalanx_wire::cmd::publish::Publish;
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::msg::{LogLine, Part, Task};
use crate::ranges::Ranges;
use crate::root::answer::{Answer, Asker};
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::iof::{self, Readers};
use crate::root::jobs::Jobs;
use crate::root::journal::{MOST_LOGGED, MOST_LOGGED_BYTES, What};
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Operations;
use crate::root::publish::{self, Store};
use crate::root::query::names;
use crate::root::turn::Cx;

use channel::{Channel, Fault, Syslog};
use request::{Wish, Wishes};

/// The channels that exist.
pub(crate) const CHANNELS: &[&str] = &[
    keys::LOG_STDERR,
    keys::LOG_STDOUT,
    keys::LOG_SYSLOG,
    keys::LOG_LOCAL_SYSLOG,
    keys::LOG_GLOBAL_SYSLOG,
    keys::LOG_EMAIL,
    keys::LOG_EMAIL_ADDR,
    keys::LOG_EMAIL_SENDER_ADDR,
    keys::LOG_EMAIL_SUBJECT,
    keys::LOG_EMAIL_MSG,
    keys::LOG_EMAIL_SERVER,
    keys::LOG_EMAIL_SRVR_PORT,
    keys::LOG_JOB_RECORD,
    keys::LOG_GLOBAL_DATASTORE,
    names::LOG_FILE,
];
pub(crate) const ATTRIBUTES: &[&str] = request::DIRECTIVES;

/// The tables in which the root's own channels are.
pub(super) struct Means<'a> {
    pub(super) dvm: &'a mut Dvm,
    pub(super) readers: &'a mut Readers,
    pub(super) store: &'a mut Store,
    pub(super) operations: &'a mut Operations,
}

/// A request of which channels are open.
#[derive(Debug)]
pub(super) struct Logging {
    from: ProcId,
    source: ProcId,
    /// The user of the requester.
    user: Vec<Info>,
    origin: NodeId,
    once: bool,
    items: Vec<Item>,
    notes: Vec<String>,
    /// The beginning of each line about it.
    name: String,
}

/// One of its channels.
#[derive(Debug)]
struct Item {
    name: String,
    state: State,
    /// Why what was tried first has failed.
    earlier: Option<String>,
}

#[derive(Debug)]
enum State {
    Waiting(Channel),
    /// A daemon serves it. If that fails, the second is tried.
    UnderWay(Option<Channel>),
    Done(Result<(), Fault>),
}

pub(super) fn log(
    cx: &mut Cx<'_>,
    means: &mut Means<'_>,
    answer: Answer,
    request: &LogRequest,
) -> Vec<Consequence> {
    let from = &request.from;
    let asker = Asker::new(from, answer);
    let job = means.dvm.jobs.get_mut(&from.nspace);
    if job.is_some_and(|job| is_repetition(&mut job.logged, &request.directives)) {
        asker.answer.done(cx, Status::SUCCESS);
        return Vec::new();
    }
    let name = name_of(means.dvm, from);
    let Wishes { wishes, source, once, notes } = match request::read(means.dvm, cx.now, request) {
        Ok(wishes) => wishes,
        Err(Fault { status, why }) => {
            let notes = vec![format!("{name}log failed: {why}")];
            return vec![Consequence::Logged { askers: vec![asker], from: from.clone(), status, notes }];
        }
    };
    let item = |Wish { name, channel }| {
        let state = channel.map_or_else(|fault| State::Done(Err(fault)), State::Waiting);
        Item { name, state, earlier: None }
    };
    let is_user = |info: &&Info| [keys::USERID, keys::GRPID].contains(&info.key.as_str());
    let mut user: Vec<Info> = request.directives.iter().rev().filter(is_user).take(2).cloned().collect();
    user.reverse();
    let (from, origin) = (from.clone(), asker.answer.origin());
    let items = wishes.into_iter().map(item).collect();
    let mut logging = Logging { from, source, user, origin, once, items, notes, name };
    let mut tasks = logging.go_on(cx, means);
    while !tasks.is_empty() && means.operations.of::<Logging>().count() >= MOST {
        let why = format!("{MOST} other requests wait for daemons");
        logging.fail_open(&Fault::new(Status::ERR_OUT_OF_RESOURCE, why));
        tasks = logging.go_on(cx, means);
    }
    if tasks.is_empty() {
        return logging.over(vec![asker]);
    }
    let until = Some(cx.now.after(LIMIT));
    if let Some(number) = means.operations.begin(cx, Some(asker), until, logging) {
        tasks.into_iter().for_each(|(node, task)| {
            means.operations.give_task(cx, number, Ranges::single(node.0), task);
        });
    }
    Vec::new()
}

/// The open channels of an operation are done, and another is to be tried.
pub(super) fn next_step(cx: &mut Cx<'_>, means: &mut Means<'_>, number: u64) -> Vec<Consequence> {
    let Some(open) = means.operations.get_mut::<Logging>(number) else { return Vec::new() };
    let placeholder = open.without_items();
    let mut logging = std::mem::replace(open, placeholder);
    let tasks = logging.go_on(cx, means);
    if let Some(open) = means.operations.get_mut::<Logging>(number) {
        *open = logging;
    }
    if tasks.is_empty() {
        return means.operations.finish(cx, number, Status::SUCCESS);
    }
    means.operations.move_limit(number, cx.now.after(LIMIT));
    for (node, task) in tasks {
        means.operations.give_task(cx, number, Ranges::single(node.0), task);
    }
    Vec::new()
}

/// Daemons have not served the open channels of an operation in time.
pub(super) fn overdue(cx: &mut Cx<'_>, operations: &mut Operations, number: u64) -> Vec<Consequence> {
    let Some(logging) = operations.get_mut::<Logging>(number) else { return Vec::new() };
    let why = format!("it was not done in {} s", LIMIT.as_secs());
    logging.fail_open(&Fault::new(Status::ERR_TIMEOUT, why));
    operations.drop_tasks(cx, number, |_| true)
}

impl Logging {
    /// What stands in for a request while its channels are served.
    fn without_items(&self) -> Logging {
        Logging {
            from: self.from.clone(),
            source: self.source.clone(),
            user: Vec::new(),
            origin: self.origin,
            once: self.once,
            items: Vec::new(),
            notes: Vec::new(),
            name: String::new(),
        }
    }

    /// Serves all channels that need not wait for others. Returns what daemons are to do.
    fn go_on(&mut self, cx: &mut Cx<'_>, means: &mut Means<'_>) -> Vec<(NodeId, Task)> {
        let mut tasks = Vec::new();
        while let Some(item) = self.next() {
            tasks.extend(self.serve(cx, means, item));
        }
        tasks
    }

    /// The next channel to serve.
    fn next(&self) -> Option<usize> {
        let ends = |item: &Item| matches!(item.state, State::UnderWay(_) | State::Done(Ok(())));
        if self.once && self.items.iter().any(ends) {
            return None;
        }
        self.items.iter().position(|item| matches!(item.state, State::Waiting(_)))
    }

    fn serve(&mut self, cx: &mut Cx<'_>, means: &mut Means<'_>, number: usize) -> Option<(NodeId, Task)> {
        let item = self.items.get_mut(number)?;
        let State::Waiting(channel) = std::mem::replace(&mut item.state, State::UnderWay(None)) else {
            return None;
        };
        let item_number = number as u32;
        let result = match channel {
            Channel::Syslog(which, priority, line) => {
                let node = if which == Syslog::Local { self.origin } else { NodeId::ROOT };
                let has_second = which == Syslog::Any && self.origin != NodeId::ROOT;
                let second = has_second.then(|| Channel::Syslog(Syslog::Local, priority, line.clone()));
                item.state = State::UnderWay(second);
                return Some((
                    node,
                    Task::Log { item: item_number, line: LogLine::Syslog { priority, line } },
                ));
            }
            Channel::File(path, line) => {
                return Some((
                    self.origin,
                    Task::Log { item: item_number, line: LogLine::File { path, line } },
                ));
            }
            Channel::Mail(mail) => {
                return Some((NodeId::ROOT, Task::Mail { item: item_number, mail, limit: MAIL_LIMIT }));
            }
            Channel::Stream(channel, text) => {
                let Means { dvm, readers, .. } = means;
                let status = iof::show_logged(cx, dvm, readers, &self.source, channel, text);
                shown(status)
            }
            Channel::Record(nspace, text, stated) => {
                let what = What::Logged { by: self.source.clone(), text, stated };
                record(cx, means.dvm, &nspace, what)
            }
            Channel::Store(infos) => {
                let mut info = vec![
                    Info::new(keys::RANGE, Range::SESSION),
                    Info::new(keys::PERSISTENCE, Persistence::SESSION),
                ];
                info.extend(infos);
                info.extend(self.user.iter().cloned());
                let uid =
                    self.user.find(keys::USERID).and_then(Value::as_u32).unwrap_or(means.dvm.config.uid);
                let request = Asked { from: self.from.clone(), request: Publish { uid, info } };
                let Means { dvm, store, operations, .. } = means;
                published(publish::publish(cx, dvm, store, operations, &request))
            }
        };
        item.state = State::Done(result);
        None
    }

    /// A daemon has served a channel, or not.
    fn served(&mut self, number: usize, result: Result<(), Fault>) {
        let Some(item) = self.items.get_mut(number) else { return };
        let State::UnderWay(second) = &mut item.state else { return };
        item.state = match (second.take(), result) {
            (Some(second), Err(fault)) => {
                item.earlier = Some(fault.why);
                State::Waiting(second)
            }
            (_, result) => State::Done(result),
        };
    }

    /// Daemons do not serve the open channels.
    fn fail_open(&mut self, why: &Fault) {
        (0..self.items.len()).for_each(|item| self.served(item, Err(why.clone())));
    }

    /// All channels are served that are to be: answers the request.
    fn over(self, askers: Vec<Asker>) -> Vec<Consequence> {
        let (status, failures) = self.outcome();
        let notes = self.notes.iter().chain(&failures).map(|note| format!("{}{note}", self.name)).collect();
        vec![Consequence::Logged { askers, from: self.from, status, notes }]
    }

    /// The answer, and a line for each failure.
    fn outcome(&self) -> (Status, Vec<String>) {
        let mut failures = Vec::new();
        let (mut first, mut is_any_served) = (None, false);
        for Item { name, state, earlier } in &self.items {
            match state {
                State::Done(Ok(())) => is_any_served = true,
                State::Done(Err(Fault { status, why })) => {
                    first.get_or_insert(*status);
                    let both = earlier
                        .as_ref()
                        .map(|before| format!("the global one: {before}; the local one: {why}"));
                    failures.push(format!("log to {name} failed: {}", both.as_ref().unwrap_or(why)));
                }
                // Not to be tried after another has succeeded.
                State::Waiting(_) | State::UnderWay(_) => {}
            }
        }
        let status = match first {
            Some(_) if is_any_served && self.once => Status::SUCCESS,
            Some(_) if is_any_served => Status::ERR_PARTIAL_SUCCESS,
            Some(status) => status,
            None if is_any_served => Status::SUCCESS,
            None => Status::ERROR,
        };
        (status, failures)
    }
}

impl Kind for Logging {
    fn name(&self) -> &'static str {
        "log"
    }

    fn most(&self) -> usize {
        MOST
    }

    fn task_done(&mut self, task: &Task, missing: &Ranges, part: Part, _: &Jobs) {
        let (Task::Log { item, .. } | Task::Mail { item, .. }) = task else { return };
        let results = match part {
            Part::Results(results) => results,
            _ => Default::default(),
        };
        let result = match results.iter().next() {
            Some((status, _)) if status.is_success() => Ok(()),
            Some((status, _)) => Err(Fault::new(status, results.why(status).unwrap_or("no reason is known"))),
            None if !missing.is_empty() => {
                Err(Fault::new(Status::ERR_LOST_CONNECTION, "the daemon was lost"))
            }
            None => Err(Fault::new(Status::ERROR, "the daemon has reported no result")),
        };
        self.served(*item as usize, result);
    }

    fn has_next_step(&mut self) -> bool {
        self.next().is_some()
    }

    /// What a process logs may be its last words.
    fn outlives_askers(&self) -> bool {
        true
    }

    fn answer(self: Box<Self>, _: &mut Cx<'_>, askers: Vec<Asker>, _: Status) -> Vec<Consequence> {
        self.over(askers)
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        let open = self.items.iter().filter(|item| matches!(item.state, State::UnderWay(_)));
        Explained {
            subject: open.map(|item| &*item.name).collect::<Vec<_>>().join(", "),
            unblocked_by: "daemons that write to syslogs and files, and the command that sends mails",
            ..Explained::default()
        }
    }
}

fn shown(status: Status) -> Result<(), Fault> {
    match status {
        status if status.is_success() => Ok(()),
        Status::ERR_OUT_OF_RESOURCE => {
            Err(Fault::new(status, "its reader takes nothing, and too much waits"))
        }
        Status::ERR_NOT_AVAILABLE => Err(Fault::new(status, "nothing reads it")),
        status => Err(Fault::new(status, status.to_string())),
    }
}

fn published(status: Status) -> Result<(), Fault> {
    match status {
        status if status.is_success() => Ok(()),
        Status::ERR_DUPLICATE_KEY => Err(Fault::new(status, "one of the keys is published already")),
        Status::ERR_OUT_OF_RESOURCE => Err(Fault::new(status, "the store is full")),
        Status::ERR_NOT_FOUND => Err(Fault::new(status, "the requester has ended")),
        status => Err(Fault::new(status, status.to_string())),
    }
}

fn record(cx: &Cx<'_>, dvm: &mut Dvm, nspace: &Nspace, what: What) -> Result<(), Fault> {
    let Some(job) = dvm.jobs.get_mut(nspace) else {
        let why = match dvm.journals.get(nspace) {
            Some(_) => format!("job {nspace} has ended"),
            None => format!("no job {nspace} is known"),
        };
        return Err(Fault::new(Status::ERR_NOT_FOUND, why));
    };
    match dvm.journals.log(&mut job.journal, cx.now, what) {
        true => Ok(()),
        false => {
            let why =
                format!("it is full: it takes {MOST_LOGGED} texts of {MOST_LOGGED_BYTES} bytes together");
            Err(Fault::new(Status::ERR_OUT_OF_RESOURCE, why))
        }
    }
}

/// The beginning of a line about a rank. A tool is alone with its user, and needs no name.
fn name_of(dvm: &Dvm, from: &ProcId) -> String {
    match dvm.is_tool(from) {
        true => String::new(),
        false => format!("rank {} of {}: ", from.rank, from.nspace),
    }
}

/// Aggregated messages are shown once per kind: Open MPI 5 logs its help texts from every process.
fn is_repetition(kinds: &mut BTreeSet<String>, directives: &[Info]) -> bool {
    let part = |key| directives.find(key).and_then(Value::as_str).unwrap_or_default();
    let kind = format!("{} {}", part(keys::LOG_KEY), part(keys::LOG_VAL));
    let is_told_by_kind = directives.is_set(keys::LOG_AGG) && kind.len() > 1;
    if !is_told_by_kind || (kinds.len() >= MOST_KINDS && !kinds.contains(&kind)) {
        return false;
    }
    !kinds.insert(kind)
}

/// The most kinds of messages that are remembered per job.
const MOST_KINDS: usize = 1024;
/// The most requests that wait for daemons.
const MOST: usize = 64;
/// How long the command that sends a mail may take.
const MAIL_LIMIT: Duration = Duration::from_secs(60);
/// How long a daemon may take to serve a channel and to report that.
const LIMIT: Duration = Duration::from_secs(70);
