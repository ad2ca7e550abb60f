//! Calls of the server's owner.

use phalanx_spec::{Rank, Status};
use phalanx_wire::codec::Format;
use phalanx_wire::{Blob, Nspace, ProcId};

use super::Tables;
use super::call::{ServerCall, ServerReturn};
use super::registry::{Client, Registered};
use super::setup::environment;
use super::turn::Cx;
use crate::host::HostReply;
use crate::job::JobInfo;
use crate::machine::CallId;

impl Tables {
    pub(super) fn on_call(&mut self, cx: &mut Cx<'_>, id: CallId, call: ServerCall) {
        let status = match call {
            ServerCall::RegisterNspace(info) => self.register_nspace(cx, *info),
            ServerCall::DeregisterNspace(nspace) => self.deregister_nspace(cx, &nspace),
            ServerCall::RegisterClient { proc, uid, gid } => self.register_client(cx, &proc, uid, gid),
            ServerCall::DeregisterClient(proc) => self.deregister_client(cx, &proc),
            ServerCall::ForgetValues { nspace, ranks } => self.forget_values(cx, &nspace, &ranks),
            ServerCall::FailCollectivesOf { nspace, ranks } => {
                let gone = ranks.into_iter().map(|rank| ProcId::new(&nspace, rank)).collect();
                self.collectives.fail_all_of(cx, &gone);
                self.do_what_is_due(cx);
                Status::SUCCESS
            }
            ServerCall::FailCollective { kind, id, procs, status } => {
                self.collectives.fail_next(cx, (kind, &id), &procs, status);
                self.do_what_is_due(cx);
                Status::SUCCESS
            }
            ServerCall::SetupFork(proc) => {
                return cx.give(id, ServerReturn::Environment(environment(cx.config, &proc)));
            }
            ServerCall::Explain => {
                return cx.give(id, ServerReturn::Waiting(self.explain(cx.peers, cx.upcalls)));
            }
            ServerCall::DirectModex { proc, key } => {
                let known = &self.known;
                return self.gets.on_direct_modex(cx, known, id, (proc, key));
            }
            ServerCall::Notify(event) => {
                self.groups.learn(&cx.peers.jobs, &event);
                self.events.on_event_from_host(cx, &event)
            }
            ServerCall::Announce { event, number, concerned, ago: None } => {
                self.groups.learn(&cx.peers.jobs, &event);
                self.events.on_announcement(cx, &event, (number, concerned))
            }
            ServerCall::Announce { event, number, concerned, ago: Some(ago) } => {
                self.events.on_late_announcement(cx, event, (number, concerned), ago)
            }
            ServerCall::Output { to, source, channel, data, info } => {
                return self.streams.on_output(cx, id, &to, &source, channel, &data, &info);
            }
            ServerCall::RegisterResources(info) => {
                self.known.describer.resources.register(&mut cx.peers.jobs, info)
            }
            ServerCall::DeregisterResources(info) => {
                self.known.describer.resources.deregister(&mut cx.peers.jobs, &info)
            }
            ServerCall::DeliverInventory { info, directives } => {
                let resources = &mut self.known.describer.resources;
                resources.deliver_inventory(&cx.peers.jobs, &cx.config.hostname, info, &directives)
            }
            ServerCall::Inventory { hosts } => {
                return cx.give(id, ServerReturn::Infos(self.known.describer.resources.inventory_of(hosts)));
            }
            ServerCall::RegisterAttributes { function, attributes } => {
                self.host_attributes.register(&function, attributes)
            }
            ServerCall::Started { nspace, pids } => {
                for (rank, pid) in pids {
                    if let Some(client) = cx.peers.jobs.client_mut(&ProcId::new(&nspace, rank)) {
                        client.set_pid(pid);
                    }
                }
                Status::SUCCESS
            }
            ServerCall::Paused { nspace, ranks, is_paused } => {
                for rank in ranks {
                    self.monitors.on_paused(&ProcId::new(&nspace, rank), is_paused, cx.now);
                }
                Status::SUCCESS
            }
            ServerCall::CollectJobInfo { nspaces, format } => {
                let jobs = self.collect_job_info(cx, &nspaces, format);
                return cx.give(id, ServerReturn::JobInfo(jobs));
            }
            ServerCall::DefineProcessSet { name, members } => {
                self.psets.define(cx, &mut self.events, name, members)
            }
            ServerCall::DeleteProcessSet { name } => self.psets.delete(cx, &mut self.events, &name),
        };
        cx.give(id, ServerReturn::Done(status));
    }

