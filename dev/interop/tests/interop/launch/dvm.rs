//! A persistent DVM, and jobs of `px run` in it.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{
    Job, Running, eventually, host, libpmix, lives, needs_root, new_directory, pmix, pmix_tool, px_binary,
    rust_tool,
};
use rustix::process::Signal;

/// `px dvm start`, ready.
fn dvm(options: &[&str]) -> Running {
    started(Job::new(px_binary()).args(["dvm", "start"]).args(options))
}

fn started(dvm: Job) -> Running {
    let running = dvm.start();
    eventually("the DVM can be found", || has_file(running.tmpdir(), &format!(".tool.{}", running.pid())));
    running
}

/// The number that a program has written to a file.
fn number(file: &Path) -> u32 {
    let text = fs::read_to_string(file).expect("readable");
    text.trim().parse().expect("a number")
}

fn has_file(dir: &Path, end: &str) -> bool {
    let sessions = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files = sessions.flat_map(|session| fs::read_dir(session.path()).into_iter().flatten().flatten());
    files.any(|file| file.file_name().to_string_lossy().ends_with(end))
}

/// `px COMMAND`, searching in the DVM's directory.
fn px_at(dvm: &Running, words: &[&str]) -> Job {
    Job::new(px_binary()).args(words).env("TMPDIR", dvm.tmpdir())
}

fn stop(dvm: Running) {
    let _ = px_at(&dvm, &["dvm", "stop", "--pid", &dvm.pid().to_string()]).run().expect_code(0);
    dvm.wait().expect_code(0).expect_nothing_left();
}

#[test]
fn daemons_of_ranks_end_with_their_own_job() {
    let (dvm, place) = (dvm(&[]), new_directory());
    let pid = dvm.pid().to_string();
    let (left, stays) = (place.path().join("left"), place.path().join("stays"));
    let daemon = |file: &Path| {
        let script =
            format!("echo $$ > \"{0}.new\"; mv \"{0}.new\" \"{0}\"; sleep 1000; true", file.display());
        let start = format!("(setsid sh -c '{script}' </dev/null >/dev/null 2>&1 &)");
        format!("{start}; until [ -e '{}' ]; do sleep 0.02; done", file.display())
    };
    let long = format!("{}; exec sleep 1000", daemon(&stays));
    let other = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", "sh", "-c", &long]).start();
    eventually("its daemon is there", || stays.exists());
    let run = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", "sh", "-c", &daemon(&left)]);
    let _ = run.outlived().run().expect_code(0);
    eventually("the daemon has ended with its job", || !lives(number(&left)));
    assert!(lives(number(&stays)));
    other.signal(Signal::TERM);
    let _ = other.wait().expect_code(143);
    eventually("so has the other", || !lives(number(&stays)));
    stop(dvm);
}

