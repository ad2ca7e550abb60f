//! Gives every rank a seat on its node: the object next in turn, and CPUs.
//!
//! Ranks are seated in the order of mapping. Objects take turns; one without a free CPU is passed over while ranks are bound. A
//! rank uses up `pe` CPUs near its object and is bound to the objects of the binding level that contain them. Nodes with the
//! same hardware and the same number of ranks look the same, so their seats are found once.

use std::collections::BTreeMap;

use phalanx_topo::{CpuSet, Level};

use super::defaults::Settled;
use super::error::count;
use super::shape::{Part, Shape};
use super::slots::{App, Job};
use super::spread::{Listed, Origin, Share, Spread};
use super::{BindTo, CpuRule, MapBy, MapError, NodeRule, Rule};

/// The seats of a job while they are given out.
pub(super) struct Seats<'a> {
    job: &'a Job<'a>,
    /// By node: the CPUs that are used up, by other jobs and by ranks that have been seated.
    taken: Vec<CpuSet>,
    /// By node: whether no rank of this job is seated there yet.
    untouched: Vec<bool>,
    /// Nodes with ranks that are not bound because there are too many.
    crowded: BTreeMap<u32, Crowd>,
    /// How many ranks were to be bound if possible, and were not.
    unsupported: u32,
}

struct Crowd {
    cpus: u32,
    unit: Level,
}

/// An app context's seats.
pub(super) enum Seated {
    /// Yet to be numbered.
    ByNode(Vec<NodeSeats>),
    /// Already in order: node and seat of each rank.
    InOrder(Vec<(u32, Seat)>),
}

/// The seats on one node, in the order of mapping.
pub(super) struct NodeSeats {
    pub(super) node: u32,
    /// Into [`App::shapes`].
    pub(super) shape: u32,
    pub(super) seats: Vec<Seat>,
}

/// The seat of one rank.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// Into [`Shape::places`].
    pub(super) place: usize,
    pub(super) cpus: Option<CpuSet>,
    pub(super) rule: Rule,
}

