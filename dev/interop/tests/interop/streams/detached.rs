//! Jobs that continue without their terminal, and are inspected later.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use phalanx_interop::{Job, Outcome, eventually, host, lives, needs_root, new_directory, px_binary};
use rustix::process::{Pid, Signal, geteuid, getsid, kill_process};

fn at(tmpdir: &Path, words: &[&str]) -> Job {
    Job::new(px_binary()).args(words).env("TMPDIR", tmpdir)
}

/// `px run --detach`, and the name of the job.
fn detach(tmpdir: &Path, words: &[&str]) -> (String, Outcome) {
    let outcome = at(tmpdir, &[&["run", "--detach"], words].concat()).outlived().run().expect_code(0);
    (outcome.stdout.trim().to_owned(), outcome)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The process that runs a job; it leads the session.
fn launcher(job: &str) -> Pid {
    pid(job).parse().ok().and_then(Pid::from_raw).expect("a pid")
}

fn pid(job: impl AsRef<str>) -> String {
    job.as_ref().split(['-', '@']).rev().nth(1).expect("a pid").to_owned()
}

fn number(file: &Path) -> Pid {
    let text = fs::read_to_string(file).expect("readable");
    Pid::from_raw(text.trim().parse().expect("a number")).expect("a pid")
}

#[test]
fn a_detached_job_goes_on_and_loses_no_byte() {
    let place = new_directory();
    let (tmpdir, go, ready) = (place.path().join("tmp"), place.path().join("go"), place.path().join("ready"));
    fs::create_dir(&tmpdir).expect("a directory");
    // More than all buffers between the ranks and the reader can hold.
    let script = format!(
        "seq 1000000; echo aside >&2; echo $$ > '{0}.new'; mv '{0}.new' '{0}'; until [ -e '{1}' ]; do sleep 0.05; done; echo end; exit 3",
        ready.display(),
        go.display(),
    );
    let (job, outcome) = detach(&tmpdir, &["-n", "1", "sh", "-c", &script]);
    assert!(job.starts_with("px-") && outcome.stderr.is_empty(), "{outcome}");
    // Nothing has been read, and yet the rank has written everything.
    eventually("the rank has written", || ready.exists());
    let rank = number(&ready);
    assert_eq!(getsid(Some(rank)), Ok(launcher(&job)), "it is in a session of its own");
    let watching = at(&tmpdir, &["attach", &job, "--since-start"]).start();
    let _ = at(&tmpdir, &["ps", "--pid", &pid(&job), &job]).run().expect_code(0).expect_stdout(&["running"]);
    fs::write(&go, "").expect("writing");
    let shown = watching.wait().expect_code(3);
    let expected: String = (1..=1_000_000).map(|n| format!("{n}\n")).chain(["end\n".to_owned()]).collect();
    assert!(shown.stdout == expected, "{} bytes of {}", shown.stdout.len(), expected.len());
    let shown = shown.expect_stderr(&["aside", "rank 0 exited with code 3"]);
    drop(shown);
    eventually("nothing is left", || names(&tmpdir).is_empty());
}

#[test]
fn a_reader_of_attach_may_leave() {
    let place = new_directory();
    let (job, _) = detach(place.path(), &["-n", "1", "seq", "1000000"]);
    let px = px_binary();
    let script =
        format!("{{ '{}' attach --since-start {job}; echo code $? >&2; }} | head -n 1", px.display());
    let sh = || Job::new("sh").args(["-c", &script]).env("TMPDIR", place.path()).run().expect_code(0);
    let outcome = sh();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("1\n", "code 141\n"), "{outcome}");
    // Output that it has not read stays for others.
    let all = at(place.path(), &["attach", &job, "--since-start"]).run().expect_code(0);
    assert_eq!(all.stdout.lines().count(), 1_000_000);
}

