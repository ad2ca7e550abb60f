//! `px hello`: a program for `px run` to start. Each rank prints its identity and place, and which other ranks it has met.
//!
//! It is an ordinary client of the PMIx server that started it, ours or another: each rank puts its host, commits, fences with collection, and gets
//! the others' values.

use std::collections::BTreeMap;

use phalanx_topo::CpuSet;
use pmix::{Client, Info, Scope, Value, keys};

use crate::failure::Failure;
use crate::render::words;

pub(crate) fn run() -> Result<u8, Failure> {
    let client = Client::init().map_err(|e| Failure::new("this rank cannot join its job").because(e))?;
    if client.is_singleton() {
        return Err(Failure::new("px hello greets the other ranks of its job, but is not running as a rank")
            .hint("try: px run -n 4 px hello"));
    }
    let me = client.proc().clone();
    let line =
        greet(&client).map_err(|e| Failure::new(format!("{me} cannot greet the others")).because(e))?;
    super::print(&line)?;
    client.finalize(&[]).map_err(|e| Failure::new(format!("{me} cannot leave its job")).because(e))?;
    Ok(0)
}

fn greet(client: &Client) -> Result<String, pmix::Error> {
    let me = client.proc();
    let size = client.get_job(keys::JOB_SIZE)?.as_u32().unwrap_or(1);
    let host = text(client, keys::HOSTNAME).unwrap_or_default();
    client.put(Scope::GLOBAL, HOST, host.as_str())?;
    client.commit()?;
    client.fence(&[], &[Info::new(keys::COLLECT_DATA, true), Info::new(keys::TIMEOUT, PATIENCE)])?;

    let mut met = BTreeMap::<String, Vec<u32>>::new();
    for rank in whom_to_meet(me.rank.0, size) {
        let there = client.get(&client.peer(rank), HOST, &[Info::new(keys::TIMEOUT, PATIENCE)])?;
        met.entry(there.as_str().unwrap_or_default().to_owned()).or_default().push(rank);
    }
    Ok(format!(
        "hello from rank {} of {size} in {} on {host}, pid {}, {}, {}\n",
        me.rank,
        me.nspace,
        std::process::id(),
        binding(client),
        company(&met, &host)
    ))
}

/// All other ranks, or in a large job the neighbours on both sides.
fn whom_to_meet(me: u32, size: u32) -> Vec<u32> {
    let mut others: Vec<u32> = match size {
        0..=MOST_MET => (0..size).collect(),
        _ => vec![(me + size - 1) % size, (me + 1) % size],
    };
    others.retain(|rank| *rank != me);
    others
}

/// `met ranks 1-3 here and rank 4 on b`
fn company(met: &BTreeMap<String, Vec<u32>>, host: &str) -> String {
    let (here, elsewhere): (Vec<_>, Vec<_>) = met.iter().partition(|(there, _)| *there == host);
    let here = here.into_iter().map(|(_, ranks)| format!("{} here", words::ranks(ranks)));
    let elsewhere = elsewhere.into_iter().map(|(there, ranks)| format!("{} on {there}", words::ranks(ranks)));
    let groups: Vec<_> = here.chain(elsewhere).collect();
    if groups.is_empty() { "alone".into() } else { format!("met {}", groups.join(" and ")) }
}

/// Where the kernel lets this process run, and whether the launcher has bound it.
fn binding(client: &Client) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = allowed.and_then(|list| CpuSet::from_list(list.trim()).ok()).unwrap_or_default();
    let cpus = format!("{} {allowed}", if allowed.count() == 1 { "CPU" } else { "CPUs" });
    let Some(wanted) = text(client, keys::CPUSET) else { return format!("not bound ({cpus})") };
    match CpuSet::from_list(&wanted) {
        Ok(wanted) if wanted == allowed => {
            let place = text(client, keys::LOCALITY_STRING).and_then(|locality| place(&locality));
            format!("bound to {cpus}{}", place.map(|place| format!(" ({place})")).unwrap_or_default())
        }
        _ => format!("on {cpus}, although it should be bound to {wanted}"),
    }
}

/// The part of a locality string that users ask for: `package 0, core 2-3`.
fn place(locality: &str) -> Option<String> {
    let level = |code: &str| locality.split(':').find_map(|part| part.strip_prefix(code));
    let named = |name: &str, code: &str| level(code).map(|numbers| format!("{name} {numbers}"));
    let parts: Vec<_> = [named("package", "SK"), named("core", "CR")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A value about this process from the job's data.
fn text(client: &Client, key: &str) -> Option<String> {
    let value = client.get(client.proc(), key, &[Info::new(keys::OPTIONAL, true)]).ok()?;
    match &value {
        Value::Cpuset(Some(list)) => Some(list.to_string_lossy()),
        value => value.as_text().map(pmix::Text::to_string_lossy),
    }
}

const HOST: &str = "px.hello.host";
/// Seconds that the others may take to arrive.
const PATIENCE: i32 = 60;
const MOST_MET: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_jobs_meet_as_a_whole_and_large_ones_side_by_side() {
        assert_eq!(whom_to_meet(0, 1), [0; 0]);
        assert_eq!(whom_to_meet(1, 4), [0, 2, 3]);
        assert_eq!(whom_to_meet(0, 1000), [999, 1]);
        assert_eq!(whom_to_meet(999, 1000), [998, 0]);
    }

    #[test]
    fn met_ranks_are_listed_by_host() {
        let met = BTreeMap::from([("a".into(), vec![3]), ("b".into(), vec![0, 1])]);
        assert_eq!(company(&met, "b"), "met ranks 0-1 here and rank 3 on a");
        assert_eq!(company(&BTreeMap::new(), "b"), "alone");
    }

    #[test]
    fn a_locality_is_shown_in_words() {
        assert_eq!(place("hwloc:NM0:SK1:L30:CR4-5:HT8-11").as_deref(), Some("package 1, core 4-5"));
        assert_eq!(place("hwloc:"), None);
    }
}