#[test]
fn the_system_server_runs_jobs_and_a_second_is_refused() {
    let place = new_directory();
    let of_system = |job: Job| job.env("PMIX_SYSTEM_TMPDIR", place.path());
    let start = ["dvm", "start", "--system-server"];
    let first = started(of_system(Job::new(px_binary()).args(start)));
    let px_at = |dvm: &Running, words: &[&str]| of_system(px_at(dvm, words));
    let file = format!("pmix.sys.{}", host());
    assert!(place.path().join(&file).exists());
    let second = px_at(&first, &start).run().expect_failure();
    let name = format!("px-{}-{}", host(), first.pid());
    let _ = second.expect_stderr(&[
        &file,
        &format!("server {name}:0, pid {} is alive", first.pid()),
        "a machine has one system server",
    ]);
    for way in ["--system", "--system-first"] {
        let outcome = px_at(&first, &["run", "-q", way, "-n", "3", "sh", "-c", "echo rank $PMIX_RANK"]).run();
        let outcome = outcome.expect_code(0).expect_lines(["rank 0", "rank 1", "rank 2"]);
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
    let shown = px_at(&first, &["ps", "--system", "--all"]).run().expect_code(0);
    let _ = shown.expect_stdout(&[&format!("{name}@"), "success (0)"]);
    stop(first);
}

#[test]
fn the_past_of_a_dvm_is_shown() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let hello = px_binary().display().to_string();
    let ran = px_at(&dvm, &["run", "--pid", &pid, "-n", "2", "--report", "-", &hello, "hello"]).run();
    let ran = ran.expect_code(0);
    let report = ran.stdout.lines().find(|line| line.contains("\"type\":\"end\"")).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(report).expect("an exit report");
    let at = |phase: &str| report["phases"][phase].as_f64().unwrap_or(-1.0);
    let times = ["placed", "started", "connected", "finalized", "exited", "ended"].map(at);
    assert!(times.is_sorted() && times.iter().all(|time| *time >= 0.0), "{report}");
    let failed = px_at(&dvm, &["run", "--pid", &pid, "-n", "2", "false"]).run();
    let _ = failed.expect_code(1);
    let shown = px_at(&dvm, &["ps", "--pid", &pid, "--all", "--long"]).run().expect_code(0);
    let _ = shown.expect_stdout(&["PHASE", "finalized", "success (0)", "failed (1)"]);
    let past = px_at(&dvm, &["events", "--pid", &pid, "--since", "10m"]).run().expect_code(0);
    let told: Vec<&str> = past.stdout.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    assert_eq!(told.get(..2), Some(&["submitted", "placed"][..]), "{past}");
    assert!(["started", "connected", "exited", "ended"].iter().all(|what| told.contains(what)), "{past}");
    let code =
        ["events", "--pid", &pid, "--since", "10m", "--code", "EVENT_JOB_END", "--count", "2", "--json"];
    let ends = px_at(&dvm, &code).run().expect_code(0);
    let exits: Vec<i64> = ends
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|event| event["info"]["PMIX_EXIT_CODE"].as_i64())
        .collect();
    assert_eq!(exits, [0, 1], "{ends}");
    stop(dvm);
}

#[test]
fn dvm_remembers_the_requested_number_of_ended_jobs() {
    let dvm = dvm(&["--keep-jobs", "2"]);
    let pid = dvm.pid().to_string();
    for program in ["false", "true", "true"] {
        let _ = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", program]).run();
    }
    let shown = px_at(&dvm, &["ps", "--pid", &pid, "--all"]).run().expect_code(0);
    let count = |word: &str| shown.stdout.matches(word).count();
    assert_eq!((count("success (0)"), count("failed (1)")), (2, 0), "{shown}");
    stop(dvm);
}

#[test]
fn existing_rendezvous_file_leads_to_the_dvm() {
    let place = new_directory();
    let file = place.path().join("here");
    for variable in ["PMIX_LAUNCHER_RNDZ_FILE", "PMIX_LAUNCHER_RENDEZVOUS_FILE"] {
        let dvm = Job::new(px_binary()).args(["dvm", "start"]).env(variable, &file).start();
        eventually("the file is there", || file.exists());
        let script = "echo $PMIX_NAMESPACE; env | grep -c PMIX_LAUNCHER_";
        let outcome = px_at(&dvm, &["run", "-n", "1", "sh", "-c", script]).env(variable, &file).run();
        outcome.expect_stdout(&[&format!("px-{}-{}@", host(), dvm.pid())]).assert_line("0");
        assert!(file.exists(), "it is the other's");
        stop(dvm);
        assert!(!file.exists());
    }
}

#[test]
fn without_a_system_server_there_is_none() {
    let place = new_directory();
    let words = ["run", "--system", "true"];
    let outcome = Job::new(px_binary()).args(words).env("PMIX_SYSTEM_TMPDIR", place.path()).run();
    let looked = format!("looked for pmix.sys.{} in {}", host(), place.path().display());
    let _ = outcome.expect_code(1).expect_stderr(&[&looked, "there is no such file"]);
}

