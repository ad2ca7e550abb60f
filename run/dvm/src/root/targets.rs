//! The targets of job control, and what has become of them: ranks with the same result together.
//!
//! A target that had ended before is no failure of a request in which others were reached.

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::{DataArray, Info, Nspace, ProcId};

use crate::msg::{Members, Results, each};
use crate::ranges::Ranges;
use crate::root::Root;
use crate::root::query::names;
use crate::root::turn::ENOUGH;

/// All targets of one request.
#[derive(Debug, Default)]
pub(super) struct Targets(Vec<Target>);

/// The targets in one job.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) nspace: Nspace,
    /// The daemons' task; 0 until they are given one.
    pub(super) task: u32,
    /// The targets without a result.
    pub(super) open: Ranges,
    results: Results,
}

impl Targets {
    pub(super) fn of(members: &[Members]) -> Targets {
        let target = |m: &Members| Target {
            nspace: m.nspace.clone(),
            task: 0,
            open: m.ranks.clone(),
            results: Results::default(),
        };
        Targets(members.iter().map(target).collect())
    }

    /// Adds targets that already have a result, with the reason.
    pub(super) fn refuse(&mut self, members: Members, status: Status, why: Option<&str>) {
        let Members { nspace, ranks } = members;
        let mut results = Results::default();
        results.set(&ranks, status);
        why.into_iter().for_each(|why| results.explain(status, why.to_owned()));
        self.0.push(Target { nspace, task: 0, open: Ranges::new(), results });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Target> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        self.0.iter_mut()
    }

    /// Sets a result; the first result of each target counts.
    pub(super) fn set(&mut self, nspace: &Nspace, ranks: &Ranges, status: Status) {
        let of_job = self.0.iter_mut().filter(|target| target.nspace == *nspace);
        of_job.for_each(|target| target.set(ranks, status));
    }

    /// Takes in daemons' results for one job.
    pub(super) fn take(&mut self, nspace: &Nspace, results: &Results) {
        for target in self.0.iter_mut().filter(|target| target.nspace == *nspace) {
            target.take(results);
        }
    }

    /// Gives this result to all targets without one.
    pub(super) fn close(&mut self, status: Status) {
        self.0.iter_mut().for_each(|target| target.set(&target.open.clone(), status));
    }

    pub(super) fn are_closed(&self) -> bool {
        self.0.iter().all(|target| target.open.is_empty())
    }

    pub(super) fn concern(&self, nspace: &Nspace) -> bool {
        self.0.iter().any(|target| target.nspace == *nspace && !target.open.is_empty())
    }

    /// The targets with this result.
    pub(super) fn with(&self, status: Status) -> Vec<Members> {
        let with = self.0.iter().filter_map(|target| {
            let (_, ranks) = target.results.iter().find(|(one, _)| *one == status)?;
            Some(Members { nspace: target.nspace.clone(), ranks: ranks.clone() })
        });
        with.collect()
    }

    /// The first result that is a failure.
    pub(super) fn failure(&self) -> Option<Status> {
        self.results().find(|status| !status.is_success())
    }

    /// The results so far of the targets in one job.
    pub(super) fn results_in(&self, nspace: &Nspace) -> impl Iterator<Item = Status> {
        let of_job = self.0.iter().filter(move |target| target.nspace == *nspace);
        of_job.flat_map(|target| target.results.iter()).map(|(status, _)| status)
    }

    pub(super) fn open(&self) -> Vec<Members> {
        let open = self.0.iter().filter(|target| !target.open.is_empty());
        open.map(|target| Members { nspace: target.nspace.clone(), ranks: target.open.clone() }).collect()
    }

    /// The targets without a result, no more than a person reads.
    pub(super) fn missing(&self) -> Vec<ProcId> {
        each(&self.open()).take(ENOUGH).collect()
    }

    /// The results so far.
    pub(super) fn results(&self) -> impl Iterator<Item = Status> {
        self.0.iter().flat_map(|target| target.results.iter().map(|(status, _)| status))
    }

