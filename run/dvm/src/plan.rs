//! The plan of a job: where its ranks go, and all that the standard wants a host to say of it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use phalanx_spec::keys;
use phalanx_wire::{Kval, Nspace, Text};

use crate::daemon::Daemon;
use crate::desc::{AppDesc, Binding, JobDesc, Places};
use crate::job::{AppSpec, JobRequest};
use crate::msg::NodeId;
use crate::ranges::Ranges;

impl Daemon {
    /// Root only. The error is for the user.
    pub(crate) fn plan(&self, number: u32, job: &JobRequest) -> Result<(JobDesc, Vec<String>), String> {
        if job.apps.is_empty() || job.apps.iter().any(|app| app.argv.is_empty()) {
            return Err("the job names no program".to_owned());
        }
        let nspace = format!("{}@{number}", self.config.dvm);
        let nspace = Nspace::new(&nspace).map_err(|error| format!("naming the job {nspace:?}: {error}"))?;
        let nodes: Vec<(NodeId, u32)> = self
            .booted_nodes()
            .map(|(report, topology)| (report.node, report.slots.unwrap_or(topology.cpus().count())))
            .collect();
        let slots: u32 = nodes.iter().map(|(_, slots)| slots).sum();
        let mut seats: Vec<(u32, u32, u32, u32)> = Vec::new();
        let mut here: BTreeMap<NodeId, u32> = BTreeMap::new();
        for (index, app) in (0u32..).zip(&job.apps) {
            for app_rank in 0..app.procs.unwrap_or(slots) {
                let at = seats.len() as u32 % slots.max(1);
                let mut before = 0;
                let on = nodes.iter().find(|(_, slots)| {
                    before += slots;
                    at < before
                });
                let Some((node, _)) = on else { return Err("there is no node with a free slot".to_owned()) };
                let local = here.entry(*node).or_default();
                seats.push((node.0, index, app_rank, *local));
                *local += 1;
            }
        }
        let session: Arc<[Kval]> = [Kval::new(keys::UNIV_SIZE, slots), Kval::new(keys::SESSION_ID, 0u32)].into();
        let mut values = vec![
            Kval::new(keys::JOBID, nspace.as_str()),
            Kval::new(keys::UNIV_SIZE, slots),
            Kval::new(keys::MAX_PROCS, slots.max(seats.len() as u32)),
            Kval::new(keys::SPAWNED, job.parent.is_some()),
        ];
        values.extend(job.parent.clone().map(|parent| Kval::new(keys::PARENT_ID, parent)));
        let scratch = Text::from(format!("{}/{number}", self.config.scratch));
        let desc = JobDesc {
            number,
            parent: job.parent.clone(),
            size: seats.len() as u32,
            nodes: here.keys().map(|node| node.0).collect::<Ranges>(),
            places: Places {
                node: seats.iter().map(|seat| seat.0).collect(),
                app: seats.iter().map(|seat| seat.1).collect(),
                app_rank: seats.iter().map(|seat| seat.2).collect(),
                local_rank: seats.iter().map(|seat| seat.3).collect(),
                node_rank: seats.iter().map(|seat| seat.3).collect(),
                binding: seats.iter().map(|_| 0).collect(),
                bindings: vec![Binding::default()],
            },
            env: job.env.clone(),
            apps: job.apps.iter().map(describe_app).collect(),
            stdin: job.stdin,
            on_failure: job.on_failure,
            scratch: Some(scratch),
            job: values.into(),
            session,
            expanded: OnceLock::new(),
            nspace,
        };
        Ok((desc, Vec::new()))
    }
}

fn describe_app(app: &AppSpec) -> AppDesc {
    let argv: Vec<String> = app.argv.iter().map(Text::to_string_lossy).collect();
    let mut values = vec![Kval::new(keys::APP_ARGV, argv.join(" "))];
    values.extend(app.cwd.clone().map(|cwd| Kval::new(keys::WDIR, cwd)));
    AppDesc {
        argv: app.argv.clone().into(),
        env: app.env.clone(),
        cwd: app.cwd.clone(),
        prefix: app.prefix.clone(),
        values,
    }
}