#[test]
fn job_in_a_dvm_is_reported_like_one_of_its_own_launcher() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let run = |words: &[&str]| px_at(&dvm, &[&["run", "--pid", &pid], words].concat());
    let failed = run(&["-n", "2", "sh", "-c", "[ $PMIX_RANK = 0 ] || exit 3; sleep 1000"]).run();
    let _ = failed.expect_code(3).expect_stderr(&["rank 1 exited with code 3", "rank 0 was ended by px"]);
    let job = format!("px-{}-{pid}@{}", host(), dvm.pid() & 0xffff);
    let late = px_at(&dvm, &["attach", "--pid", &pid, &job]).run().expect_failure();
    let _ = late.expect_stderr(&[&format!("job {job} has ended with code 3"), "'px run --detach'"]);
    let killed = run(&["-n", "1", "sh", "-c", "kill -SEGV $$"]).run();
    let _ = killed.expect_code(139).expect_stderr(&["rank 0 was killed by SIGSEGV"]);
    let missing = run(&["-n", "1", "no-such-program"]).run();
    let _ = missing.expect_code(127).expect_stderr(&["no-such-program"]);
    let unfit = run(&["-n", "1", "--map-by", "nonsense", "true"]).run();
    let _ = unfit.expect_failure().expect_stderr(&["nonsense"]);
    let late = run(&["-n", "1", "--timeout", "1", "sleep", "1000"]).run();
    let _ = late.expect_code(124).expect_stderr(&["ended after 1 s, its time limit"]);
    let unfinalized = run(&["-n", "2"]).arg(pmix("end")).arg("exit-4").run().expect_code(4);
    let _ = unfinalized.expect_stderr(&["exited with code 4 without finalizing PMIx"]);
    let refused = run(&["-n", "1", "--px-path", "/px", "true"]).run().expect_code(2);
    let _ = refused.expect_stderr(&["'--px-path' cannot be used in a DVM that is already running"]);
    stop(dvm);
}

/// However far `px run` has come with its requests when the server closes the connection.
#[test]
fn a_job_that_ends_with_its_dvm_reports_the_cause() {
    for by_signal in [false, true] {
        let dvm = dvm(&[]);
        let pid = dvm.pid().to_string();
        let words = ["run", "--pid", &pid, "-n", "2", "sleep", "1000"];
        let running: Vec<Running> = (0..4).map(|_| px_at(&dvm, &words).start()).collect();
        eventually("the jobs run", || {
            let shown = px_at(&dvm, &["ps", "--pid", &pid]).run();
            shown.stdout.matches("running").count() == running.len()
        });
        let why = match by_signal {
            true => {
                dvm.signal(Signal::TERM);
                dvm.wait().expect_code(0).expect_nothing_left();
                ["the DVM has ended, and the job with it", ""]
            }
            false => {
                stop(dvm);
                ["the DVM was stopped by ", "dvm stop --pid "]
            }
        };
        for running in running {
            let ended = running.wait().expect_code(143);
            let _ = ended.expect_stderr(&why);
        }
    }
}

/// However the launcher's own job ends.
#[test]
fn a_job_in_a_launcher_ends_with_it_and_says_so() {
    let place = new_directory();
    let end = place.path().join("end");
    let _ = Job::new("mkfifo").arg(&end).run().expect_code(0);
    for (own, signal, code) in [("exit 0", None, 0), ("exit 3", None, 3), ("", Some(Signal::TERM), 143)] {
        let script = format!("read word < {}; {own}", end.display());
        let outer =
            Job::new(px_binary()).args(["run", "-n", "1", "--oversubscribe", "sh", "-c", &script]).start();
        let pid = outer.pid().to_string();
        let words = ["run", "--pid", &pid, "--oversubscribe", "-n", "2", "sleep", "1000"];
        let inner = px_at(&outer, &words).start();
        eventually("both jobs run", || {
            px_at(&outer, &["ps", "--pid", &pid]).run().stdout.matches("running").count() == 2
        });
        match signal {
            Some(signal) => outer.signal(signal),
            None => fs::write(&end, "go\n").expect("a pipe with a reader"),
        }
        let _ = inner.wait().expect_code(143).expect_stderr(&["the DVM has ended, and the job with it"]);
        outer.wait().expect_code(code).expect_nothing_left();
    }
}

/// The limit applies to the job and all its descendants.
#[test]
fn time_limit_ends_the_whole_family_of_a_job() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    for server in [&[][..], &["--pid", &pid]] {
        let run = px_at(&dvm, &[&["run"], server, &["-n", "1", "--timeout", "2"]].concat());
        let late = run.arg(pmix("spawn")).args(["sh", "exec sleep 1000"]).run().expect_code(124);
        let _ = late.expect_stderr(&["1 job that the job had started ended after 2 s, its time limit"]);
        let run = px_at(&dvm, &[&["run"], server, &["-n", "1"]].concat()).arg(pmix("spawn"));
        let limited = run.args(["seconds", "pmix.job.time", "1", "sh", "exec sleep 1000"]).run();
        let _ = limited.expect_code(124).expect_stderr(&["the job was ended after 1 s, its time limit"]);
    }
    stop(dvm);
}

