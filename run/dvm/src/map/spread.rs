//! Dividing the ranks of an app context over its nodes.
//!
//! First every node gets its turn: either node after node, each its whole turn, or one rank each in rounds. The rest goes in
//! rounds of one rank each to the nodes that may take more, until no rank is left or no node may. If ranks are placed in rounds
//! and outnumber all turns together, turns are ignored, as with mpirun and prterun.

use std::collections::BTreeMap;

use phalanx_topo::{CpuSet, Level};

use super::choose::Offer;
use super::slots::{App, Budget, Job};
use super::{BindTo, MapBy, MapError, SequenceEntry};

/// Where an app context's ranks go.
pub(super) enum Spread {
    /// The number of ranks for each node.
    Counted(Vec<Share>),
    /// Rank by rank.
    Listed(Vec<Listed>),
}

/// The ranks of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) node: u32,
    /// Into [`App::shapes`].
    pub(super) shape: u32,
    pub(super) count: u32,
    /// How many of them were its turn.
    pub(super) turn: u32,
}

/// One rank of a list.
pub(super) struct Listed {
    pub(super) node: u32,
    /// Into [`App::shapes`].
    pub(super) shape: u32,
    /// The CPUs that the list names.
    pub(super) cpus: Option<CpuSet>,
    /// The line of the file, or the position in the list of hosts.
    pub(super) place: Origin,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    Line(u32),
    Turn(u32),
}

/// Divides the ranks of app context `app`, and counts them on their nodes.
pub(super) fn spread(job: &mut Job<'_>, app: usize) -> Result<Spread, MapError> {
    let this = &job.apps[app];
    let spread = match this.settled.map {
        MapBy::Sequence => Spread::Listed(sequence(job, this)?),
        MapBy::Rankfile => Spread::Listed(rankfile(job, this)?),
        MapBy::PerResource { count, level } => Spread::Counted(per_resource(job, app, count, level)?),
        map => {
            check_places(job, this, "--map-by")?;
            let budgets: Vec<Budget> = this.offers.iter().map(|offer| job.budget(this, offer)).collect();
            let one_each = map == MapBy::Node || this.settled.span;
            let counts =
                divide(&budgets, this.procs, one_each).ok_or_else(|| job.refusal(app, this.procs))?;
            let shares = this.offers.iter().zip(budgets).zip(counts);
            let shares = shares.filter(|(_, count)| *count > 0).map(|((offer, budget), count)| Share {
                node: offer.node,
                shape: offer.shape,
                count,
                turn: budget.turn,
            });
            Spread::Counted(shares.collect())
        }
    };
    check_targets(job, app, &spread)?;
    let pe = if job.apps[app].settled.bind == BindTo::None { 0 } else { job.apps[app].settled.pe };
    let mut count_in = |node: u32, count: u32| {
        job.used[node as usize] = job.used[node as usize].saturating_add(count);
        job.demand[node as usize] = job.demand[node as usize].saturating_add(count.saturating_mul(pe));
    };
    match &spread {
        Spread::Counted(shares) => shares.iter().for_each(|share| count_in(share.node, share.count)),
        Spread::Listed(list) => list.iter().for_each(|listed| count_in(listed.node, 1)),
    }
    Ok(spread)
}

/// How many ranks each budget gets, or `None` if they do not fit.
fn divide(budgets: &[Budget], procs: u32, one_each: bool) -> Option<Vec<u32>> {
    let mut counts = vec![0u32; budgets.len()];
    let mut left = procs;
    if one_each {
        let turns: u64 = budgets.iter().map(|budget| u64::from(budget.turn)).sum();
        if turns >= u64::from(procs) {
            cycle(&mut counts, &mut left, |node| budgets[node].turn);
        }
    } else {
        for (count, budget) in counts.iter_mut().zip(budgets) {
            *count = budget.turn.min(left);
            left -= *count;
        }
    }
    cycle(&mut counts, &mut left, |node| budgets[node].most);
    (left == 0).then_some(counts)
}

