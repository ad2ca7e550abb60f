//! Ctrl-Z for a DVM in the foreground: its jobs pause with it, as that of `px run` does.

use std::collections::BTreeSet;
use std::io;

use phalanx_dvm::{Control, Report};
use phalanx_node::{Handle, SignalEvent, stop_self};
use phalanx_wire::Nspace;

use crate::standstill::{MayStop, Standstill};

pub(super) struct Pauses<'a> {
    handle: &'a Handle,
    standstill: Standstill,
    /// Those that run.
    jobs: BTreeSet<Nspace>,
}

impl Pauses<'_> {
    pub(super) fn of(handle: &Handle) -> Pauses<'_> {
        Pauses { handle, standstill: Standstill::default(), jobs: BTreeSet::new() }
    }

    pub(super) async fn on_signal(&mut self, signal: SignalEvent) {
        match signal {
            SignalEvent::Suspend if !self.standstill.is_asked() => self.ask().await,
            SignalEvent::Resume => self.go_on().await,
            // A DVM that stood would take its time to end.
            signal if signal.is_wish_to_end() => self.go_on().await,
            _ => {}
        }
    }

    pub(super) async fn on_report(&mut self, report: &Report) {
        match report {
            Report::Spawned { nspace, .. } => {
                self.jobs.insert(nspace.clone());
                if self.standstill.is_asked() {
                    self.ask().await;
                }
            }
            Report::Ended(end) => drop(self.jobs.remove(&end.nspace)),
            _ => {}
        }
    }

    /// Stops this process when that may be, and returns when it goes on.
    pub(super) async fn stop(&mut self) -> io::Result<()> {
        self.standstill.may_stop().await;
        let stopped = self.standstill.stop(stop_self);
        if stopped.is_err() {
            self.go_on().await;
        }
        stopped
    }

    async fn ask(&mut self) {
        self.control(Control::Suspend).await;
        self.standstill.ask(MayStop::of(self.handle).await);
    }

    async fn go_on(&mut self) {
        if self.standstill.go_on() {
            self.control(Control::Resume).await;
            let _ = self.handle.stand_no_longer().await;
        }
    }

    async fn control(&self, action: Control) {
        for job in &self.jobs {
            let _ = self.handle.control(job, action).await;
        }
    }
}
