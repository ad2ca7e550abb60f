//! Links between daemons over real interfaces of several hosts. (Hostile peers and bad networks are tested beside the code.)

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use phalanx_cluster::{Cluster, Host, Options};
use phalanx_dvm::NodeId;
use phalanx_node::block_on;
use phalanx_node::link::{
    Candidates, LinkEvent, LinkLimits, Links, Network, Secret, choose_addresses, own_addresses,
};

fn cluster(networks: usize) -> Cluster {
    Cluster::start_with(&Options { networks, ..Options::new(2) }).expect("a cluster")
}

/// Daemon 0, on a host: it sends its addresses in these networks to `tell`, and echoes data until the link ends.
fn echo(host: &Host, networks: &[&str], tell: &Sender<Candidates>) {
    host.enter_network().expect("entering the network");
    let wanted: Vec<Network> = networks.iter().map(|text| text.parse().expect("a network")).collect();
    let addresses = choose_addresses(&own_addresses().expect("addresses"), &wanted).expect("some of them");
    let body = async {
        let (mut links, mut events) = Links::new("dvm", NodeId(0), secret(), LinkLimits::default());
        tell.send(links.listen(&addresses).expect("listening")).expect("the test goes on");
        while let Some(event) = events.next().await {
            match event {
                LinkEvent::Bytes { peer, data } => {
                    links.taken(peer, data.len());
                    links.send(peer, data).expect("a link");
                }
                LinkEvent::Down { .. } => return,
                LinkEvent::Up { .. }
                | LinkEvent::Acked { .. }
                | LinkEvent::Room { .. }
                | LinkEvent::Refused { .. } => {}
            }
        }
    };
    block_on(body).expect("an event loop");
}

/// Daemon 1, on a host: it calls daemon 0, reports the address that has answered, and sends each word and waits for its echo.
fn caller(host: &Host, at: Candidates, answered: &Sender<SocketAddr>, words: &Receiver<&'static str>) {
    host.enter_network().expect("entering the network");
    let body = async {
        let (mut links, mut events) = Links::new("dvm", NodeId(1), secret(), LinkLimits::default());
        links.call(NodeId(0), at);
        match events.next().await {
            Some(LinkEvent::Up { at, .. }) => answered.send(at).expect("the test goes on"),
            other => panic!("{other:?}"),
        }
        // The test waits for each word, so nothing else happens on this thread in the meantime.
        while let Ok(word) = words.recv() {
            links.send(NodeId(0), word.as_bytes().to_vec()).expect("a link");
            let mut heard = Vec::new();
            while heard.len() < word.len() {
                match events.next().await {
                    Some(LinkEvent::Bytes { peer, data }) => {
                        links.taken(peer, data.len());
                        heard.extend(data);
                    }
                    // Nothing comes for a while.
                    Some(LinkEvent::Acked { .. }) => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(heard, word.as_bytes());
            answered.send(SocketAddr::from(([0; 4], 0))).expect("the test goes on");
        }
    };
    block_on(body).expect("an event loop");
}

/// Makes a link from n2 to n1. `between` gets the addresses of n1; `then` runs when the link is up, with the address that has
/// answered, and with a function that sends words there and back.
fn linked(
    cluster: &Cluster,
    networks: &[&str],
    between: impl FnOnce(&Candidates),
    then: impl FnOnce(SocketAddr, &dyn Fn(&'static str)),
) {
    thread::scope(|scope| {
        let (tell, told) = channel();
        scope.spawn(move || echo(cluster.host(1), networks, &tell));
        let at = told.recv().expect("n1 listens");
        between(&at);
        let ((answered, answers), (say, words)) = (channel(), channel());
        scope.spawn(move || caller(cluster.host(2), at, &answered, &words));
        let at = answers.recv().expect("n1 answers");
        then(at, &|word| {
            say.send(word).expect("n2 is there");
            let _ = answers.recv().expect("the word comes back");
        });
        drop(say);
    });
}

fn secret() -> Secret {
    Secret::from([9; 32])
}

fn addresses(candidates: &Candidates) -> Vec<IpAddr> {
    let parse = |word: &str| word.parse::<SocketAddr>().expect("an address").ip();
    candidates.to_string().split(',').map(parse).collect()
}

#[test]
fn interface_that_answers_carries_the_link() {
    let cluster = cluster(2);
    let host = cluster.host(1);
    let both_of_second: [IpAddr; 2] = [host.ipv4_in(1).into(), host.ipv6_in(1).into()];
    linked(
        &cluster,
        &[],
        |at| {
            let mut all: Vec<IpAddr> = [host.ipv4().into(), host.ipv6().into()].into();
            all.extend(both_of_second);
            all.sort_unstable();
            let mut offered = addresses(at);
            offered.sort_unstable();
            assert_eq!(offered, all);
            host.cut_from(0).expect("cutting n1 off");
        },
        |at, echo| {
            assert!(both_of_second.contains(&at.ip()), "{at}");
            echo("over the other interface");
        },
    );
}

#[test]
fn link_stays_in_the_network_that_was_named() {
    let cluster = cluster(2);
    let host = cluster.host(1);
    for (network, wanted) in [
        ("10.77.1.0/24", vec![IpAddr::from(host.ipv4_in(1))]),
        ("fd77::/64", vec![host.ipv6_in(0).into()]),
        ("eth1", vec![host.ipv4_in(1).into(), host.ipv6_in(1).into()]),
    ] {
        let offered = |at: &Candidates| assert_eq!(addresses(at), wanted, "{network}");
        linked(&cluster, &[network], offered, |at, echo| {
            assert!(wanted.contains(&at.ip()), "{at}");
            echo("within");
        });
    }
}

/// Others decide whether a silent daemon is lost: a link survives a short cut.
#[test]
fn link_goes_on_after_a_short_cut() {
    let cluster = cluster(1);
    let nothing = |_: &Candidates| {};
    linked(&cluster, &[], nothing, |_, echo| {
        echo("before");
        cluster.host(1).cut().expect("cutting n1 off");
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(std::time::Duration::from_millis(300));
                cluster.host(1).rejoin().expect("plugging n1 in");
            });
            echo("across the cut");
        });
        echo("after");
    });
}
