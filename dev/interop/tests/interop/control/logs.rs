//! What ranks and tools log reaches each channel, whatever their library is.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use phalanx_cluster::Host;
use phalanx_interop::{
    Job,
    Library::{Pmix4, Pmix5},
    libpmix, pmix, pmix_tool,
};

use crate::site::Site;

/// Gives the host a directory of devices of its own, without a syslog.
fn without_syslog(host: &Host) {
    let script = "set -e; mkdir /run/dev; mount -t tmpfs -o mode=755 dev /run/dev; cd /dev; \
                  for one in null zero full random urandom tty ptmx fd stdin stdout stderr; do \
                  [ -e $one ] && cp -a $one /run/dev/; done; \
                  mkdir /run/dev/shm /run/dev/pts; mount --rbind /dev/shm /run/dev/shm; \
                  if [ -d /dev/pts ]; then mount --rbind /dev/pts /run/dev/pts; fi; \
                  mount --rbind /run/dev /dev";
    host.run(&["sh", "-c", script]).expect("devices");
}

/// The syslog of a host.
struct Syslog(UnixDatagram);

impl Syslog {
    fn of(host: &Host) -> Syslog {
        let socket = UnixDatagram::bind(host.path("/dev/log")).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        Syslog(socket)
    }

    /// The next line, without the pid in its tag.
    fn next(&self) -> String {
        let mut line = [0; 4096];
        let length = self.0.recv(&mut line).expect("a line");
        let line = String::from_utf8_lossy(&line[..length]).into_owned();
        let (head, rest) = line.split_once('[').expect("a tag");
        let (_, text) = rest.split_once("]: ").expect("a pid");
        format!("{head} {text}")
    }
}

fn with(job: Job, library: &str) -> Job {
    match library {
        "4.2" => job.with(Pmix4),
        "5.0" => job.with(Pmix5),
        _ => job.with(Pmix4).env("LD_LIBRARY_PATH", libpmix()),
    }
}

const LIBRARIES: [&str; 3] = ["4.2", "5.0", "ours"];

#[test]
fn what_a_rank_logs_reaches_every_channel() {
    let site = Site::new();
    let logs = [1, 2].map(|number| {
        without_syslog(site.host(number));
        Syslog::of(site.host(number))
    });
    for library in LIBRARIES {
        let run = site.px(1, "run -q --host n1:1,n2:1 --map-by node -n 2 --mail-with").arg("cat >/tmp/mail");
        let words = [
            "pmix.log.lsys=to the local one",
            "pmix.log.gsys=to the global one",
            "pmix.log.syslog=to any",
            "pmix.log.stderr=to standard error",
            "pmix.log.stdout=to standard output",
            "pmix.log.jrec=to the record",
            "pmix.log.gstore!",
            "mail=a@x,b@x",
            "phalanx.log.file=/tmp/lines",
            "pmix.log.msg=to the rest",
            "+pmix.log.key=some.key",
        ];
        let outcome = with(run.arg(pmix("logs")).arg("1").args(words), library).run().expect_code(0);
        outcome.assert_line("rank 1: 0");
        outcome.assert_line("to standard output");
        let outcome = outcome.expect_stderr(&["to standard error"]);
        assert!(!outcome.stderr.contains("failed"), "{library}: {outcome}");
        let local = logs[1].next();
        assert!(local.starts_with("<11>px px-") && local.ends_with(":1: to the local one"), "{local}");
        let mut global = [logs[0].next(), logs[0].next()];
        global.sort_by_key(|line| line.ends_with("to any"));
        assert!(
            global[0].ends_with(":1: to the global one") && global[1].ends_with(":1: to any"),
            "{global:?}"
        );
        let mail = fs::read_to_string(site.host(1).path("/tmp/mail")).expect("a mail");
        assert!(mail.starts_with("To: a@x,\n b@x\nSubject: it is done\n"), "{library}: {mail}");
        assert!(mail.ends_with("\n\none\ntwo\n"), "{library}: {mail}");
        let file = site.host(2).path("/tmp/lines");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "to the rest\n", "{library}");
        fs::remove_file(file).expect("the file");
    }
    site.expect_nothing_left();
}

#[test]
fn channels_that_fail_are_named() {
    let site = Site::new();
    without_syslog(site.host(1));
    for library in LIBRARIES {
        let log = |words: &[&str]| {
            let run = site.px(1, "run -n 1 --mail-with").arg("cat >/dev/null; echo no route >&2; exit 75");
            with(run.arg(pmix("logs")).arg("0").args(words), library).run().expect_code(0)
        };
        let no_syslog = "log to the local syslog failed: opening /dev/log: No such file or directory";
        let all = ["pmix.log.lsys!", "mail=a@x", "pmix.log.stderr!", "no.channel!", "pmix.log.msg=text"];
        let outcome = log(&all);
        outcome.assert_line("rank 0: -52");
        outcome.expect_stderr(&[
            no_syslog,
            "log to mail failed: its command exited with code 75: no route",
            "log to no.channel failed: there is no such channel",
            "text",
        ]);
        let once = [&all[..3], &["pmix.log.stdout!", "pmix.log.msg=text", "+pmix.log.once!"]].concat();
        let outcome = log(&once);
        outcome.assert_line("rank 0: 0");
        assert!(!outcome.stdout.contains("text"), "{library}: {outcome}");
        outcome.expect_stderr(&[no_syslog, "text"]);
        log(&["pmix.log.lsys=text"]).expect_stderr(&[no_syslog]).assert_line("rank 0: -1");
        let refused = log(&["mail=a@x\nBcc: b@x"]);
        refused
            .expect_stderr(&["log to mail failed: the list of addresses has a line end"])
            .assert_line("rank 0: -27");
    }
    site.expect_nothing_left();
}

#[test]
fn tools_log_in_a_dvm_and_name_the_job() {
    let site = Site::new();
    without_syslog(site.host(1));
    let log = Syslog::of(site.host(1));
    let dvm = site.px(1, "dvm start --json --system-server --host n1:4,n2:4").start();
    dvm.until_said("ready");
    let ready: serde_json::Value = serde_json::from_str(dvm.said().trim()).expect("JSON");
    let pid = ready["pid"].to_string();
    let job = site.px(2, "run --system -n 2 sh -c").arg("echo here; exec sleep 1000").start();
    job.until_said("here\nhere");
    let shown = site.px(1, "ps --system --json").run().stdout;
    let name = shown.split('"').find(|word| word.contains('@')).expect("a job").to_owned();
    for library in LIBRARIES {
        let tool = |words: &[&str]| {
            let tool = Job::on(site.host(1), pmix_tool("logs")).arg(&pid).args(words);
            with(tool, library).run().expect_code(0)
        };
        let named = format!("+pmix.nspace={name}");
        let text = format!("pmix.log.jrec=a tool on {library}");
        tool(&[&text, "pmix.log.syslog=text", &named]).assert_line("0");
        assert!(log.next().ends_with(":0: text"));
        tool(&[&text]).expect_stderr(&["a tool names the job with PMIX_NSPACE"]).assert_line("-27");
        let record = site.px(2, &format!("log --system {name}")).run().expect_code(0);
        record.expect_stdout(&[&format!("a tool on {library}")]);
    }
    job.end();
    let ended = site.px(2, &format!("log --system {name} too late")).run().expect_failure();
    ended.expect_stderr(&[&format!("cannot write to the record of job {name}: job {name} has ended")]);
    let record = site.px(2, &format!("log --system {name}")).run().expect_code(0);
    assert_eq!(record.stdout.lines().count(), 3, "{record}");
    site.px(1, "dvm stop --system").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}
