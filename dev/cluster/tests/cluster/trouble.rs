//! Hosts that are disconnected or frozen, and bad connections.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;

use phalanx_cluster::{Cluster, Host, Options, Relay, Ssh, Weather, until};

use crate::cluster;

fn reaches(from: &Host, to: &Host) -> bool {
    from.run(&["ssh", "-o", "ConnectTimeout=2", to.name(), "true"]).is_ok()
}

#[test]
fn cut_host_is_not_reached_until_it_rejoins() {
    let cluster = cluster(3);
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let [a, b, c] = [1, 2, 3].map(|number| cluster.host(number));
    assert!(reaches(a, b) && reaches(b, a));
    b.cut().expect("cutting n2 off");
    assert!(!reaches(a, b) && !reaches(b, a) && reaches(a, c));
    let addresses = b.run(&["ip", "-brief", "address", "show", "eth0"]).expect("ip");
    assert!(addresses.contains("10.77.0.2/24") && addresses.contains("fd77::2/64"), "{addresses}");
    b.rejoin().expect("plugging n2 in");
    until("n1 reaches n2 again", || reaches(a, b)).expect("it does");
    until("n2 reaches n1 again", || reaches(b, a)).expect("it does");
}

#[test]
fn host_that_is_cut_from_one_network_is_reached_by_the_other() {
    let program = Some(env!("CARGO_BIN_EXE_cluster").into());
    let options = Options { program, networks: 2, ..Options::new(2) };
    let cluster = Cluster::start_with(&options).expect("a cluster");
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let (a, b) = (cluster.host(1), cluster.host(2));
    let by = |address: IpAddr| {
        let words =
            ["ssh", "-o", "HostKeyAlias=n2", "-o", "ConnectTimeout=2", &address.to_string(), "hostname"];
        a.run(&words).is_ok_and(|name| name == "n2\n")
    };
    let addresses: [IpAddr; 4] =
        [b.ipv4_in(0).into(), b.ipv6_in(0).into(), b.ipv4_in(1).into(), b.ipv6_in(1).into()];
    assert_eq!(addresses.map(by), [true; 4]);
    b.cut_from(0).expect("cutting n2 off");
    assert_eq!(addresses.map(by), [false, false, true, true]);
    b.cut().expect("cutting n2 off");
    assert_eq!(addresses.map(by), [false; 4]);
    b.rejoin().expect("plugging n2 in");
    until("all networks carry again", || addresses.map(by) == [true; 4]).expect("they do");
}

/// As behind a broken switch: an open connection is silent, and continues when the host is back.
#[test]
fn connections_survive_a_short_cut() {
    let cluster = cluster(2);
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let mut ssh = cluster.host(1).command("ssh");
    let mut ssh = ssh.args(["n2", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ssh");
    let (mut to, mut from) = (ssh.stdin.take().expect("a pipe"), ssh.stdout.take().expect("a pipe"));
    let mut byte = [0];
    to.write_all(b"1").expect("writing");
    from.read_exact(&mut byte).expect("reading");
    cluster.host(2).cut().expect("cutting n2 off");
    to.write_all(b"2").expect("writing");
    cluster.host(2).rejoin().expect("plugging n2 in");
    from.read_exact(&mut byte).expect("reading");
    assert_eq!(&byte, b"2");
    drop(to);
    assert!(ssh.wait().expect("it ends").success());
}

#[test]
fn frozen_host_does_nothing_until_thawed() {
    let cluster = cluster(2);
    let host = cluster.host(1);
    let file = host.path("/tmp/count");
    let script = "i=0; while [ ! -e /tmp/stop ]; do i=$((i + 1)); echo $i > /tmp/count; done; exit 5";
    let mut child = host.command("sh").args(["-c", script]).spawn().expect("it runs");
    let count = || fs::read_to_string(&file).unwrap_or_default();
    until("it counts", || !count().is_empty()).expect("it does");
    host.freeze().expect("freezing n1");
    let frozen = host.processes();
    assert!(frozen.len() >= 2, "{frozen:?}");
    for pid in &frozen {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        assert!(stat.contains(") T "), "{stat}");
    }
    let before = count();
    assert!(cluster.host(2).run(&["true"]).is_ok(), "the other host goes on");
    assert_eq!(count(), before);
    fs::write(host.path("/tmp/stop"), "").expect("writing");
    assert!(child.try_wait().expect("asking").is_none());
    host.thaw().expect("thawing n1");
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
}

#[test]
fn relay_stands_between_two_hosts() {
    let cluster = cluster(2);
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let (from, to) = (cluster.host(1), cluster.host(2));
    for (listen, target) in [
        (SocketAddr::from(([127, 0, 0, 1], 2200)), SocketAddr::from((to.ipv4(), 22))),
        ("[::1]:2200".parse().expect("an address"), SocketAddr::from((to.ipv6(), 22))),
    ] {
        let relay = Relay::start(Some(from), listen, target).expect("a relay");
        relay.set(Weather { split: Some(100), ..Weather::default() });
        let address = listen.ip().to_string();
        let ssh = ["ssh", "-o", "HostKeyAlias=n2", "-p", "2200", &address, "hostname"];
        assert_eq!(from.run(&ssh).expect("ssh"), "n2\n");
        assert!(relay.passed() > 1000);
        drop(relay);
        let _ = from.run(&ssh).expect_err("the relay is gone");
    }
}

#[test]
fn frozen_host_ends_with_its_cluster() {
    let cluster: Cluster = cluster(2);
    cluster.host(2).freeze().expect("freezing n2");
    let pids = cluster.host(2).processes();
    assert!(!pids.is_empty());
    drop(cluster);
    until("its processes are gone", || {
        !pids.iter().any(|pid| fs::exists(format!("/proc/{pid}")).unwrap_or(true))
    })
    .expect("they are");
}
