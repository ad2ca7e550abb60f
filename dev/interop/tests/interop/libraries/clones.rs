//! Several programs of a shell that are one rank at the same time: on our library and on Debian's, under `px` and `mpirun`.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs::File;
use std::path::Path;

use phalanx_interop::{
    Job, Library::Pmix4, Outcome, Running, debian_file, eventually, host, libpmix, new_directory, pmix, px,
    px_binary,
};

/// A shell that acts as each rank: `$0` is the program.
fn shell(job: Job, script: &str, meeting: &Path) -> Job {
    job.args(["sh", "-c", script]).arg(pmix("clone")).with(Pmix4).env("INTEROP_MEETING", meeting)
}

fn at_px(ranks: u32, script: &str, meeting: &Path) -> Job {
    shell(px(["-n", &ranks.to_string()]), script, meeting)
}

fn at_mpirun(script: &str, meeting: &Path) -> Job {
    let launcher = Job::new(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin"));
    shell(launcher.args(["--allow-run-as-root", "-n", "1"]), script, meeting)
}

/// The same under `px` with Debian's library and with ours in the ranks, and under mpirun with Debian's on both sides.
fn everywhere(script: &str, check: impl Fn(Outcome)) {
    for ranks in [1, 2] {
        let meetings = [new_directory(), new_directory()];
        check(at_px(ranks, script, meetings[0].path()).run().expect_nothing_left());
        let ours = at_px(ranks, script, meetings[1].path()).env("LD_LIBRARY_PATH", libpmix());
        check(ours.run().expect_nothing_left());
    }
    let meeting = new_directory();
    check(at_mpirun(script, meeting.path()).run());
}

fn is_rank(outcome: &Outcome, name: &str) -> bool {
    outcome.stdout.lines().any(|line| line.ends_with(&format!("{name} was this rank")))
}

#[test]
fn two_programs_of_a_rank_run_at_once() {
    everywhere("\"$0\" a b finalize & \"$0\" b a finalize; wait", |outcome| {
        assert!(is_rank(&outcome, "a") && is_rank(&outcome, "b"), "{outcome}");
        let _ = outcome.expect_code(0);
    });
}

#[test]
fn two_programs_of_a_rank_run_one_after_the_other() {
    everywhere(
        "touch \"$INTEROP_MEETING/$PMIX_RANK.nobody\" \"$INTEROP_MEETING/$PMIX_RANK.nobody.met\"; \"$0\" a nobody finalize && \"$0\" b nobody finalize",
        |outcome| {
            assert!(is_rank(&outcome, "a") && is_rank(&outcome, "b"), "{outcome}");
            let _ = outcome.expect_code(0);
        },
    );
}

/// The shell survives, and exits with 0.
#[test]
fn one_of_two_may_end_without_finalize() {
    let ends = [("leave", "go-finalize", "b"), ("die", "go-finalize", "b"), ("finalize", "go-leave", "a")];
    for (first, second, finalizes) in ends {
        let script = format!(
            "\"$0\" a b {first} & a=$!; \"$0\" b a {second} & b=$!; \
             wait $a; touch \"$INTEROP_MEETING/$PMIX_RANK.go\"; wait $b; exit 0"
        );
        everywhere(&script, |outcome| {
            assert!(is_rank(&outcome, finalizes), "{outcome}");
            let _ = outcome.expect_code(0);
        });
    }
}

#[test]
fn the_only_program_of_a_rank_has_to_finalize() {
    let script = "touch \"$INTEROP_MEETING/$PMIX_RANK.nobody\" \"$INTEROP_MEETING/$PMIX_RANK.nobody.met\"; \"$0\" a nobody leave; exit 0";
    everywhere(script, |outcome| {
        let _ = outcome.expect_failure();
    });
    let meeting = new_directory();
    let outcome = at_px(1, script, meeting.path()).run();
    let _ = outcome.expect_code(1).expect_stderr(&["exited with code 0 without finalizing PMIx"]);
}

/// The shell's remaining program is killed when it ends, and the rank has finalized.
#[test]
fn a_program_that_goes_on_when_its_rank_ends_is_ended() {
    for ranks in [1, 2] {
        let meeting = new_directory();
        let outcome = at_px(ranks, "\"$0\" a b go-finalize & \"$0\" b a finalize", meeting.path()).run();
        assert!(is_rank(&outcome, "b") && !is_rank(&outcome, "a"), "{outcome}");
        let _ = outcome.expect_code(0).expect_nothing_left();
    }
}

fn at(launcher: &Running, words: &[&str]) -> Outcome {
    let pid = launcher.pid().to_string();
    let (command, rest) = words.split_first().expect("a command");
    Job::new(px_binary()).args([*command, "--pid", &pid]).args(rest).env("TMPDIR", launcher.tmpdir()).run()
}

#[test]
fn px_tells_only_of_ranks() {
    let meeting = new_directory();
    let script =
        "[ $PMIX_RANK = 0 ] && end=fence || end=go-fence; \"$0\" a b go-finalize & \"$0\" b a $end; wait";
    let running = at_px(2, script, meeting.path()).start();
    let file = |name: &str| meeting.path().join(name);
    let came = ["0.b.fence", "0.a.met", "1.a.met", "1.b.met"];
    eventually("a rank waits", || came.iter().all(|name| file(name).exists()));
    eventually("that is told", || {
        let why = at(&running, &["why"]).stdout;
        let (for_1, by_0) = (format!("for {}:1", job(&running)), format!("asked by {}:0", job(&running)));
        [for_1, by_0].iter().all(|part| why.lines().any(|line| line.trim() == part))
    });
    let ps = at(&running, &["ps", "--ranks"]);
    let lines: Vec<&str> = ps.stdout.lines().skip_while(|line| !line.starts_with("RANK")).skip(1).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.ends_with("running")), "{ps}");
    for rank in [0, 1] {
        File::create(file(&format!("{rank}.go"))).expect("telling ranks to go on");
    }
    let outcome = running.wait().expect_code(0).expect_nothing_left();
    assert!(is_rank(&outcome, "a") && is_rank(&outcome, "b"), "{outcome}");
}

fn job(launcher: &Running) -> String {
    format!("px-{}-{1}@{1}", host(), launcher.pid())
}
