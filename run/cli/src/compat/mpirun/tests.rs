use std::time::Duration;

use super::*;

fn parse_line(line: &str) -> Result<Invocation, Failure> {
    parse_with_file(line, OsStr::new("FILE"))
}

/// The word FILE stands for the path of a file, which may hold blanks.
fn parse_with_file(line: &str, file: &OsStr) -> Result<Invocation, Failure> {
    let word = |word: &str| if word == "FILE" { file.to_owned() } else { word.into() };
    parse("mpirun", line.split_whitespace().map(word).collect(), None)
}

fn run(line: &str) -> RunLine {
    accepted(parse_line(line))
}

fn accepted(asked: Result<Invocation, Failure>) -> RunLine {
    match asked {
        Ok(Invocation::Run(line)) => *line,
        other => panic!("{other:?}"),
    }
}

fn refused(line: &str) -> String {
    refusal(parse_line(line))
}

fn refusal(asked: Result<Invocation, Failure>) -> String {
    match asked {
        Err(failure) => format!("{failure} {}", failure.hints.join(" ")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_are_dialects() {
    assert_eq!(dialect(OsStr::new("/usr/bin/mpirun")), Some("mpirun"));
    assert_eq!(dialect(OsStr::new("mpiexec")), Some("mpiexec"));
    assert_eq!(dialect(OsStr::new("px")), None);
    assert_eq!(dialect(OsStr::new("mpirun.px")), None);
}

#[test]
fn open_mpi_command_lines() {
    let line = run("-np 4 --mca btl tcp,self -x FOO=1 --map-by ppr:2:node --bind-to core --report-bindings \
         --oversubscribe --allow-run-as-root -H a:2,b --tag-output --timestamp-output prog -np 5 --mca x y");
    let app = &line.apps[0];
    assert_eq!(app.procs, Some(4));
    assert_eq!(app.env, ["OMPI_MCA_btl=tcp,self", "FOO=1"]);
    assert_eq!(app.host, ["a:2", "b"]);
    assert_eq!(app.argv, ["prog", "-np", "5", "--mca", "x", "y"]);
    assert_eq!(line.job.map_by.as_deref(), Some("ppr:2:node"));
    assert_eq!(line.job.bind_to.as_deref(), Some("core"));
    assert_eq!(line.job.output, ["tag", "timestamp"]);
    assert_eq!(line.job.display, [Display::Bindings]);
    assert!(line.job.oversubscribe);
}

#[test]
fn programs_may_stand_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("programs");
    let text = "# two programs\n-np 2 -x A=1 first 'one word'\n\n  -n 3 second -np 9\n";
    std::fs::write(&file, text).unwrap();
    for option in ["--app", "-app", "-configfile"] {
        let line =
            accepted(parse_with_file(&format!("-x B=2 --bind-to core {option} FILE"), file.as_os_str()));
        assert_eq!(line.job.bind_to.as_deref(), Some("core"));
        let [first, second] = &line.apps[..] else { panic!("{:?}", line.apps) };
        assert_eq!((first.procs, &first.argv[..]), (Some(2), &["first".into(), "one word".into()][..]));
        assert_eq!(first.env, ["B=2", "A=1"]);
        assert_eq!((second.procs, second.argv.len()), (Some(3), 3));
        assert_eq!(second.env, ["B=2"]);
    }
    for (text, why) in [
        ("# nothing\n", "names no program"),
        ("-n 2\n", "line 1"),
        ("a\n'b\n", "line 2"),
        ("--app x\n", "line 1"),
    ] {
        std::fs::write(&file, text).unwrap();
        assert!(refusal(parse_with_file("--app FILE", file.as_os_str())).contains(why), "{text}");
    }
    assert!(refused("--app /no/such/file").contains("/no/such/file"));
    assert!(refused("--app FILE prog").contains("both name"));
}

#[test]
fn one_dash_or_two_and_an_equals_sign() {
    for spelling in ["-bind-to none", "--bind-to none", "--bind-to=none", "-bind-to=none"] {
        assert_eq!(run(&format!("{spelling} a")).job.bind_to.as_deref(), Some("none"));
    }
}

#[test]
fn mpich_command_lines() {
    let line = run("-genv A 1 -env B 2 -n 2 -wdir /tmp first : -env A 3 -n 1 second -genv no");
    assert_eq!(line.apps[0].env, ["A=1", "B=2"]);
    assert_eq!(line.apps[0].wdir.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(line.apps[1].env, ["A=1", "A=3"]);
    assert_eq!(line.apps[1].argv, ["second", "-genv", "no"]);
    assert_eq!(run("-ppn 2 -prepend-rank a").job.map_by.as_deref(), Some("ppr:2:node"));
}

#[test]
fn qualifiers_join_the_policy() {
    assert_eq!(run("--use-hwthread-cpus a").job.map_by.as_deref(), Some(":hwtcpus"));
    let line = run("--map-by core --use-hwthread-cpus --nooversubscribe a");
    assert_eq!(line.job.map_by.as_deref(), Some("core:hwtcpus:nooversubscribe"));
    assert!(refused("--bynode --bycore a").contains("contradict"));
}

#[test]
fn hostfiles() {
    let line = run("--default-hostfile d -n 1 a : -machinefile m -n 1 b");
    assert_eq!(line.apps[0].hostfile.as_deref(), Some(Path::new("d")));
    assert_eq!(line.apps[1].hostfile.as_deref(), Some(Path::new("m")));
}

#[test]
fn daemons_are_started_as_these_launchers_say() {
    let args = [
        "--prtemca",
        "plm_ssh_agent",
        "ssh -p 22 : rsh",
        "--mca",
        "oob_tcp_if_include",
        "eth0,10.0.0.0/8",
        "a",
    ];
    let line = match parse("mpirun", args.map(Into::into).into(), None) {
        Ok(Invocation::Run(line)) => *line,
        other => panic!("{other:?}"),
    };
    assert_eq!(line.job.fleet.launch_agent.as_deref(), Some("ssh -p 22"));
    assert_eq!(line.job.fleet.network.len(), 2);
    assert!(line.apps[0].env.is_empty());
    let fleet = run("-launcher-exec /opt/my-ssh -iface ib0 a").job.fleet;
    assert_eq!((fleet.launch_agent.as_deref(), fleet.network.len()), (Some("/opt/my-ssh"), 1));
    assert!(refused("--prtemca rmaps_x 1 a").contains("no parameter 'rmaps_x'"));
}

#[test]
fn unknown_words_are_refused() {
    assert!(refused("--bnid-to core a").contains("'--bind-to'"));
    assert!(refused("-np").contains("needs N"));
    assert!(refused("--mca btl").contains("needs VALUE"));
    assert!(refused("-np 0 a").contains("at least 1"));
    assert!(refused("--tag-output=1 a").contains("takes no value"));
    assert!(refused("-n 2").contains("no program"));
    assert!(refused("-n 2 a : -n 2").contains("program number 2"));
    assert!(refused("--display mop a").contains("mop"));
}

#[test]
fn the_environment_may_say_the_timeout() {
    let parse = |timeout: &str| parse("mpiexec", vec!["a".into()], Some(OsStr::new(timeout)));
    match parse("7") {
        Ok(Invocation::Run(line)) => assert_eq!(line.job.timeout, Some(Duration::from_secs(7))),
        other => panic!("{other:?}"),
    }
    assert!(parse("soon").expect_err("no number").message.contains("MPIEXEC_TIMEOUT"));
}

#[test]
fn every_option_is_in_the_help_and_no_name_has_two_meanings() {
    let help = help("mpirun");
    let mut names: Vec<&str> = OPTIONS.iter().flat_map(|known| known.names).copied().collect();
    assert!(names.iter().all(|name| help.contains(&format!("-{name}"))));
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    let guide = include_str!("../../../../../docs/guide/mpirun.md");
    for known in OPTIONS.iter().filter(|known| !["help", "version"].contains(&known.names[0])) {
        let is_there =
            |name: &str| guide.contains(&format!("-{name}`")) || guide.contains(&format!("-{name} "));
        assert!(known.names.iter().any(|name| is_there(name)), "{:?} is not in the guide", known.names);
    }
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}
