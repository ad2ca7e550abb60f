//! A starter alone: tests play the agents' output, and check what the starter does.

use phalanx_topo::Topology;

use super::*;
use crate::fleet::{Agent, FarHost};
use crate::hosts::Slots;
use crate::msg::SpawnStep;

struct StartScene {
    starter: Starter,
    now: Time,
    out: Out,
}

impl StartScene {
    /// Each of these agents has so many hosts.
    fn new(agents: &[usize], skip_bad: bool) -> StartScene {
        let hosts: usize = agents.iter().sum();
        let host = |n: usize| FarHost {
            name: format!("n{}", n + 1).into(),
            slots: Slots::Unstated,
            max_slots: None,
        };
        let mut first = 0;
        let agent = |count: &usize| {
            first += count;
            Agent { argv: vec!["agent".into()], hosts: (first - count..first).collect(), labels: *count > 1 }
        };
        let fleet = Fleet {
            agents: agents.iter().map(agent).collect(),
            hosts: (0..hosts).map(host).collect(),
            skip_bad,
            ..Fleet::default()
        };
        let config = NodeConfig::for_test(0, hosts as u32 + 1, Topology::synthetic(1, 1, 1, 1, 1));
        let plan = StartPlan {
            fleet,
            nspace: Nspace::new("agents").unwrap(),
            secret: "secret\n".into(),
            networks: Vec::new(),
            is_system: false,
        };
        let inner = config.size.saturating_sub(2) / config.radix + 1;
        let mut scene =
            StartScene { starter: Starter::new(plan, &config, inner), now: Time::default(), out: Out::new() };
        scene.starter.begin(scene.now, &mut scene.out);
        scene
    }

    fn agent(&self, number: u32) -> ProcId {
        ProcId::new(&self.starter.plan.nspace, Rank(number))
    }

    /// The daemon has joined the others.
    fn up(&mut self, node: u32) {
        self.comes(node, &format!("n{node}"));
    }

    /// The same, on a host with this name of its own. Returns whether it was accepted.
    fn comes(&mut self, node: u32, hostname: &str) -> bool {
        self.starter.on_card(self.now, NodeId(node), &hostname.into(), &mut self.out)
    }

    fn says(&mut self, agent: u32, line: &str) {
        let (proc, line) = (self.agent(agent), format!("{line}\n"));
        self.starter.on_output(self.now, &proc, IofChannel::STDOUT, line.as_bytes(), &mut self.out);
    }

    fn complains(&mut self, agent: u32, line: &str) {
        let (proc, line) = (self.agent(agent), format!("{line}\n"));
        self.starter.on_output(self.now, &proc, IofChannel::STDERR, line.as_bytes(), &mut self.out);
    }

    fn ends(&mut self, agent: u32, code: i32) {
        let proc = self.agent(agent);
        self.starter.on_exited(self.now, &proc, ExitStatus::Code(code), &mut self.out);
        for channel in [IofChannel::STDOUT, IofChannel::STDERR] {
            self.starter.on_output_closed(self.now, &proc, channel, &mut self.out);
        }
    }

    fn wait(&mut self, time: std::time::Duration) {
        self.now = self.now.after(time);
        self.starter.tick(self.now, &mut self.out);
    }

    /// The bytes that an agent was given to read since the last call.
    fn heard(&mut self, agent: u32) -> Vec<u8> {
        let wanted = self.agent(agent);
        let mut heard = Vec::new();
        self.out.retain(|out| match out {
            FromStarter::Effect(Effect::Stdin { proc, data }) if *proc == wanted => {
                heard.extend_from_slice(data);
                false
            }
            _ => true,
        });
        heard
    }

    fn lost(&self) -> Vec<(u32, &str)> {
        let lost = |out| match out {
            &FromStarter::Lost { node, ref why } => Some((node.0, why.as_str())),
            _ => None,
        };
        self.out.iter().filter_map(lost).collect()
    }

    fn failure(&self) -> Option<&str> {
        self.out.iter().find_map(|out| match out {
            FromStarter::Failed { error } => Some(error.as_str()),
            _ => None,
        })
    }
}

fn birth_of(heard: &[u8]) -> Birth {
    let rest = heard.strip_prefix(b"secret\n").expect("the secret comes first");
    Birth::from_bytes(&rest[4..]).expect("a birth")
}

