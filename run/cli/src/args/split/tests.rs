use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(Into::into).collect()
}

fn run(line: &str) -> RunLine {
    match run_line(words(line)) {
        Ok(line) => line,
        Err(refusal) => panic!("{refusal:?}"),
    }
}

fn refused(line: &str) -> Failure {
    match run_line(words(line)) {
        Err(usage::Refusal::Failure(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn argv(app: &AppArgs) -> String {
    app.argv.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[test]
fn words_after_the_program_belong_to_it() {
    let line = run("-n 2 prog -n 3 --help -x -- --dry-run");
    assert_eq!(line.apps[0].procs, Some(2));
    assert_eq!(argv(&line.apps[0]), "prog -n 3 --help -x -- --dry-run");
    assert!(!line.job.dry_run);
}

#[test]
fn dashes_end_the_options() {
    let line = run("-q -- -odd-name -n 3");
    assert_eq!(argv(&line.apps[0]), "-odd-name -n 3");
    assert!(line.job.quiet);
}

#[test]
fn customary_spellings() {
    for spelling in ["-n 4", "-n4", "-np 4", "--np 4", "--np=4", "-np=4", "-qn4", "-qn 4"] {
        let line = run(&format!("{spelling} prog -np 5"));
        assert_eq!(line.apps[0].procs, Some(4), "{spelling}");
        assert_eq!(argv(&line.apps[0]), "prog -np 5", "{spelling}");
    }
    assert_eq!(run("-wd /tmp prog").apps[0].wdir.as_deref(), Some("/tmp".as_ref()));
    assert_eq!(run("-wdir /tmp prog").apps[0].wdir.as_deref(), Some("/tmp".as_ref()));
}

#[test]
fn long_options_with_one_dash_are_understood_or_refused() {
    let line = run("-host n1,n2 -np 2 -map-by node -oversubscribe prog -host n3");
    assert_eq!((line.apps[0].procs, argv(&line.apps[0])), (Some(2), "prog -host n3".into()));
    assert_eq!(line.apps[0].host, ["n1", "n2"]);
    assert!(line.job.oversubscribe);
    for (typed, nearest) in [
        ("-hots n1 prog", "--host"),
        ("-hostfil f prog", "--hostfile"),
        ("-vh prog", ""),
        ("-h n1 -np 2 prog", "--host"),
    ] {
        let failure = refused(typed);
        assert!(failure.hints[0].contains(nearest), "{typed}: {failure:?}");
    }
}

#[test]
fn hosts_are_named_as_under_mpirun() {
    for typed in ["-H n1,n2 -np 2 prog -H", "-Hn1,n2 -n 2 prog -H", "-hosts n1,n2 -n 2 prog -H"] {
        let line = run(typed);
        assert_eq!(
            (&line.apps[0].host[..], line.apps[0].procs),
            (&["n1".into(), "n2".into()][..], Some(2)),
            "{typed}"
        );
        assert_eq!(argv(&line.apps[0]), "prog -H");
    }
    for typed in ["-machinefile F prog", "--machinefile=F prog", "-n 1 a : -machinefile F prog"] {
        let line = run(typed);
        assert_eq!(line.apps.last().unwrap().hostfile.as_deref(), Some("F".as_ref()), "{typed}");
    }
}

#[test]
fn programs_stand_between_colons() {
    let line = run("--timeout 5 -n 1 -x A=1 first a : -n 2 second : third \\: b \\\\: :x");
    assert_eq!(line.apps.len(), 3);
    assert_eq!(line.apps[0].env, ["A=1"]);
    assert_eq!((line.apps[1].procs, argv(&line.apps[1])), (Some(2), "second".into()));
    assert_eq!((line.apps[2].procs, argv(&line.apps[2])), (None, "third : b \\: :x".into()));
}

#[test]
fn a_missing_program_is_named_by_its_place() {
    assert!(refused(": prog").message.contains("before the first ':'"));
    assert!(refused("prog :").message.contains("after the last ':'"));
    assert!(refused("prog : : prog").message.contains("between ':' number 1 and 2"));
}

#[test]
fn options_of_the_job_stand_before_the_first_program() {
    let failure = refused("-n 1 a : --timeout 5 b");
    assert!(failure.message.contains("--timeout"), "{failure:?}");
    assert!(failure.message.contains("whole job"), "{failure:?}");
    let failure = refused("-n 1 a : --wdri 5 b");
    assert!(failure.hints[0].contains("--wdir"), "{failure:?}");
}

#[test]
fn an_unknown_option_does_not_become_the_program() {
    let failure = refused("--dispaly map prog");
    assert!(failure.message.contains("--dispaly"), "{failure:?}");
    assert!(failure.hints[0].contains("--display"), "{failure:?}");
}
