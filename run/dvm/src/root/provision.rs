//! Provisioning of nodes by the site's own program, run on the root's host, for requesters that may steer every job.

use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, Text};

use crate::id::NodeId;
use crate::msg::{Part, Provision, Results, Task};
use crate::ranges::Ranges;
use crate::root::answer::{Asker, id_of};
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::operations::Operations;
use crate::root::permission;
use crate::root::turn::Cx;

/// A run of the site's program.
#[derive(Debug)]
pub(super) struct Provisioning {
    nodes: Text,
    results: Results,
}

impl Kind for Provisioning {
    fn name(&self) -> &'static str {
        "provision"
    }

    fn most(&self) -> usize {
        MOST_OPEN
    }

    fn is_control(&self) -> bool {
        true
    }

    fn task_done(&mut self, _: &Task, _: &Ranges, part: Part, _: &Jobs) {
        if let Part::Results(results) = part {
            self.results = results;
        }
    }

    fn answer(self: Box<Self>, _: &mut Cx<'_>, askers: Vec<Asker>, status: Status) -> Vec<Consequence> {
        let status = match (status.is_success(), self.results.iter().next()) {
            (true, Some((status, _))) => status,
            (true, None) => Status::ERROR,
            (false, _) => status,
        };
        let why = self.results.why(status).map(|why| Info::new(keys::EVENT_TEXT_MESSAGE, why));
        let told: Vec<Info> = why.into_iter().collect();
        let tell = |asker| Consequence::Tell { asker, status, results: told.clone() };
        askers.into_iter().map(tell).collect()
    }

    fn explain(&self, askers: &[Asker], _: &Jobs) -> Explained {
        Explained {
            subject: id_of(askers) + &self.nodes.to_string_lossy(),
            unblocked_by: "the site's program that provisions nodes",
            ..Explained::default()
        }
    }
}

pub(super) fn provision(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &mut Operations,
    asker: Asker,
    wanted: Provision,
) {
    let refused = match &dvm.config.rules.provision {
        _ if !permission::may_steer_all(dvm, &asker.by) => {
            Some((Status::ERR_NO_PERMISSIONS, "ranks may not provision nodes"))
        }
        None => Some((Status::ERR_NOT_SUPPORTED, "this DVM was given no program that provisions nodes")),
        Some(_) => None,
    };
    if let Some((status, why)) = refused {
        let why = vec![Info::new(keys::EVENT_TEXT_MESSAGE, why)];
        return asker.answer.give(cx, HostReply::Infos(status, why));
    }
    let Provision { nodes, image } = wanted;
    let provisioning = Provisioning { nodes: nodes.clone(), results: Results::default() };
    let Some(number) = operations.begin(cx, Some(asker), None, provisioning) else { return };
    let task = Task::Provision { nodes, image, limit: LIMIT };
    operations.give_task(cx, number, Ranges::single(NodeId::ROOT.0), task);
}

/// How long the site's program may take.
const LIMIT: Duration = Duration::from_secs(3600);