#[test]
fn daemons_hear_the_secret_after_their_greeting() {
    let mut scene = StartScene::new(&[1, 1], false);
    scene.says(0, "Welcome to this machine");
    assert!(scene.heard(0).is_empty());
    scene.says(0, &greeting());
    let birth = birth_of(&scene.heard(0));
    assert_eq!((birth.size, birth.cradles[0].node), (3, NodeId(1)));
    scene.says(0, &reached_at("10.0.0.2:7"));
    let met = scene.heard(0);
    assert_eq!(Others::from_bytes(&met[4..]).unwrap().addresses, [(NodeId(0), "n0".into())]);
    assert!(scene.heard(1).is_empty());
}

#[test]
fn one_command_may_start_many_daemons() {
    let mut scene = StartScene::new(&[3], false);
    scene.says(0, &format!("0: {}", greeting()));
    scene.says(0, &format!("2: {}", greeting()));
    assert!(scene.heard(0).is_empty(), "who else listens is not known");
    scene.says(0, &format!("1: {}", greeting()));
    let nodes: Vec<u32> = birth_of(&scene.heard(0)).cradles.iter().map(|cradle| cradle.node.0).collect();
    assert_eq!(nodes, [1, 2, 3]);
    scene.says(0, &format!("0: {}", reached_at("10.0.0.2:7")));
    // With two children per daemon, node 1 is the only inner one besides the root, so all four get its address.
    assert_eq!(Others::from_bytes(&scene.heard(0)[4..]).unwrap().addresses.len(), 2);
}

#[test]
fn daemons_get_signs_of_life_until_they_know_everything() {
    let mut scene = StartScene::new(&[1], false);
    scene.wait(EACH_ALIVE);
    assert_eq!(scene.heard(0), b"\n");
    scene.says(0, &greeting());
    scene.heard(0);
    scene.wait(EACH_ALIVE);
    assert_eq!(scene.heard(0), [0; 4]);
    scene.says(0, &reached_at("10.0.0.2:7"));
    scene.heard(0);
    scene.wait(EACH_ALIVE);
    assert_eq!(scene.heard(0), []);
}

#[test]
fn an_abandoned_start_names_the_stage_of_each_host() {
    let mut scene = StartScene::new(&[1, 1, 1], false);
    scene.up(1);
    scene.says(1, &greeting());
    scene.wait(EACH_ALIVE);
    scene.starter.stop(scene.now, &mut scene.out);
    let note = scene.out.iter().find_map(|out| match out {
        FromStarter::Note(text) => Some(text.as_str()),
        _ => None,
    });
    let far = "n2: telling the daemon who it is for 1.0 s; n3: starting the daemon for 1.0 s";
    assert_eq!(note, Some(format!("the start was given up; {far}").as_str()));
}

/// An `srun` goes on as long as one of its tasks does.
#[test]
fn daemons_are_lost_that_have_ended_while_their_srun_goes_on() {
    let mut scene = StartScene::new(&[3], false);
    (1..4).for_each(|node| scene.up(node));
    scene.starter.on_booted();
    scene.complains(0, "1: a warning of something else");
    scene.complains(0, "srun: error: n2: task 1: Killed");
    scene.wait(LAST_WORDS);
    // What a daemon happened to write is no reason.
    assert_eq!(scene.lost(), [(2, "its daemon has ended: it was killed by signal 9 (SIGKILL)")]);
}

#[test]
fn a_task_that_does_not_come_up_is_a_bad_host_with_a_reason() {
    let mut scene = StartScene::new(&[2], true);
    scene.complains(0, "srun: error: n2: task 1: Exited with exit code 2");
    scene.complains(0, "1: slurmstepd-n2: error: execve(): /px: No such file or directory");
    scene.says(0, &format!("0: {}", greeting()));
    scene.wait(LAST_WORDS);
    let [(2, why)] = scene.lost()[..] else { panic!("{:?}", scene.lost()) };
    assert!(
        why.starts_with("starting the daemon: slurmstepd-n2: error: execve(): /px: No")
            && why.contains("--px-path")
    );
    birth_of(&scene.heard(0));
}

#[test]
fn a_step_that_was_cancelled_is_said_to_be() {
    let mut scene = StartScene::new(&[2], false);
    (1..3).for_each(|node| scene.up(node));
    scene.starter.on_booted();
    let cancelled = "STEP 1.1 ON n2 CANCELLED AT 2026-11-24T00:08:52 DUE TO TIME LIMIT";
    scene.complains(0, &format!("0: slurmstepd-n2: error: *** {cancelled} ***"));
    scene.complains(0, "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.");
    scene.complains(0, "srun: error: n[1-2]: tasks 0-1: Killed");
    scene.ends(0, 137);
    let why = format!("its daemon has ended: {cancelled}");
    assert_eq!(scene.lost(), [(1, why.as_str()), (2, why.as_str())]);
}

