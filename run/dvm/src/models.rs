//! What programs of other vendors look for: in their environment before they call init, and under keys of their own.

use phalanx_spec::Rank;
use phalanx_wire::{Key, Kval, Text, Value};

use crate::msg::JobDesc;

/// Variables of one process.
pub(crate) fn variables(desc: &JobDesc, rank: Rank, local_size: usize) -> Vec<(&'static str, String)> {
    let places = &desc.places;
    let sizes = desc.app_sizes();
    let mut variables = vec![
        // Open MPI 4.1 (ORTE) asks its `schizo` components whether it was launched, and none of them checks PMIX_NAMESPACE;
        // without a trigger each process comes up as a job of one. This one makes it use the PMIx server that it was given and
        // nothing else.
        ("JSM_JSRUN_PORT", "1".to_owned()),
        // Variables that users' wrapper scripts read under mpirun.
        ("OMPI_COMM_WORLD_RANK", rank.0.to_string()),
        ("OMPI_COMM_WORLD_SIZE", desc.size.to_string()),
        ("OMPI_COMM_WORLD_LOCAL_RANK", places.local_rank.get(rank.0).to_string()),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", local_size.to_string()),
        ("OMPI_COMM_WORLD_NODE_RANK", places.node_rank.get(rank.0).to_string()),
        ("OMPI_UNIVERSE_SIZE", desc.size.to_string()),
        ("OMPI_NUM_APP_CTX", sizes.len().to_string()),
        ("OMPI_APP_CTX_NUM_PROCS", spaced(&sizes)),
        ("OMPI_FIRST_RANKS", spaced(&firsts(&sizes))),
    ];
    let crowded = desc.node_of(rank).is_some_and(|node| desc.crowded.contains(node.0));
    let said = |entry: &Text| entry.as_bytes().starts_with(b"OMPI_MCA_mpi_");
    if crowded && !desc.env.iter().any(said) {
        // Open MPI 4.1 yields while it waits only if this is set: a ring of 16 ranks on 2 cores takes a sixth of the time. Do
        // not interfere with users that set any of its progress parameters.
        variables.push(("OMPI_MCA_mpi_oversubscribe", "1".to_owned()));
    }
    variables
}

/// Job-level keys of Open MPI 5, which it needs only when there are several app contexts.
pub(crate) fn job_values(app_sizes: &[u32]) -> Vec<Kval> {
    if app_sizes.len() < 2 {
        return Vec::new();
    }
    let kval = |key, numbers: &[u32]| Kval { key: Key::of(key), value: Value::from(spaced(numbers)) };
    vec![kval("OMPI_APP_SIZES", app_sizes), kval("OMPI_FIRST_RANKS", &firsts(app_sizes))]
}

/// The first rank of each app context.
fn firsts(sizes: &[u32]) -> Vec<u32> {
    sizes.iter().scan(0, |next, size| Some(std::mem::replace(next, *next + size))).collect()
}

fn spaced(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn app_contexts_follow_each_other() {
        assert_eq!(firsts(&[2, 3, 1]), [0, 2, 5]);
        assert_eq!(job_values(&[4]), []);
        let values = job_values(&[2, 3]);
        assert_eq!(values[0].value.as_str(), Some("2 3"));
        assert_eq!(values[1].value.as_str(), Some("0 2"));
    }
}