/// Gives one to each in turn, as long as any are left and any node is below its bound.
fn cycle(counts: &mut [u32], left: &mut u32, bound: impl Fn(usize) -> u32) {
    let mut open: Vec<usize> = (0..counts.len()).filter(|node| counts[*node] < bound(*node)).collect();
    while *left > 0 && !open.is_empty() {
        // Do whole rounds at once, up to the next one in which a node reaches its bound.
        let rounds = open.iter().map(|node| bound(*node) - counts[*node]).min().unwrap_or(0);
        let rounds = rounds.min(*left / open.len() as u32);
        if rounds == 0 {
            for node in open.iter().take(*left as usize) {
                counts[*node] += 1;
            }
            *left = 0;
            return;
        }
        open.iter().for_each(|node| counts[*node] += rounds);
        *left -= rounds * open.len() as u32;
        open.retain(|node| counts[*node] < bound(*node));
    }
}

/// Puts `each` ranks on each object, node by node, up to the requested number.
fn per_resource(job: &Job<'_>, app: usize, each: u32, level: Level) -> Result<Vec<Share>, MapError> {
    let this = &job.apps[app];
    check_places(job, this, "--map-by ppr")?;
    let mut shares = Vec::new();
    let mut left = this.procs;
    let mut total = 0u64;
    for offer in &this.offers {
        let objects = this.shapes[offer.shape as usize].places.len() as u32;
        let wanted = objects.saturating_mul(each);
        total += u64::from(wanted);
        let count = wanted.min(left);
        if count > job.budget(this, offer).most {
            return Err(job.refusal_on(app, offer, count));
        }
        left -= count;
        if count > 0 {
            shares.push(Share { node: offer.node, shape: offer.shape, count, turn: count });
        }
    }
    match left {
        0 => Ok(shares),
        _ => Err(MapError::PatternTooSmall {
            asked: this.procs,
            count: each,
            level,
            total,
            nodes: this.offers.len(),
        }),
    }
}

/// The ranks in the order of a file or of the list of hosts.
fn sequence(job: &Job<'_>, app: &App<'_>) -> Result<Vec<Listed>, MapError> {
    let procs = app.procs as usize;
    let Some(sequence) = &app.policy.sequence else {
        if app.policy.map.file.is_some() {
            return Err(MapError::NoFile { map: "seq" });
        }
        if app.turns.len() < procs {
            return Err(MapError::TooFewEntries { file: None, asked: app.procs, entries: app.turns.len() });
        }
        let listed = |(place, turn): (&u32, u32)| {
            let Offer { node, shape, .. } = app.offers[*place as usize];
            Listed { node, shape, cpus: None, place: Origin::Turn(turn) }
        };
        return Ok(app.turns.iter().zip(1..).take(procs).map(listed).collect());
    };
    let first = app.first_line as usize;
    let entries = sequence.entries.iter().skip(first).take(procs);
    if entries.len() < procs {
        return Err(MapError::TooFewEntries {
            file: Some(sequence.file.clone()),
            asked: app.first_line + app.procs,
            entries: sequence.entries.len(),
        });
    }
    let finder = Finder::new(job, app);
    entries.map(|entry| finder.listed(entry, &sequence.file)).collect()
}

/// Each rank by its line.
fn rankfile(job: &Job<'_>, app: &App<'_>) -> Result<Vec<Listed>, MapError> {
    let rankfile = app.policy.rankfile.as_ref().ok_or(MapError::NoFile { map: "rankfile" })?;
    let finder = Finder::new(job, app);
    let listed = |rank: u32| {
        let entry = rankfile.ranks.get(&rank);
        let entry = entry.ok_or_else(|| MapError::MissingRank { file: rankfile.file.clone(), rank })?;
        finder.listed(entry, &rankfile.file)
    };
    (app.first_line..app.first_line + app.procs).map(listed).collect()
}

/// Finds the nodes that lines name among those of the app context.
struct Finder<'a> {
    job: &'a Job<'a>,
    app: &'a App<'a>,
    /// By node: the app context's offer for it.
    offers: BTreeMap<u32, Offer>,
}

