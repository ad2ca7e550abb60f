//! What the root knows of the DVM, its nodes, jobs and tools, and which daemons want which events.
//!
//! Most verbs only read it: they are handed `&Dvm`. Those that change what is known of a job are handed `&mut Dvm`.

use std::sync::Arc;

use phalanx_core::support::Honoured;
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::{Nspace, ProcId, plain};

use crate::config::NodeConfig;
use crate::id::NodeId;
use crate::msg::{Down, JobDesc, Members};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::interests::Interests;
use crate::root::jobs::Jobs;
use crate::root::journal::{Journals, What};
use crate::root::nodes::Nodes;
use crate::root::relations::{Relation, Relations};
use crate::root::tool::Tools;
use crate::root::turn::Cx;

#[derive(Debug)]
pub(super) struct Dvm {
    pub(super) config: NodeConfig,
    /// The attributes that each function honours, in the whole runtime.
    pub(super) functions: &'static [Honoured],
    pub(super) nodes: Nodes,
    pub(super) tools: Tools,
    pub(super) jobs: Jobs,
    /// Journals of ended jobs; the journal of a running job is in its `RootJob`.
    pub(super) journals: Journals,
    pub(super) interests: Interests,
    pub(super) relations: Relations,
}

impl Dvm {
    pub(super) fn new(config: NodeConfig, functions: &'static [Honoured]) -> Dvm {
        Dvm {
            nodes: Nodes::new(config.size, &config.topology, &config.called),
            journals: Journals::new(&config.limits),
            config,
            functions,
            tools: Tools::default(),
            jobs: Jobs::new(),
            interests: Interests::default(),
            relations: Relations::default(),
        }
    }

    pub(super) fn desc(&self, nspace: &Nspace) -> Option<&JobDesc> {
        self.jobs.get(nspace).map(|job| &*job.desc)
    }

    /// These processes have done something together that relates or separates their jobs.
    pub(super) fn relate(&mut self, members: &Arc<[Members]>, relation: Relation) {
        match relation {
            Relation::Connected => self.relations.connect(members),
            Relation::Disconnected => self.relations.disconnect(members),
            Relation::Fenced => {}
        }
        for Members { nspace, .. } in members.iter() {
            let Some(job) = self.jobs.get_mut(nspace) else { continue };
            let Some(parent) = job.desc.parent.as_ref().map(|parent| &parent.nspace) else { continue };
            if members.iter().any(|of| of.nspace == *parent) {
                let are_connected = self.relations.are_connected(nspace, parent);
                job.let_go = match relation {
                    Relation::Connected => false,
                    Relation::Disconnected => !are_connected,
                    // Open MPI disconnects communicators by a fence of all processes that it has connected.
                    Relation::Fenced => are_connected || job.let_go,
                };
            }
        }
    }

    /// Appends an entry to the journal of a job and returns the entry's number.
    pub(super) fn append(&mut self, cx: &Cx<'_>, nspace: &Nspace, what: What) -> Option<u64> {
        let job = self.jobs.get_mut(nspace)?;
        Some(self.journals.append(&mut job.journal, cx.now, what))
    }

    /// The daemon that a process's server belongs to. For tools, only the root knows it.
    pub(super) fn node_of(&self, proc: &ProcId) -> Option<NodeId> {
        match self.jobs.get(&proc.nspace) {
            Some(job) => job.desc.node_of(proc.rank),
            None => self.tools.node_of(proc),
        }
    }

    /// The daemons to which tools of this namespace are connected.
    pub(super) fn nodes_of_tools<'a>(&'a self, nspace: &'a Nspace) -> impl Iterator<Item = NodeId> + 'a {
        self.tools.nodes_of(nspace)
    }

    pub(super) fn is_tool(&self, proc: &ProcId) -> bool {
        self.tools.process(proc).is_some()
    }

    /// The daemons that host any of `procs`.
    pub(super) fn nodes_of_procs(&self, procs: impl Iterator<Item = ProcId>) -> Ranges {
        let mut nodes = Ranges::new();
        for proc in procs {
            let Some(job) = self.jobs.get(&proc.nspace) else {
                self.nodes_of_tools(&proc.nspace).for_each(|node| nodes.insert(node.0));
                continue;
            };
            match proc.rank {
                Rank::WILDCARD => nodes.add(&job.desc.nodes),
                rank => {
                    nodes.add(&job.desc.node_of(rank).map(|node| Ranges::single(node.0)).unwrap_or_default())
                }
            }
        }
        nodes
    }

    /// The jobs that may receive events of this one.
    pub(super) fn concerned(&self, nspace: &Nspace) -> Arc<[Nspace]> {
        let first = self.jobs.get(nspace).map_or(nspace, |job| &job.descent.first);
        self.relations.concerned_by(&self.jobs, nspace, first).into()
    }

    /// A stream of a process is over, or its remaining contents are lost.
    pub(super) fn tell_stream(&self, cx: &mut Cx<'_>, code: Status, proc: ProcId, channel: IofChannel) {
        self.interests.tell_stream(cx, self.journals.last(), (code, proc, channel));
    }

    /// Sends a line to the user of a process. A tool, or the tool that runs the process's job, gets it as output of the server,
    /// which it reads without asking; otherwise it goes to the user of the DVM.
    pub(super) fn tell_user_of(&self, cx: &mut Cx<'_>, proc: &ProcId, text: &str) {
        let run_by = self.jobs.get(&proc.nspace).and_then(|job| job.descent.run_by.clone());
        let tool = run_by.map_or_else(|| proc.clone(), |by| by.tool);
        match self.node_of(&tool).filter(|_| self.is_tool(&tool)) {
            Some(node) => {
                // Libraries of others pass it to the user's terminal as it is.
                let (to, text) = (tool, format!("{}\n", plain::lines(text)));
                cx.cast(Ranges::single(node.0), Down::Say { to, text });
            }
            None => {
                let nspace = Some(proc.nspace.clone());
                cx.report(Report::Note { nspace, text: text.to_owned() });
            }
        }
    }

    /// The daemons that host these ranks.
    pub(super) fn daemons_of(&self, targets: &Members) -> Ranges {
        self.desc(&targets.nspace).map(|desc| desc.nodes_of(&targets.ranks)).unwrap_or_default()
    }
}