#[test]
fn labels_count_for_a_single_host_too() {
    let mut scene = StartScene::new(&[1], false);
    scene.starter.plan.fleet.agents[0].labels = true;
    scene.says(0, &format!("0: {}", greeting()));
    birth_of(&scene.heard(0));
}

#[test]
fn daemons_wait_for_those_above_them() {
    let mut scene = StartScene::new(&[1, 1, 1], false);
    for agent in 0..3 {
        scene.says(agent, &greeting());
    }
    scene.says(2, &reached_at("10.0.0.4:7"));
    birth_of(&scene.heard(2));
    assert!(scene.heard(2).is_empty(), "node 1 is above node 3");
    scene.ends(0, 1);
    let met = scene.heard(2);
    assert_eq!(Others::from_bytes(&met[4..]).unwrap().addresses.len(), 1);
}

#[test]
fn all_hosts_that_fail_are_named_with_reasons() {
    let mut scene = StartScene::new(&[1, 1, 1], false);
    scene.complains(0, "ssh: connect to host n1 port 22: Connection refused");
    scene.ends(0, 255);
    scene.says(1, "px-daemon 1 0.0.0");
    assert_eq!(scene.failure(), None);
    scene.wait(OTHERS);
    let failure = scene.failure().expect("it has failed");
    assert!(failure.contains("n1: starting the daemon: ssh: connect to host"), "{failure}");
    assert!(failure.contains("n2: starting the daemon: px there is version \"0.0.0\""), "{failure}");
    assert!(!failure.contains("n3:") && failure.contains("--skip-bad-hosts"), "{failure}");
}

#[test]
fn bad_hosts_are_left_out_if_wanted() {
    let mut scene = StartScene::new(&[1, 1], true);
    let failure = SpawnFailure { step: SpawnStep::Exec, subject: "agent".into(), errno: 2 };
    let proc = scene.agent(1);
    scene.starter.on_spawn_failed(scene.now, &proc, &failure, &mut scene.out);
    assert_eq!(scene.lost().iter().map(|(node, _)| *node).collect::<Vec<_>>(), [2]);
    scene.wait(OTHERS);
    assert_eq!(scene.failure(), None);
    assert!(
        scene.out.iter().any(|out| matches!(out, FromStarter::Note(text) if text.contains("n2 is left out")))
    );
}

/// One command starts three daemons, of which the second does not come.
fn without_the_second(skip_bad: bool) -> StartScene {
    let mut scene = StartScene::new(&[3], skip_bad);
    for host in [0, 2] {
        scene.says(0, &format!("{host}: {}", greeting()));
    }
    scene
}

#[test]
fn only_hosts_that_did_not_come_are_to_blame() {
    let mut scene = without_the_second(false);
    scene.complains(0, "srun: error: timeout waiting for task launch, started 2 of 3 tasks");
    scene.ends(0, 1);
    scene.wait(OTHERS);
    let failure = scene.failure().expect("it has failed");
    assert!(
        failure.starts_with("n2: starting the daemon: ") && failure.contains("timeout waiting"),
        "{failure}"
    );
    assert!(!failure.contains("n1: ") && !failure.contains("n3: "), "{failure}");

    // The time of those that wait for it does not count.
    let mut scene = without_the_second(false);
    scene.wait(Limits::default().agent);
    assert_eq!(scene.lost().iter().map(|(node, _)| *node).collect::<Vec<_>>(), [2]);
}

#[test]
fn hosts_that_came_are_started_again_without_the_bad() {
    for ends in [true, false] {
        let mut scene = without_the_second(true);
        match ends {
            true => scene.ends(0, 1),
            false => scene.wait(Limits::default().agent),
        }
        assert_eq!(scene.lost().iter().map(|(node, _)| *node).collect::<Vec<_>>(), [2]);
        for (place, node) in [(0, 1), (1, 3)] {
            scene.says(1, &format!("{place}: {}", greeting()));
            assert!(scene.starter.hosts[node - 1].phase == Phase::Settling);
        }
        let nodes: Vec<u32> = birth_of(&scene.heard(1)).cradles.iter().map(|cradle| cradle.node.0).collect();
        assert_eq!(nodes, [1, 3]);
        assert!(scene.heard(0).iter().all(|byte| *byte == ALIVE_EARLY), "the secret is not for those");
    }
}