#[test]
fn spawned_jobs_begin_with_the_environment_of_their_parents() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let script = "echo $OF_THE_RUN $GIVEN ${OF_ONE-none}";
    for server in [&[][..], &["--pid", &pid]] {
        let options = [&["run"], server, &["-n", "1", "-x", "GIVEN=given"]].concat();
        let run = px_at(&dvm, &options).env("OF_THE_RUN", "run").arg(pmix("spawn")).args(["sh", script]);
        // An environment variable for one program is not passed to the other.
        let run = run.args([":", "-n", "1", "-x", "GIVEN=given", "-x", "OF_ONE=one", "true"]);
        let _ = run.run().expect_code(0).expect_lines(["sh: 0", "run given none"]);
    }
    stop(dvm);
}

/// The output and exit code of a command line must not depend on which node runs it.
#[test]
fn command_lines_mean_the_same_in_a_dvm() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let place = new_directory();
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("writable");
        path.display().to_string()
    };
    let variables = write("env", "FROM_FILE='two words'\nBOTH=file\n");
    let rankfile = write("ranks", &format!("# by hand\nrank 1={0} slot=0\nrank 0={0} slot=1\n", host()));
    let sequence = write("seq", "localhost\nlocalhost 1\n");
    let bounded = write("hosts", "localhost slots=1 max_slots=2\n");
    let input = write("input", "some input\n");
    let cpus = "echo $PMIX_RANK $(grep Cpus_allowed_list /proc/self/status | cut -f2)";
    let ranks = "echo $PMIX_RANK $FROM_FILE $BOTH $PWD $(echo $PATH | cut -d: -f1)";
    let lines: &[&[&str]] = &[
        &["-n", "2", "--env-file", &variables, "-x", "BOTH=word", "--prefix", "/far", "sh", "-c", ranks],
        &["-n", "1", "-x", "BOTH=1", "sh", "-c", ranks, ":", "-n", "1", "--wdir", "/", "sh", "-c", ranks],
        &["--map-by", &format!("rankfile:file={rankfile}"), "-n", "2", "sh", "-c", cpus],
        &["--map-by", &format!("seq:file={sequence}"), "-n", "2", "sh", "-c", cpus],
        &["--map-by", "core", "--rank-by", "fill", "--bind-to", "core", "-n", "2", "sh", "-c", cpus],
        &["--cpu-set", "1", "--bind-to", "core:overload-allowed", "-n", "2", "sh", "-c", cpus],
        &["--bind-to", "none", "--map-by", ":oversubscribe", "-n", "3", "sh", "-c", cpus],
        &["--hostfile", &bounded, "--oversubscribe", "-n", "2", "sh", "-c", cpus],
        &["--hostfile", &bounded, "--oversubscribe", "-n", "3", "true"],
        &["--host", &format!("{}:1", host()), "-n", "2", "true"],
        &["--stdin", &input, "-n", "2", "cat"],
        &["--stdin", "none", "-n", "2", "cat"],
        &["--kill-on-bad-exit", "signal", "-n", "2", "sh", "-c", "[ $PMIX_RANK = 1 ] || exit 3; echo on"],
        &["--kill-on-bad-exit", "none", "-n", "2", "sh", "-c", "[ $PMIX_RANK = 1 ] || kill $$; echo on"],
        &["--timeout", "300ms", "-n", "1", "sleep", "1000"],
        &["--output", "rank,merge", "-n", "2", "sh", "-c", "echo out; echo err >&2"],
        &["--output", "tag-detailed", "-n", "2", "sh", "-c", "echo out; echo err >&2"],
        &["--output", "pattern=out-%h-%R-%s,file-only", "-n", "2", "sh", "-c", "echo $PMIX_RANK"],
        &["-v", "-n", "2", "true"],
        &["--display", "map,bindings,allocation,topology", "-n", "2", "true"],
        &["--display", "map", "-n", "2", "no-such-program"],
        &["--display", "map", "--json", "-n", "2", "true"],
        &["--dry-run", "-n", "2", "true", ":", "-n", "1", "--env-file", &variables, "no-such-program"],
        &["--dry-run", "--map-by", &format!("rankfile:file={rankfile}"), "-n", "2", "true"],
        &["--dry-run", "--display", "allocation,bindings", "--bind-to", "core", "-n", "2", "true"],
        &["--dry-run", "--json", "--display", "map,allocation", "-n", "2", "true"],
        &["--dry-run", "--host", &format!("{}:1", host()), "-n", "2", "true"],
    ];
    for line in lines {
        let run = |words: &[&str]| {
            let ended = px_at(&dvm, &[&["run"], words, line].concat()).dir(place.path()).run();
            // Names of jobs, pids and times differ.
            let is_part = |c: &char| !c.is_ascii_digit() && *c != '.';
            let numberless =
                |text: &str| text.chars().filter(is_part).collect::<String>().replace(" ms", " s");
            let nameless =
                |text: &str| numberless(text).replace(&numberless(&format!("px-{}-@", host())), "");
            let is_exact = !line.contains(&"tag-detailed");
            let mut shown: Vec<String> =
                ended.stdout.lines().map(|l| if is_exact { l.to_owned() } else { nameless(l) }).collect();
            let files = fs::read_dir(place.path()).expect("readable").flatten();
            for file in
                files.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("/out-"))
            {
                shown.push(format!("{}: {}", file.display(), fs::read_to_string(&file).expect("readable")));
                fs::remove_file(file).expect("removable");
            }
            shown.sort();
            (ended.ended, shown, nameless(&ended.stderr))
        };
        assert_eq!(run(&["--pid", &pid]), run(&[]), "{line:?}");
    }
    stop(dvm);
}

