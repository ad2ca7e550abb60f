//! Standard streams: nothing lost, nothing read without credit, no waiting in vain.

use std::io::Write;
use std::os::fd::AsRawFd;

use phalanx_dvm::{Report, StdinTarget};
use phalanx_node::StdinSource;

use super::Scenario;
use crate::launcher::{Script, job, run, shell, with_node};

pub(super) const ALL: &[Scenario] = &[
    ("output_arrives_whole", output_arrives_whole),
    ("a_slow_user_slows_the_ranks", a_slow_user_slows_the_ranks),
    ("what_a_dead_rank_wrote_still_arrives", what_a_dead_rank_wrote_still_arrives),
    ("a_descendant_with_the_pipe_delays_nobody", a_descendant_with_the_pipe_delays_nobody),
    ("input_arrives_whole", input_arrives_whole),
    ("input_from_our_own_stdin", input_from_our_own_stdin),
    ("input_of_ours_is_taken_as_far_as_it_is_read", input_of_ours_is_taken_as_far_as_it_is_read),
    ("unread_input_harms_nobody", unread_input_harms_nobody),
];

const LINES: &str = "i=0; while [ $i -lt 20000 ]; do echo \"$RANK:$i\"; i=$((i+1)); done";

fn output_arrives_whole() {
    with_node(Script { window: 3000, ..Script::default() }, async |node, _| {
        for (rank, seen) in run(node, shell(4, LINES), StdinSource::Empty).await.iter().enumerate() {
            let expected: String = (0..20000).map(|i| format!("{rank}:{i}\n")).collect();
            assert!(seen.stdout == expected.as_bytes(), "{} bytes", seen.stdout.len());
        }
        let seen = run(node, shell(1, "echo out; echo err >&2; printf rest"), StdinSource::Empty).await;
        assert_eq!((&*seen[0].stdout, &*seen[0].stderr), (&b"out\nrest"[..], &b"err\n"[..]));
    });
}

/// The script checks that nothing is ever read without credit; here the user takes no reports for a while.
fn a_slow_user_slows_the_ranks() {
    with_node(Script { window: 10_000, ..Script::default() }, async |node, _| {
        let dir = tempfile::tempdir().unwrap();
        let progress = dir.path().join("progress");
        let script = format!("head -c 1000000 /dev/zero; echo done > '{}'", progress.display());
        node.handle.submit(shell(1, &script), StdinSource::Empty).await.unwrap();
        let mut bytes = 0;
        let first = loop {
            if let Report::Output { data, .. } = node.reports.recv().await.unwrap() {
                break data.len();
            }
        };
        bytes += first;
        // All credit is used up and a pipe's worth waits: the rank cannot have ended, however long the user takes no reports.
        for _ in 0..50 {
            tokio::task::yield_now().await;
            assert!(!progress.exists());
        }
        loop {
            match node.reports.recv().await.unwrap() {
                Report::Output { data, .. } => {
                    assert!(data.len() <= 10_000);
                    bytes += data.len();
                }
                Report::Ended(_) => break,
                _ => {}
            }
        }
        assert_eq!(bytes, 1_000_000);
        assert!(progress.exists());
    });
}

fn what_a_dead_rank_wrote_still_arrives() {
    // More than the credit, less than a pipe holds: the rank is long gone when the last of it is read.
    with_node(Script { window: 300, ..Script::default() }, async |node, _| {
        for seen in run(node, shell(8, "head -c 50000 /dev/zero; exit 4"), StdinSource::Empty).await {
            assert_eq!((seen.code(), seen.stdout.len()), (4, 50_000));
        }
    });
}

fn a_descendant_with_the_pipe_delays_nobody() {
    with_node(Script::default(), async |node, _| {
        // It ignores the signals that end the group, so it would hold the pipe for ever.
        let script = "trap '' HUP TERM; setsid sh -c 'echo $$; exec sleep 1000' & wait_for() { :; }; \
                      while ! grep -q sleep /proc/$!/comm; do :; done; echo last";
        let seen = run(node, shell(1, script), StdinSource::Empty).await;
        assert_eq!(seen[0].code(), 0);
        let mut lines = seen[0].text().lines();
        let escaped: i32 = lines.next().unwrap().parse().unwrap();
        assert_eq!(lines.next(), Some("last"));
        let escaped = rustix::process::Pid::from_raw(escaped).unwrap();
        let _ = rustix::process::kill_process(escaped, rustix::process::Signal::KILL);
    });
}

