//! `px run` with real ranks: their output, their ends, and what the user may do meanwhile.
//!
//! Programs are the shell's own, so nothing has to be installed. Nothing depends on timing: every wait is for a condition, with a deadline far beyond
//! what a busy machine needs.
#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(180);

/// One run and a directory for its files.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { dir: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// `px run OPTIONS sh -c SCRIPT`, quiet about oversubscription.
    fn command(&self, options: &str, script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_px"));
        let options = options.split_whitespace();
        command.arg("run").args(options).args(["sh", "-c", script]);
        command.current_dir(self.dir.path()).env("NO_COLOR", "1").env("TMPDIR", self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, options: &str, script: &str) -> Ended {
        ended(self.command(options, script).output().expect("px runs"))
    }

    fn run_with_input(&self, options: &str, script: &str, input: &[u8]) -> Ended {
        let mut child = self.command(options, script).stdin(Stdio::piped()).spawn().expect("px runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        // The reader may leave before the end.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("px ends");
        writer.join().expect("the writer");
        ended(output)
    }

    fn start(&self, options: &str, script: &str) -> Child {
        self.command(options, script).spawn().expect("px runs")
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        let since = Instant::now();
        while !condition() {
            assert!(since.elapsed() < PATIENCE, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[derive(Debug)]
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

fn ended(output: Output) -> Ended {
    let code = output.status.code().unwrap_or_else(|| panic!("px was killed: {:?}", output.status.signal()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

impl Ended {
    #[track_caller]
    fn expect(self, code: i32, stdout: &str) -> Ended {
        assert_eq!((self.code, &*self.stdout), (code, stdout), "{}", self.stderr);
        self
    }

    #[track_caller]
    fn says(self, words: &[&str]) -> Ended {
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in:\n{}", self.stderr);
        }
        self
    }

    fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }

    fn json(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

fn hostname() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().to_owned()
}

#[test]
fn ranks_know_their_number_and_the_size_of_the_job() {
    let ended = Bench::new().run("-q -n 4", "echo $PMIX_RANK of $PHALANX_SIZE");
    assert_eq!((ended.code, ended.sorted()), (0, vec!["0 of 4", "1 of 4", "2 of 4", "3 of 4"]));
    assert_eq!(ended.stderr, "");
}

#[test]
fn output_goes_where_it_belongs_and_loses_nothing() {
    let ended = Bench::new().run("-n 1", "echo out; echo err >&2; printf 'no end'");
    assert_eq!(ended.expect(0, "out\nno end").stderr, "err\n");
    Bench::new().run("-n 1 --output merge", "echo err >&2").expect(0, "err\n");
}

#[test]
fn tags_and_ranks_stand_before_lines() {
    let ended = Bench::new().run("-q -n 2 --output tag", "echo a; echo b >&2");
    assert_eq!(ended.sorted(), ["[1,0]<stdout>: a", "[1,1]<stdout>: a"]);
    assert!(ended.stderr.contains("[1,0]<stderr>: b\n"), "{}", ended.stderr);
    let ended = Bench::new().run("-n 1 --output rank", "printf 'a\\nb'");
    assert_eq!(ended.stdout, "0: a\n0: b\n");
    let ended = Bench::new().run("-n 1 --output tag-detailed,timestamp", "echo a");
    let (_, place) = ended.stdout.split_once(",0][").expect("a tag");
    let (host, rest) = place.split_once(':').expect("a host");
    let (pid, rest) = rest.split_once(']').expect("a pid");
    assert_eq!((host, rest), (&*hostname(), "<stdout>: a\n"));
    assert!(pid.parse::<u32>().is_ok_and(|pid| pid > 1), "{}", ended.stdout);
    assert_eq!(&ended.stdout[10..11], "T", "{}", ended.stdout);
}

#[test]
fn ranks_may_have_a_stream_for_diagnostics() {
    let script = "echo found > /dev/fd/$PHALANX_STDDIAG_FD; echo out";
    let ended = Bench::new().run("-n 1 --output tag,diag", script);
    assert_eq!(ended.stdout, "[1,0]<stdout>: out\n");
    assert_eq!(ended.stderr, "[1,0]<stddiag>: found\n");
    let ended = Bench::new().run("-n 1", "echo \"<$PHALANX_STDDIAG_FD>\"");
    assert_eq!(ended.stdout, "<>\n", "who does not ask for it has none");
}

#[test]
fn json_output_is_one_stream_of_objects() {
    let ended = Bench::new().run("-n 1 --output tag,json", "echo a; echo b >&2");
    let mut objects = ended.json();
    objects.sort_by_key(|object| object["stream"].to_string());
    let seen: Vec<_> =
        objects.iter().map(|o| (o["type"].clone(), o["rank"].clone(), o["data"].clone())).collect();
    assert_eq!(seen, [("output".into(), 0.into(), "b\n".into()), ("output".into(), 0.into(), "a\n".into())]);
    assert_eq!(objects[0]["host"], hostname());
}

#[test]
fn xml_output_is_one_document() {
    let ended = Bench::new().run("-n 1 --output xml", "echo '<&>'");
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<output>\n<stdout nspace=\"";
    assert!(ended.stdout.starts_with(head), "{}", ended.stdout);
    assert!(ended.stdout.ends_with(">&lt;&amp;&gt;</stdout>\n</output>\n"), "{}", ended.stdout);
    let nothing = Bench::new().run("-n 1 --output xml", "exit 3");
    assert!(nothing.stdout.ends_with("<output>\n</output>\n"), "a job that says nothing: {}", nothing.stdout);
}

#[test]
fn output_in_files() {
    let bench = Bench::new();
    bench.run("-q -n 2 --output file=out/x", "echo $PHALANX_RANK; echo e >&2").says(&["e\n"]);
    assert_eq!((bench.read("out/x.0.out"), bench.read("out/x.1.out")), ("0\n".into(), "1\n".into()));
    assert_eq!(bench.read("out/x.1.err"), "e\n");
    let ended = bench.run("-n 1 --output directory=d,file-only", "echo a; echo b >&2");
    assert_eq!((&*ended.stdout, &*ended.stderr), ("", ""));
    assert_eq!((bench.read("d/rank.0/stdout"), bench.read("d/rank.0/stderr")), ("a\n".into(), "b\n".into()));
    bench.run("-q -n 11 --output pattern=%h.%R.%s,file-only,merge", "echo $PHALANX_RANK >&2").expect(0, "");
    assert_eq!(bench.read(&format!("{}.07.stdout", hostname())), "7\n");
    let ended = bench.run("-n 1 --output file=/proc/nowhere/x", "echo a");
    ended.expect(1, "a\n").says(&["px: error: cannot write output to '/proc/nowhere/x.0.out'"]);
}

/// A pipe can fill and may never be read: px must not wait for that.
#[test]
fn a_pipe_that_nobody_reads_does_not_keep_px() {
    let bench = Bench::new();
    let pipe = |name: &str| {
        let made = Command::new("mkfifo").arg(bench.path(name)).status().expect("mkfifo");
        assert!(made.success());
        bench.path(name)
    };
    let (_, shared) = (pipe("x.0.out"), pipe("shared"));
    let _reader = File::options().read(true).write(true).open(shared).expect("a pipe");
    let ended = bench.run("-n 1 --output file=x", "echo a");
    ended
        .expect(1, "a\n")
        .says(&["px: error: cannot write output to 'x.0.out': it is a pipe that nobody reads"]);
    // The pipe takes what it has room for.
    bench.run("-n 1 --output pattern=shared", "echo a").expect(0, "a\n");
    let ended = bench.run("-n 1 --timeout 1 --kill-after 1 --output pattern=shared,file-only", "seq 1000000");
    ended.expect(124, "").says(&["could not deliver", "its reader has stopped reading"]);
    // Devices work like files.
    bench.run("-n 1 --output pattern=/dev/null", "echo a").expect(0, "a\n");
}

#[test]
fn standard_input() {
    let bench = Bench::new();
    let script = "echo $PHALANX_RANK: $(cat)";
    let lines = |options: &str| {
        let ended = bench.run_with_input(options, script, b"in");
        ended.stdout.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(lines("-q -n 2"), ["0: in", "1:"].map(String::from).into());
    assert_eq!(lines("-q -n 2 --stdin 1"), ["0:", "1: in"].map(String::from).into());
    assert_eq!(lines("-q -n 2 --stdin all"), ["0: in", "1: in"].map(String::from).into());
    assert_eq!(lines("-q -n 2 --stdin none"), ["0:", "1:"].map(String::from).into());
    let refused = bench.run("-q --host localhost:2 --stdin 9", "true");
    refused.expect(1, "").says(&["rank 9 is to read standard input: the ranks of this job are 0 to 1"]);
    fs::write(bench.path("file"), "from a file").expect("a file");
    assert_eq!(lines("-q -n 2 --stdin file"), ["0: from a file", "1:"].map(String::from).into());
}

#[test]
fn much_of_everything_passes_through() {
    let input: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let bench = Bench::new();
    let mut child = bench.command("-n 1", "cat").stdin(Stdio::piped()).spawn().expect("px runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let sent = input.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).expect("somebody reads"));
    let output = child.wait_with_output().expect("px ends");
    writer.join().expect("the writer");
    assert!(output.stdout == input, "{} of {} bytes", output.stdout.len(), input.len());
}

#[test]
fn the_first_failure_is_reported_with_place_and_manner() {
    let script = "test $PHALANX_RANK = 1 || sleep 1000; exit 3";
    let told = Bench::new().run("-q -n 3", script).expect(3, "");
    let first = format!("px: error: rank 1 exited with code 3 (on {}, pid ", hostname());
    told.says(&[&first, "px: ranks 0, 2 were ended by px as a consequence"]);
    let script = "test $PHALANX_RANK = 0 || exec sleep 1000; kill -SEGV $$";
    Bench::new().run("-q -n 2", script).expect(139, "").says(&["rank 0 was killed by SIGSEGV"]);
}

#[test]
fn failure_policy_decides_what_ends_a_job() {
    let bench = Bench::new();
    let meet = "echo $PHALANX_RANK >> ends; test $PHALANX_RANK = 0 && exit 3; while ! grep -q 0 ends; do sleep 0.01; done; echo on";
    bench.run("-q -n 2 --kill-on-bad-exit none", meet).expect(3, "on\n").says(&["rank 0 exited with code 3"]);
    fs::remove_file(bench.path("ends")).expect("a file");
    bench.run("-q -n 2 --kill-on-bad-exit signal", meet).expect(3, "on\n");
    let signal = "test $PHALANX_RANK = 0 && kill -KILL $$; exec sleep 1000";
    bench
        .run("-q -n 2 --kill-on-bad-exit signal", signal)
        .expect(137, "")
        .says(&["rank 0 was killed by SIGKILL"]);
}

#[test]
fn programs_that_cannot_start() {
    let px = |words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_px")).args(words.split_whitespace()).output();
        ended(output.expect("px runs"))
    };
    px("run -n 2 ./nowhere").expect(127, "").says(&["px: error:", "./nowhere", &hostname()]);
    px("run nowhere-in-path").expect(127, "").says(&["nowhere-in-path", "PATH"]);
    px("run /etc/passwd").expect(126, "").says(&["/etc/passwd"]);
    px("run --wdir /nowhere true").expect(126, "").says(&["/nowhere"]);
    px("run -n 3 --host localhost:2 true").expect(1, "").says(&["3 ranks", "2 slots", "px: hint:"]);
}

#[test]
fn a_time_limit() {
    // The limit must be long enough for the ranks to have started.
    let is_told = |seconds: &str| {
        let ended = Bench::new().run(&format!("-q -n 2 --timeout {seconds}"), "exec sleep 1000");
        let ended = ended.expect(124, "").says(&[&format!("ended after {seconds} s, its time limit")]);
        ended.stderr.contains("its time limit; ranks 0-1 were still running")
    };
    assert!(["0.2", "5", "50"].into_iter().any(is_told));
}

#[test]
fn reports_are_json() {
    let bench = Bench::new();
    let ended = bench.run("-n 2 -q --json", "exit 4");
    let end: serde_json::Value =
        serde_json::from_str(ended.stderr.lines().last().expect("a line")).expect("JSON");
    assert_eq!(
        (&end["type"], &end["outcome"], &end["exit_code"]),
        (&"end".into(), &"failed".into(), &4.into())
    );
    bench.run("-n 1 --report end.json", "exit 0").expect(0, "");
    let end: serde_json::Value = serde_json::from_str(&bench.read("end.json")).expect("JSON");
    assert_eq!((&end["outcome"], &end["procs"][0]["exit_code"]), (&"success".into(), &0.into()));
    let ended = bench.run("-n 1 --report -", "echo first");
    assert!(ended.stdout.starts_with("first\n{"), "{}", ended.stdout);
    let ended = bench.run("-n 1 --report /nowhere/report", "exit 0");
    ended.expect(1, "").says(&["cannot write the report '/nowhere/report'"]);
}

#[test]
fn displays_do_not_disturb_output() {
    let ended = Bench::new().run("-n 1 --display map,allocation", "echo out").expect(0, "out\n");
    ended.says(&["RANK", "1 rank on 1 node", "SLOTS"]);
    let ended = Bench::new().run("-n 1 --json --display map", "echo out").expect(0, "out\n");
    let map: serde_json::Value =
        serde_json::from_str(ended.stderr.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&map["type"], &map["procs"][0]["node"]), (&"map".into(), &hostname().into()));
}

#[test]
fn environment_and_directory() {
    let bench = Bench::new();
    fs::create_dir(bench.path("sub")).expect("a directory");
    fs::write(bench.path("env"), "A=1\nB=2\n").expect("a file");
    let ended =
        bench.run("-n 1 --env-file env -x B=3 --wdir sub --prefix /opt/p", "echo $A $B; pwd; echo $PATH");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "1 3");
    assert!(lines[1].ends_with("/sub"), "{lines:?}");
    assert!(lines[2].starts_with("/opt/p/bin:"), "{lines:?}");
}

#[test]
fn the_reader_of_our_output_may_leave() {
    let bench = Bench::new();
    let mut child = bench.start("-q -n 2", "yes");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut some = [0; 4096];
    stdout.read_exact(&mut some).expect("output");
    drop(stdout);
    let ended = ended(child.wait_with_output().expect("px ends"));
    assert_eq!((ended.code, &*ended.stderr), (141, ""));
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let output = bench.command("-n 1", "echo x").stdout(full).output().expect("px runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write output"));
}

#[test]
fn attach_says_that_a_full_disk_cannot_be_written() {
    let bench = Bench::new();
    let job = bench.run("--detach -n 1", "echo x").stdout;
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let mut attach = Command::new(env!("CARGO_BIN_EXE_px"));
    attach.args(["attach", job.trim(), "--since-start"]).env("TMPDIR", bench.dir.path()).stdout(full);
    let output = attach.output().expect("px runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("cannot write output: No space left"), "{said}");
}

#[test]
fn a_reader_that_waits_makes_ranks_wait() {
    let bench = Bench::new();
    let script =
        "i=0; while [ $i -lt 100000 ]; do printf '%01000d\n' $i; i=$((i+1)); echo $i > progress; done";
    let mut child = bench.start("-n 1", script);
    // The rank stops at some point, because its output is not read.
    let progress = || bench.read("progress").trim().parse::<u32>().unwrap_or(0);
    bench.wait_for("the rank to stop", || progress() > 0 && nobody_goes_on(&child));
    assert!(progress() < 20_000, "px holds more than it should");
    kill_process(pid(&child), Signal::TERM).expect("px is there");
    drop(child.stdout.take());
    child.wait().expect("px ends");
}

#[test]
fn an_allocation_of_this_host_needs_nothing() {
    let bench = Bench::new();
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let hostname = hostname.trim();
    fs::write(bench.path("pbs"), format!("{hostname}\n{hostname}\n")).expect("a file");
    for (variable, value) in [("PBS_NODEFILE", "pbs"), ("LSB_MCPU_HOSTS", &format!("{hostname} 2"))] {
        let said = |options: &str| {
            ended(bench.command(options, "echo x").env(variable, value).output().expect("px runs"))
        };
        assert_eq!(said("").expect(0, "x\nx\n").stderr, "", "{variable}");
        said("-n 3").says(&["asked for 3 ranks, but 2 slots are free on 1 node"]);
        said("-n 3 --oversubscribe").expect(0, "x\nx\nx\n");
    }
}

#[test]
fn commands_choose_no_server_among_several() {
    let bench = Bench::new();
    let mut jobs: Vec<Child> = (0..2).map(|_| bench.start("-q -n 1", "echo; exec sleep 1000")).collect();
    for job in &mut jobs {
        job.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("the rank runs");
    }
    let px = |words: &str| {
        let mut px = Command::new(env!("CARGO_BIN_EXE_px"));
        px.args(words.split(' ')).env("TMPDIR", bench.dir.path()).env("NO_COLOR", "1");
        ended(px.output().expect("px runs"))
    };
    let pids: Vec<String> = jobs.iter().map(|job| format!("(pid {})", job.id())).collect();
    let names = jobs.iter().map(|job| format!("-{} ", job.id())).collect::<Vec<_>>();
    bench.wait_for("both servers", || {
        let shown = px("ps").stdout;
        names.iter().all(|name| shown.contains(name))
    });
    for words in ["publish a=b", "lookup a", "unpublish a", "query PMIX_QUERY_NAMESPACES", "events"] {
        let ended = px(words);
        assert_eq!(ended.code, 1, "{words}");
        ended.says(&["none is named", &pids[0], &pids[1]]);
    }
    // A persistent DVM does not exist either.
    let stopped = px("dvm stop");
    assert_eq!(stopped.code, 1);
    stopped.says(&["no DVM", &pids[0], &pids[1]]);
    px("why").expect(0, "nothing is waiting\n");
    for mut job in jobs {
        assert!(job.try_wait().expect("px is ours").is_none(), "it was not named");
        kill_process(pid(&job), Signal::TERM).expect("px runs");
        job.wait().expect("px ends");
    }
}

#[test]
fn ps_says_which_servers_it_does_not_ask() {
    let bench = Bench::new();
    let px = |words: &str, env: [&str; 2]| {
        let mut px = Command::new(env!("CARGO_BIN_EXE_px"));
        px.args(words.split(' ')).env("TMPDIR", bench.dir.path()).env("NO_COLOR", "1").env(env[0], env[1]);
        ended(px.output().expect("px runs"))
    };
    let file = bench.path(&format!("pmix.{}.tool", hostname()));
    fs::write(&file, "nonsense\n").expect("a file");
    for number in 1..=12 {
        fs::write(bench.path(&format!("pmix.{}.tool.{number}", hostname())), "nonsense\n").expect("a file");
    }
    let ended = px("ps", ["A", "B"]);
    let said = ended.expect(0, "no PMIx server to ask on this machine\n").stderr;
    assert!(said.contains("not asked") && said.contains(&file.display().to_string()), "{said}");
    assert!(said.contains("not asked: 3 more files"), "{said}");
    // The server of this process is queried, wherever its files are.
    bench.wait_for("an error that names it", || {
        let gone = px("ps", ["PMIX_SERVER_URI41", "px-gone-1.0;tcp4://127.0.0.1:1"]);
        gone.code == 1 && ["cannot attach", "the environment"].iter().all(|text| gone.stderr.contains(text))
    });
}

#[test]
fn a_waiting_lookup_is_shown_once() {
    let bench = Bench::new();
    let script = format!("\"{}\" lookup nobodys --wait 1000", env!("CARGO_BIN_EXE_px"));
    let mut job = bench.start("-q -n 1", &script);
    let pid_of_px = job.id().to_string();
    let why = || {
        let mut px = Command::new(env!("CARGO_BIN_EXE_px"));
        px.args(["why", "--json", "--pid", &pid_of_px, "--wait-server", "60"])
            .env("TMPDIR", bench.dir.path());
        ended(px.output().expect("px runs")).stdout
    };
    bench.wait_for("the lookup", || why().contains("lookup"));
    let shown = why();
    assert_eq!(shown.matches("\"lookup\"").count(), 1, "{shown}");
    assert!(shown.contains("somebody publishing the keys"), "{shown}");
    kill_process(pid(&job), Signal::TERM).expect("px runs");
    job.wait().expect("px ends");
}

#[test]
fn output_and_reports_go_to_pipes_that_are_read() {
    let bench = Bench::new();
    let pipe = bench.dir.path().join("channel");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    for option in ["--report channel", "--output file=channel,file-only"] {
        let alone = bench.run(&format!("{option} -n 1"), "echo words");
        assert_eq!(alone.code, 1, "{}", alone.stderr);
        alone.says(&["'channel'", "it is a pipe that nobody reads"]);
        let mut reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().expect("cat runs");
        // The reader may take a while to open the pipe.
        bench.wait_for("the job", || bench.run(&format!("-q {option} -n 1"), "echo words").code == 0);
        let mut text = String::new();
        reader.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
        reader.wait().expect("cat ends");
        let expected = if option.starts_with("--report") { "\"exit_code\":0" } else { "words\n" };
        assert!(text.contains(expected), "{option}: {text}");
    }
}

#[test]
fn output_that_nobody_reads_is_shown_as_waiting() {
    let bench = Bench::new();
    let mut job = bench.start("-n 2", "head -c 3000000 /dev/zero | tr '\\0' x");
    let pid_of_px = job.id().to_string();
    let why = || {
        let mut px = Command::new(env!("CARGO_BIN_EXE_px"));
        px.args(["why", "--pid", &pid_of_px, "--wait-server", "60"]).env("TMPDIR", bench.dir.path());
        ended(px.output().expect("px runs")).stdout
    };
    let writers = |shown: &str| shown.matches("@").count();
    bench.wait_for("the writers", || writers(&why()) == 2);
    let shown = why();
    assert!(shown.contains("output of ") && shown.contains("written by"), "{shown}");
    assert!(shown.contains("ends with the reader of the output reading on"), "{shown}");
    kill_process(pid(&job), Signal::TERM).expect("px runs");
    job.wait().expect("px ends");
}

#[test]
fn a_job_ends_beside_output_that_nobody_reads() {
    let bench = Bench::new();
    let mut blocked = bench.start("-q -n 1", "yes");
    bench.wait_for("the end of all writing", || nobody_goes_on(&blocked));
    let mut px = Command::new(env!("CARGO_BIN_EXE_px"));
    px.args(["run", "-q", "--pid", &blocked.id().to_string(), "--wait-server", "60", "--timeout", "60"]);
    let beside = px.args(["echo", "beside"]).env("TMPDIR", bench.dir.path()).output();
    ended(beside.expect("px runs")).expect(0, "beside\n");
    kill_process(pid(&blocked), Signal::TERM).expect("px runs");
    blocked.wait().expect("px ends");
}

/// How many bytes px could not deliver, from its message.
fn undelivered(said: &str) -> usize {
    let count = said.split("could not deliver ").nth(1).and_then(|rest| rest.split(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[test]
fn a_reader_that_never_reads_does_not_keep_px() {
    let endless = "yes a line that nobody reads";
    let bench = Bench::new();
    // At its end, every rank has all its output in pipes.
    let finite = "head -c 250000 /dev/zero | tr '\\0' x";
    for (options, script, signal, code) in [
        ("-n 2", endless, Some(Signal::TERM), 143),
        ("-n 2", endless, Some(Signal::INT), 130),
        ("-n 2 --timeout 1", endless, None, 124),
        ("-n 2 --timeout 1 --output json", endless, None, 124),
        ("-n 2 --output json", endless, Some(Signal::TERM), 143),
        ("-n 2 --output xml", endless, Some(Signal::TERM), 143),
        ("-n 2 --output tag", endless, Some(Signal::INT), 130),
        ("-n 8 --output raw", finite, None, 1),
    ] {
        let mut px = bench.start(&format!("--kill-after 1 {options}"), script);
        if let Some(signal) = signal {
            let stdout = px.stdout.as_ref().expect("a pipe");
            let waiting = || rustix::io::ioctl_fionread(stdout).expect("a pipe");
            bench.wait_for("a full pipe", || waiting() > 0 && nobody_goes_on(&px));
            kill_process(pid(&px), signal).expect("px runs");
        }
        let mut said = String::new();
        px.stderr.take().expect("a pipe").read_to_string(&mut said).expect("px's words");
        assert_eq!(px.wait().expect("px ends").code(), Some(code), "{options}: {said}");
        let lost = undelivered(&said);
        assert!(lost > 0, "{options}: {said}");
        if script == finite {
            let mut seen = Vec::new();
            px.stdout.take().expect("a pipe").read_to_end(&mut seen).expect("what was delivered");
            assert_eq!(seen.len() + lost, 8 * 250_000, "{said}");
        }
    }
}

#[test]
fn limits_of_files_and_stacks_do_not_end_px() {
    let bench = Bench::new();
    let px = env!("CARGO_BIN_EXE_px");
    let sh = |script: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-c", script]).current_dir(bench.dir.path()).env("TMPDIR", bench.dir.path());
        ended(sh.output().expect("a shell"))
    };
    let limited = sh(&format!("ulimit -f 10; exec \"{px}\" run -n 1 head -c 100000 /dev/zero > out"));
    assert_eq!(limited.code, 1);
    assert!(limited.stderr.contains("cannot write output: File too large"), "{limited:?}");
    // Ranks get the limit and the signal as without px.
    sh(&format!("ulimit -f 10; exec \"{px}\" run -n 1 sh -c 'head -c 100000 /dev/zero > more; echo $?'"))
        .expect(0, "153\n");
    sh(&format!("ulimit -s 64; exec \"{px}\" run -n 2 \"{px}\" hello > hello; ")).expect(0, "");
    sh(&format!("ulimit -s 64; \"{px}\" run -n 1 sh -c 'ulimit -s'")).expect(0, "64\n");
}

#[test]
fn long_lines_of_several_ranks_stay_whole() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' $PHALANX_RANK; echo";
    let ended = Bench::new().run("-n 3", script);
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> = ["0", "1", "2"].map(|letter| letter.repeat(3_000_000)).into();
    assert!(ended.code == 0 && lines == expected, "{} lines, {}", lines.len(), ended.stderr);
}

#[test]
fn px_adds_no_byte_to_plain_output() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' $PHALANX_RANK";
    let ended = Bench::new().run("-n 2", script);
    let (zeros, ones) = ("0".repeat(3_000_000), "1".repeat(3_000_000));
    let orders = [format!("{zeros}{ones}"), format!("{ones}{zeros}")];
    assert!(orders.contains(&ended.stdout), "{} bytes, {}", ended.stdout.len(), ended.stderr);
}

#[test]
fn a_slow_reader_gets_what_ended_ranks_have_written() {
    let bench = Bench::new();
    let px = bench.start(
        "--kill-after 60 -n 8 --output raw",
        "head -c 240000 /dev/zero | tr '\\0' x; : >ended.$PMIX_RANK",
    );
    bench.wait_for("the ranks' end", || (0..8).all(|rank| bench.path(&format!("ended.{rank}")).exists()));
    // Longer than px waits for output of ended ranks: another px, of which no byte is read, has given up meanwhile.
    let mut other = bench.start("--kill-after 3 -n 8 --output raw", "head -c 250000 /dev/zero | tr '\\0' x");
    assert_eq!(other.wait().expect("px ends").code(), Some(1));
    let output = px.wait_with_output().expect("px ends");
    assert_eq!(output.stdout.len(), 8 * 240_000, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
}

#[test]
fn unread_output_holds_up_only_its_writers() {
    let bench = Bench::new();
    // The ranks talk to their server while their own shells are blocked in a write.
    let meet = "mkfifo go.$PMIX_RANK; echo > ready.$PMIX_RANK; read go < go.$PMIX_RANK; \"$PX\" hello > met.$PMIX_RANK";
    let script = format!("({meet}; echo > done.$PMIX_RANK) & while :; do echo yes; done");
    let mut command = bench.command("-q -n 2 --kill-after 0.1s", &script);
    let mut px = command.env("PX", env!("CARGO_BIN_EXE_px")).spawn().expect("px runs");
    bench.wait_for("both ranks", || (0..2).all(|rank| bench.path(&format!("ready.{rank}")).exists()));
    bench.wait_for("the end of all writing", || nobody_goes_on(&px));
    (0..2).for_each(|rank| fs::write(bench.path(&format!("go.{rank}")), "\n").expect("its reader"));
    bench.wait_for("the ranks to meet", || (0..2).all(|rank| bench.path(&format!("done.{rank}")).exists()));
    (0..2).for_each(|rank| assert!(bench.read(&format!("met.{rank}")).contains("of 2"), "rank {rank}"));
    let ps = Command::new(env!("CARGO_BIN_EXE_px"))
        .args(["ps", "--pid", &px.id().to_string()])
        .env("TMPDIR", bench.dir.path())
        .output();
    let ps = ended(ps.expect("px ps runs"));
    assert!(ps.code == 0 && ps.stdout.contains("running"), "{ps:?}");
    kill_process(pid(&px), Signal::TERM).expect("px is there");
    assert_eq!(px.wait().expect("px ends").code(), Some(143));
}

/// Whether px and all its descendants sleep. Then, if the ranks have more to write, their pipes are full and px does not read them: otherwise it
/// would be awake.
fn nobody_goes_on(px: &Child) -> bool {
    let mut family = vec![px.id().to_string()];
    let mut known = 0;
    while let Some(pid) = family.get(known) {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        family.extend(children.split_whitespace().map(str::to_owned));
        known += 1;
    }
    let sleeps = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    // px last, after the processes that could wake it.
    family.iter().rev().all(sleeps)
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn signals_end_the_job_orderly_and_then_at_once() {
    let bench = Bench::new();
    let polite = "trap 'echo bye; exit 5' TERM INT; echo > ready.$PHALANX_RANK; while :; do sleep 0.01; done";
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let child = bench.start("-q -n 2 --kill-after 1h", polite);
        bench.wait_for("both ranks", || (0..2).all(|rank| bench.path(&format!("ready.{rank}")).exists()));
        kill_process(pid(&child), signal).expect("px is there");
        ended(child.wait_with_output().expect("px ends")).expect(code, "bye\nbye\n");
        (0..2).for_each(|rank| fs::remove_file(bench.path(&format!("ready.{rank}"))).expect("a file"));
    }
    let stubborn = "trap '' TERM INT; echo > stubborn; while :; do sleep 0.01; done";
    let mut child = bench.start("-n 1 --kill-after 1h", stubborn);
    bench.wait_for("the rank", || bench.path("stubborn").exists());
    // Signals in quick succession may count as one.
    while child.try_wait().expect("px is ours").is_none() {
        kill_process(pid(&child), Signal::INT).expect("px is not reaped yet");
        std::thread::sleep(Duration::from_millis(20));
    }
    ended(child.wait_with_output().expect("px ends")).expect(130, "");
}

#[test]
fn a_signal_sent_to_a_background_job_of_a_script_ends_it() {
    let bench = Bench::new();
    // Shells ignore SIGINT and SIGQUIT in what they start in the background.
    let px = env!("CARGO_BIN_EXE_px");
    for (signal, code) in [(Signal::INT, 130), (Signal::QUIT, 131)] {
        let rank = "echo > ready; exec sleep 1000";
        let script = format!(
            "\"{px}\" run -q -n 1 sh -c '{rank}' & echo $! > pid.new; mv pid.new pid; wait $!
            echo $? > code.new; mv code.new code"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(bench.dir.path()).env("TMPDIR", bench.dir.path());
        let mut shell = command.spawn().expect("a shell");
        bench.wait_for("the rank", || bench.path("ready").exists() && bench.path("pid").exists());
        let launcher = bench.read("pid").trim().parse().ok().and_then(Pid::from_raw);
        kill_process(launcher.expect("a pid"), signal).expect("px is there");
        bench.wait_for("the end", || bench.path("code").exists());
        assert_eq!(bench.read("code").trim(), code.to_string());
        shell.wait().expect("it has ended");
        ["ready", "pid", "code"].iter().for_each(|file| fs::remove_file(bench.path(file)).expect("a file"));
    }
}

#[test]
fn other_signals_are_handed_on() {
    let bench = Bench::new();
    let script = "trap 'echo got it; exit 0' USR1; echo > ready; while :; do sleep 0.01; done";
    let child = bench.start("-n 1", script);
    bench.wait_for("the rank", || bench.path("ready").exists());
    kill_process(pid(&child), Signal::USR1).expect("px is there");
    ended(child.wait_with_output().expect("px ends")).expect(0, "got it\n");
}

#[test]
fn a_job_is_suspended_together_with_px() {
    let bench = Bench::new();
    let script = "echo $$ > rank; while ! [ -e stop ]; do sleep 0.01; done";
    let child = bench.start("-n 1", script);
    bench.wait_for("the rank", || !bench.read("rank").is_empty());
    let state = |process: &str| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next())
    };
    let (px, rank) = (child.id().to_string(), bench.read("rank").trim().to_owned());
    kill_process(pid(&child), Signal::TSTP).expect("px is there");
    bench.wait_for("px and its rank to stop", || state(&px) == Some('T') && state(&rank) == Some('T'));
    kill_process(pid(&child), Signal::CONT).expect("px is there");
    bench.wait_for("px and its rank to go on", || state(&px) != Some('T') && state(&rank) != Some('T'));
    fs::write(bench.path("stop"), "").expect("a file");
    ended(child.wait_with_output().expect("px ends")).expect(0, "");
}

#[test]
fn called_as_mpirun() {
    let bench = Bench::new();
    let mpirun = bench.path("mpirun");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_px"), &mpirun).expect("a link");
    let words = "-q -np 2 --mca some thing -x A=b --tag-output --bind-to none sh -c";
    let script = "echo $OMPI_MCA_some $A";
    let output = Command::new(mpirun).args(words.split(' ')).arg(script).output().expect("px runs");
    let ended = ended(output);
    assert_eq!(ended.sorted(), ["[1,0]<stdout>: thing b", "[1,1]<stdout>: thing b"], "{}", ended.stderr);
}

#[test]
fn ranks_meet_through_px() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_px")).args(["run", "-q", "-n", "4", "px", "hello"]).output();
    let ended = ended(output.expect("px runs"));
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 4), "{ended:?}");
    for rank in 0..4 {
        assert!(ended.stdout.contains(&format!("hello from rank {rank} of 4")), "{ended:?}");
    }
}