    /// The results as they appear in a reply. `open`: the status for targets without a result.
    pub(super) fn told(&self, open: Status) -> Vec<Info> {
        let (mut told, mut room, mut omitted) = (Vec::new(), MOST_SPANS, 0);
        for target in &self.0 {
            for (status, ranks) in target.results.iter().chain([(open, &target.open)]) {
                let mut shown = Ranges::new();
                ranks.spans().take(room).for_each(|(first, last)| shown.insert_span(first, last));
                room -= shown.spans().count();
                omitted += u64::from(ranks.count() - shown.count());
                if !shown.is_empty() {
                    let result = [
                        Info::new(keys::NSPACE, target.nspace.as_str()),
                        Info::new(names::WHICH, shown.to_string()),
                        Info::new(names::STATUS, status),
                    ];
                    let why = target.results.why(status).map(|why| Info::new(keys::EVENT_TEXT_MESSAGE, why));
                    told.push(Info::new(names::RESULT, DataArray::of_infos(result.into_iter().chain(why))));
                }
            }
        }
        if omitted > 0 {
            told.push(Info::new(names::OMITTED, omitted));
        }
        told
    }
}

impl Target {
    pub(super) fn take(&mut self, results: &Results) {
        for (status, ranks) in results.iter() {
            self.set(ranks, status);
            if let Some(why) = results.why(status) {
                self.results.explain(status, why.to_owned());
            }
        }
    }

    /// Sets a result; the first result of each target counts.
    pub(super) fn set(&mut self, ranks: &Ranges, status: Status) {
        let new = ranks.and(&self.open);
        self.results.set(&new, status);
        new.iter().for_each(|rank| self.open.remove(rank));
    }
}

impl Root {
    /// The named processes; none named means all of the requester's job. The error names unknown ones, and those that the
    /// requester may not steer.
    pub(super) fn targets_of(&self, from: &ProcId, named: &[ProcId]) -> Result<Vec<Members>, Targets> {
        let whole = ProcId::all(&from.nspace);
        let named = if named.is_empty() { std::slice::from_ref(&whole) } else { named };
        let mut known: Vec<Members> = Vec::new();
        let mut refused = Targets::default();
        for ProcId { nspace, rank } in named {
            let size = self.size_of(nspace).unwrap_or(0);
            let members = Members {
                nspace: nspace.clone(),
                ranks: match *rank {
                    Rank::WILDCARD => Ranges::first(size.max(1)),
                    Rank(rank) => Ranges::single(rank),
                },
            };
            match *rank {
                _ if size == 0 => refused.refuse(members, Status::ERR_NOT_FOUND, Some(NO_JOB)),
                _ if !self.may_steer(from, nspace) => {
                    refused.refuse(members, Status::ERR_NO_PERMISSIONS, None);
                }
                Rank(rank) if rank >= size && Rank(rank) != Rank::WILDCARD => {
                    let why = format!("no such rank: the job has {size}");
                    refused.refuse(members, Status::ERR_BAD_PARAM, Some(&why));
                }
                _ => add(&mut known, nspace, &members.ranks),
            }
        }
        if refused.0.is_empty() { Ok(known) } else { Err(refused) }
    }

    /// The size of a running job, or of one that has ended lately.
    fn size_of(&self, nspace: &Nspace) -> Option<u32> {
        let live = self.desc(nspace).map(|desc| desc.size);
        live.or_else(|| self.journals.get(nspace).map(|journal| journal.desc().size))
    }

    /// Gives a result to targets that have failed while their job goes on, and to those in ended jobs.
    pub(super) fn with_the_dead(&self, members: &[Members]) -> Targets {
        let mut targets = Targets::of(members);
        for target in targets.iter_mut() {
            let dead = match self.jobs.get(&target.nspace) {
                Some(job) => job.gone(),
                None => target.open.clone(),
            };
            target.set(&dead, Status::ERR_NOT_FOUND);
        }
        targets
    }
}

fn add(members: &mut Vec<Members>, nspace: &Nspace, ranks: &Ranges) {
    match members.iter_mut().find(|m| m.nspace == *nspace) {
        Some(same) => same.ranks.add(ranks),
        None => members.push(Members { nspace: nspace.clone(), ranks: ranks.clone() }),
    }
}

const NO_JOB: &str = "no such job is known";
/// The most spans of ranks in one reply.
const MOST_SPANS: usize = 1000;
