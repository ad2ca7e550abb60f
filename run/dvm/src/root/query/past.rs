//! The history of jobs, from their journals.

use phalanx_core::Time;
use phalanx_spec::{Rank, keys};
use phalanx_wire::{DataArray, Info, InfoList, ProcId, Value};

use super::inquiry::nspace;
use super::names;
use crate::job::Waited;
use crate::msg::exit_code;
use crate::ranges::Ranges;
use crate::root::about::about_waited;
use crate::root::dvm::Dvm;
use crate::root::journal::{Entry, Journal, Moment, What};

/// The journal entries of one job or all, of the last so many milliseconds or from the beginning, the oldest first. If
/// there are more than one answer holds, the newest of them.
pub(super) fn happenings(dvm: &Dvm, now: Time, qualifiers: &[Info]) -> DataArray {
    let wanted = nspace(qualifiers);
    let ago = qualifiers.find(names::SINCE).and_then(Value::as_u64).unwrap_or(u64::MAX);
    let live = dvm.jobs.values().map(|job| &job.journal);
    let journals = dvm.journals.iter().chain(live);
    let journals: Vec<&Journal> =
        journals.filter(|j| wanted.as_ref().is_none_or(|wanted| *wanted == j.desc().nspace)).collect();
    let is_recent = |moment: &Moment| now.since(moment.at).as_millis() <= u128::from(ago);
    let entries = journals.iter().flat_map(|j| j.entries().iter().map(move |entry| (*j, entry)));
    let kind = qualifiers.find(names::STATE).and_then(Value::as_str);
    let entries = entries.filter(|(_, entry)| kind.is_none_or(|kind| kind == words(entry.what())));
    let moments = entries.flat_map(|(j, entry)| entry.moments().map(move |moment| (j, entry, moment)));
    let mut entries: Vec<_> = moments.filter(|(.., moment)| is_recent(moment)).collect();
    entries.sort_by_key(|(.., moment)| moment.number);
    let mut bytes = 0;
    let fits = |(_, entry, _): &&(&Journal, &Entry, Moment)| {
        bytes += text_bytes(entry.what());
        bytes <= MOST_BYTES
    };
    let some = entries.iter().rev().take(MOST_ENTRIES).take_while(fits).count();
    let too_many = entries.len() - some;
    // No text that was logged is dropped.
    let dropped = journals.iter().map(|journal| journal.dropped()).sum::<u64>();
    let omitted = too_many as u64 + if kind == Some(names::LOGGED) { 0 } else { dropped };
    let head = [Info::new(names::NUMBER, dvm.journals.last()), Info::new(names::OMITTED, omitted)];
    let told = entries.into_iter().skip(too_many);
    let told = told.map(|(j, entry, moment)| Info::new(names::HAPPENING, about(j, entry, &moment, now)));
    DataArray::of_infos(head.into_iter().chain(told))
}

fn about(journal: &Journal, entry: &Entry, moment: &Moment, now: Time) -> DataArray {
    let (what, code) = (words(entry.what()), entry.what().event_codes().first().copied());
    let mut about = vec![
        Info::new(names::NUMBER, moment.number),
        Info::new(names::AGE, now.since(moment.at).as_millis() as u64),
        Info::new(keys::NSPACE, journal.desc().nspace.as_str()),
        Info::new(names::STATE, what),
    ];
    about.extend(code.map(|code| Info::new(names::CODE, code)));
    about.extend(facts(entry.what(), journal, &moment.ranks));
    DataArray::of_infos(about)
}

fn text_bytes(what: &What) -> usize {
    match what {
        What::Logged { text, .. } => text.len(),
        _ => 0,
    }
}

/// The event in a word or two.
fn words(what: &What) -> &'static str {
    match what {
        What::Submitted => "submitted",
        What::Placed(_) => "placed",
        What::StartFailed { .. } => "start failed",
        What::StartOverdue => "start overdue",
        What::Began { .. } => "first process started",
        What::Started { .. } => "started",
        What::Connected { .. } => "connected",
        What::LoadedMpi { .. } => "loaded MPI",
        What::Stopped => "waiting for a debugger",
        What::Failed { .. } => "failed",
        What::Left { .. } => "left",
        What::Lost { .. } => "node lost",
        What::Killed { .. } => "killed",
        What::Spared { .. } => "ended before that",
        What::Signalled { .. } => "signalled",
        What::Paused { .. } => "paused",
        What::Resumed { .. } => "resumed",
        What::Stuck(_) => "waiting",
        What::Checkpointed { .. } => "checkpointed",
        What::Preempted { .. } => "preempted",
        What::Restarting { .. } => "restarting",
        What::Restarted { .. } => "restarted",
        What::Logged { .. } => names::LOGGED,
        What::Ending(_) => "ending",
        What::Exited(_) => "exited",
        What::Ended { .. } => "ended",
    }
}