#[test]
fn dry_run_in_a_dvm_sees_what_other_jobs_have_taken() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let run = |words: &[&str]| px_at(&dvm, &[&["run", "--pid", &pid], words].concat());
    let place = new_directory();
    let ready = place.path().join("ready");
    let script = format!("touch '{}'; exec sleep 1000", ready.display());
    let other = run(&["-n", "1", "--bind-to", "core", "sh", "-c", &script]).start();
    eventually("another job runs", || ready.exists());
    let dry = run(&["--dry-run", "--json", "--display", "allocation,map", "-n", "1", "true"]).run();
    let dry = dry.expect_code(0);
    let lines: Vec<serde_json::Value> =
        dry.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["nodes"][0]["in_use"], 1, "{}", dry.stdout);
    assert_eq!(lines[1]["procs"][0]["node_rank"], 1, "{}", dry.stdout);
    let unfit = run(&["--dry-run", "--host", "elsewhere", "-n", "1", "true"]).run().expect_failure();
    let _ = unfit.expect_stderr(&["host elsewhere is not among the 1 node of the allocation"]);
    // Nothing was started, and nothing is recorded.
    let shown = px_at(&dvm, &["ps", "--pid", &pid, "--all"]).run().expect_code(0);
    assert!(!shown.stdout.contains("true"), "{}", shown.stdout);
    other.signal(Signal::TERM);
    let _ = other.wait().expect_code(143);
    stop(dvm);
}

#[test]
fn input_output_and_environment_pass_through_the_dvm() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let place = new_directory();
    let input: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let file = place.path().join("copy");
    let script = format!("cat > '{}'; pwd; echo $MINE; cksum < '{0}' >&2", file.display());
    let outcome = px_at(&dvm, &["run", "--pid", &pid, "-n", "2", "sh", "-c"])
        .arg(format!("[ $PMIX_RANK = 0 ] || exit 0; {script}"))
        .env("MINE", "passed on")
        .dir(place.path())
        .input(&input)
        .run()
        .expect_code(0);
    outcome.assert_line("passed on");
    outcome.assert_line(&place.path().display().to_string());
    assert!(fs::read(&file).expect("readable") == input, "{} bytes went in", input.len());
    let many = px_at(&dvm, &["run", "--pid", &pid, "-n", "2", "seq", "200000"]).run().expect_code(0);
    assert_eq!(many.stdout.lines().count(), 400_000);
    stop(dvm);
}

