use phalanx_dvm::Agent;

use super::*;
use crate::args::split;
use crate::resolve;

/// On host n1, with this environment.
fn here(env: &[(&str, &str)]) -> Here {
    Here {
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: "/work".into(),
        hostname: "n1".into(),
        px: Some("/opt/bin/px".into()),
        is_in_step: || true,
        addresses: || vec!["10.77.0.1".parse().expect("an address")],
    }
}

fn resolve_at(here: &Here, line: &str) -> Result<resolve::Run, Failure> {
    let words = line.split_whitespace().map(Into::into).collect();
    let line = split::run_line(words).unwrap_or_else(|refusal| panic!("{line}: {refusal:?}"));
    resolve::run(line, here)
}

fn hosts_at(here: &Here, line: &str) -> Hosts {
    resolve_at(here, line).unwrap_or_else(|failure| panic!("{line}: {failure}")).hosts
}

fn hosts(line: &str) -> Hosts {
    hosts_at(&here(&[]), line)
}

fn refused_at(here: &Here, line: &str) -> String {
    match resolve_at(here, line) {
        Err(failure) => format!("{failure} | {}", failure.hints.join(" ")),
        Ok(run) => panic!("{line}: {run:?}"),
    }
}

/// This host if it takes ranks, and the others, with their slots: `n1 a:2 b:4/8`.
fn shown(hosts: &Hosts) -> String {
    let own = hosts.takes_ranks.then(|| show("n1", hosts.slots, hosts.max_slots));
    let others = hosts.fleet.hosts.iter().map(|host| show(&host.name, host.slots, host.max_slots));
    own.into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

fn show(name: &str, slots: Slots, most: Option<u32>) -> String {
    let slots = match slots {
        Slots::Unstated => String::new(),
        Slots::Mentioned(times) => format!(":*{times}"),
        Slots::Stated(slots) => format!(":{slots}"),
    };
    format!("{name}{slots}{}", most.map_or(String::new(), |most| format!("/{most}")))
}

fn argv(agent: &Agent) -> String {
    agent.argv.iter().map(phalanx_wire::Text::to_string_lossy).collect::<Vec<_>>().join(" ")
}

const SLURM: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "77"),
    ("SLURM_JOB_NODELIST", "n[1-3]"),
    ("SLURM_TASKS_PER_NODE", "2(x2),1"),
    ("SLURM_NTASKS_PER_NODE", "2"),
];

#[test]
fn without_names_there_is_only_this_host() {
    let hosts = hosts("prog");
    assert_eq!(shown(&hosts), "n1");
    assert!(hosts.fleet.agents.is_empty() && hosts.fleet.env.is_empty());
}

#[test]
fn other_hosts_are_numbered_as_they_are_first_named() {
    assert_eq!(shown(&hosts("--host b:2,a prog : --host c,A:3 prog")), "b:2 a:3 c");
    assert_eq!(shown(&hosts("--host a,a,b:4 prog")), "a b:4");
    assert_eq!(shown(&hosts("--host b,localhost:2 prog")), "n1:2 b");
    assert_eq!(shown(&hosts("--host n[2-4]:2 prog : prog")), "n2:2 n3:2 n4:2");
}

#[test]
fn one_host_has_one_name() {
    let run = resolve_at(&here(&[]), "--host b:2,B.a.org:3,10.0.0.2 prog : --host B prog").expect("hosts");
    assert_eq!(shown(&run.hosts), "b:5 10.0.0.2");
    assert_eq!(run.request.apps[1].hosts[0].host, Host::Name("b".into()));
    let run = resolve_at(&here(&[]), "--host b.a.org,b.b.org,b prog").expect("hosts");
    assert_eq!(shown(&run.hosts), "b.a.org b.b.org");
}

#[test]
fn files_of_placements_name_hosts() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = Here { cwd: dir.path().to_path_buf(), ..here(&[]) };
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a file");
    write("seq", "b\nc\nlocalhost\nb\n");
    write("ranks", "rank 0=c slot=0\nrank 1=B slot=0\n");
    write("hosts", "d slots=2 max_slots=4\nc slots=1\n");
    assert_eq!(shown(&hosts_at(&here, "--map-by seq:file=seq prog")), "n1 b c");
    assert_eq!(shown(&hosts_at(&here, "-n 2 --map-by rankfile:file=ranks prog")), "c B");
    assert_eq!(shown(&hosts_at(&here, "--hostfile hosts --map-by seq:file=seq prog")), "n1 d:2/4 c:1 b");
}