fn input_arrives_whole() {
    let data: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&data).unwrap();
    with_node(Script::default(), async |node, _| {
        let mut cat = job(2, &["cat"]);
        cat.stdin = StdinTarget::default();
        let seen = run(node, cat, StdinSource::File(file.path().to_owned())).await;
        assert!(seen[0].stdout == data, "{} bytes", seen[0].stdout.len());
        assert!(seen[1].stdout.is_empty());
        let mut cat = job(1, &["cat"]);
        cat.stdin = StdinTarget::default();
        assert_eq!(run(node, cat, StdinSource::Empty).await[0].stdout, b"");
    });
}

fn input_from_our_own_stdin() {
    // Put a pipe on descriptor 0, as a shell does, and write into it while the job runs.
    let (read, write) = rustix::pipe::pipe().unwrap();
    rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::CLOEXEC).unwrap();
    crate::launcher::put_on_stdin(&read);
    drop(read);
    let writer = std::fs::File::from(write);
    with_node(Script::default(), async move |node, _| {
        let mut cat = shell(1, "read line; echo \"got $line\"; exec cat");
        cat.stdin = StdinTarget::default();
        node.handle.submit(cat, StdinSource::Inherited).await.unwrap();
        let mut writer = Some(writer);
        writer.as_mut().unwrap().write_all(b"one\n").unwrap();
        let mut output = Vec::new();
        loop {
            match node.reports.recv().await.unwrap() {
                Report::Output { data, .. } => {
                    output.extend_from_slice(&data);
                    if output.ends_with(b"got one\n") {
                        writer.as_mut().unwrap().write_all(b"two\n").unwrap();
                    } else if output.ends_with(b"two\n") {
                        writer = None;
                    }
                }
                Report::Ended(end) => {
                    assert_eq!(end.procs[0].status, Some(phalanx_dvm::ExitStatus::Code(0)));
                    break;
                }
                _ => {}
            }
        }
        assert_eq!(output, b"got one\ntwo\n");
    });
    // The flags of a descriptor that others share must stay unchanged.
    let flags = rustix::fs::fcntl_getfl(std::io::stdin()).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "descriptor {}", std::io::stdin().as_raw_fd());
}

fn input_of_ours_is_taken_as_far_as_it_is_read() {
    let (read, write) = rustix::pipe::pipe().unwrap();
    for end in [&read, &write] {
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC).unwrap();
    }
    crate::launcher::put_on_stdin(&read);
    with_node(Script::default(), async |node, _| {
        for (script, rest) in [
            ("exit 3", "one\ntwo\n"),
            ("read line; exit 3", "two\n"),
            ("(read line); exit 3", "two\n"),
            ("exec <&-; exec 0</dev/null; cat; exit 3", "one\ntwo\n"),
            ("read line; exec <&-; exec 0</dev/null; sleep 0.1; exit 3", "two\n"),
            ("read line; read line; exit 3", ""),
        ] {
            rustix::io::write(&write, b"one\ntwo\n").unwrap();
            let mut wanted = shell(1, script);
            wanted.stdin = StdinTarget::default();
            assert_eq!(run(node, wanted, StdinSource::Inherited).await[0].code(), 3, "{script}");
            // The mark makes that there is something to read.
            rustix::io::write(&write, b"|").unwrap();
            let mut seen = [0; 64];
            let count = rustix::io::read(&read, &mut seen).unwrap();
            assert_eq!(String::from_utf8_lossy(&seen[..count]), format!("{rest}|"), "{script}");
        }
    });
}

fn unread_input_harms_nobody() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![7; 3_000_000]).unwrap();
    with_node(Script::default(), async |node, _| {
        for script in ["exit 3", "exec <&-; exec 0</dev/null; exit 3", "head -c 100000 > /dev/null; exit 3"] {
            let mut wanted = shell(1, script);
            wanted.stdin = StdinTarget::default();
            let seen = run(node, wanted, StdinSource::File(file.path().to_owned())).await;
            assert_eq!(seen[0].code(), 3, "{script}");
        }
    });
}
