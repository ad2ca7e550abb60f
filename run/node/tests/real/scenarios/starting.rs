//! How processes are started, and how failures to start them are reported.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use phalanx_dvm::{Control, ExitStatus, Report};
use phalanx_node::StdinSource;
use phalanx_topo::CpuSet;
use phalanx_wire::Text;

use super::Scenario;
use crate::launcher::{Script, job, run, shell, with_node};

pub(super) const ALL: &[Scenario] = &[
    ("exit_codes_are_never_lost", exit_codes_are_never_lost),
    ("a_rank_finds_a_clean_place", a_rank_finds_a_clean_place),
    ("ranks_are_bound", ranks_are_bound),
    ("failures_to_start_are_explained", failures_to_start_are_explained),
    ("some_start_and_some_do_not", some_start_and_some_do_not),
    ("signals_reach_the_whole_group", signals_reach_the_whole_group),
    ("a_signal_before_the_start_waits", a_signal_before_the_start_waits),
];

fn exit_codes_are_never_lost() {
    with_node(Script::default(), async |node, _| {
        for _ in 0..25 {
            let seen = run(node, shell(64, "exit $((RANK % 7))"), StdinSource::Empty).await;
            assert_eq!(seen.len(), 64);
            for (rank, seen) in seen.iter().enumerate() {
                assert_eq!(seen.code(), rank as i32 % 7);
            }
        }
        for seen in run(node, shell(40, "kill -USR1 $$"), StdinSource::Empty).await {
            assert_eq!(seen.status, Some(ExitStatus::Signal { number: libc::SIGUSR1, core_dumped: false }));
        }
    });
}

fn a_rank_finds_a_clean_place() {
    // It must inherit neither our descriptors nor our signal handling.
    let leaked = tempfile::NamedTempFile::new().unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    // Signals that our own parent ignored stay ignored, except for the runtime's SIGPIPE.
    let ignored = signal_sets("SigIgn") & !(1 << (libc::SIGPIPE - 1));
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("job");
    let script = Script { scratch: Some(scratch.to_str().unwrap().to_owned()), ..Script::default() };
    with_node(script, async |node, _| {
        let mut wanted = shell(
            2,
            "ls -l /proc/$$/fd | tr '\\n' ' '; echo; grep -E 'SigBlk|SigIgn' /proc/self/status; \
             cut -d ' ' -f 5 /proc/$$/stat; echo $$; pwd; echo \"$PHALANX_SESSION\"; echo \"$EXTRA\"; readlink /proc/$$/fd/0",
        );
        wanted.apps[0].cwd = Some(Text::from("/usr/lib"));
        wanted.apps[0].env = vec![Text::from("EXTRA=a b")];
        for seen in run(node, wanted, StdinSource::Empty).await {
            assert_eq!(seen.code(), 0, "{}", String::from_utf8_lossy(&seen.stderr));
            let lines: Vec<&str> = seen.text().lines().collect();
            assert!(!lines[0].contains(leaked.path().to_str().unwrap()), "{}", lines[0]);
            assert!(lines[1].ends_with("0000000000000000"), "blocked: {}", lines[1]);
            assert!(lines[2].ends_with(&format!("{ignored:016x}")), "ignored: {}", lines[2]);
            assert_eq!(lines[3], lines[4], "a rank leads its group");
            assert_eq!(lines[5], "/usr/lib");
            assert!(
                lines[6].contains(&format!("/px.{}.", rustix::process::geteuid().as_raw())),
                "{}",
                lines[6]
            );
            assert_eq!(lines[7], "a b");
            assert_eq!(lines[8], "/dev/null");
        }
        // No client has connected, so the directories are not known to any process yet.
        assert!(!scratch.exists());
    });
}

fn signal_sets(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let set = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    u64::from_str_radix(set.trim_start_matches(':').trim(), 16).unwrap()
}

fn ranks_are_bound() {
    let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let last = CpuSet::from_list(allowed).unwrap().last().unwrap();
    let script = Script { cpus: Some(CpuSet::single(last)), ..Script::default() };
    with_node(script, async |node, _| {
        let seen = run(node, shell(1, "grep Cpus_allowed_list /proc/self/status"), StdinSource::Empty).await;
        assert_eq!(seen[0].text().split_whitespace().last(), Some(last.to_string().as_str()));
    });
    // No machine has this CPU.
    let script = Script { cpus: Some(CpuSet::single(8191)), ..Script::default() };
    with_node(script, async |node, _| {
        let seen = run(node, job(1, &["true"]), StdinSource::Empty).await;
        assert_eq!(seen[0].failure.as_deref(), Some(format!("Bind 8191 {}", libc::EINVAL).as_str()));
    });
}