/// As with mpirun and prterun.
#[test]
fn hosts_of_a_file_are_chosen_with_numbers_of_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = Here { cwd: dir.path().to_path_buf(), ..here(&[]) };
    std::fs::write(dir.path().join("hosts"), "b slots=3\nC.a.org slots=2 max_slots=4 user=me\nd\n")
        .expect("a file");
    for (host, fleet, of_job) in [
        ("c,B", "C.a.org:2/4 b:3", "C.a.org:*1/4 b:*1"),
        ("b:2", "b:3", "b:2"),
        ("b:5,b", "b:6", "b:6"),
        ("b:*", "b", "b"),
        ("d,d", "d", "d:*2"),
    ] {
        let run = resolve_at(&here, &format!("--hostfile hosts --host {host} prog")).expect("hosts");
        let entries = run.request.apps[0].hosts.iter();
        let shown_of_job: Vec<String> =
            entries.map(|entry| show(&entry.host.to_string(), entry.slots, entry.max_slots)).collect();
        assert_eq!(
            (shown(&run.hosts), shown_of_job.join(" ")),
            (fleet.to_owned(), of_job.to_owned()),
            "{host}"
        );
    }
    assert!(argv(&hosts_at(&here, "--hostfile hosts --host c prog").fleet.agents[0]).contains("me@C.a.org"));
}

#[test]
fn ssh_is_the_usual_agent() {
    let hosts = hosts_at(&here(&[("PMIX_RANK", "3"), ("HOME", "/root")]), "--host b,bob@c prog");
    let agents = &hosts.fleet.agents;
    assert_eq!(argv(&agents[0]), "ssh -x -T -o BatchMode=yes -- b exec '/opt/bin/px' daemon");
    assert_eq!(argv(&agents[1]), "ssh -x -T -o BatchMode=yes -- bob@c exec '/opt/bin/px' daemon");
    assert_eq!((&agents[0].hosts[..], &agents[1].hosts[..]), (&[0][..], &[1][..]));
    assert_eq!(hosts.fleet.env, ["HOME=/root"]);
}

#[test]
fn a_start_may_take_as_long_as_the_user_says() {
    let limits = |line: &str| hosts(line).limits();
    assert_eq!(limits("--host b prog"), Limits::default());
    let short = limits("--start-timeout 5 --host b prog");
    assert_eq!((short.agent, short.boot), (Duration::from_secs(5), Limits::default().boot));
    let long = limits("--start-timeout 5m --host b prog");
    assert_eq!((long.agent, long.boot), (Duration::from_secs(300), Duration::from_secs(900)));
}

