use std::time::Duration;

use phalanx_dvm::Fleet;
use phalanx_dvm::hosts::{Host, Slots};
use phalanx_dvm::map::{BindTo, MapBy};
use phalanx_topo::Level;

use super::*;
use crate::args::split;
use crate::args::usage::Refusal;

fn here(dir: &Path) -> Here {
    Here {
        env: vec![("HOME".into(), "/root".into()), ("PMIX_RANK".into(), "3".into())],
        cwd: dir.to_path_buf(),
        hostname: "n1".into(),
        px: Some("/opt/bin/px".into()),
        is_in_step: || true,
        addresses: || vec!["10.77.0.1".parse().expect("an address")],
    }
}

fn resolve_in(dir: &Path, line: &str) -> Result<Run, Failure> {
    let words = line.split_whitespace().map(Into::into).collect();
    let line = split::run_line(words).map_err(|refusal| match refusal {
        Refusal::Failure(failure) => failure,
        Refusal::Help(help) => panic!("{help}"),
    })?;
    run(line, &here(dir))
}

fn resolved(line: &str) -> Run {
    resolve_in(Path::new("/work"), line).unwrap_or_else(|failure| panic!("{line}: {failure}"))
}

fn refused(line: &str) -> String {
    match resolve_in(Path::new("/work"), line) {
        Err(failure) => format!("{failure} {}", failure.hints.join(" ")),
        Ok(run) => panic!("{line}: {run:?}"),
    }
}

#[test]
fn a_plain_run() {
    let run = resolved("prog arg");
    let app = &run.request.apps[0];
    assert_eq!(app.argv, ["prog", "arg"]);
    assert_eq!((app.procs, &app.cwd, &app.prefix), (None, &Some("/work".into()), &None));
    assert!(app.hosts.is_empty() && app.env.is_empty());
    assert_eq!(run.request.env, ["HOME=/root"]);
    assert_eq!(run.request.policy, Policy::default());
    assert_eq!((run.request.stdin, &run.stdin), (StdinTarget::default(), &StdinSource::Inherited));
    assert_eq!(run.request.on_failure, FailurePolicy::KillJob);
    assert_eq!(run.request.timeout, None);
    assert_eq!(run.voice, Voice::default());
}

#[test]
fn px_runs_itself() {
    assert_eq!(resolved("px hello").request.apps[0].argv, ["/opt/bin/px", "hello"]);
    assert_eq!(resolved("./px hello").request.apps[0].argv, ["./px", "hello"]);
}

#[test]
fn everything_about_a_job() {
    let run = resolved(
        "--map-by package:pe=2 --rank-by span --bind-to core --cpu-set 0-3,8 --oversubscribe --timeout 1m \
         --kill-on-bad-exit signal --stdin all -vv --json prog",
    );
    let policy = &run.request.policy;
    assert_eq!((policy.map.by, policy.map.pe), (Some(MapBy::Object(Level::Package)), Some(2)));
    assert_eq!(policy.map.oversubscribe, Some(true));
    assert_eq!(policy.bind.to, Some(BindTo::Object(Level::Core)));
    assert_eq!(policy.cpu_set.as_ref().map(CpuSet::to_string).as_deref(), Some("0-3,8"));
    assert_eq!(run.request.timeout, Some(Duration::from_secs(60)));
    assert_eq!(run.request.on_failure, FailurePolicy::KillOnSignal);
    assert_eq!(run.request.stdin, StdinTarget::All);
    assert_eq!(run.voice, Voice { json: true, quiet: false, verbose: 2 });
}

#[test]
fn programs_have_their_own_options() {
    let run = resolved("-n 2 -x A=1 --wdir sub a : -n 3 --wdir /abs --prefix /opt/p b");
    let [first, second] = &run.request.apps[..] else { panic!("two programs") };
    assert_eq!((first.procs, second.procs), (Some(2), Some(3)));
    assert_eq!((first.env.clone(), second.env.clone()), (vec![Text::from("A=1")], Vec::new()));
    assert_eq!(first.cwd, Some("/work/sub".into()));
    assert_eq!(second.cwd, Some("/abs".into()));
    assert_eq!(second.prefix, Some("/opt/p".into()));
}

#[test]
fn exports_leave_of_the_environment_what_they_name() {
    let all = resolved("--export ALL,A=1 -x B=2 prog").request;
    assert!(all.env.contains(&Text::from("A=1")) && !all.whole_env);
    let some = resolved("--export A=1 -x B=2 prog").request;
    assert_eq!((some.env, some.whole_env), (vec![Text::from("A=1")], true));
    assert_eq!(some.apps[0].env, ["B=2"]);
}

