//! The values that the OpenPMIx and Open MPI libraries get while they initialize, as their releases request them: rank, directives
//! and expected type. Open MPI treats a value of another type as missing.

use phalanx_interop::{
    Library::{OpenMpi4, OpenMpi5, Pmix4, Pmix5},
    libpmix, mpi, pmix, px,
};

/// The libraries that make a request.
const OMPI4: &str = "Open MPI 4.1";
const OMPI5: &str = "Open MPI 5.0";
const BOTH: &str = "Open MPI 4.1 and 5.0";
const PROGRAMS: &str = "programs";

/// The requesting library; the rank, the key and the directive; the answer.
const ASKED: &[(&str, &str, &str)] = &[
    (BOTH, "all pmix.job.size plain", "PMIX_UINT32 2"),
    (BOTH, "all pmix.job.size optional", "PMIX_UINT32 2"),
    (OMPI4, "all pmix.max.size plain", "PMIX_UINT32 2"),
    (OMPI4, "all pmix.num.nodes optional", "PMIX_UINT32 1"),
    (OMPI5, "all pmix.job.napps optional", "PMIX_UINT32 1"),
    (BOTH, "all pmix.univ.size optional", "PMIX_UINT32 2"),
    (BOTH, "all pmix.mapby optional", "PMIX_STRING of text"),
    (BOTH, "own pmix.lrank plain", "PMIX_UINT16 0"),
    (BOTH, "own pmix.lrank optional", "PMIX_UINT16 0"),
    (BOTH, "own pmix.nrank plain", "PMIX_UINT16 0"),
    (BOTH, "own pmix.nrank optional", "PMIX_UINT16 0"),
    (OMPI4, "peer pmix.nrank plain", "PMIX_UINT16 1"),
    (BOTH, "own pmix.appnum optional", "PMIX_UINT32 0"),
    (BOTH, "own pmix.pkgrank optional", "PMIX_UINT16 0"),
    (OMPI5, "own pmix.reinc optional", "PMIX_UINT32 0"),
    (OMPI5, "own pmix.hname optional", "PMIX_STRING of text"),
    (BOTH, "peer pmix.hname optional", "PMIX_STRING of text"),
    (BOTH, "peer pmix.nodeid plain", "PMIX_UINT32 0"),
    (BOTH, "all pmix.local.size plain", "PMIX_UINT32 2"),
    (BOTH, "all pmix.local.size optional", "PMIX_UINT32 2"),
    (BOTH, "all pmix.lpeers plain", "PMIX_STRING of text"),
    (BOTH, "all pmix.lpeers optional", "PMIX_STRING of text"),
    (BOTH, "own pmix.cpuset optional", "PMIX_STRING of text"),
    (BOTH, "own pmix.locstr optional", "PMIX_STRING of text"),
    (BOTH, "peer pmix.locstr optional", "PMIX_STRING of text"),
    (BOTH, "all pmix.tmpdir optional", "PMIX_STRING of text"),
    (BOTH, "all pmix.nsdir optional", "PMIX_STRING of text"),
    (OMPI5, "own pmix.pdir optional", "PMIX_STRING of text"),
    (OMPI5, "all pmix.wdir optional", "PMIX_STRING of text"),
    (OMPI5, "all pmix.app.argv optional", "PMIX_STRING of text"),
    (BOTH, "all pmix.hwlocxml2 immediate", "PMIX_STRING of text"),
    // Open MPI 4.1 requests this one when linked with hwloc 1.
    (OMPI4, "all pmix.hwlocxml1 immediate", "PMIX_STRING of text"),
    // With a topology in shared memory they would not request the XML; hwloc of another version could not read it.
    (BOTH, "all pmix.hwlocfile optional", "missing"),
    (BOTH, "all pmix.hwlocaddr optional", "missing"),
    (BOTH, "all pmix.hwlocsize optional", "missing"),
    // Open MPI 4.1 requests the directory of all ranks, and creates its own if there is none.
    (OMPI4, "all pmix.pdir optional", "missing"),
    // Only its presence matters.
    (OMPI5, "all pmix.ndosub optional", "missing"),
    (OMPI5, "all pmix.dbg.inapp optional", "missing"),
    // They compute and store it themselves.
    (BOTH, "peer pmix.locality optional", "missing"),
    (PROGRAMS, "own pmix.parent plain", "missing"),
    (PROGRAMS, "own pmix.spawned plain", "PMIX_BOOL false"),
];

#[test]
fn keys_asked_for_in_init_are_answered() {
    let job = || {
        let requests = ASKED.iter().map(|(_, request, _)| request.replace(' ', ":"));
        px(["-n", "2", "--bind-to", "core"]).arg(pmix("asks")).args(requests)
    };
    let on_ours = job().with(Pmix4).env("LD_LIBRARY_PATH", libpmix());
    for (library, job) in [("4.2", job().with(Pmix4)), ("5.0", job().with(Pmix5)), ("ours", on_ours)] {
        let outcome = job.run().expect_code(0);
        let wrong: Vec<_> = ASKED
            .iter()
            .filter(|(_, request, answer)| {
                !outcome.stdout.lines().any(|l| l == format!("{request}: {answer}"))
            })
            .collect();
        assert!(wrong.is_empty(), "{library}: {wrong:#?}\n{outcome}");
    }
}

/// A job has no node number. OpenPMIx clients that keep job data in their `hash` store answer with the number of their own
/// node, also under OpenPMIx servers; with the shared-memory store of PRRTE's servers, 5.0 and 6.1 clients find none.
#[test]
fn job_has_no_node_number() {
    let job = || px(["-n", "2"]).arg(pmix("asks")).args(["all:pmix.nodeid:plain", "own:pmix.nodeid:plain"]);
    let on_ours = job().with(Pmix4).env("LD_LIBRARY_PATH", libpmix());
    let own = "own pmix.nodeid plain: PMIX_UINT32 0";
    let (found, missing) = ("all pmix.nodeid plain: PMIX_UINT32 0", "all pmix.nodeid plain: missing");
    for (job, of_job) in [(job().with(Pmix4), found), (job().with(Pmix5), found), (on_ours, missing)] {
        let _ = job.run().expect_code(0).expect_lines([of_job, own]);
    }
}

/// Detecting a topology takes hwloc a hundred times as long as reading it, and longer when all ranks of a node do it.
#[test]
fn mpi_ranks_do_not_look_for_the_topology() {
    for library in [OpenMpi4, OpenMpi5] {
        let outcome = px(["-n", "2"]).arg(mpi(library, "topologies")).with(library).run().expect_code(0);
        outcome.expect_lines((0..2).map(|rank| format!("rank {rank}: 1 of 1 topologies came as XML")));
    }
}