impl<'a> Seats<'a> {
    pub(super) fn new(job: &'a Job<'a>) -> Seats<'a> {
        Seats {
            job,
            taken: job.nodes.iter().map(|node| node.busy.clone()).collect(),
            untouched: vec![true; job.nodes.len()],
            crowded: BTreeMap::new(),
            unsupported: 0,
        }
    }

    /// Seats all ranks of one app context.
    pub(super) fn seat(&mut self, app: usize, spread: &Spread) -> Result<Seated, MapError> {
        let this = &self.job.apps[app];
        match spread {
            Spread::Counted(shares) => {
                let mut known = BTreeMap::new();
                let seats = shares.iter().map(|share| self.share(this, share, &mut known));
                Ok(Seated::ByNode(seats.collect::<Result<_, _>>()?))
            }
            Spread::Listed(list) => {
                let mut tables = BTreeMap::new();
                let seats = list.iter().map(|listed| self.listed(this, listed, &mut tables));
                Ok(Seated::InOrder(seats.collect::<Result<_, _>>()?))
            }
        }
    }

    /// Notes for the user, one line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let name = |node: u32| &self.job.nodes[node as usize].name;
        if let Some((node, Crowd { cpus, unit })) = self.crowded.first_key_value() {
            let ranks = self.job.used[*node as usize];
            let plural = if *cpus == 1 { "" } else { "s" };
            // With `--cpu-set` all of them share its CPUs.
            let confined = self.job.apps.iter().all(|app| app.policy.cpu_set.is_some());
            let (these, those) = match (confined, ranks) {
                (true, 1) => ("it shares these", "ranks there share them"),
                (true, _) => ("they share these", "ranks there share them"),
                (false, 1) => ("it is not bound", "ranks there are not bound"),
                (false, _) => ("they are not bound", "ranks there are not bound"),
            };
            let free = if self.job.nodes[*node as usize].in_use() > 0 { "free " } else { "" };
            notes.push(match self.crowded.len() {
                1 => {
                    let ranks = count(ranks.into(), "rank");
                    format!("{} has {cpus} {free}{unit}{plural} for {ranks}: {these}", name(*node))
                }
                nodes => format!(
                    "{nodes} nodes have more ranks than {free}{unit}s ({}: {ranks} on {cpus}): {those}",
                    name(*node)
                ),
            });
        }
        if self.unsupported > 0 {
            notes.push(format!(
                "{} of the ranks could not be bound as asked, and run unbound",
                self.unsupported
            ));
        }
        notes
    }

    /// Seats an app context's ranks on one node. `known` are the seats on equal nodes.
    fn share(
        &mut self,
        app: &App<'_>,
        share: &Share,
        known: &mut BTreeMap<(u32, u32, u32), Vec<Seat>>,
    ) -> Result<NodeSeats, MapError> {
        let node = share.node as usize;
        let (settled, shape) = (&app.settled, &app.shapes[share.shape as usize]);
        let crowded = self.is_crowded(settled, shape, share.node);
        let key = (share.shape, share.count, share.turn);
        let plain =
            self.untouched[node] && self.taken[node].is_empty() && !crowded && self.job.apps.len() == 1;
        self.untouched[node] = false;
        let seats = match known.get(&key).filter(|_| plain) {
            Some(seats) => seats.clone(),
            None => {
                let mut table = Table::new(app, shape, std::mem::take(&mut self.taken[node]), crowded);
                let seats = table.seats(share, app);
                self.taken[node] = table.taken;
                let seats = seats.map_err(|crammed| self.refusal(app, share.node, crammed))?;
                if plain {
                    known.insert(key, seats.clone());
                }
                seats
            }
        };
        self.unsupported += count_unsupported(settled, seats.iter());
        Ok(NodeSeats { node: share.node, shape: share.shape, seats })
    }

    /// Seats one rank of a list.
    fn listed(
        &mut self,
        app: &'a App<'a>,
        listed: &Listed,
        tables: &mut BTreeMap<u32, Table<'a>>,
    ) -> Result<(u32, Seat), MapError> {
        let node = listed.node as usize;
        let (settled, shape) = (&app.settled, &app.shapes[listed.shape as usize]);
        let crowded = self.is_crowded(settled, shape, listed.node);
        let taken = &mut self.taken[node];
        let table = tables
            .entry(listed.node)
            .or_insert_with(|| Table::new(app, shape, std::mem::take(taken), crowded));
        let node_rule = match listed.place {
            Origin::Line(line) => NodeRule::Line(line),
            Origin::Turn(turn) => NodeRule::Turn(turn),
        };
        let seat = match &listed.cpus {
            Some(cpus) if app.policy.bind.to != Some(BindTo::None) => {
                let clash = cpus.and(&table.taken);
                if !clash.is_empty() && !settled.overload {
                    return Err(self.clash(app, listed, clash));
                }
                table.taken.add(cpus);
                Seat { place: 0, cpus: Some(cpus.clone()), rule: rule(node_rule, None, CpuRule::Named) }
            }
            _ => match table.next(0, node_rule, None) {
                Ok(seat) => seat,
                Err(crammed) => return Err(self.refusal(app, listed.node, crammed)),
            },
        };
        self.taken[node] = table.taken.clone();
        self.unsupported += count_unsupported(settled, std::iter::once(&seat));
        Ok((listed.node, seat))
    }

    /// Whether a node has more ranks than CPUs, so that a default binding is dropped.
    fn is_crowded(&mut self, settled: &Settled, shape: &Shape, node: u32) -> bool {
        if settled.bind == BindTo::None || settled.required || settled.overload || settled.if_supported {
            return false;
        }
        let free = shape.free(&self.job.nodes[node as usize].busy);
        let crowded = self.job.demand[node as usize] > free;
        if crowded {
            self.crowded.entry(node).or_insert(Crowd { cpus: free, unit: shape.unit });
        }
        crowded
    }

    fn refusal(&self, app: &App<'_>, node: u32, NoSeat { object }: NoSeat) -> MapError {
        let node = self.job.nodes[node as usize].name.clone();
        MapError::ObjectFull { node, object, pe: app.settled.pe, unit: app.settled.unit }
    }

    fn clash(&self, app: &App<'_>, listed: &Listed, clash: CpuSet) -> MapError {
        let line = match listed.place {
            Origin::Line(line) | Origin::Turn(line) => line,
        };
        let file = match (&app.policy.rankfile, &app.policy.sequence) {
            (Some(rankfile), _) => rankfile.file.clone(),
            (None, Some(sequence)) => sequence.file.clone(),
            (None, None) => String::new(),
        };
        let node = self.job.nodes[listed.node as usize].name.clone();
        MapError::CpusTaken { file, line, node, taken: clash.to_string() }
    }
}