#[test]
fn words_that_mean_nothing_are_refused() {
    for (line, says) in [
        ("--map-by cores prog", "cores"),
        ("--map-by ppr:0:node prog", "ppr"),
        ("--bind-to nothing prog", "nothing"),
        ("--rank-by x prog", "--rank-by"),
        ("--cpu-set a-b prog", "--cpu-set"),
        ("--output tga prog", "'tag'"),
        ("--oversubscribe --map-by slot:nooversubscribe prog", "contradict"),
        ("--quiet --verbose prog", "contradict"),
        ("--timeout 0 prog", "--timeout"),
        ("--kill-on-bad-exit sometimes prog", "any, signal, none"),
        ("--display mapp prog", "'map'"),
        ("-n 2 --stdin 2 prog", "0 to 1"),
        ("-n 1 --stdin 3 a : -n 2 b", "0 to 2"),
        ("--stdin /nowhere/at/all prog", "/nowhere/at/all"),
        ("--stdin / prog", "directory"),
    ] {
        let text = refused(line);
        assert!(text.contains(says), "{line}: {text}");
    }
}

#[test]
fn standard_input() {
    assert_eq!(resolved("-n 4 --stdin 3 prog").request.stdin, StdinTarget::Rank(Rank(3)));
    let none = resolved("--stdin none prog");
    assert_eq!((none.request.stdin, none.stdin), (StdinTarget::None, StdinSource::Empty));
    let file = resolved("--stdin /dev/null prog");
    assert_eq!(
        (file.request.stdin, file.stdin),
        (StdinTarget::default(), StdinSource::File("/dev/null".into()))
    );
}

#[test]
fn names_for_this_host_are_one() {
    let run = resolved("--host localhost:2,n1:2,127.0.0.1,10.77.0.1 prog");
    let [host] = &run.request.apps[0].hosts[..] else { panic!("{:?}", run.request.apps[0].hosts) };
    assert_eq!((&host.host, host.slots), (&Host::Name("n1".into()), Slots::Stated(6)));
    assert_eq!((run.hosts.slots, run.hosts.takes_ranks), (Slots::Stated(6), true));
    assert_eq!(run.hosts.fleet, Fleet::default());
    assert!(refused("--host n1: prog").contains("--host at character 4: expected"));
}

#[test]
fn hostfiles_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |text: &str| std::fs::write(dir.path().join("hosts"), text).expect("a file");
    let resolve = |line: &str| resolve_in(dir.path(), line);

    write("# ours\nlocalhost slots=4\n");
    let run = resolve("--hostfile hosts prog").expect("a hostfile");
    assert_eq!(run.request.apps[0].hosts[0].slots, Slots::Stated(4));

    write("localhost slots=4\nlocalhost slots=x\n");
    let text = resolve("--hostfile hosts prog").expect_err("no number").to_string();
    assert!(text.starts_with("hosts:2:17: expected a number"), "{text}");

    write("localhost\nN7.a.org slots=2\nn8\n");
    let run = resolve("--hostfile hosts --host n7,n1 prog").expect("a choice");
    let names: Vec<String> = run.request.apps[0].hosts.iter().map(|entry| entry.host.to_string()).collect();
    assert_eq!(names, ["N7.a.org", "n1"]);
    assert_eq!(run.hosts.fleet.hosts.len(), 1, "only the chosen hosts matter");
    let text = resolve("--hostfile hosts --host n9 prog").expect_err("no such host").to_string();
    assert!(text.contains("'--host n9' is not in the hostfile 'hosts'"), "{text}");

    write("# nothing\n");
    let text = resolve("--hostfile hosts prog").expect_err("no host").to_string();
    assert!(text.contains("names no host"), "{text}");
    let text = resolve("--hostfile nope prog").expect_err("no file").to_string();
    assert!(text.starts_with("cannot read the hostfile 'nope': No such file"), "{text}");
    std::fs::write(dir.path().join("hosts"), b"localhost\nlocalhost # \xff\n").expect("a file");
    let text = resolve("--hostfile hosts prog").expect_err("no text").to_string();
    assert!(text.starts_with("hosts:2:13: expected text in UTF-8, found \"\\xff\""), "{text}");
    for (options, what) in [
        ("--hostfile /dev/zero", "hostfile"),
        ("--map-by seq:file=/dev/zero", "sequence"),
        ("--env-file /dev/zero", "environment file"),
    ] {
        let text = resolve(&format!("{options} prog")).expect_err("no end").to_string();
        let expected = format!("cannot read the {what} '/dev/zero': it has more than 32 MiB");
        assert!(text.starts_with(&expected), "{text}");
    }
}

#[test]
fn map_files_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("ranks"), "rank 0=localhost slot=0\nrank 1=n1 slot=1\n").expect("a file");
    let run = resolve_in(dir.path(), "--map-by rankfile:file=ranks prog").expect("a rankfile");
    let rankfile = run.request.policy.rankfile.expect("its contents");
    assert!(rankfile.ranks.values().all(|entry| entry.host == Host::Name("n1".into())));
    let text = resolve_in(dir.path(), "--map-by seq:file=nope prog").expect_err("no file").to_string();
    assert!(text.contains("cannot read the sequence 'nope'"), "{text}");
}