#[test]
fn px_run_shows_what_its_ranks_have_spawned_in_a_dvm() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let spawner = pmix("spawn");
    let run = |words: &[&str]| px_at(&dvm, &["run", "--pid", &pid, "-n", "1"]).arg(&spawner).args(words);
    let script = "sleep 0.3; echo from the child; echo and this >&2; exit 3";
    let outcome = run(&["run", "/nonexist", "sh", script]).run().expect_code(3);
    let outcome = outcome.expect_lines(["/nonexist: -190", "sh: 0", "from the child"]);
    let _ = outcome.expect_stderr(&[
        "and this",
        "executing /nonexist: No such file",
        "rank 0 exited with code 3",
    ]);
    // Children end with the command that runs their parent.
    let place = new_directory();
    let ready = place.path().join("ready");
    let script = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 1000", ready.display());
    let running = run(&["sh", &script]).start();
    eventually("the child runs", || ready.exists());
    running.signal(Signal::KILL);
    let _ = running.wait();
    eventually("the child has ended", || !lives(number(&ready)));
    stop(dvm);
}

#[test]
fn all_lines_of_a_job_in_a_dvm_have_one_tag() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    for _ in 0..20 {
        let run = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", "--output", "tag"]);
        let outcome = run.args(["sh", "-c", "echo first; echo second"]).run().expect_code(0);
        let _ = outcome.expect_lines(["[1,0]<stdout>: first", "[1,0]<stdout>: second"]);
    }
    stop(dvm);
}

#[test]
fn the_user_ends_a_job_and_the_dvm_goes_on() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let place = new_directory();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let ready = place.path().join(format!("ready{code}"));
        let script = format!("touch '{}'; exec sleep 1000", ready.display());
        let running = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", "sh", "-c", &script]).start();
        eventually("the rank runs", || ready.exists());
        running.signal(signal);
        let _ = running.wait().expect_code(code).expect_stderr(&["the job was ended by"]);
    }
    // The job ends with its `px run`, even if that is killed.
    let ready = place.path().join("ready");
    let script = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 1000", ready.display());
    let running = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", "sh", "-c", &script]).start();
    eventually("the rank runs", || ready.exists());
    let rank = number(&ready);
    running.signal(Signal::KILL);
    let _ = running.wait();
    eventually("the rank has ended", || !lives(rank));
    stop(dvm);
}

#[test]
fn with_the_dvm_end_the_commands_whose_jobs_it_ran() {
    // The report of the job's end and the end of the connection arrive in either order.
    for _ in 0..5 {
        let (dvm, place) = (dvm(&[]), new_directory());
        let pid = dvm.pid().to_string();
        let ready = place.path().join("ready");
        let script = format!("touch '{}'; exec sleep 1000", ready.display());
        let running = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", "sh", "-c", &script]).start();
        eventually("the rank runs", || ready.exists());
        let _ = px_at(&dvm, &["dvm", "stop", "--pid", &pid]).run().expect_code(0);
        let _ = running.wait().expect_failure();
        dvm.wait().expect_code(0).expect_nothing_left();
    }
}

#[test]
fn jobs_of_tools_stay_only_if_they_are_to() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let place = new_directory();
    let tool = |words: &[&str]| {
        let tool = Job::new(pmix_tool("attach")).args(["pid", &pid, "--"]).args(words);
        tool.env("TMPDIR", dvm.tmpdir()).run().expect_code(0)
    };
    let script = |name: &str| {
        let file = place.path().join(name);
        format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 1000", file.display())
    };
    let rank = |name: &str| {
        let file = place.path().join(name);
        eventually("the rank runs", || file.exists());
        number(&file)
    };
    let begun = place.path().join("goes");
    let begun = begun.to_str().expect("UTF-8");
    let _ = tool(&["spawn", &script("goes"), "nohup", &script("stays"), "until", begun]);
    let (goes, stays) = (rank("goes"), rank("stays"));
    eventually("the one has ended", || !lives(goes));
    assert!(lives(stays));
    stop(dvm);
    assert!(!lives(stays));
}

