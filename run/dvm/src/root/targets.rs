//! The targets of job control, and what has become of them: ranks with the same result together.
//!
//! A target that had ended before is no failure of a request in which others were reached.

use phalanx_spec::{Status, keys};
use phalanx_wire::{DataArray, Info, Nspace, ProcId};

use crate::msg::{Members, Results, each};
use crate::ranges::Ranges;
use crate::root::query::names;
use crate::root::turn::ENOUGH;

/// All targets of one request.
#[derive(Debug, Default)]
pub(super) struct Targets(Vec<Target>);

/// The targets in one job.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) nspace: Nspace,
    /// The targets without a result.
    pub(super) open: Ranges,
    results: Results,
}

impl Targets {
    pub(super) fn of(members: &[Members]) -> Targets {
        let target = |m: &Members| Target {
            nspace: m.nspace.clone(),
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
        self.0.push(Target { nspace, open: Ranges::new(), results });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
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

    pub(super) fn explain(&mut self, nspace: &Nspace, status: Status, why: &str) {
        let of_job = self.0.iter_mut().filter(|target| target.nspace == *nspace);
        of_job.for_each(|target| target.explain(status, why));
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
        let new = self.open.take(ranks);
        self.results.set(&new, status);
    }

    pub(super) fn explain(&mut self, status: Status, why: &str) {
        self.results.explain(status, why.to_owned());
    }
}

/// The targets of a request, as ranges.
pub(super) fn named(members: &[Members]) -> String {
    members.iter().map(|m| format!("{}:{}", m.nspace, m.ranks)).collect::<Vec<_>>().join(" ")
}

/// The most spans of ranks in one reply.
const MOST_SPANS: usize = 1000;
