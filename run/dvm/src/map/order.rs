//! Numbering the seats: ranks, and the numbers that follow from them.

use phalanx_topo::CpuSet;

use super::seats::{NodeSeats, Seat, Seated};
use super::slots::{App, Job, MOST_RANKS_OF_A_NODE};
use super::{AppMap, CpuRule, JobMap, MapError, NodeLoad, NodeResources, Placement, RankBy};
use crate::hosts::Slots;

/// Gives every seat its rank, app context by app context, and makes the map of the job.
pub(super) fn number(job: &Job<'_>, seated: Vec<Seated>, notes: Vec<String>) -> Result<JobMap, MapError> {
    let total = job.apps.iter().map(|app| app.procs as usize).sum();
    let mut procs: Vec<Placement> = Vec::with_capacity(total);
    let mut locals = vec![0u32; job.nodes.len()];
    let mut numbers = vec![0u32; job.nodes.len()];
    for (index, (app, seated)) in (0u32..).zip(job.apps.iter().zip(seated)) {
        let mut app_rank = 0;
        let mut place = |node: u32, seat: Seat| {
            let local = &mut locals[node as usize];
            let number = &mut numbers[node as usize];
            while job.nodes[node as usize].numbers.contains(*number) {
                *number += 1;
            }
            procs.push(Placement {
                rank: app.first_rank + app_rank,
                app: index,
                app_rank,
                node,
                local_rank: u16::try_from(*local).unwrap_or(u16::MAX),
                node_rank: u16::try_from(*number).unwrap_or(u16::MAX),
                cpus: seat.cpus,
                rule: seat.rule,
            });
            app_rank += 1;
            *local += 1;
            *number += 1;
        };
        match seated {
            Seated::InOrder(seats) => seats.into_iter().for_each(|(node, seat)| place(node, seat)),
            Seated::ByNode(nodes) => {
                let order = order(app, &nodes);
                let mut nodes: Vec<(u32, Vec<Option<Seat>>)> = nodes
                    .into_iter()
                    .map(|node| (node.node, node.seats.into_iter().map(Some).collect()))
                    .collect();
                for (node, seat) in order {
                    let (number, seats) = &mut nodes[node as usize];
                    if let Some(seat) = seats[seat as usize].take() {
                        place(*number, seat);
                    }
                }
            }
        }
    }
    check_numbers(job, &locals)?;
    let mut cpus = vec![0u32; job.nodes.len()];
    for app in &job.apps {
        for offer in &app.offers {
            let known = &mut cpus[offer.node as usize];
            *known = (*known).max(app.shapes[offer.shape as usize].units.len() as u32);
        }
    }
    let used = (0u32..).zip(&locals).filter(|(_, procs)| **procs > 0);
    let nodes = used.map(|(node, procs)| load(&job.nodes[node as usize], node, cpus[node as usize], *procs));
    Ok(JobMap { procs, apps: job.apps.iter().map(settled).collect(), nodes: nodes.collect(), notes })
}

/// The order of ranks: pairs of an index into `nodes` and an index into that node's seats.
fn order(app: &App<'_>, nodes: &[NodeSeats]) -> Vec<(u32, u32)> {
    let every = || {
        (0u32..)
            .zip(nodes)
            .flat_map(|(node, seats)| (0..seats.seats.len() as u32).map(move |seat| (node, seat)))
    };
    match app.settled.rank {
        RankBy::Slot | RankBy::File => every().collect(),
        RankBy::Node => sorted(every(), |node, seat| (seat, node, 0)),
        RankBy::Fill => {
            sorted(every(), |node, seat| (node, nodes[node as usize].seats[seat as usize].place as u32, 0))
        }
        RankBy::Span => {
            let rounds = rounds(nodes, |_, seat| seat.place as u32);
            let place = |node: u32, seat: u32| nodes[node as usize].seats[seat as usize].place as u32;
            sorted(every(), |node, seat| (rounds[node as usize][seat as usize], node, place(node, seat)))
        }
        RankBy::Object(level) => {
            let objects: Vec<Vec<u32>> = nodes
                .iter()
                .map(|node| {
                    let shape = &app.shapes[node.shape as usize];
                    let nowhere = CpuSet::new();
                    let number = |seat: &Seat| {
                        let near = shape.places.get(seat.place).map_or(&nowhere, |place| &place.cpus);
                        let own = seat.cpus.as_ref().filter(|_| seat.rule.cpus != CpuRule::CpuSet);
                        let cpus = own.unwrap_or(near);
                        shape.topology.touching(level, cpus).next().map_or(0, |object| object.logical)
                    };
                    node.seats.iter().map(number).collect()
                })
                .collect();
            let object = |node: u32, seat: u32| objects[node as usize][seat as usize];
            let rounds: Vec<Vec<u32>> = objects.iter().map(|objects| rounds_of(objects)).collect();
            sorted(every(), |node, seat| (node, rounds[node as usize][seat as usize], object(node, seat)))
        }
    }
}

/// All seats sorted by a key; seats with the same key keep their order.
fn sorted(
    seats: impl Iterator<Item = (u32, u32)>,
    key: impl Fn(u32, u32) -> (u32, u32, u32),
) -> Vec<(u32, u32)> {
    let mut seats: Vec<(u32, u32)> = seats.collect();
    seats.sort_by_key(|(node, seat)| key(*node, *seat));
    seats
}

/// For every seat: how many earlier seats of the same node have the same object.
fn rounds(nodes: &[NodeSeats], object: impl Fn(&NodeSeats, &Seat) -> u32) -> Vec<Vec<u32>> {
    let of_node = |node: &NodeSeats| {
        let objects: Vec<u32> = node.seats.iter().map(|seat| object(node, seat)).collect();
        rounds_of(&objects)
    };
    nodes.iter().map(of_node).collect()
}

fn rounds_of(objects: &[u32]) -> Vec<u32> {
    let mut seen = vec![0u32; objects.iter().max().map_or(0, |most| *most as usize + 1)];
    let round = |object: &u32| {
        let seen = &mut seen[*object as usize];
        *seen += 1;
        *seen - 1
    };
    objects.iter().map(round).collect()
}

fn check_numbers(job: &Job<'_>, locals: &[u32]) -> Result<(), MapError> {
    for (node, local) in job.nodes.iter().zip(locals) {
        let asked = u64::from(node.in_use()) + u64::from(*local);
        if *local > 0 && asked > MOST_RANKS_OF_A_NODE {
            return Err(MapError::TooMany {
                what: format!(" on node {}", node.name),
                asked,
                most: MOST_RANKS_OF_A_NODE,
            });
        }
    }
    Ok(())
}

fn settled(app: &App<'_>) -> AppMap {
    let settled = &app.settled;
    AppMap {
        first_rank: app.first_rank,
        procs: app.procs,
        map: settled.map,
        span: settled.span,
        rank: settled.rank,
        bind: settled.bind,
        pe: settled.pe,
        hwthreads: settled.unit == phalanx_topo::Level::Pu,
    }
}

fn load(resources: &NodeResources, node: u32, cpus: u32, procs: u32) -> NodeLoad {
    let slots = match resources.slots {
        Slots::Stated(slots) => slots,
        _ => cpus,
    };
    let oversubscribed = resources.in_use().saturating_add(procs) > slots;
    NodeLoad { node, slots, cpus, procs, oversubscribed }
}
