//! How the DVM comes up, and the jobs that were submitted before: they start then, or are refused.

use phalanx_spec::Status;

use crate::id::NodeId;
use crate::job::JobRequest;
use crate::msg::NodeReport;
use crate::report::Report;
use crate::root::Root;
use crate::root::lifecycle;
use crate::root::timer::Timer;
use crate::root::turn::Cx;

impl Root {
    /// Handles the very first turn.
    pub(super) fn begin(&mut self, cx: &mut Cx<'_>) {
        self.timers.set(cx.now.after(self.dvm.config.limits.boot), Timer::Boot);
    }

    pub(super) fn on_reports(&mut self, cx: &mut Cx<'_>, reports: Vec<(NodeId, NodeReport)>) {
        self.dvm.nodes.report(reports);
        self.try_boot(cx);
    }

    pub(super) fn on_topology(&mut self, cx: &mut Cx<'_>, from: NodeId, signature: &str, encoded: &[u8]) {
        self.dvm.nodes.set_topology(cx, from, signature, encoded);
        self.try_boot(cx);
    }

    /// The DVM goes on without this node.
    pub(super) fn boot_without(&mut self, cx: &mut Cx<'_>, lost: NodeId) {
        self.dvm.nodes.lose(lost);
        self.try_boot(cx);
    }

    fn try_boot(&mut self, cx: &mut Cx<'_>) {
        if !self.dvm.nodes.try_up(cx) {
            return;
        }
        self.timers.cancel(|timer| *timer == Timer::Boot);
        lifecycle::tell_session(cx, &self.dvm, Status::EVENT_SESSION_START);
        for (submitted, request, job) in self.dvm.nodes.take_waiting() {
            self.launch_submitted(cx, submitted, request, job);
        }
        self.launch_postponed(cx);
    }

    pub(super) fn on_submit(&mut self, cx: &mut Cx<'_>, request: u64, job: Box<JobRequest>) {
        if self.dvm.nodes.are_up() {
            self.launch_submitted(cx, cx.now, request, job);
        } else if let Some(error) = self.dvm.nodes.failure() {
            cx.report(Report::Refused { request, error });
        } else {
            self.dvm.nodes.wait(cx.now, request, job);
        }
    }

    pub(super) fn stand_no_longer(&mut self, cx: &mut Cx<'_>) {
        if let Some(since) = self.dvm.nodes.stand_no_longer() {
            self.timers.put_off(cx.now.since(since), |timer| *timer == Timer::Boot);
            self.try_boot(cx);
        }
    }

    /// The limit counts from now. That ends: each daemon goes through few phases, and each further try has fewer daemons.
    pub(super) fn on_boot_goes_on(&mut self, cx: &Cx<'_>) {
        if !self.dvm.nodes.are_up() && self.dvm.nodes.failure().is_none() {
            self.timers.cancel(|timer| *timer == Timer::Boot);
            self.timers.set(cx.now.after(self.dvm.config.limits.boot), Timer::Boot);
        }
    }

    pub(super) fn on_boot_over(&mut self, cx: &mut Cx<'_>) {
        let error = self.dvm.nodes.overdue(self.dvm.config.limits.boot);
        self.on_boot_failed(cx, error);
    }

    pub(super) fn on_boot_failed(&mut self, cx: &mut Cx<'_>, error: String) {
        let error = format!("cannot start the daemons: {error}");
        if self.dvm.nodes.fail(&error) {
            self.refuse_waiting(cx, &error);
            cx.report(Report::NotReady { error });
        }
    }

    /// Refuses the jobs that wait for the DVM.
    pub(super) fn refuse_waiting(&mut self, cx: &mut Cx<'_>, error: &str) {
        for (_, request, _) in self.dvm.nodes.take_waiting() {
            cx.report(Report::Refused { request, error: error.to_owned() });
        }
        self.refuse_postponed(cx, error);
    }

    pub(crate) fn has_failed_to_boot(&self) -> bool {
        self.dvm.nodes.failure().is_some()
    }
}
