//! The root is about to be stopped while daemons are being started, by Ctrl-Z for example. The daemons then do not give the root up
//! for its silence, and the root gives up no daemon that it could not hear.
//!
//! Nothing new is begun. Daemons that do not know the others yet are notified that the root will be silent; those that do get a
//! moment to connect, because they could not connect to a stopped root. Then [`FromStarter::Still`] is returned, once for each
//! [`Starter::stand_still`].

use phalanx_core::Time;

use super::{ALIVE, ALIVE_EARLY, FromStarter, Out, Phase, STANDS, STANDS_EARLY, Starter};

#[derive(Debug)]
pub(super) struct Still {
    since: Time,
    /// How long to wait for daemons that are connecting. None: [`FromStarter::Still`] was returned.
    until: Option<Time>,
}

impl Still {
    pub(super) fn deadline(&self) -> Option<Time> {
        self.until
    }
}

impl Starter {
    /// This process is about to be stopped.
    pub(crate) fn stand_still(&mut self, now: Time, out: &mut Out) {
        let until = Some(now.after(COMING));
        match &mut self.still {
            Some(still) => still.until = until,
            None => {
                self.still = Some(Still { since: now, until });
                if !self.booted && !self.stopping {
                    self.say_to_waiting(STANDS_EARLY, STANDS, out);
                }
            }
        }
        self.try_still(now, out);
    }

    pub(super) fn try_still(&mut self, now: Time, out: &mut Out) {
        let Some(until) = self.still.as_ref().and_then(|still| still.until) else { return };
        let agents = self.agents.iter().zip(&self.plan.fleet.agents);
        let mut told = agents.filter(|(agent, _)| agent.met).flat_map(|(_, plan)| &plan.hosts);
        let is_coming = told.any(|host| self.hosts[*host].phase == Phase::Joining);
        if until <= now || !is_coming {
            self.still.iter_mut().for_each(|still| still.until = None);
            out.push_back(FromStarter::Still);
        }
    }

    /// This process goes on, or was not stopped after all. The time of the stop counts for no deadline.
    pub(crate) fn stand_no_longer(&mut self, now: Time, out: &mut Out) {
        let Some(still) = self.still.take() else { return };
        let stood = now.since(still.since);
        self.timers.put_off(stood, |_| true);
        for host in &mut self.hosts {
            host.since = host.since.after(stood).min(now);
        }
        if !self.booted && !self.stopping {
            self.say_to_waiting(ALIVE_EARLY, ALIVE, out);
        }
        (0..self.next).for_each(|agent| self.try_give_birth(now, agent, out));
        self.try_meet(now, out);
        self.go_on(now, out);
    }
}

/// What daemons may take to come to the root.
const COMING: std::time::Duration = std::time::Duration::from_secs(1);
