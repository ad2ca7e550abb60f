//! The job that a command is about: `JOB` or `JOB:RANKS` as it was typed, and queries about it.

use phalanx_dvm::Ranges;
use phalanx_spec::Rank;
use pmix::{Info, InfoList, Nspace, ProcId, Query, Tool, Value, keys};

use crate::args::tools::RanksArgs;
use crate::failure::Failure;
use crate::tool;

/// `JOB` or `JOB:RANKS`.
pub(crate) fn target(word: &str) -> Result<(Nspace, Option<Ranges>), Failure> {
    let (job, ranks) = match word.rsplit_once(':') {
        Some((job, ranks)) => (job, Some(ranges(ranks)?)),
        None => (word, None),
    };
    match Nspace::new(job) {
        Ok(nspace) if !job.is_empty() => Ok((nspace, ranks)),
        _ => Err(Failure::usage(format!("'{job}' is not the name of a job")).hint("'px ps' lists the jobs")),
    }
}

/// `0-3,8`
pub(crate) fn ranges(word: &str) -> Result<Ranges, Failure> {
    let ranks = word.parse::<Ranges>().ok();
    let possible = |ranks: &Ranges| ranks.spans().all(|(_, last)| last < MOST_RANKS);
    ranks
        .filter(possible)
        .ok_or_else(|| Failure::usage(format!("'{word}' is not a list of ranks such as 0-3,8")))
}

/// The server of a job, and the ranks of it that the user means; none are named for all.
pub(crate) fn attach(args: &RanksArgs) -> Result<(Tool, Nspace, Option<Ranges>), Failure> {
    let (nspace, ranks) = target(&args.job)?;
    let tool = tool::attach_for(&args.server, &nspace, args.json)?;
    if let Some(ranks) = &ranks {
        check_ranks(&nspace, size(&tool, &nspace)?, ranks)?;
    }
    Ok((tool, nspace, ranks))
}

pub(crate) fn ask(tool: &Tool, nspace: &Nspace, key: &str) -> Result<Vec<Info>, pmix::Error> {
    let qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
    tool.query(&[Query { keys: vec![key.into()], qualifiers }])
}

pub(crate) fn size(tool: &Tool, nspace: &Nspace) -> Result<u32, Failure> {
    let info = ask(tool, nspace, keys::JOB_SIZE).map_err(|error| {
        tool::failed(&format!("the server does not know the job {nspace}"), &error)
            .hint("'px ps' lists the jobs")
    })?;
    let size = info.find(keys::JOB_SIZE).and_then(Value::as_u32);
    size.ok_or_else(|| Failure::new(format!("the server does not say how many ranks {nspace} has")))
}

pub(crate) fn check_ranks(nspace: &Nspace, size: u32, wanted: &Ranges) -> Result<(), Failure> {
    match wanted.iter().find(|rank| *rank >= size) {
        None => Ok(()),
        Some(missing) => Err(Failure::new(format!("job {nspace} has no rank {missing}"))
            .hint(format!("its ranks are 0 to {}", size.saturating_sub(1)))),
    }
}

pub(crate) fn procs(nspace: &Nspace, size: u32, wanted: &Ranges) -> Result<Vec<ProcId>, Failure> {
    check_ranks(nspace, size, wanted)?;
    Ok(match wanted.count() == size {
        true => vec![ProcId::all(nspace)],
        false => wanted.iter().map(|rank| ProcId::new(nspace, Rank(rank))).collect(),
    })
}

const MOST_RANKS: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_may_be_followed_by_ranks() {
        let target = |word| target(word).map(|(job, ranks)| (job.to_string(), ranks.map(|r| r.to_string())));
        assert_eq!(target("px-a-7@7"), Ok(("px-a-7@7".into(), None)));
        assert_eq!(target("px-a-7@7:0-3,8"), Ok(("px-a-7@7".into(), Some("0-3,8".into()))));
        for wrong in ["", ":1", "a:x", "a:3-1", "a:"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }
}