#[test]
fn options_about_other_hosts_are_kept() {
    let hosts =
        hosts("--network 10.1.0.0/16 --network eth0 --skip-bad-hosts --px-path /usr/bin/px --host b prog");
    assert_eq!(hosts.networks.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.1.0.0/16", "eth0"]);
    assert!(hosts.fleet.skip_bad);
    assert!(argv(&hosts.fleet.agents[0]).ends_with("exec '/usr/bin/px' daemon"));
    for line in ["--px-path bin/px --host b prog", "--px-path px prog"] {
        let text = refused_at(&here(&[]), line);
        assert!(text.contains("is not an absolute path"), "{text}");
    }
}

#[test]
fn this_host_has_no_other_account() {
    let text = refused_at(&here(&[]), "--host nobody@localhost prog");
    assert!(text.starts_with("'nobody@n1' (--host) is this host, where px runs ranks under"), "{text}");
}

#[test]
fn places_are_those_of_hosts_that_are_there() {
    assert_eq!(shown(&hosts("--host a,b prog : --host +n1 prog")), "a b");
    assert_eq!(shown(&hosts("--host +n0 prog")), "n1");
    let text = refused_at(&here(&[]), "--host a,b prog : --host +n2 prog");
    assert!(text.starts_with("'--host +n2': the command line names 2 hosts"), "{text}");
    assert!(refused_at(&here(&SLURM), "--host +n3 prog").contains("the allocation has 3 hosts"));
}

#[test]
fn hosts_and_slots_are_the_allocations() {
    let here = here(&SLURM);
    assert_eq!(shown(&hosts_at(&here, "prog")), "n1:2 n2:2 n3:1");
    assert_eq!(shown(&hosts_at(&here, "--host n3:4,N2.a.org prog")), "n2:2 n3:1");
    assert_eq!(shown(&hosts_at(&here, "--host n3 prog : prog")), "n1:2 n2:2 n3:1");
    assert_eq!(shown(&hosts_at(&here, "--host +n1 prog")), "n1:2 n2:2 n3:1");
    assert_eq!(shown(&hosts_at(&here, "--host localhost prog")), "n1:2");
    let text = refused_at(&here, "--host n3,n4 prog");
    let expected = "host 'n4' (--host) is not in the allocation | SLURM_JOB_NODELIST names n1, n2, n3";
    assert_eq!(text, expected);
}

#[test]
fn px_may_be_outside_its_allocation() {
    let here = Here { hostname: "login".into(), ..here(&SLURM) };
    let hosts = hosts_at(&here, "prog");
    assert!(!hosts.takes_ranks);
    assert_eq!(hosts.fleet.hosts.len(), 3);
    assert!(refused_at(&here, "--host localhost prog").contains("host 'login' (--host) is not in the"));
}

#[test]
fn hosts_of_a_dvm_are_named_or_allocated() {
    let start = |here: &Here, words: &[&str]| {
        let line = ["px", "dvm", "start"].iter().chain(words);
        let px = <crate::args::Px as clap::Parser>::try_parse_from(line).expect("a command line");
        let crate::args::Command::Dvm(args) = px.command else { panic!("px dvm") };
        let crate::args::dvm::DvmCommand::Start(args) = args.command else { panic!("px dvm start") };
        of_dvm(&args, here)
    };
    let none = here(&[]);
    assert_eq!(shown(&start(&none, &[]).expect("this host")), "n1");
    let words = ["--host", "b:4,c", "--launch-agent", "docker exec -i {host}"];
    let hosts = start(&none, &words).expect("two hosts");
    assert_eq!(shown(&hosts), "b:4 c");
    assert_eq!(argv(&hosts.fleet.agents[1]), "docker exec -i c /opt/bin/px daemon");
    assert_eq!(shown(&start(&here(&SLURM), &[]).expect("an allocation")), "n1:2 n2:2 n3:1");
    assert!(start(&here(&SLURM), &["--host", "n7"]).is_err());
}

#[test]
fn a_running_dvm_knows_its_hosts_itself() {
    let run = resolve_at(&here(&SLURM), "--system --host n9:2,localhost prog").expect("names");
    let names: Vec<String> = run.request.apps[0].hosts.iter().map(|entry| entry.host.to_string()).collect();
    assert_eq!(names, ["n9", "n1"]);
    assert_eq!(shown(&run.hosts), "n1");
    let text = refused_at(&here(&[]), "--system --launch-agent ssh prog");
    assert!(text.contains("'--launch-agent' cannot be used in a DVM that is already running"), "{text}");
}

#[test]
fn batch_systems_have_agents_of_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["srun", "blaunch", "pbsdsh"] {
        let path = dir.path().join(name);
        std::fs::write(&path, "").expect("a file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    }
    let bin = dir.path().display().to_string();
    let nodes = dir.path().join("nodes").display().to_string();
    std::fs::write(&nodes, "n1\nn2\nn2\n").expect("a file");
    let agents = |variables: &[(&str, &str)], line: &str| {
        let path = [("PATH", bin.as_str())];
        hosts_at(&here(&[variables, &path[..]].concat()), line).fleet
    };
    let slurm = agents(&SLURM, "--host n3,n2 prog");
    assert_eq!(slurm.agents.len(), 1);
    let expected =
        "srun --jobid=77 --nodes={count} --ntasks={count} --nodelist={hosts} --distribution=arbitrary";
    let command = argv(&slurm.agents[0]);
    assert!(command.starts_with(expected) && command.ends_with(" /opt/bin/px daemon"), "{command}");
    assert_eq!(slurm.agents[0].hosts, [0, 1]);
    assert_eq!(slurm.env, [format!("PATH={bin}").as_str(), "SLURM_OVERLAP=1"]);

    // A px that no step has begun: its ranks on this host belong to the step, too.
    let path: Vec<_> = SLURM.iter().copied().chain([("PATH", bin.as_str())]).collect();
    let outside = Here { is_in_step: || false, ..here(&path) };
    let hosts = hosts_at(&outside, "--host n3,n1:1 prog");
    assert_eq!((shown(&hosts).as_str(), hosts.takes_ranks), ("n1:2 n3:1", false));
    assert_eq!(hosts.fleet.agents[0].hosts, [0, 1]);
    assert!(hosts_at(&outside, "--launch-agent rsh prog").takes_ranks);

    let lsf = agents(&[("LSB_MCPU_HOSTS", "n1 2 n2 4")], "prog");
    assert_eq!(argv(&lsf.agents[0]), "blaunch n2 '/opt/bin/px' daemon");
    let pbs = agents(&[("PBS_NODEFILE", &nodes)], "prog");
    assert!(argv(&pbs.agents[0]).starts_with("ssh "));
    let own = agents(&SLURM, "--launch-agent rsh prog");
    assert_eq!(
        own.agents.iter().map(argv).collect::<Vec<_>>(),
        ["rsh n2 '/opt/bin/px' daemon", "rsh n3 '/opt/bin/px' daemon"]
    );
    assert!(own.env.contains(&"SLURM_NTASKS_PER_NODE=2".into()));

    // Without srun, ssh is used.
    let hosts = hosts_at(&here(&SLURM), "prog");
    assert_eq!(hosts.fleet.agents.len(), 2);
    assert!(argv(&hosts.fleet.agents[0]).starts_with("ssh "));
    let with_path: Vec<_> = SLURM.iter().copied().chain([("PATH", bin.as_str())]).collect();
    let text = refused_at(&here(&with_path), "--host bob@n2 prog");
    assert!(text.starts_with("'bob@n2': the batch system starts daemons under your own account"), "{text}");
}