impl<'a> Finder<'a> {
    fn new(job: &'a Job<'_>, app: &'a App<'_>) -> Finder<'a> {
        Finder { job, app, offers: app.offers.iter().map(|offer| (offer.node, *offer)).collect() }
    }

    fn listed(&self, entry: &SequenceEntry, file: &str) -> Result<Listed, MapError> {
        let nodes = self.job.names.find(&entry.host, &[], Some((file, entry.line)))?;
        let offer = nodes.first().and_then(|node| self.offers.get(&(*node as u32))).ok_or_else(|| {
            MapError::UnknownHost {
                host: entry.host.clone(),
                nodes: self.app.offers.len(),
                near: None,
                place: Some((file.to_owned(), entry.line)),
            }
        })?;
        let topology = &self.app.shapes[offer.shape as usize].topology;
        let resolve = |cpus: &super::CpuList| {
            cpus.resolve(topology, self.app.settled.unit).map_err(|missing| MapError::NoSuchCpus {
                file: file.to_owned(),
                line: entry.line,
                node: self.job.nodes[offer.node as usize].name.clone(),
                cpus: cpus.clone(),
                missing,
                has: topology.objects(missing.0).len() as u32,
            })
        };
        Ok(Listed {
            node: offer.node,
            shape: offer.shape,
            cpus: entry.cpus.as_ref().map(resolve).transpose()?,
            place: Origin::Line(entry.line),
        })
    }
}

/// Checks that every node has the objects to map by, large enough for one rank.
fn check_places(job: &Job<'_>, app: &App<'_>, option: &'static str) -> Result<(), MapError> {
    let (MapBy::Object(level) | MapBy::PerResource { level, .. }) = app.settled.map else { return Ok(()) };
    for offer in &app.offers {
        let shape = &app.shapes[offer.shape as usize];
        let node = || job.nodes[offer.node as usize].name.clone();
        if shape.places.is_empty() {
            return Err(no_such_object(node(), level, shape, option));
        }
        let largest = shape.places.iter().map(|place| place.units.len() as u32).max().unwrap_or(0);
        if app.settled.bind != BindTo::None && app.settled.pe > largest {
            let super::defaults::Settled { pe, unit, .. } = app.settled;
            return Err(MapError::ObjectTooSmall { node: node(), level, pe, cpus: largest, unit });
        }
    }
    Ok(())
}

/// Checks that every node with ranks has the objects that they must be bound to.
fn check_targets(job: &Job<'_>, app: usize, spread: &Spread) -> Result<(), MapError> {
    let this = &job.apps[app];
    let BindTo::Object(level) = this.settled.bind else { return Ok(()) };
    let Spread::Counted(shares) = spread else { return Ok(()) };
    for share in shares {
        let shape = &this.shapes[share.shape as usize];
        if shape.targets.is_empty() && this.settled.required && this.settled.pe == 1 {
            let node = job.nodes[share.node as usize].name.clone();
            return Err(no_such_object(node, level, shape, "--bind-to"));
        }
    }
    Ok(())
}

fn no_such_object(node: String, level: Level, shape: &super::shape::Shape, option: &'static str) -> MapError {
    let present = Level::ALL.into_iter().filter(|level| !shape.topology.objects(*level).is_empty()).collect();
    MapError::NoSuchObject { node, level, present, option }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(of: &[(u32, u32)]) -> Vec<Budget> {
        of.iter().map(|(turn, most)| Budget { turn: *turn, most: *most }).collect()
    }

    #[test]
    fn turns_come_before_what_is_beyond() {
        let of = budgets(&[(2, u32::MAX), (4, 4), (1, u32::MAX)]);
        assert_eq!(divide(&of, 3, false).unwrap(), [2, 1, 0]);
        assert_eq!(divide(&of, 7, false).unwrap(), [2, 4, 1]);
        assert_eq!(divide(&of, 10, false).unwrap(), [4, 4, 2]);
        assert_eq!(divide(&of, 3, true).unwrap(), [1, 1, 1]);
        assert_eq!(divide(&of, 5, true).unwrap(), [2, 2, 1]);
        assert_eq!(divide(&of, 8, true).unwrap(), [3, 3, 2]);
        assert_eq!(divide(&of, 1_000_000, true).unwrap(), [499_998, 4, 499_998]);
    }

    #[test]
    fn bounds_hold() {
        let of = budgets(&[(1, 2), (1, 1), (0, 3)]);
        assert_eq!(divide(&of, 6, true).unwrap(), [2, 1, 3]);
        assert_eq!(divide(&of, 7, true), None);
        assert_eq!(divide(&[], 1, false), None);
    }
}