fn failures_to_start_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let script = file("script", "#!/no/such/thing\n", 0o755);
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let garbage = file("garbage", "no program at all", 0o755);
    let folder = dir.path().to_str().unwrap().to_owned();
    let cases = [
        ("no-such-program", "Find no-such-program", libc::ENOENT),
        ("/no/such/program", "Exec /no/such/program", libc::ENOENT),
        (&script, &format!("Exec /no/such/thing (interpreter of {script})"), libc::ENOENT),
        (&plain, &format!("Exec {plain}"), libc::EACCES),
        (&garbage, &format!("Exec {garbage}"), libc::ENOEXEC),
        (&folder, &format!("Exec {folder}"), libc::EISDIR),
        ("", "Find ", libc::ENOENT),
    ];
    with_node(Script::default(), async |node, _| {
        for (program, told, errno) in cases {
            for seen in run(node, job(3, &[program]), StdinSource::Empty).await {
                assert_eq!(seen.failure, Some(format!("{told} {errno}")));
            }
        }
        let mut nowhere = job(1, &["true"]);
        nowhere.apps[0].cwd = Some(Text::from("/no/such/dir"));
        let seen = run(node, nowhere, StdinSource::Empty).await;
        assert_eq!(seen[0].failure, Some(format!("Chdir /no/such/dir {}", libc::ENOENT)));
        // Whatever has failed before, this still works.
        assert_eq!(run(node, job(1, &["true"]), StdinSource::Empty).await[0].code(), 0);
    });
}

fn some_start_and_some_do_not() {
    // Root has no limit of processes, but a limit of descriptors works: each rank takes several of ours.
    let limit = rustix::process::Rlimit { current: Some(120), maximum: Some(120) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    with_node(Script::default(), async |node, _| {
        let seen = run(node, shell(96, "exit 5"), StdinSource::Empty).await;
        assert_eq!(seen.len(), 96);
        let (failed, ran): (Vec<_>, Vec<_>) = seen.iter().partition(|seen| seen.failure.is_some());
        assert!(!ran.is_empty() && ran.iter().all(|seen| seen.code() == 5));
        assert!(!failed.is_empty());
        for seen in failed {
            let failure = seen.failure.as_deref().unwrap();
            assert!(
                failure.starts_with("Pipe ") && failure.ends_with(&format!(" {}", libc::EMFILE)),
                "{failure}"
            );
        }
        assert!(run(node, shell(8, "exit 5"), StdinSource::Empty).await.iter().all(|seen| seen.code() == 5));
    });
}

fn signals_reach_the_whole_group() {
    with_node(Script::default(), async |node, _| {
        // The shell waits for a child of its own; both must end.
        let script = "trap 'exit 9' USR1; sleep 1000 & echo ready; wait";
        node.handle.submit(shell(4, script), StdinSource::Empty).await.unwrap();
        let mut ready = 0;
        loop {
            match node.reports.recv().await.unwrap() {
                Report::Output { proc, data, .. } => {
                    assert_eq!(&*data, b"ready\n");
                    ready += 1;
                    if ready == 4 {
                        let signal = Control::Signal(libc::SIGUSR1);
                        node.handle.control(&proc.nspace, signal).await.unwrap();
                    }
                }
                Report::Ended(end) => {
                    for proc in &end.procs {
                        assert_eq!(proc.status, Some(ExitStatus::Code(9)));
                        let group = rustix::process::Pid::from_raw(proc.pid.unwrap() as i32).unwrap();
                        // The node has to reap orphans.
                        let gone = async {
                            while rustix::process::test_kill_process_group(group).is_ok() {
                                tokio::time::sleep(Duration::from_millis(2)).await;
                            }
                        };
                        tokio::time::timeout(crate::PATIENCE, gone).await.unwrap();
                    }
                    return;
                }
                _ => {}
            }
        }
    });
}

fn a_signal_before_the_start_waits() {
    with_node(Script::default(), async |node, _| {
        let request = node.handle.submit(shell(200, "sleep 1000"), StdinSource::Empty).await.unwrap();
        loop {
            match node.reports.recv().await.unwrap() {
                // Some ranks still wait to be started now.
                Report::Accepted { request: of, nspace, .. } => {
                    assert_eq!(of, request);
                    node.handle.control(&nspace, Control::Signal(libc::SIGKILL)).await.unwrap();
                }
                Report::Ended(end) => {
                    assert_eq!(end.procs.len(), 200);
                    let killed = ExitStatus::Signal { number: libc::SIGKILL, core_dumped: false };
                    assert!(end.procs.iter().all(|proc| proc.status == Some(killed)));
                    return;
                }
                _ => {}
            }
        }
    });
}