/// No seat is left near an object although every rank must have one.
struct NoSeat {
    object: Option<(Level, u32)>,
}

/// One node while an app context's ranks are seated there.
struct Table<'a> {
    shape: &'a Shape,
    settled: &'a Settled,
    taken: CpuSet,
    /// By CPU: how many ranks it was given to.
    ranks: Vec<u32>,
    /// By place: how many of its first CPUs are known to be taken.
    cursors: Vec<usize>,
    /// Whether ranks are bound at all.
    bound: bool,
    crowded: bool,
    /// Whether all ranks are confined to a set of CPUs.
    confined: bool,
    /// The place next in turn.
    turn: usize,
}

impl<'a> Table<'a> {
    fn new(app: &'a App<'_>, shape: &'a Shape, taken: CpuSet, crowded: bool) -> Table<'a> {
        let settled = &app.settled;
        Table {
            shape,
            settled,
            taken,
            ranks: vec![0; shape.units.len()],
            cursors: vec![0; shape.places.len()],
            bound: settled.bind != BindTo::None && !crowded,
            crowded,
            confined: app.policy.cpu_set.is_some(),
            turn: 0,
        }
    }

    /// The seats of a share, in the order of mapping.
    fn seats(&mut self, share: &Share, app: &App<'_>) -> Result<Vec<Seat>, NoSeat> {
        let seat = |index: u32| {
            let within = NodeRule::Slot { slot: index + 1, of: share.turn };
            let node_rule =
                if index < share.turn { within } else { NodeRule::Beyond { extra: index - share.turn + 1 } };
            match app.settled.map {
                MapBy::PerResource { count, level } => {
                    let place = (index / count) as usize;
                    let node_rule = NodeRule::PerResource { index: index % count + 1, of: count };
                    self.next(place, node_rule, Some(level).filter(|level| *level != Level::Machine))
                }
                MapBy::Object(level) => {
                    let place = self.place();
                    self.next(place, node_rule, Some(level))
                }
                _ => self.next(0, node_rule, None),
            }
        };
        (0..share.count).map(seat).collect()
    }

    /// The place next in turn: the next one with room, or simply the next one if none has.
    fn place(&mut self) -> usize {
        let places = self.shape.places.len().max(1);
        let tried = if self.bound { places } else { 0 };
        let first = self.turn;
        let mut turns = (0..tried).map(|step| (first + step) % places);
        let with_room = turns.find(|place| self.has_room(*place));
        let place = with_room.unwrap_or(self.turn % places);
        self.turn = (place + 1) % places;
        place
    }

    fn has_room(&mut self, place: usize) -> bool {
        self.free_in(place, self.settled.pe as usize).is_some()
    }

    /// Seats the next rank at a place.
    fn next(&mut self, place: usize, node_rule: NodeRule, level: Option<Level>) -> Result<Seat, NoSeat> {
        let place = place.min(self.shape.places.len().saturating_sub(1));
        let object = level.map(|level| (level, place as u32));
        let Some((cpus, cpu_rule)) = self.cpus(place) else { return Err(NoSeat { object }) };
        Ok(Seat { place, cpus, rule: rule(node_rule, object, cpu_rule) })
    }

    /// The CPUs of the next rank at a place; `None` if it must have some and there are none.
    fn cpus(&mut self, place: usize) -> Option<(Option<CpuSet>, CpuRule)> {
        let BindTo::Object(level) = self.settled.bind else { return Some(self.unbound(CpuRule::Unbound)) };
        if self.crowded {
            return Some(self.unbound(CpuRule::Crowded));
        }
        let pe = self.settled.pe as usize;
        let has_targets = !self.shape.targets.is_empty() || pe > 1;
        let free = self.free_in(place, pe).filter(|_| has_targets);
        let (units, cpu_rule) = match free {
            Some(units) if pe > 1 => (units, CpuRule::Cpus(self.settled.pe)),
            Some(units) => (units, CpuRule::Free(level)),
            None if self.settled.overload && has_targets => {
                (self.least_used(place, pe), CpuRule::Shared(level))
            }
            None if self.settled.required => return None,
            None => return Some(self.unbound(CpuRule::Unsupported)),
        };
        let mut cpus = CpuSet::new();
        for unit in units {
            self.ranks[unit] += 1;
            self.taken.add(&self.shape.units[unit]);
            cpus.add(self.shape.target_of(unit));
        }
        Some((Some(cpus), cpu_rule))
    }

    /// A rank that is not bound is still confined to the CPUs of `--cpu-set`.
    fn unbound(&self, why: CpuRule) -> (Option<CpuSet>, CpuRule) {
        match self.confined {
            true => (Some(self.shape.topology.cpus().clone()), CpuRule::CpuSet),
            false => (None, why),
        }
    }

    /// The first `pe` free CPUs of a place, if it has that many. Several CPUs come from one package, if any package has that
    /// many.
    fn free_in(&mut self, place: usize, pe: usize) -> Option<Vec<usize>> {
        let part = self.shape.places.get(place)?;
        let cursor = self.cursors.get_mut(place)?;
        while part.units.get(*cursor).is_some_and(|unit| self.shape.units[*unit].intersects(&self.taken)) {
            *cursor += 1;
        }
        let free: Vec<usize> = {
            let rest = part.units.iter().skip(*cursor).copied();
            let free = rest.filter(|unit| !self.shape.units[*unit].intersects(&self.taken));
            if pe == 1 { free.take(1).collect() } else { free.collect() }
        };
        let of_package = |package: &Part| {
            let inside =
                free.iter().copied().filter(|unit| self.shape.units[*unit].intersects(&package.cpus));
            Some(inside.take(pe).collect::<Vec<_>>()).filter(|inside| inside.len() == pe)
        };
        if pe > 1
            && let Some(inside) = self.shape.packages.iter().find_map(of_package)
        {
            return Some(inside);
        }
        Some(free.into_iter().take(pe).collect::<Vec<_>>()).filter(|free| free.len() == pe)
    }

    /// The `pe` CPUs of a place with the fewest ranks.
    fn least_used(&self, place: usize, pe: usize) -> Vec<usize> {
        let mut units = self.shape.places.get(place).map(|part| part.units.clone()).unwrap_or_default();
        units.sort_by_key(|unit| self.ranks[*unit]);
        units.truncate(pe);
        units
    }
}

fn rule(node: NodeRule, object: Option<(Level, u32)>, cpus: CpuRule) -> Rule {
    Rule { node, object, cpus }
}

/// How many of the seats lack a requested binding.
fn count_unsupported<'a>(settled: &Settled, seats: impl Iterator<Item = &'a Seat>) -> u32 {
    let missing = seats.filter(|seat| seat.rule.cpus == CpuRule::Unsupported).count() as u32;
    if settled.if_supported { missing } else { 0 }
}
