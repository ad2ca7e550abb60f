//! Several daemons that one command starts, of which some do not come: only those are to blame.

use phalanx_core::Time;
use phalanx_wire::Text;

use super::{FromStarter, MOST_NAMED, Out, Phase, Starter, Timer};
use crate::fleet::{Agent, COUNT, HOSTS};
use crate::hosts::write_names;
use crate::start::agent::Running;

impl Starter {
    /// The words of an agent, with its hosts.
    pub(super) fn words(&self, agent: &Agent) -> Vec<Text> {
        let names = agent.hosts.iter().filter_map(|host| self.plan.fleet.hosts.get(*host));
        let (names, count) = (write_names(names.map(|host| &*host.name)), agent.hosts.len().to_string());
        let word = |word: &Text| match std::str::from_utf8(word.as_bytes()) {
            Ok(text) if agent.labels => text.replace(HOSTS, &names).replace(COUNT, &count).into(),
            _ => word.clone(),
        };
        agent.argv.iter().map(word).collect()
    }

    pub(super) fn agent_of(&self, host: usize) -> Option<usize> {
        self.plan.fleet.agents.iter().position(|agent| agent.hosts.contains(&host))
    }

    /// Whether the daemon has done its part, and is told more only when others have done theirs.
    pub(super) fn waits_for_others(&self, host: usize) -> bool {
        let is_told =
            |told: fn(&Running) -> bool| self.agent_of(host).is_none_or(|agent| told(&self.agents[agent]));
        match self.hosts[host].phase {
            Phase::Settling => !is_told(|agent| agent.born),
            Phase::Joining => !is_told(|agent| agent.met),
            _ => false,
        }
    }

    /// These daemons have been told what they waited for: the time of their phase counts from now.
    pub(super) fn enter_again(&mut self, now: Time, agent: usize, phase: &Phase, out: &mut Out) {
        for host in self.plan.fleet.agents[agent].hosts.clone() {
            if self.hosts[host].phase == *phase {
                self.enter(now, host, phase.clone());
            }
        }
        out.push_back(FromStarter::GoesOn);
    }

    /// Whether this daemon has come, while its agent waits for others.
    fn has_come(&self, host: usize) -> bool {
        matches!(self.hosts[host].phase, Phase::Settling | Phase::Joining)
    }

    /// The hosts of an agent that has ended for which that is the reason. If some daemons have not come, these have ended the command
    /// for all, and are the only ones to name when the start fails for that.
    pub(super) fn to_blame(&self, agent: usize) -> Vec<usize> {
        let hosts = &self.plan.fleet.agents[agent].hosts;
        let is_absent = |host: &usize| matches!(self.hosts[*host].phase, Phase::Starting | Phase::Lost(_));
        let blames_all = self.booted || self.plan.fleet.skip_bad || !hosts.iter().any(is_absent);
        hosts.iter().copied().filter(|host| blames_all || !self.has_come(*host)).collect()
    }

    /// A daemon that has come gives up, because `srun` passes nothing on before all have come: those that have not are to blame.
    /// `false`: there are none.
    pub(super) fn lose_absent(&mut self, now: Time, agent: usize, out: &mut Out) -> bool {
        let hosts = &self.plan.fleet.agents[agent].hosts;
        let absent: Vec<usize> =
            hosts.iter().copied().filter(|host| self.hosts[*host].phase == Phase::Starting).collect();
        if !absent.is_empty() {
            self.set_apart(now, agent, out);
        }
        for host in &absent {
            let waited = now.since(self.hosts[*host].since).as_secs();
            self.lose(
                now,
                *host,
                format!("nothing has come of it for {waited} s, and others wait for it"),
                out,
            );
        }
        self.go_on(now, out);
        !absent.is_empty()
    }

    /// If bad hosts are left out, daemons that have come are started again by an agent of their own, without those that have not: a
    /// command that waits for the latter may end all of them.
    pub(super) fn set_apart(&mut self, now: Time, agent: usize, out: &mut Out) {
        if self.booted || self.stopping || !self.plan.fleet.skip_bad || self.agents[agent].born {
            return;
        }
        let (come, rest): (Vec<usize>, Vec<usize>) =
            self.plan.fleet.agents[agent].hosts.iter().partition(|host| self.has_come(**host));
        if come.is_empty() || rest.is_empty() {
            return;
        }
        for host in &come {
            self.timers.cancel(|timer| *timer == Timer::Phase(*host));
            self.enter(now, *host, Phase::Waiting);
        }
        let again = Agent { hosts: come, ..self.plan.fleet.agents[agent].clone() };
        self.plan.fleet.agents[agent].hosts = rest;
        self.plan.fleet.agents.push(again);
        self.agents.push(Running::default());
        out.push_back(FromStarter::GoesOn);
    }

    /// Why there is no DVM: each missing host with its reason.
    pub(super) fn failure(&self) -> String {
        let hosts = self.hosts.iter().zip(&self.plan.fleet.hosts);
        let lost: Vec<String> = hosts
            .filter_map(|(state, host)| match &state.phase {
                Phase::Lost(why) => Some(format!("{}: {why}", host.name)),
                _ => None,
            })
            .collect();
        let more = lost.len().saturating_sub(MOST_NAMED);
        let mut text = lost.into_iter().take(MOST_NAMED).collect::<Vec<_>>().join("; ");
        if more > 0 {
            text += &format!("; and {more} more hosts");
        }
        if self.unlinked {
            text += FIREWALL;
        }
        text + "\nhint: '--skip-bad-hosts' goes on without such hosts"
    }
}

/// For hosts whose daemon runs and has no link.
const FIREWALL: &str = "\nhint: daemons link to each other at ports that the system chooses: a firewall between the hosts \
                        must let these through, or '--network' name a network without one";