    fn register_nspace(&mut self, cx: &mut Cx<'_>, info: JobInfo) -> Status {
        let nspace = info.nspace.clone();
        let early = match cx.peers.jobs.register(cx.now, info) {
            Ok(early) => early,
            Err(status) => return status,
        };
        for (proc, uid, gid) in early {
            self.register_client(cx, &proc, uid, gid);
        }
        self.gets.retry_of_nspace(cx, &self.known, &nspace);
        Status::SUCCESS
    }

    fn deregister_nspace(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) -> Status {
        self.known.modex.forget(nspace);
        let Some(job) = cx.peers.jobs.remove(nspace) else { return Status::ERR_NOT_FOUND };
        self.collections.remove(cx, nspace);
        for (_, client) in job.clients() {
            for conn in client.conns() {
                self.drop_connection(cx, *conn);
            }
        }
        self.gets.end_of_nspace(cx, &self.known, nspace);
        self.collectives.end_of_nspace(cx, nspace);
        self.do_what_is_due(cx);
        self.groups.forget_of(nspace);
        self.events.forget_of(nspace);
        cx.peers.conns.forget_told_in(nspace);
        // For those that are still connected: a tool may bear the name of the job.
        for then in cx.upcalls.close_those_for(nspace) {
            self.on_answer(cx, then, HostReply::Done(Status::ERR_LOST_CONNECTION));
        }
        debug_assert!(self.traces_of(cx, nspace).is_empty(), "{nspace}: {:?}", self.traces_of(cx, nspace));
        Status::SUCCESS
    }

    /// The tables that still hold something of a job. Must be empty after deregistration, which builds with debug assertions
    /// check.
    ///
    /// Entries of other owners do not count: a pull of the job's output belongs to its reader, a process set to the host,
    /// and a collective with other jobs is kept until their processes have learned that it failed.
    fn traces_of(&self, cx: &Cx<'_>, nspace: &Nspace) -> Vec<&'static str> {
        let tables = [
            ("jobs", cx.peers.jobs.contains(nspace)),
            ("early clients", cx.peers.jobs.await_clients_of(nspace)),
            ("what peers were told", cx.peers.conns.were_told_of(nspace)),
            ("values of other nodes", self.known.modex.blocks(nspace).next().is_some()),
            ("collected values", self.collections.knows(nspace)),
            ("gets", self.gets.concern(nspace)),
            ("collectives", self.collectives.are_all_of(nspace)),
            ("groups", self.groups.are_all_of(nspace)),
            ("events", self.events.are_from(nspace)),
            ("upcalls", cx.upcalls.wait_for_any_of(nspace)),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }

    fn register_client(&mut self, cx: &mut Cx<'_>, proc: &ProcId, uid: u32, gid: u32) -> Status {
        match cx.peers.jobs.register_client(proc, uid, gid) {
            Ok(Registered::Early) => Status::SUCCESS,
            Ok(registered) => {
                self.collections.outdate(&proc.nspace);
                if registered == Registered::Again {
                    self.collectives.begin_anew(cx, proc);
                    cx.peers.conns.forget_told_of(proc);
                }
                Status::SUCCESS
            }
            Err(status) => status,
        }
    }

    /// Forgets the values of ranks that are restarted: local ones have ended, of remote ones only the values were here.
    fn forget_values(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &[Rank]) -> Status {
        if !cx.peers.jobs.contains(nspace) {
            return Status::ERR_NOT_FOUND;
        }
        let procs: Vec<ProcId> = ranks.iter().map(|rank| ProcId::new(nspace, *rank)).collect();
        for proc in &procs {
            self.known.modex.forget_of(proc);
            cx.peers.jobs.client_mut(proc).into_iter().for_each(Client::forget_committed);
            cx.peers.conns.forget_told_of(proc);
            self.collectives.begin_anew(cx, proc);
        }
        self.collections.outdate(nspace);
        self.events.tell_values_gone(cx, &procs);
        Status::SUCCESS
    }

    /// The job data of each of these jobs that is known, preceded by the job's name.
    fn collect_job_info(&self, cx: &mut Cx<'_>, nspaces: &[Nspace], format: Format) -> Vec<Blob> {
        let encoded =
            |nspace| cx.peers.jobs.encoded(nspace, format, |job| self.known.describer.job_data(job));
        nspaces.iter().filter_map(encoded).map(|job| Blob::from(job.body())).collect()
    }
}