#[test]
fn dvm_writes_the_files_that_a_spawn_names() {
    let dvm = dvm(&[]);
    let place = new_directory();
    let file = place.path().join("out");
    let tool = Job::new(pmix_tool("attach")).args(["pid", &dvm.pid().to_string(), "--"]);
    let tool = tool.args(["nohup", "echo into the file"]).env("OUTPUT_FILE", &file);
    let _ = tool.env("TMPDIR", dvm.tmpdir()).run().expect_code(0);
    let all = || {
        let files = fs::read_dir(place.path()).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect::<String>()
    };
    eventually("the file has what was written", || all() == "into the file\n");
    stop(dvm);
}

#[test]
fn background_dvm_outlives_its_terminal() {
    let place = new_directory();
    let start = ["dvm", "start", "--daemonize", "--json"];
    let started =
        Job::new(px_binary()).args(start).env("TMPDIR", place.path()).outlived().run().expect_code(0);
    let line = started.stdout.clone();
    let pid = line.split("\"pid\":").nth(1).expect("a pid").split([',', '}']).next().expect("a number");
    let at = |words: &[&str]| Job::new(px_binary()).args(words).env("TMPDIR", place.path()).run();
    let _ = at(&["run", "--pid", pid, "echo", "hello"]).expect_code(0).expect_stdout(&["hello"]);
    let _ = at(&["dvm", "stop", "--pid", pid]).expect_code(0);
    let dvm = pid.parse().expect("a number");
    eventually("it has ended", || !lives(dvm));
    // A launcher ends with the pipe of the process that has started it.
    let script = "exec 3<&0; PMIX_KEEPALIVE_PIPE=3 exec \"$0\" run --stdin none -n 1 sleep 1000";
    let kept = Job::new("sh").args(["-c", script]).arg(px_binary()).run();
    let _ = kept.expect_code(143).expect_nothing_left();
    // Also where the launcher has inherited the other end, as from OpenPMIx's library.
    let script = "mkfifo pipe; exec 9<>pipe 3<pipe 4>pipe 9<&-
        PMIX_KEEPALIVE_PIPE=3 \"$0\" run --stdin none -n 1 sh -c 'echo >begun; exec sleep 1000' & px=$!
        until [ -e begun ]; do sleep 0.01; done
        exec 3<&- 4>&-; wait $px";
    let kept = |script: &str| {
        let _ = fs::remove_file(place.path().join("begun"));
        let kept = Job::new("sh").args(["-c", script]).arg(px_binary()).dir(place.path()).run();
        let _ = kept.expect_code(143).expect_nothing_left();
    };
    kept(script);
    // That library names the write end.
    kept(&script.replace("mkfifo pipe; ", "").replace("PIPE=3", "PIPE=4"));
}

/// `px WORDS` with no room left in the directory for temporary files.
fn without_room(words: &[&str]) -> Job {
    let full = "mount -t tmpfs -o size=64k none \"$TMPDIR\" && { cat /dev/zero > \"$TMPDIR/all\" 2>&-; exec \"$@\"; }";
    needs_root("a file system is mounted");
    Job::new("unshare").args(["--mount", "sh", "-c", full, "sh"]).arg(px_binary()).args(words)
}

#[test]
fn full_tmpdir_lets_nothing_begin_that_nobody_finds() {
    for (words, why) in [
        (&["dvm", "start"][..], "tools could not find it"),
        (&["dvm", "start", "--daemonize"], "tools could not find it"),
        // Its output has no room either, and that is noticed first.
        (&["run", "--detach", "-n", "1", "true"], "cannot keep output in '"),
    ] {
        let outcome = without_room(words).run().expect_code(1);
        assert_eq!(outcome.stdout, "", "{outcome}");
        let _ = outcome.expect_stderr(&[why, "No space left on device"]);
    }
    // A job at a terminal need not be found by tools.
    let px = px_binary();
    let outcome = without_room(&["run", "-n", "1", &px.to_string_lossy(), "hello"]).run().expect_code(0);
    let outcome = outcome.expect_stdout(&["hello from rank 0 of 1"]);
    let outcome = outcome.expect_stderr(&["tools cannot find this launcher", "No space left on device"]);
    assert!(!outcome.stderr.contains("No such file"), "{outcome}");
}