#[test]
fn a_job_that_has_ended_is_shown_whole_and_once() {
    let place = new_directory();
    let (job, _) = detach(place.path(), &["-n", "2", "--output", "rank", "sh", "-c", "echo hello"]);
    let launcher = pid(&job).parse().expect("a number");
    eventually("the launcher has ended", || !lives(launcher));
    let _ = at(place.path(), &["attach", &job]).run().expect_code(0).expect_lines(["0: hello", "1: hello"]);
    let again = at(place.path(), &["attach", &job]).run().expect_failure();
    assert_eq!(again.stdout, "", "{again}");
    assert_eq!(names(place.path()), [""; 0]);
}

/// More from each rank than a server keeps, with lines of all ranks interleaved.
#[test]
fn single_ranks_of_a_detached_job_are_shown_whole() {
    let place = new_directory();
    let (tmpdir, go) = (place.path().join("tmp"), place.path().join("go"));
    fs::create_dir(&tmpdir).expect("a directory");
    let script = format!(
        "for part in $(seq 100); do seq -f \"$PMIX_RANK.%g\" 200; done; echo aside $PMIX_RANK >&2; until [ -e '{}' ]; do sleep 0.05; done; echo end $PMIX_RANK; exit 3",
        go.display(),
    );
    let (job, _) = detach(&tmpdir, &["-n", "4", "--kill-on-bad-exit=none", "sh", "-c", &script]);
    let of = |ranks: &str| format!("{job}:{ranks}");
    let lines = |rank: u32| {
        let all = (0..100).flat_map(|_| 1..=200).map(move |n| format!("{rank}.{n}"));
        all.chain([format!("end {rank}")])
    };
    let watching = at(&tmpdir, &["attach", &of("2"), "--since-start"]).start();
    watching.until_said("2.200\n");
    let late = at(&tmpdir, &["attach", &of("9"), "--since-start"]).run().expect_failure();
    let _ = late.expect_stderr(&["has no rank 9", "its ranks are 0 to 3"]);
    fs::write(&go, "").expect("writing");
    let shown = watching.wait().expect_code(3);
    assert!(shown.stdout.lines().eq(lines(2)), "{} bytes", shown.stdout.len());
    let shown = shown.expect_stderr(&["aside 2"]);
    assert!(!shown.stderr.contains("aside 1"), "{shown}");
    // Part of the output has been shown, not all of it: the rest stays.
    let both = at(&tmpdir, &["attach", &of("1,3")]).run().expect_code(3);
    assert_eq!(both.stdout.lines().count(), 2 * 20_001);
    for rank in [1, 3] {
        let begins = [format!("{rank}."), format!("end {rank}")];
        let own = both.stdout.lines().filter(|line| begins.iter().any(|begin| line.starts_with(begin)));
        assert!(own.eq(lines(rank)), "rank {rank}");
    }
    let all = at(&tmpdir, &["attach", &job]).run().expect_code(3);
    assert_eq!(all.stdout.lines().count(), 4 * 20_001);
    assert_eq!(names(&tmpdir), [""; 0]);
}

#[test]
fn single_ranks_are_shown_in_the_requested_form() {
    let place = new_directory();
    let script = "echo from $PMIX_RANK; printf open$PMIX_RANK; echo aside $PMIX_RANK >&2";
    for (words, expected) in
        [(["--output", "rank"], ["1: from 1", "1: open1"]), (["--output", "raw"], ["from 1", "open1"])]
    {
        let (job, _) = detach(place.path(), &[&["-n", "3"], &words[..], &["sh", "-c", script]].concat());
        let pid = pid(&job).parse().expect("a number");
        eventually("its launcher has ended", || !lives(pid));
        let shown = at(place.path(), &["attach", &format!("{job}:1")]).run().expect_code(0);
        assert_eq!(shown.stdout.lines().collect::<Vec<_>>(), expected, "{shown}");
        let _ = shown.expect_stderr(&["aside 1"]);
        let _ = at(place.path(), &["attach", &job]).run().expect_code(0);
    }
    let (job, _) = detach(place.path(), &["-n", "2", "--output", "xml", "sh", "-c", script]);
    let pid = pid(&job).parse().expect("a number");
    eventually("its launcher has ended", || !lives(pid));
    let shown = at(place.path(), &["attach", &format!("{job}:1")]).run().expect_code(0);
    let (first, last) = (shown.stdout.lines().next(), shown.stdout.lines().last());
    assert!(
        first.is_some_and(|line| line.starts_with("<?xml"))
            && last.is_some_and(|line| line.starts_with("</")),
        "{shown}"
    );
    assert!(shown.stdout.contains("from 1") && !shown.stdout.contains("from 0"), "{shown}");
}