#[test]
fn a_phase_that_never_ends_is_named() {
    let mut scene = StartScene::new(&[1], true);
    scene.says(0, &greeting());
    let waiting: Vec<_> = scene.starter.explain().collect();
    assert!(waiting[0].subject == "the daemon of n1 (telling the daemon who it is)", "{waiting:?}");
    scene.wait(Limits::default().agent);
    let (_, why) = scene.lost()[0];
    assert!(why.contains("telling the daemon who it is: nothing has come of it for 60 s"), "{why}");
    let kills =
        |out: &FromStarter| matches!(out, FromStarter::Effect(Effect::Signal { signal: SIGKILL, .. }));
    assert!(scene.out.iter().any(kills));
    assert_eq!(scene.starter.explain().count(), 0);
}

#[test]
fn a_daemon_that_ends_later_is_lost() {
    let mut scene = StartScene::new(&[1], false);
    scene.says(0, &greeting());
    scene.says(0, &reached_at("10.0.0.2:7"));
    scene.up(1);
    scene.starter.on_booted();
    scene.ends(0, 137);
    assert!(scene.lost()[0].1.contains("exit code 137"), "{:?}", scene.lost());
}

#[test]
fn programs_that_never_greet_are_not_px() {
    let mut scene = StartScene::new(&[1, 1], true);
    (0..100_000).for_each(|_| scene.says(0, "yes"));
    assert!(scene.lost()[0].1.contains("not px"), "{:?}", scene.lost());
    scene.says(1, "px 0.0.1");
    scene.ends(1, 2);
    assert!(scene.lost()[1].1.contains("exit code 2, and wrote: px 0.0.1"), "{:?}", scene.lost());
}

#[test]
fn agents_whose_daemons_never_came_up_are_ended_at_once() {
    let mut scene = StartScene::new(&[1], false);
    scene.says(0, &greeting());
    scene.starter.stop(scene.now, &mut scene.out);
    let kills = |out: &FromStarter| matches!(out, FromStarter::Effect(Effect::Signal { .. }));
    assert!(scene.out.iter().any(kills));
}

#[test]
fn agents_end_with_the_dvm_or_are_ended() {
    let mut scene = StartScene::new(&[1, 1], false);
    (1..3).for_each(|node| scene.up(node));
    scene.starter.stop(scene.now, &mut scene.out);
    let ends = |out: &&FromStarter| matches!(out, FromStarter::Effect(Effect::StdinEnd { .. }));
    assert_eq!(scene.out.iter().filter(ends).count(), 2);
    scene.ends(0, 0);
    assert!(!scene.starter.is_over());
    scene.wait(STOP_GRACE);
    let kills = |out: &&FromStarter| matches!(out, FromStarter::Effect(Effect::Signal { .. }));
    assert_eq!(scene.out.iter().filter(kills).count(), 1);
    scene.ends(1, 137);
    assert!(scene.out.iter().any(|out| matches!(out, FromStarter::Over)));
    assert!(scene.lost().is_empty(), "their end was wanted");
}

#[test]
fn only_so_many_are_started_at_a_time() {
    let mut scene = StartScene::new(&[1; 100], false);
    let spawned = |scene: &StartScene| {
        scene.out.iter().filter(|out| matches!(out, FromStarter::Effect(Effect::Spawn(_)))).count()
    };
    assert_eq!(spawned(&scene), MOST_AT_ONCE);
    scene.ends(5, 1);
    assert_eq!(spawned(&scene), MOST_AT_ONCE + 1);
}

#[test]
fn two_names_of_one_host_are_refused() {
    for skip_bad in [false, true] {
        let mut scene = StartScene::new(&[1, 1], skip_bad);
        for agent in 0..2 {
            scene.says(agent, &greeting());
            scene.says(agent, &reached_at(&format!("10.0.0.2:{agent}")));
        }
        assert!(scene.comes(1, "b"));
        assert!(!scene.comes(2, "b"), "it does not count");
        assert!(!scene.comes(2, "b"), "whatever it says");
        let why = "it is the same host as n1: call it by one name";
        assert_eq!(scene.lost(), [(2, why)]);
        scene.wait(OTHERS);
        assert_eq!(scene.failure().is_some_and(|failure| failure.contains(&format!("n2: {why}"))), !skip_bad);
    }
}

