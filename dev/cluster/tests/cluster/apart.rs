//! What hosts keep apart, and how they reach each other.

use std::fs;
use std::path::Path;

use phalanx_cluster::Ssh;

use crate::cluster;

#[test]
fn hosts_have_their_own_names_addresses_and_files() {
    let cluster = cluster(3);
    for (number, host) in (1..).zip(cluster.hosts()) {
        let run = |words: &[&str]| host.run(words).expect("it runs");
        assert_eq!(run(&["hostname"]), format!("n{number}\n"));
        assert_eq!(run(&["cat", "/etc/hostname"]), format!("n{number}\n"));
        let addresses = run(&["ip", "-brief", "address", "show", "eth0"]);
        assert!(addresses.contains(&format!("10.77.0.{number}/24")), "{addresses}");
        assert!(addresses.contains(&format!("fd77::{number}/64")), "{addresses}");
        for other in 1..=3 {
            assert!(
                run(&["getent", "ahostsv4", &format!("n{other}")]).contains(&format!("10.77.0.{other} "))
            );
        }
        for place in ["/tmp", "/dev/shm", "/run"] {
            let _ = run(&["touch", &format!("{place}/of-n{number}")]);
        }
    }
    for (number, host) in (1..).zip(cluster.hosts()) {
        for place in ["/tmp", "/dev/shm", "/run"] {
            let listed = host.run(&["ls", place]).expect("it runs");
            let marked: Vec<&str> = listed.lines().filter(|name| name.starts_with("of-")).collect();
            assert_eq!(marked, [format!("of-n{number}")], "{place}");
            assert!(host.path(&format!("{place}/of-n{number}")).exists());
            assert!(!Path::new(&format!("{place}/of-n{number}")).exists());
        }
    }
}

#[test]
fn hosts_see_their_own_processes_only() {
    let cluster = cluster(2);
    let mut sleeper = cluster.host(1).command("sleep").arg("1234").spawn().expect("sleep");
    let seen = |number| cluster.host(number).run(&["ps", "-eo", "args"]).expect("ps");
    phalanx_cluster::until("it runs", || seen(1).contains("sleep 1234")).expect("it does");
    assert!(!seen(2).contains("sleep"), "{}", seen(2));
    let first = cluster.host(2).run(&["cat", "/proc/1/cmdline"]).expect("cat");
    assert!(first.contains("cluster\0role-host\0"), "{first}");
    sleeper.kill().expect("killing it");
    let _ = sleeper.wait();
}

#[test]
fn ssh_goes_from_every_host_to_every_other() {
    let cluster = cluster(3);
    let _ssh = Ssh::start(&cluster).expect("sshds");
    for from in cluster.hosts() {
        for to in cluster.hosts() {
            for address in [to.name().to_owned(), to.ipv4().to_string(), to.ipv6().to_string()] {
                let said = from.run(&["ssh", &address, "hostname"]).expect("ssh");
                assert_eq!(said, format!("{}\n", to.name()), "from {} to {address}", from.name());
            }
        }
    }
}

#[test]
fn files_of_the_users_shell_are_not_read() {
    let home = std::env::home_dir().expect("a home").join(".bashrc");
    let had_none = !home.exists();
    if had_none {
        std::fs::write(&home, "echo from the file\n").expect("writing it");
    }
    let cluster = cluster(1);
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let said = cluster.host(1).run(&["ssh", "n1", "wc -c <~/.bashrc"]);
    if had_none {
        std::fs::remove_file(&home).expect("removing it");
    }
    assert_eq!(said.expect("ssh"), "0\n");
}

#[test]
fn sshd_lets_nobody_in_without_the_clusters_key() {
    let cluster = cluster(2);
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let (first, second) = (cluster.host(1), cluster.host(2));
    let _ = first.run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/tmp/other"]).expect("a key");
    let refused = first.run(&[
        "ssh",
        "-F",
        "none",
        "-i",
        "/tmp/other",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "n2",
        "hostname",
    ]);
    let why = format!("{:#}", refused.expect_err("the key is a stranger's"));
    assert!(why.contains("Permission denied (publickey)"), "{why}");
    // A host with another key must not be trusted.
    let _ = second.run(&["rm", "/etc/ssh/host_key"]).expect("rm");
    let _ = second
        .run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/host_key"])
        .expect("a key");
    let mut other = second.command("/usr/sbin/sshd").args(["-D", "-e", "-p", "2222"]).spawn().expect("sshd");
    let mut why = String::new();
    phalanx_cluster::until("it answers", || {
        let refused = first.run(&["ssh", "-o", "HostKeyAlias=n2", "-p", "2222", "n2", "hostname"]);
        why = format!("{:#}", refused.expect_err("the host has another key"));
        !why.contains("Connection refused")
    })
    .expect("it does");
    assert!(why.contains("Host key verification failed"), "{why}");
    let _ = other.kill();
    let _ = other.wait();
}

/// The user's keys and configuration are neither visible on the hosts nor changed.
#[test]
fn own_ssh_files_stay_as_they_are() {
    let place = std::env::home_dir().expect("a home").join(".ssh");
    let listed = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries
            .map(|entry| (entry.path(), entry.metadata().and_then(|meta| meta.modified()).ok()))
            .collect();
        all.sort();
        all
    };
    let before = [listed(&place), listed(Path::new("/etc/ssh"))];
    let cluster = cluster(2);
    let _ssh = Ssh::start(&cluster).expect("sshds");
    let _ = cluster.host(1).run(&["ssh", "n2", "true"]).expect("ssh");
    assert!(listed(&cluster.host(1).path(place.to_str().expect("UTF-8"))).is_empty());
    assert!(before == [listed(&place), listed(Path::new("/etc/ssh"))]);
}