#[test]
fn refused_spawn_says_why_where_its_user_reads() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    let program = pmix("spawn");
    // Each user gets the message, even if the DVM has reported it before.
    for library in ["", libpmix().to_str().expect("text")] {
        let words = ["run", "--pid", &pid, "-n", "1", program.to_str().expect("text")];
        let job = px_at(&dvm, &words).args(["require", "pmix.pset.nm", "mine", "run", "true"]);
        let outcome = job.env("LD_LIBRARY_PATH", library).run().expect_code(0).expect_lines(["true: -47"]);
        let _ = outcome.expect_stderr(&["requires PMIX_PSET_NAME (pmix.pset.nm), which is not supported"]);
    }
    stop(dvm);
}

#[test]
fn a_rank_stops_the_dvm_it_names_and_no_other_server() {
    let dvm = dvm(&[]);
    let (pid, px) = (dvm.pid().to_string(), px_binary());
    let stop = format!("'{}' dvm stop --pid {pid}; echo said $?; exec sleep 1000", px.display());
    let stopped = px_at(&dvm, &["run", "--pid", &pid, "-n", "1", "sh", "-c", &stop]).run();
    let _ = stopped.expect_code(143).expect_stderr(&["the DVM was stopped by", "the job ended with it"]);
    dvm.wait().expect_code(0).expect_nothing_left();
    // Without a name it addresses the rank's own server, here a launcher that ends with its job.
    let stop = format!("'{}' dvm stop; echo said $?", px.display());
    let outcome = Job::new(px).args(["run", "-n", "1", "sh", "-c", &stop]).run().expect_code(0);
    let _ = outcome.expect_lines(["said 1"]).expect_stderr(&["is no DVM that lasts", "--pid"]);
}

#[test]
fn a_server_that_stops_without_an_answer_has_stopped() {
    let place = new_directory();
    let over = place.path().join("over");
    let wait = format!("until [ -e '{}' ]; do sleep 0.05; done", over.display());
    let host = Job::new(rust_tool("host")).args(["pmix.srvr.tool", "1", "/bin/sh", "-c", &wait]);
    let running = host.env("HOST_TMPDIR", place.path()).env("TMPDIR", place.path()).outlived().start();
    let pid = running.pid().to_string();
    let file = place.path().join(format!("pmix.{}.tool.{pid}", phalanx_interop::host()));
    eventually("the host can be found", || file.exists());
    let stop = Job::new(px_binary()).args(["dvm", "stop", "--pid", &pid]).env("TMPDIR", place.path());
    let _ = stop.run().expect_code(0).expect_stderr(&["has stopped", "without an answer"]);
    fs::write(&over, "").expect("writing");
    let _ = running.wait().expect_code(0);
}

/// A job that was spawned with `PMIX_NOHUP` goes on when the terminal of its `px run` is gone, and its sibling ends.
#[test]
fn a_hangup_spares_jobs_that_are_to_outlive_it() {
    let dvm = dvm(&[]);
    let pid = dvm.pid().to_string();
    for server in [&[][..], &["--pid", &pid]] {
        let place = new_directory();
        let path = |name: &str| place.path().join(name).to_str().expect("text").to_owned();
        let script = |name: &str| {
            format!(
                "echo $$ > '{0}.new'; mv '{0}.new' '{0}'; until [ -e '{1}' ]; do sleep 0.05; done; echo > '{0}'",
                path(name),
                path("end")
            )
        };
        let (stays, goes) = (script("stays"), script("goes"));
        let job = px_at(&dvm, &[&["run", "-n", "1"], server].concat()).arg(pmix("spawn"));
        let px = job.args(["flag", "pmix.nohup", "sh", &stays, "sh", &goes, "until", &path("end")]).start();
        eventually("both run", || ["stays", "goes"].iter().all(|name| place.path().join(name).exists()));
        let [stays, goes] = ["stays", "goes"].map(|name| number(&place.path().join(name)));
        px.signal(Signal::HUP);
        eventually("the other job to end", || !lives(goes));
        // A shell and the kernel both send it.
        px.signal(Signal::HUP);
        assert!(lives(stays), "{server:?}");
        fs::write(place.path().join("end"), "").expect("a file");
        let _ = px.wait().expect_code(129);
        let ends = ["stays", "goes"].map(|name| fs::read_to_string(path(name)).expect("readable"));
        assert_eq!(ends.map(|text| text == "\n"), [true, false], "{server:?}: it was not ended");
    }
    stop(dvm);
}