#[test]
fn agents_whose_daemons_have_gone_are_ended_soon() {
    let mut scene = StartScene::new(&[1, 2], false);
    (1..4).for_each(|node| scene.up(node));
    scene.starter.on_unlinked(scene.now, NodeId(3));
    scene.starter.stop(scene.now, &mut scene.out);
    let signalled = |scene: &StartScene, with: i32| {
        let end = |out: &FromStarter| match out {
            FromStarter::Effect(Effect::Signal { proc, signal }) if *signal == with => Some(proc.rank.0),
            _ => None,
        };
        scene.out.iter().filter_map(end).collect::<Vec<_>>()
    };
    scene.starter.on_unlinked(scene.now, NodeId(1));
    scene.starter.on_unlinked(scene.now, NodeId(2));
    scene.wait(AGENT_GRACE);
    assert_eq!(signalled(&scene, SIGTERM), [0]);
    scene.starter.on_unlinked(scene.now, NodeId(3));
    scene.wait(AGENT_GRACE);
    assert_eq!(signalled(&scene, SIGTERM), [0, 1]);
    assert_eq!(signalled(&scene, SIGKILL), []);
    scene.wait(DEAF_GRACE);
    assert_eq!(signalled(&scene, SIGKILL), [0, 1]);
}

/// How often it was said that the process may be stopped, since the last time.
fn stills(scene: &mut StartScene) -> usize {
    let before = scene.out.len();
    scene.out.retain(|out| !matches!(out, FromStarter::Still));
    before - scene.out.len()
}

#[test]
fn a_root_that_is_stopped_is_waited_for_and_gives_up_nobody() {
    let hour = std::time::Duration::from_secs(3600);
    let mut scene = StartScene::new(&[1, 1, 1], false);
    scene.says(0, &greeting());
    scene.says(0, &reached_at("10.0.0.2:7"));
    scene.heard(0);
    scene.says(1, &greeting());
    scene.heard(1);
    // The first has received the addresses of the others, and comes.
    scene.starter.stand_still(scene.now, &mut scene.out);
    assert_eq!(
        (scene.heard(0), scene.heard(1), scene.heard(2)),
        (vec![], STANDS.to_vec(), vec![STANDS_EARLY])
    );
    assert_eq!(stills(&mut scene), 0);
    scene.up(1);
    assert_eq!((stills(&mut scene), scene.starter.deadline()), (1, None));
    // What is heard until it is stopped, and after, before anybody has said that it goes on.
    scene.says(2, &greeting());
    scene.wait(hour);
    scene.says(1, &reached_at("10.0.0.3:7"));
    scene.wait(hour);
    assert_eq!((scene.heard(1), scene.heard(2), scene.lost()), (vec![], vec![], vec![]));
    scene.starter.stand_no_longer(scene.now, &mut scene.out);
    let (second, third) = (scene.heard(1), scene.heard(2));
    assert_eq!(birth_of(third.strip_prefix(&[ALIVE_EARLY]).unwrap()).cradles[0].node, NodeId(3));
    assert!(Others::from_bytes(&second.strip_prefix(&ALIVE).unwrap()[4..]).is_ok());
    scene.wait(std::time::Duration::from_secs(1));
    assert_eq!((stills(&mut scene), scene.lost()), (0, vec![]));
    // From now on it counts how long they take.
    scene.wait(hour);
    assert_eq!(scene.lost().len(), 2);
}

#[test]
fn a_daemon_that_does_not_come_holds_up_a_stop_for_a_moment() {
    let mut scene = StartScene::new(&[1], false);
    scene.says(0, &greeting());
    scene.says(0, &reached_at("10.0.0.2:7"));
    scene.starter.stand_still(scene.now, &mut scene.out);
    let due = scene.starter.deadline().unwrap();
    assert_eq!(stills(&mut scene), 0);
    scene.wait(due.since(scene.now));
    assert_eq!(stills(&mut scene), 1);
    // Asked again, because there is more to be said before.
    scene.starter.stand_still(scene.now, &mut scene.out);
    scene.up(1);
    assert_eq!(stills(&mut scene), 1);
}

#[test]
fn daemons_without_links_hint_at_a_firewall() {
    for (lines, hints) in [(2, true), (1, false)] {
        let mut scene = StartScene::new(&[1], false);
        for line in [birth::greeting(), birth::reached_at("10.0.0.2:400")].iter().take(lines) {
            scene.says(0, line);
        }
        scene.says(0, &failed("no ancestor can be reached (daemon 0: 10.0.0.1:3999: no answer within 10 s)"));
        scene.wait(OTHERS);
        let failure = scene.failure().unwrap();
        assert!(failure.contains("10.0.0.1:3999: no answer within 10 s"), "{failure}");
        assert_eq!(failure.contains("\nhint: daemons link to each other"), hints, "{failure}");
    }
}
