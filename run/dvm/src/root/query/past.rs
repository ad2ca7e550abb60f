//! What has happened to jobs, as their journals have it.

use phalanx_core::Time;
use phalanx_spec::keys;
use phalanx_wire::{DataArray, Info, InfoList, Value};

use super::{names, nspace};
use crate::job::Waited;
use crate::msg::exit_code;
use crate::root::Root;
use crate::root::journal::{Entry, Journal, What};
use crate::root::lifecycle::about_waited;

impl Root {
    /// The entries of the journals, of one job or all, of the last so many milliseconds or since ever: the oldest first. If there are
    /// more than one answer holds, the newest.
    pub(super) fn happenings(&self, now: Time, qualifiers: &[Info]) -> DataArray {
        let wanted = nspace(qualifiers);
        let ago = qualifiers.find(names::SINCE).and_then(Value::as_u64).unwrap_or(u64::MAX);
        let live = self.jobs.values().map(|job| &job.journal);
        let journals = self.journals.iter().chain(live);
        let journals: Vec<&Journal> =
            journals.filter(|j| wanted.as_ref().is_none_or(|wanted| *wanted == j.desc().nspace)).collect();
        let is_recent = |entry: &Entry| now.since(entry.at()).as_millis() <= u128::from(ago);
        let entries = journals.iter().flat_map(|j| j.entries().iter().map(move |entry| (*j, entry)));
        let mut entries: Vec<_> = entries.filter(|(_, entry)| is_recent(entry)).collect();
        entries.sort_by_key(|(_, entry)| entry.number());
        let too_many = entries.len().saturating_sub(MOST_ENTRIES);
        let omitted = too_many as u64 + journals.iter().map(|journal| journal.dropped()).sum::<u64>();
        let head = [Info::new(names::NUMBER, self.journals.last()), Info::new(names::OMITTED, omitted)];
        let told = entries.into_iter().skip(too_many);
        let told = told.map(|(j, entry)| Info::new(names::HAPPENING, about(j, entry, now)));
        DataArray::of_infos(head.into_iter().chain(told))
    }
}

fn about(journal: &Journal, entry: &Entry, now: Time) -> DataArray {
    let (what, code) = (entry.what().words(), entry.what().event_codes().first().copied());
    let mut about = vec![
        Info::new(names::NUMBER, entry.number()),
        Info::new(names::AGE, now.since(entry.at()).as_millis() as u64),
        Info::new(keys::NSPACE, journal.desc().nspace.as_str()),
        Info::new(names::STATE, what),
    ];
    about.extend(code.map(|code| Info::new(names::CODE, code)));
    about.extend(entry.what().facts(journal));
    DataArray::of_infos(about)
}

impl What {
    /// In a word or two.
    fn words(&self) -> &'static str {
        match self {
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
            What::Signalled { .. } => "signalled",
            What::Paused { .. } => "paused",
            What::Resumed { .. } => "resumed",
            What::Stuck(_) => "waiting",
            What::Checkpointed { .. } => "checkpointed",
            What::Preempted { .. } => "preempted",
            What::Restarting { .. } => "restarting",
            What::Restarted { .. } => "restarted",
            What::Ending(_) => "ending",
            What::Exited(_) => "exited",
            What::Ended { .. } => "ended",
        }
    }

    fn facts(&self, journal: &Journal) -> Vec<Info> {
        let which = |ranks: &dyn std::fmt::Display| Info::new(names::WHICH, ranks.to_string());
        let text = |text: &str| Info::new(keys::EVENT_TEXT_MESSAGE, text);
        match self {
            What::Placed(_) => {
                let desc = journal.desc();
                vec![Info::new(keys::JOB_SIZE, desc.size), Info::new(keys::NUM_NODES, desc.nodes.count())]
            }
            What::StartFailed { ranks, failure } => vec![which(ranks), text(&failure.to_string())],
            What::Started { pids, .. } => vec![Info::new(names::COUNT, pids.len() as u32)],
            What::Connected { count, .. } => vec![Info::new(names::COUNT, *count)],
            What::LoadedMpi { by, library } => {
                vec![Info::new(keys::PROCID, by.clone()), Info::new(names::MPI, library.file.as_str())]
            }
            What::Failed { ranks, first, .. } | What::Left { ranks, first, .. } => {
                let mut facts = vec![which(ranks), Info::new(keys::PROCID, first.proc.clone())];
                facts.extend(first.status.map(|status| exit_code(status.shell_code())));
                facts
            }
            What::Lost { ranks, node, why, .. } => {
                vec![which(ranks), Info::new(keys::HOSTNAME, node.as_str()), text(why)]
            }
            What::Killed { ranks, by, signal } | What::Signalled { ranks, by, signal } => {
                vec![which(ranks), Info::new(keys::PROCID, by.clone()), Info::new(names::SIGNAL, *signal)]
            }
            What::Paused { ranks, by } | What::Resumed { ranks, by } => {
                let mut facts = vec![which(ranks)];
                facts.extend(by.clone().map(|by| Info::new(keys::PROCID, by)));
                facts
            }
            What::Stuck(all) => all.iter().map(|stuck| about_waited(&Waited::of(stuck))).collect(),
            What::Checkpointed { ranks, name } => vec![which(ranks), text(&name.to_string_lossy())],
            What::Preempted { ranks, by } => vec![which(ranks), Info::new(keys::PROCID, by.clone())],
            What::Restarting { ranks, by, from } => {
                let mut facts = vec![which(ranks)];
                facts.extend(by.clone().map(|by| Info::new(keys::PROCID, by)));
                facts.extend(from.as_ref().map(|name| text(&name.to_string_lossy())));
                facts
            }
            What::Restarted { ranks, .. } => vec![which(ranks)],
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
}

/// Of one answer.
const MOST_ENTRIES: usize = 4096;