/// `ranks`: the ranks to which it happened at that moment.
fn facts(what: &What, journal: &Journal, ranks: &Ranges) -> Vec<Info> {
    let which = || Info::new(names::WHICH, ranks.to_string());
    let text = |text: &str| Info::new(keys::EVENT_TEXT_MESSAGE, text);
    match what {
        What::Placed(_) => {
            let desc = journal.desc();
            vec![Info::new(keys::JOB_SIZE, desc.size), Info::new(keys::NUM_NODES, desc.nodes.count())]
        }
        What::StartFailed { failure, .. } => vec![which(), text(&failure.to_string())],
        What::Started { pids, .. } => vec![Info::new(names::COUNT, pids.len() as u32)],
        What::Connected { count, .. } => vec![Info::new(names::COUNT, *count)],
        What::LoadedMpi { by, library } => {
            vec![Info::new(keys::PROCID, by.clone()), Info::new(names::MPI, library.file.as_str())]
        }
        What::Failed { first, .. } | What::Left { first, .. } => {
            let first_then = ranks.min().filter(|_| !ranks.contains(first.proc.rank.0));
            let proc = ProcId { rank: first_then.map_or(first.proc.rank, Rank), ..first.proc.clone() };
            let mut facts = vec![which(), Info::new(keys::PROCID, proc)];
            facts.extend(first.status.map(|status| exit_code(status.shell_code())));
            facts
        }
        What::Lost { node, why, .. } => {
            vec![which(), Info::new(keys::HOSTNAME, node.as_str()), text(why)]
        }
        What::Killed { by, signal, .. }
        | What::Spared { by, signal, .. }
        | What::Signalled { by, signal, .. } => {
            vec![which(), Info::new(keys::PROCID, by.clone()), Info::new(names::SIGNAL, *signal)]
        }
        What::Paused { by, .. } | What::Resumed { by, .. } => {
            let mut facts = vec![which()];
            facts.extend(by.clone().map(|by| Info::new(keys::PROCID, by)));
            facts
        }
        What::Stuck(all) => all.iter().map(|stuck| about_waited(&Waited::of(stuck))).collect(),
        What::Checkpointed { name, .. } => vec![which(), text(&name.to_string_lossy())],
        What::Preempted { by, .. } => vec![which(), Info::new(keys::PROCID, by.clone())],
        What::Restarting { by, from, .. } => {
            let mut facts = vec![which()];
            facts.extend(by.clone().map(|by| Info::new(keys::PROCID, by)));
            facts.extend(from.as_ref().map(|name| text(&name.to_string_lossy())));
            facts
        }
        What::Restarted { .. } => vec![which()],
        What::Logged { by, text, stated } => {
            let mut facts =
                vec![Info::new(keys::PROCID, by.clone()), Info::new(keys::LOG_MSG, text.as_str())];
            facts.extend(stated.map(|seconds| Info::new(keys::LOG_TIMESTAMP, Value::Time(seconds))));
            facts
        }
        What::Ending(verdict) => {
            let mut facts = vec![Info::new(names::VERDICT, verdict.word())];
            facts.extend(verdict.node().map(|node| Info::new(keys::HOSTNAME, node)));
            facts.extend(verdict.reason().map(text));
            facts
        }
        What::Ended { verdict, exit_code: code, .. } => {
            vec![Info::new(names::VERDICT, verdict.word()), exit_code(*code)]
        }
        What::Submitted | What::Began { .. } | What::StartOverdue | What::Stopped | What::Exited(_) => {
            Vec::new()
        }
    }
}

/// The most entries in one answer.
const MOST_ENTRIES: usize = 4096;
/// The most bytes of logged texts in one answer.
const MOST_BYTES: usize = 4 << 20;
