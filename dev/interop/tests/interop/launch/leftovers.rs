//! Nothing is left behind: whatever happens to the launcher or its ranks, processes and files of the job disappear.
//!
//! The promise is two seconds; the tests wait for the condition, and print how long it took.

use std::fs;
use std::path::Path;

use phalanx_interop::{
    Job,
    Library::{OpenMpi4, OpenMpi5},
    Running, eventually, lives, mpi, new_directory, pmix, px, survivors,
};
use rustix::process::Signal;

#[test]
fn killing_the_launcher_ends_ranks_that_speak_pmix() {
    kill_the_launcher(started(px(["-n", "8"]).arg(pmix("end")).arg("stuck"), 8));
}

#[test]
fn killing_the_launcher_ends_ranks_that_ignore_signals() {
    let script = "trap '' TERM INT HUP QUIT; sleep 1000 & wait; sleep 1000";
    kill_the_launcher(started(px(["-n", "4", "sh", "-c", script]), 8));
}

#[test]
fn killed_launcher_ends_ranks_in_other_sessions() {
    kill_the_launcher(started(px(["-n", "2", "setsid", "--wait", "sleep", "1000"]), 4));
}

#[test]
fn killing_the_launcher_removes_the_files_of_mpi_libraries() {
    for library in [OpenMpi4, OpenMpi5] {
        let meeting = new_directory();
        let job =
            px(["-n", "4"]).arg(mpi(library, "wait")).with(library).env("INTEROP_MEETING", meeting.path());
        let running = started(job, 4);
        eventually("all ranks are initialized", || files_in(meeting.path()).len() == 4);
        kill_the_launcher(running);
    }
}

#[test]
fn signals_to_the_launcher_end_the_job() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let running = started(px(["-n", "4", "sleep", "1000"]), 4);
        running.signal(signal);
        running.wait().expect_code(code).expect_nothing_left();
    }
}

#[test]
fn two_interrupts_kill_ranks_that_ignore_one() {
    let script = "trap 'echo asked' TERM INT HUP QUIT; while :; do sleep 1000; done";
    let running = started(px(["--kill-after", "1h", "-n", "4", "sh", "-c", script]), 8);
    running.signal(Signal::INT);
    // Signals in close succession may count as one.
    running.until_said("asked\n");
    running.signal(Signal::INT);
    running.wait().expect_code(130).expect_nothing_left();
}

#[test]
fn daemons_that_ranks_leave_end_with_the_job() {
    let place = new_directory();
    let daemon = "echo $$ > daemon.$PMIX_RANK; sleep 1000; true";
    // Its parents are gone, and it shares neither session nor streams with other processes.
    let script = format!(
        "cd '{}'; (setsid sh -c '{daemon}' </dev/null >/dev/null 2>&1 &); until [ -s daemon.$PMIX_RANK ]; do sleep 0.01; done",
        place.path().display()
    );
    let job = px(["-n", "3", "sh", "-c", &script]);
    let _ = job.run().expect_code(0).expect_nothing_left();
    assert_eq!(files_in(place.path()).len(), 3, "they have lived");
}

#[test]
fn daemons_without_environment_end_with_their_job() {
    let place = new_directory();
    let daemon = "sleep 1000 & echo $$ $! > \"$0.new\"; mv \"$0.new\" \"$0\"; wait";
    let script = format!(
        "f='{}'/$PMIX_RANK; (setsid env -i sh -c '{daemon}' \"$f\" </dev/null >/dev/null 2>&1 &); until [ -e \"$f\" ]; do sleep 0.01; done",
        place.path().display()
    );
    let job = px(["-n", "3", "sh", "-c", &script]);
    let _ = job.run().expect_code(0).expect_nothing_left();
    let files: Vec<String> =
        files_in(place.path()).iter().map(|file| fs::read_to_string(file).expect("readable")).collect();
    let pids: Vec<u32> = files
        .iter()
        .flat_map(|text| text.split_whitespace())
        .map(|pid| pid.parse().expect("a pid"))
        .collect();
    assert_eq!(pids.len(), 6, "they have lived");
    let left: Vec<u32> = pids.into_iter().filter(|pid| lives(*pid)).collect();
    assert_eq!(left, [0; 0]);
}

/// Children that the process had before it became px must be left alone.
#[test]
fn children_that_a_launcher_has_inherited_live_on() {
    let place = new_directory();
    let file = place.path().join("pid");
    let script =
        format!("sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > '{}'; exec \"$@\"", file.display());
    let launcher = Job::new("sh").args(["-c", &script, "sh"]).arg(phalanx_interop::px_binary());
    let _ = launcher.args(["run", "-n", "1", "true"]).outlived().run();
    let pid = fs::read_to_string(&file).expect("readable").trim().parse::<u32>().expect("a number");
    assert!(lives(pid));
    let own = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a pid");
    rustix::process::kill_process(own, Signal::KILL).expect("ending it");
}

#[test]
fn a_job_ends_when_its_output_has_no_reader() {
    let script = r#""$@" | head -n 1"#;
    let px = phalanx_interop::px_binary();
    let job = Job::new("sh").args(["-c", script, "sh"]).arg(px).args(["run", "-n", "2", "yes"]);
    job.run().expect_code(0).expect_lines(["y"]).expect_nothing_left();
}

/// Kills only the launcher and waits until everything of the job is gone.
fn kill_the_launcher(running: Running) {
    let (mark, tmpdir) = (running.mark().to_owned(), running.tmpdir().to_owned());
    running.signal(Signal::KILL);
    let took = eventually("all processes and files are gone", || {
        survivors(&mark).is_empty() && files_in(&tmpdir).is_empty()
    });
    println!("everything was gone after {took:.1?}");
    running.wait().expect_nothing_left();
}

/// Starts a job and waits until this many processes run, besides the launcher.
fn started(job: Job, processes: usize) -> Running {
    let running = job.start();
    let pid = running.pid();
    eventually("the ranks run", || {
        let of_the_job = survivors(running.mark());
        // A process that has not executed its program yet still has the launcher's command line.
        let ranks = of_the_job.iter().filter(|(process, line)| *process != pid && !is_launcher(line));
        ranks.count() >= processes
    });
    running
}

/// The launcher's helper has a command line of its own.
fn is_launcher(line: &str) -> bool {
    line.starts_with("px") || line.contains("px run")
}

fn files_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}