#[test]
fn unread_output_is_removed_a_week_after_the_job() {
    let place = new_directory();
    let start = |words: &[&str]| detach(place.path(), words).0;
    let ended = ["-n", "1", "sh", "-c", "echo hello"];
    let (forgotten, recent, killed) = (start(&ended), start(&ended), start(&["-n", "1", "sleep", "1000"]));
    let living = start(&["-n", "1", "sh", "-c", "echo begun; exec sleep 1000"]);
    kill_process(launcher(&killed), Signal::KILL).expect("killing");
    for job in [&forgotten, &recent, &killed] {
        let pid = pid(job).parse().expect("a number");
        eventually("its launcher has ended", || !lives(pid));
    }
    let dir = place.path().join(format!("px.{}.detached", geteuid().as_raw()));
    let long_ago = SystemTime::now() - Duration::from_secs(8 * 24 * 60 * 60);
    for file in names(&dir).iter().filter(|name| !name.starts_with(&pid(&recent))) {
        let file = File::open(dir.join(file)).expect("readable");
        file.set_modified(long_ago).expect("setting its time");
    }
    let kept = || -> BTreeSet<String> {
        names(&dir).iter().map(|name| name.split(['.', '-']).next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(kept(), [&forgotten, &recent, &killed, &living].map(pid).into());
    // Even a failed `attach` removes what is no longer needed.
    let _ = at(place.path(), &["attach", "nobody@1"]).run().expect_failure();
    assert_eq!(kept(), [pid(&recent), pid(&living)].into());
    let _ = at(place.path(), &["attach", &recent]).run().expect_code(0).expect_lines(["hello"]);
    let rest = at(place.path(), &["attach", &living, "--since-start"]).start();
    rest.until_said("begun\n");
    kill_process(launcher(&living), Signal::TERM).expect("ending it");
    let _ = rest.wait().expect_code(143).expect_lines(["begun"]);
}

#[test]
fn detach_reports_a_job_that_does_not_start() {
    let place = new_directory();
    let missing = at(place.path(), &["run", "--detach", "-n", "1", "no-such-program"]).run();
    let _ = missing.expect_code(127).expect_stderr(&["no-such-program", "No such file"]);
    let wrong = at(place.path(), &["run", "--detach", "--map-by", "nonsense", "true"]).run();
    let _ = wrong.expect_code(2).expect_stderr(&["nonsense"]);
    assert_eq!(names(place.path()), [""; 0]);
}

#[test]
fn attach_sends_input_to_a_detached_job() {
    let place = new_directory();
    let (job, _) = detach(place.path(), &["-n", "1", "--stdin", "0", "sh", "-c", "cat; exit 4"]);
    let attach = at(place.path(), &["attach", &job, "--stdin", "--since-start"]);
    let shown = attach.input(b"first\nsecond\n").run().expect_code(4);
    let _ = shown.expect_lines(["first", "second"]);
}

#[test]
fn attach_sends_input_to_a_detached_job_of_a_dvm() {
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).start();
    dvm.until_said("is ready");
    let server = dvm.pid().to_string();
    for ranks in ["", ":1"] {
        let words = ["--pid", &server, "-n", "2", "--stdin", "1", "sh", "-c"];
        let (job, _) =
            detach(dvm.tmpdir(), &[&words[..], &["[ $PMIX_RANK = 1 ] || exit 0; cat; exit 4"]].concat());
        let attach = at(dvm.tmpdir(), &["attach", &format!("{job}{ranks}"), "--stdin", "--since-start"]);
        let shown = attach.input(b"first\nsecond\n").run().expect_code(4);
        let _ = shown.expect_lines(["first", "second"]);
    }
    let _ = at(dvm.tmpdir(), &["dvm", "stop", "--pid", &server]).run().expect_code(0);
    dvm.wait().expect_code(0);
}

#[test]
fn attach_with_input_shows_a_job_that_has_ended() {
    let place = new_directory();
    let (job, _) = detach(place.path(), &["-n", "1", "--stdin", "0", "sh", "-c", "echo hello; exit 4"]);
    let launcher = pid(&job).parse().expect("a number");
    eventually("the launcher has ended", || !lives(launcher));
    let attach = at(place.path(), &["attach", &job, "--stdin"]).input(b"late\n");
    let _ = attach.run().expect_code(4).expect_lines(["hello"]);
}

#[test]
fn job_detached_by_a_rank_ends_with_its_job() {
    let place = new_directory();
    let (inner, rank, go) = (place.path().join("inner"), place.path().join("rank"), place.path().join("go"));
    let works =
        format!("echo $$ > \"{0}.new\"; mv \"{0}.new\" \"{0}\"; echo begun; exec sleep 1000", rank.display());
    let script = format!(
        "'{px}' run --detach -n 1 sh -c '{works}' > '{inner}.new'; mv '{inner}.new' '{inner}'; until [ -e '{go}' ]; do sleep 0.05; done",
        px = px_binary().display(),
        inner = inner.display(),
        go = go.display(),
    );
    let outer = at(place.path(), &["run", "-n", "1", "sh", "-c", &script]).start();
    eventually("the inner job runs", || inner.exists() && rank.exists());
    let job = fs::read_to_string(&inner).expect("readable").trim().to_owned();
    let name = format!("px-{}-{}@{}", host(), outer.pid(), outer.pid() & 0xffff);
    let _ =
        at(place.path(), &["ps", "--pid", &pid(&job), &job]).run().expect_code(0).expect_stdout(&["running"]);
    let watching = at(place.path(), &["attach", &job, "--since-start"]).start();
    watching.until_said("begun\n");
    fs::write(&go, "").expect("writing");
    let outer = outer.wait().expect_code(0);
    let _ = outer.expect_stderr(&[&format!("px: this job ends with job {name}, a rank of which started it")]);
    let _ = watching.wait().expect_failure().expect_stdout(&["begun"]).expect_stderr(&["was killed"]);
    let rank = number(&rank).as_raw_nonzero().get().cast_unsigned();
    eventually("nothing of it is left", || !lives(rank));
}

#[test]
fn attach_reports_that_the_launcher_was_killed() {
    let place = new_directory();
    let (job, _) = detach(place.path(), &["-n", "1", "sh", "-c", "echo begun; exec sleep 1000"]);
    let watching = at(place.path(), &["attach", &job, "--since-start"]).start();
    watching.until_said("begun\n");
    kill_process(launcher(&job), Signal::KILL).expect("killing");
    let _ = watching.wait().expect_failure().expect_stdout(&["begun"]).expect_stderr(&["was killed"]);
}

/// In separate pid namespaces both launchers have the same pid, and their jobs the same name.
#[test]
fn a_launcher_does_not_show_the_end_of_an_earlier_one() {
    let script = "px=$1; cd \"$TMPDIR\"
        job=$(\"$px\" run --detach -n 1 sh -c \"$2\") || exit 1
        echo \"$job\"; [ -z \"$GO\" ] || touch \"$GO\"
        \"$px\" attach --since-start \"$job:0\"; echo \"code $?\"";
    let in_namespace = |place: &Path, ranks: &str, go: &str| {
        needs_root("processes get numbers of their own");
        let job = Job::new("unshare").args(["--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"]);
        let job = job.arg(px_binary()).arg(ranks).env("TMPDIR", place).env("GO", go);
        job.outlived().run().expect_code(0).stdout
    };
    let is_shown = || {
        let place = new_directory();
        let go = place.path().join("go");
        let first = in_namespace(place.path(), "echo one; exit 3", "");
        let waits = format!("until [ -e '{}' ]; do sleep 0.02; done; echo two; exit 4", go.display());
        let second = in_namespace(place.path(), &waits, &go.display().to_string());
        let [name, rest @ ..] = &first.lines().collect::<Vec<_>>()[..] else { panic!("{first}") };
        assert_eq!(rest, ["one", "code 3"], "{first}");
        let [again, rest @ ..] = &second.lines().collect::<Vec<_>>()[..] else { panic!("{second}") };
        assert_eq!(rest, ["two", "code 4"], "{second}");
        name == again
    };
    // Threads have pids as well, and may start in another order.
    assert!((0..20).any(|_| is_shown()), "no launcher had the pid of another");
}

/// The job continues, and no later reader takes output away from others.
#[test]
fn output_lost_on_a_full_file_system_is_reported() {
    // The launcher keeps its mount namespace, so the reader must be in it as well.
    let script = "mount -t tmpfs -o size=256k none \"$TMPDIR\"; px=$1
        job=$(\"$px\" run --detach -n 1 sh -c 'echo first; seq 100000; echo aside >&2; exit 3')
        \"$px\" attach --since-start \"$job\" > \"$OUTSIDE/out\" 2> \"$OUTSIDE/err\"; echo \"code $?\"
        ls -A \"$TMPDIR\"";
    let outside = new_directory();
    needs_root("a file system is mounted");
    let job = Job::new("unshare").args(["--mount", "sh", "-c", script, "sh"]).arg(px_binary());
    let outcome = job.env("OUTSIDE", outside.path()).outlived().run().expect_code(0);
    outcome.expect_lines(["code 3"]);
    let read = |name: &str| fs::read_to_string(outside.path().join(name)).expect("readable");
    let (kept, said) = (read("out"), read("err"));
    let all: String =
        std::iter::once("first\n".to_owned()).chain((1..=100_000).map(|n| format!("{n}\n"))).collect();
    assert!(all.starts_with(&kept) && kept.len() > 64 << 10, "{} bytes", kept.len());
    assert!(said.contains("of the job's output are missing"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    let missing = said.split_whitespace().find_map(|word| word.parse::<usize>().ok());
    let aside = if said.contains("aside\n") { 0 } else { "aside\n".len() };
    // px's own messages are not output.
    assert_eq!(missing, Some(all.len() - kept.len() + aside), "{said}");
}

/// However much room is missing: px reports for what, and fails by itself, without a signal.
#[test]
fn a_job_that_nobody_would_find_is_a_failure_of_px() {
    let script = "mount -t tmpfs -o size=64k none \"$TMPDIR\"; px=$1
        for free in 0 4 8 12 16 20 24 28 32; do
            until head -c $((64-free))K /dev/zero > \"$TMPDIR/all\"; do sleep 0.1; done
            $px run --detach -n 1 sh -c 'while [ -d \"$OUTSIDE\" ]; do sleep 0.1; done' 2> \"$OUTSIDE/$free\" >&2
            code=$?; echo \"code $code\"; [ $code = 0 ] && break
        done";
    let outside = new_directory();
    needs_root("a file system is mounted");
    let job = Job::new("unshare").args(["--mount", "sh", "-c", script, "sh"]).arg(px_binary());
    let outcome = job.env("OUTSIDE", outside.path()).outlived().run().expect_code(0);
    let codes: Vec<&str> = outcome.stdout.lines().collect();
    let (last, others) = codes.split_last().expect("a code");
    assert!(*last == "code 0" && others.iter().all(|code| *code == "code 1"), "{outcome}");
    let said: Vec<String> = (0..others.len())
        .map(|at| fs::read_to_string(outside.path().join((4 * at).to_string())).expect("readable"))
        .collect();
    assert!(said.iter().all(|said| said.contains("No space left") && !said.contains("SIGTERM")), "{said:?}");
    assert!(said.iter().any(|said| said.contains("cannot keep what is known of the job")), "{said:?}");
}
