//! Daemons and strangers on the loopback interface.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use phalanx_dvm::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;

const PATIENCE: Duration = Duration::from_secs(120);
const SECRET: [u8; 32] = [7; 32];
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A daemon under the control of its test.
struct Daemon {
    links: Links,
    events: RefCell<LinkEvents>,
    /// Where others call it.
    at: Candidates,
}

impl Daemon {
    async fn new(me: u32) -> Daemon {
        Daemon::with(me, "dvm", SECRET, LinkLimits::default()).await
    }

    async fn with(me: u32, dvm: &str, secret: [u8; 32], limits: LinkLimits) -> Daemon {
        let (mut links, events) = Links::new(dvm, NodeId(me), secret.into(), limits);
        let at = links.listen(&[V4]).unwrap();
        Daemon { links, events: RefCell::new(events), at }
    }

    /// The next event other than what is noticed of a root in silence.
    async fn next(&self) -> LinkEvent {
        loop {
            let event = std::future::poll_fn(|cx| pin!(self.events.borrow_mut().next()).poll(cx));
            match timeout(PATIENCE, event).await.expect("something happens").expect("the links are there") {
                LinkEvent::Acked { .. } => {}
                other => return other,
            }
        }
    }

    async fn up(&self) -> NodeId {
        match self.next().await {
            LinkEvent::Up { peer, .. } => peer,
            other => panic!("{other:?}"),
        }
    }

    async fn down(&self) -> String {
        match self.next().await {
            LinkEvent::Down { why, .. } => why,
            other => panic!("{other:?}"),
        }
    }

    async fn refused(&self) -> Refusal {
        match self.next().await {
            LinkEvent::Refused { why, .. } => why,
            other => panic!("{other:?}"),
        }
    }

    /// The next `count` bytes from any peer, each acknowledged at once.
    async fn bytes(&self, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < count {
            match self.next().await {
                LinkEvent::Bytes { peer, data } => {
                    self.links.taken(peer, data.len());
                    all.extend(data);
                }
                other => panic!("{other:?}"),
            }
        }
        all
    }

    fn address(&self) -> SocketAddr {
        self.at.to_string().parse().unwrap()
    }
}

/// An address without a listener.
async fn nobody() -> SocketAddr {
    TcpListener::bind((V4, 0)).await.unwrap().local_addr().unwrap()
}

/// An address of a server of another protocol.
async fn foreigner() -> SocketAddr {
    let listener = TcpListener::bind((V4, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    at
}

fn test(body: impl Future<Output = ()>) {
    crate::block_on(body).unwrap();
}

/// Two daemons with a link between them.
async fn linked() -> (Daemon, Daemon) {
    let (root, mut child) = (Daemon::new(0).await, Daemon::new(1).await);
    child.links.call(NodeId(0), root.at.clone());
    assert_eq!((root.up().await, child.up().await), (NodeId(1), NodeId(0)));
    (root, child)
}

fn call(dvm: &str, from: u32, to: u32) -> (Handshake, Vec<u8>) {
    let own = Introduction { dvm: dvm.to_owned(), from: NodeId(from), to: NodeId(to) };
    Handshake::call(&SECRET.into(), own, random_bytes).unwrap()
}

/// Everything that a daemon sends until it closes the connection.
async fn said(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut all)).await.expect("it closes the connection");
    all
}

#[test]
fn bytes_arrive_in_order_both_ways() {
    test(async {
        let (mut root, mut child) = linked().await;
        let sent: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
        let mut rest = &sent[..];
        for size in [0, 1, 2, 100, 65_517, 65_518, 65_519, 300_000] {
            let (piece, after) = rest.split_at(size);
            root.links.send(NodeId(1), piece.to_vec()).unwrap();
            rest = after;
        }
        root.links.send(NodeId(1), rest.to_vec()).unwrap();
        child.links.send(NodeId(0), b"hello".to_vec()).unwrap();
        assert!(child.bytes(sent.len()).await == sent);
        assert_eq!(root.bytes(5).await, b"hello");
    });
}

#[test]
fn links_over_ipv6() {
    test(async {
        let mut root = Daemon::new(0).await;
        // Needs IPv6 on the loopback interface; all machines that run our tests have it.
        root.at = root.links.listen(&[IpAddr::V6(Ipv6Addr::LOCALHOST)]).unwrap();
        let mut child = Daemon::new(1).await;
        child.links.call(NodeId(0), root.at.clone());
        let LinkEvent::Up { at, .. } = child.next().await else { panic!() };
        assert!(at.is_ipv6());
        assert_eq!(root.up().await, NodeId(1));
    });
}

#[test]
fn address_that_answers_is_used() {
    test(async {
        let (root, other) = (Daemon::new(0).await, Daemon::new(5).await);
        // No listener; a silent one; another daemon; another protocol; and the right one.
        let (closed, foreigner) = (nobody().await, foreigner().await);
        let silent = TcpListener::bind((V4, 0)).await.unwrap();
        let all = format!("{closed},{},{},{foreigner},{}", silent.local_addr().unwrap(), other.at, root.at);
        let mut child = Daemon::new(1).await;
        child.links.call(NodeId(0), all.parse().unwrap());
        let LinkEvent::Up { peer, at } = child.next().await else { panic!() };
        assert_eq!((peer, at), (NodeId(0), root.address()));
        assert_eq!(root.up().await, NodeId(1));
    });
}

#[test]
fn every_address_that_failed_has_a_reason() {
    test(async {
        let mut child = Daemon::new(1).await;
        let (closed, foreigner) = (nobody().await, foreigner().await);
        child.links.call(NodeId(0), format!("{closed},{foreigner}").parse().unwrap());
        let why = child.down().await;
        for part in [
            format!("{closed}: Connection refused (os error 111)"),
            format!("{foreigner}: no daemon of ours is there: it began with \"SSH-2.0-OpenSSH_\""),
        ] {
            assert!(why.contains(&part), "{why}");
        }
    });
}

#[test]
fn address_that_says_nothing_is_given_up_in_time() {
    test(async {
        let limits = LinkLimits { handshake: Duration::from_millis(300), ..LinkLimits::default() };
        let mut child = Daemon::with(1, "dvm", SECRET, limits).await;
        let silent = TcpListener::bind((V4, 0)).await.unwrap();
        let at = silent.local_addr().unwrap();
        child.links.call(NodeId(0), at.to_string().parse().unwrap());
        assert_eq!(child.down().await, format!("{at}: no answer within 0.3 s"));
    });
}

#[test]
fn stranger_without_the_secret_is_refused() {
    test(async {
        let root = Daemon::new(0).await;
        let mut stranger = Daemon::with(1, "dvm", [8; 32], LinkLimits::default()).await;
        stranger.links.call(NodeId(0), root.at.clone());
        assert_eq!(root.refused().await, Refusal::Secret);
        let why = stranger.down().await;
        assert!(why.ends_with("it says that this daemon does not know the secret of its DVM"), "{why}");
    });
}

#[test]
fn other_dvm_and_other_daemon_are_refused() {
    test(async {
        let root = Daemon::new(0).await;
        let mut other = Daemon::with(1, "other\n", SECRET, LinkLimits::default()).await;
        other.links.call(NodeId(0), root.at.clone());
        let why = root.refused().await.to_string();
        assert_eq!(why, "it belongs to the DVM \"other\\n\"");
        assert!(other.down().await.contains("another daemon, or one of another DVM"));
        let mut child = Daemon::new(1).await;
        child.links.call(NodeId(3), root.at.clone());
        assert_eq!(root.refused().await.to_string(), "daemon 3 was wanted, and daemon 0 is there");
        assert!(child.down().await.contains("another daemon, or one of another DVM"));
    });
}

#[test]
fn other_version_is_refused_on_both_sides() {
    test(async {
        let root = Daemon::new(0).await;
        let (_, mut first) = call("dvm", 1, 0);
        first[7] += 1;
        let mut stream = TcpStream::connect(root.address()).await.unwrap();
        stream.write_all(&first).await.unwrap();
        assert_eq!(said(&mut stream).await, [&GREETING[..], &VERSION.to_be_bytes(), &[1]].concat());
        assert_eq!(root.refused().await, Refusal::Version { theirs: VERSION + 1 });

        let listener = TcpListener::bind((V4, 0)).await.unwrap();
        let mut child = Daemon::new(1).await;
        child.links.call(NodeId(0), listener.local_addr().unwrap().to_string().parse().unwrap());
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&[&GREETING[..], &9_u16.to_be_bytes()].concat()).await.unwrap();
        let why = child.down().await;
        assert!(
            why.contains("it speaks version 9 of the protocol between daemons, and this daemon version 1"),
            "{why}"
        );
        assert!(why.contains("start all daemons from the same release"), "{why}");
    });
}

#[test]
fn first_wrong_byte_ends_a_stranger() {
    test(async {
        let root = Daemon::new(0).await;
        for words in [&b"GET / HTTP/1.1\r\n"[..], b"P\0", b"\0", b"PXLINK\0\x01\xff\xff"] {
            let mut stream = TcpStream::connect(root.address()).await.unwrap();
            stream.write_all(words).await.unwrap();
            let refusal = root.refused().await;
            assert!(matches!(refusal, Refusal::NoDaemon { .. } | Refusal::Malformed), "{refusal}");
            // A peer that does not know our protocol learns nothing from us.
            let learns = matches!(refusal, Refusal::Malformed);
            assert_eq!(said(&mut stream).await.is_empty(), !learns);
        }
    });
}

/// Data in the same packet as the caller's proof is not lost.
#[test]
fn words_that_come_with_the_proof_are_heard() {
    test(async {
        let root = Daemon::new(0).await;
        let mut stream = TcpStream::connect(root.address()).await.unwrap();
        let (mut handshake, first) = call("dvm", 1, 0);
        stream.write_all(&first).await.unwrap();
        let mut last = Vec::new();
        let mut sealer = loop {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).await.unwrap();
            if let Progress::Finished { sealer, .. } = handshake.take(&buffer[..count], &mut last).unwrap() {
                break sealer;
            }
        };
        sealer.seal(b"hello", &mut last);
        stream.write_all(&last).await.unwrap();
        assert_eq!(root.up().await, NodeId(1));
        assert_eq!(root.bytes(5).await, b"hello");
    });
}

/// A whole link is recorded and replayed: neither end accepts it.
#[test]
fn replay_is_refused() {
    test(async {
        let root = Daemon::new(0).await;
        let tap = TcpListener::bind((V4, 0)).await.unwrap();
        let mut child = Daemon::new(1).await;
        child.links.call(NodeId(0), tap.local_addr().unwrap().to_string().parse().unwrap());
        let (near, _) = tap.accept().await.unwrap();
        let far = TcpStream::connect(root.address()).await.unwrap();
        let (up, down) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let ((mut near_from, mut near_to), (mut far_from, mut far_to)) =
            (near.into_split(), far.into_split());
        let record = async |from: &mut tokio::net::tcp::OwnedReadHalf,
                            to: &mut tokio::net::tcp::OwnedWriteHalf,
                            all: &RefCell<Vec<u8>>| {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer).await {
                all.borrow_mut().extend(&buffer[..count]);
                to.write_all(&buffer[..count]).await.unwrap();
            }
        };
        let talk = async {
            assert_eq!((root.up().await, child.up().await), (NodeId(1), NodeId(0)));
            child.links.send(NodeId(0), b"launch the missiles".to_vec()).unwrap();
            assert_eq!(root.bytes(19).await, b"launch the missiles");
        };
        tokio::select! {
            () = record(&mut near_from, &mut far_to, &up) => panic!("the child has gone"),
            () = record(&mut far_from, &mut near_to, &down) => panic!("the root has gone"),
            () = talk => {}
        }
        let heard = [&up, &down].map(|all| all.borrow().clone());
        assert!(!heard.concat().windows(6).any(|window| window == b"launch"), "nobody can read it");

        let mut again = TcpStream::connect(root.address()).await.unwrap();
        again.write_all(&heard[0]).await.unwrap();
        assert_eq!(root.refused().await, Refusal::Stale);
        let _ = said(&mut again).await;

        let listener = TcpListener::bind((V4, 0)).await.unwrap();
        let mut caller = Daemon::new(1).await;
        caller.links.call(NodeId(0), listener.local_addr().unwrap().to_string().parse().unwrap());
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&heard[1]).await.unwrap();
        assert!(caller.down().await.contains("it does not know the secret of this DVM"));
    });
}

#[test]
fn changed_byte_anywhere_ends_the_handshake() {
    let (mut caller, first) = call("dvm", 1, 0);
    let own = Introduction { dvm: "dvm".into(), from: NodeId(0), to: NodeId(0) };
    let answerer = || Handshake::answer(&SECRET.into(), own.clone(), random_bytes).unwrap();
    for at in 0..first.len() {
        let mut changed = first.clone();
        changed[at] ^= 1;
        let answered = answerer().take(&changed, &mut Vec::new());
        // A longer length waits for more bytes, until the time limit.
        let waits = at == 8 || at == 9;
        assert!(answered.is_err() || waits && matches!(answered, Ok(Progress::Unfinished)), "byte {at}");
    }
    let mut answer = Vec::new();
    assert!(matches!(answerer().take(&first, &mut answer), Ok(Progress::Unfinished)));
    for at in 0..answer.len() {
        let (mut caller, first) = call("dvm", 1, 0);
        let mut answer = Vec::new();
        let _ = answerer().take(&first, &mut answer);
        answer[at] ^= 1;
        let heard = caller.take(&answer, &mut Vec::new());
        let waits = at == 9 || at == 10;
        assert!(heard.is_err() || waits && matches!(heard, Ok(Progress::Unfinished)), "byte {at}");
    }
    let (mut other, _) = call("dvm", 1, 0);
    assert!(other.take(&answer, &mut Vec::new()).is_err(), "it is the answer to another call");
    assert!(matches!(caller.take(&answer, &mut Vec::new()), Ok(Progress::Finished { .. })));
}

/// Both ends of a link without a network.
fn ends() -> ((Sealer, Opener), (Sealer, Opener)) {
    let (mut caller, mut words) = call("dvm", 1, 0);
    let own = Introduction { dvm: "dvm".into(), from: NodeId(0), to: NodeId(0) };
    let mut answerer = Handshake::answer(&SECRET.into(), own, random_bytes).unwrap();
    let mut reply = Vec::new();
    // Byte by byte: how the network splits the bytes does not matter.
    for byte in words.drain(..) {
        assert!(matches!(answerer.take(&[byte], &mut reply), Ok(Progress::Unfinished)));
    }
    let (mut called, mut proof) = (None, Vec::new());
    for byte in reply.drain(..) {
        if let Progress::Finished { sealer, opener, .. } = caller.take(&[byte], &mut proof).unwrap() {
            called = Some((sealer, opener));
        }
    }
    for byte in proof {
        if let Progress::Finished { peer, sealer, opener } = answerer.take(&[byte], &mut Vec::new()).unwrap()
        {
            assert_eq!(peer.from, NodeId(1));
            return (called.unwrap(), (sealer, opener));
        }
    }
    panic!("the link does not come about");
}

#[test]
fn records_are_not_changed_repeated_dropped_or_swapped() {
    let ((mut sealer, _), _) = ends();
    let mut first = Vec::new();
    sealer.seal(b"one", &mut first);
    let hostile = |what: &str, make: &dyn Fn(&mut Sealer) -> Vec<u8>| {
        let ((mut sealer, _), (_, mut opener)) = ends();
        opener.push(&make(&mut sealer));
        let mut out = Vec::new();
        assert_eq!(opener.open(&mut out), Err(Broken::NotAuthentic), "{what}");
        assert!(out.is_empty() || out == b"one", "{what}");
    };
    let sealed = |sealer: &mut Sealer, bytes: &[u8]| {
        let mut out = Vec::new();
        sealer.seal(bytes, &mut out);
        out
    };
    hostile("repeated", &|sealer| sealed(sealer, b"one").repeat(2));
    hostile("swapped", &|sealer| {
        let (one, two) = (sealed(sealer, b"one"), sealed(sealer, b"two"));
        [two, one].concat()
    });
    hostile("dropped", &|sealer| {
        let _ = sealed(sealer, b"one");
        sealed(sealer, b"two")
    });
    hostile("too short", &|_| vec![0, 16, 0]);
    hostile("of another link", &|_| first.clone());
    for at in 2..first.len() {
        hostile("changed", &|sealer| {
            let mut one = sealed(sealer, b"one");
            one[at] ^= 0x80;
            one
        });
    }
    // Our own records are not accepted as an answer either.
    let ((mut sealer, mut opener), _) = ends();
    opener.push(&sealed(&mut sealer, b"one"));
    assert_eq!(opener.open(&mut Vec::new()), Err(Broken::NotAuthentic));
}

#[test]
fn changed_byte_on_a_link_ends_it_with_a_reason() {
    test(async {
        let root = Daemon::new(0).await;
        let (mut caller, first) = call("dvm", 1, 0);
        let mut stream = TcpStream::connect(root.address()).await.unwrap();
        stream.write_all(&first).await.unwrap();
        let mut proof = Vec::new();
        let mut sealer = loop {
            let mut buffer = [0; 512];
            let count = stream.read(&mut buffer).await.unwrap();
            if let Progress::Finished { sealer, .. } = caller.take(&buffer[..count], &mut proof).unwrap() {
                break sealer;
            }
        };
        stream.write_all(&proof).await.unwrap();
        assert_eq!(root.up().await, NodeId(1));
        let mut record = Vec::new();
        sealer.seal(b"right", &mut record);
        sealer.seal(b"wrong", &mut record);
        *record.last_mut().unwrap() ^= 1;
        stream.write_all(&record).await.unwrap();
        assert_eq!(root.bytes(5).await, b"right");
        assert_eq!(root.down().await, "its bytes were changed, repeated or lost on the way");
    });
}

#[test]
fn slow_and_silent_strangers_are_sent_away() {
    test(async {
        let limits = LinkLimits { handshake: Duration::from_millis(200), ..LinkLimits::default() };
        let root = Daemon::with(0, "dvm", SECRET, limits).await;
        let mut silent = TcpStream::connect(root.address()).await.unwrap();
        assert_eq!(root.refused().await, Refusal::Slow);
        assert_eq!(said(&mut silent).await, b"");
        // Sends again and again, but too slowly.
        let mut slow = TcpStream::connect(root.address()).await.unwrap();
        let (_, first) = call("dvm", 1, 0);
        tokio::task::spawn_local(async move {
            for byte in first {
                let _ = slow.write_all(&[byte]).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert_eq!(root.refused().await, Refusal::Slow);
        assert_eq!(root.links.strangers(), 0);
    });
}

#[test]
fn flood_of_strangers_does_not_keep_daemons_out() {
    test(async {
        let limits = LinkLimits { strangers: 8, handshake: PATIENCE, ..LinkLimits::default() };
        let root = Daemon::with(0, "dvm", SECRET, limits).await;
        let mut flood = Vec::new();
        for _ in 0..40 {
            flood.push(TcpStream::connect(root.address()).await.unwrap());
        }
        let mut child = Daemon::new(1).await;
        child.links.call(NodeId(0), root.at.clone());
        loop {
            match root.next().await {
                LinkEvent::Up { peer, .. } => break assert_eq!(peer, NodeId(1)),
                LinkEvent::Refused { why, .. } => assert_eq!(why, Refusal::Crowded),
                other => panic!("{other:?}"),
            }
        }
        assert!(root.links.strangers() <= 8);
        assert_eq!(said(&mut flood[0]).await, b"", "the oldest has gone");
    });
}

/// Both the unprocessed input and the queued output of a link are bounded; another link is not slowed.
#[test]
fn slow_reader_holds_up_its_own_link_only() {
    test(async {
        let limits = LinkLimits { queue: 8 << 20, ..LinkLimits::default() };
        let mut root = Daemon::with(0, "dvm", SECRET, limits).await;
        let (mut slow, mut quick) = (Daemon::new(1).await, Daemon::new(2).await);
        slow.links.call(NodeId(0), root.at.clone());
        quick.links.call(NodeId(0), root.at.clone());
        let _ = (root.up().await, root.up().await, slow.up().await, quick.up().await);
        let piece = vec![1; 1 << 20];
        let (mut sent, mut was_full) = (0, false);
        let unsent = loop {
            match root.links.send(NodeId(1), piece.clone()) {
                Ok(()) => sent += piece.len(),
                Err(unsent) => break unsent,
            }
            assert!(sent < 1 << 30, "what nobody takes is bounded");
            tokio::task::yield_now().await;
            if root.links.is_full(NodeId(1)) && !was_full {
                was_full = true;
                root.links.send(NodeId(2), b"at once".to_vec()).unwrap();
                assert_eq!(quick.bytes(7).await, b"at once");
            }
        };
        assert!(was_full);
        assert_eq!(unsent, Unsent::Full);
        assert_eq!(root.links.send(NodeId(1), piece).unwrap_err(), Unsent::NoLink);
        // It has read no more than it may before it has acknowledged anything.
        let mut ahead = 0;
        while let Ok(LinkEvent::Bytes { data, .. }) = timeout(Duration::from_millis(200), slow.next()).await {
            ahead += data.len();
            assert!(ahead <= flow::MOST_AHEAD + (64 << 10), "{ahead}");
        }
        // When it resumes, it gets everything that had left, and then the end.
        slow.links.taken(NodeId(0), ahead);
        loop {
            match slow.next().await {
                LinkEvent::Bytes { data, .. } => slow.links.taken(NodeId(0), data.len()),
                LinkEvent::Down { .. } => break,
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn the_sender_learns_when_there_is_room_again() {
    test(async {
        let (mut root, child) = linked().await;
        let bytes = vec![3; 20 << 20];
        root.links.send(NodeId(1), bytes.clone()).unwrap();
        assert!(root.links.is_full(NodeId(1)));
        assert!(child.bytes(bytes.len()).await == bytes);
        assert!(matches!(root.next().await, LinkEvent::Room { peer: NodeId(1) }));
        assert!(!root.links.is_full(NodeId(1)));
    });
}

#[test]
fn closed_link_delivers_what_was_sent_and_the_reason() {
    test(async {
        let (mut root, mut child) = linked().await;
        root.links.send(NodeId(1), vec![5; 3 << 20]).unwrap();
        root.links.close(NodeId(1), "the job\nis over");
        assert_eq!(root.links.send(NodeId(1), vec![1]).unwrap_err(), Unsent::NoLink);
        assert_eq!(child.bytes(3 << 20).await.len(), 3 << 20);
        assert_eq!(child.down().await, "it has closed the link: the job\\nis over");
        // The side that has closed the link gets no event; its next one is a new link.
        child.links.call(NodeId(0), root.at.clone());
        assert_eq!((root.up().await, child.up().await), (NodeId(1), NodeId(0)));
    });
}

#[test]
fn lost_daemon_is_noticed_and_may_come_again() {
    test(async {
        let (root, child) = linked().await;
        drop(child);
        let why = root.down().await;
        assert!(why.contains("closed the connection") || why.contains("connection was lost"), "{why}");
        let mut again = Daemon::new(1).await;
        again.links.call(NodeId(0), root.at.clone());
        assert_eq!(root.up().await, NodeId(1));
        // It links a second time before the loss of its first link was noticed.
        let mut twice = Daemon::new(1).await;
        twice.links.call(NodeId(0), root.at.clone());
        assert_eq!(root.down().await, "it has made a new link");
        assert_eq!(root.up().await, NodeId(1));
        assert_eq!(again.up().await, NodeId(0));
        let _ = again.down().await;
    });
}

#[test]
fn candidates_are_written_as_they_are_read() {
    for text in ["10.0.0.1:7", "10.0.0.1:7,[fd00::1]:65535"] {
        assert_eq!(text.parse::<Candidates>().unwrap().to_string(), text);
    }
    for text in ["", "10.0.0.1", "n1:7", "10.0.0.1:7,", "10.0.0.1:65536"] {
        assert!(text.parse::<Candidates>().is_err(), "{text}");
    }
    let error = ["1.1.1.1:1"; 17].join(",").parse::<Candidates>().unwrap_err();
    assert_eq!(error, "17 addresses of one daemon, at most 16");
}

/// What a bad network does to a link.
mod bad_network {
    use phalanx_cluster::{Relay, Weather};

    use super::*;

    async fn through_a_relay() -> (Relay, Daemon, Daemon) {
        let (root, mut child) = (Daemon::new(0).await, Daemon::new(1).await);
        let relay = Relay::start(None, SocketAddr::from((V4, 0)), root.address()).unwrap();
        child.links.call(NodeId(0), relay.address().to_string().parse().unwrap());
        assert_eq!((root.up().await, child.up().await), (NodeId(1), NodeId(0)));
        (relay, root, child)
    }

    #[test]
    fn split_and_delayed_links_carry_the_same() {
        test(async {
            let (relay, root, mut child) = through_a_relay().await;
            relay.set(Weather { split: Some(7), delay: Duration::from_millis(20), ..Weather::default() });
            let sent: Vec<u8> = (0..50_000_u32).map(|n| (n % 253) as u8).collect();
            for piece in sent.chunks(999) {
                child.links.send(NodeId(0), piece.to_vec()).unwrap();
            }
            assert!(root.bytes(sent.len()).await == sent);
        });
    }

    #[test]
    fn stalled_link_goes_on_where_it_was() {
        test(async {
            let (relay, root, mut child) = through_a_relay().await;
            relay.set(Weather { stalled: true, ..Weather::default() });
            child.links.send(NodeId(0), b"late".to_vec()).unwrap();
            let early = timeout(Duration::from_millis(100), root.next()).await;
            assert!(early.is_err(), "{early:?}");
            relay.set(Weather::default());
            assert_eq!(root.bytes(4).await, b"late");
        });
    }

    #[test]
    fn cut_link_is_lost_on_both_sides() {
        test(async {
            let (relay, root, child) = through_a_relay().await;
            relay.cut();
            for why in [root.down().await, child.down().await] {
                assert!(
                    why.contains("closed the connection") || why.contains("connection was lost"),
                    "{why}"
                );
            }
        });
    }

    /// A cut during the handshake: neither side considers the link established.
    #[test]
    fn a_link_cut_before_it_stands_is_reported_with_the_reason() {
        test(async {
            let root = Daemon::new(0).await;
            let mut child = Daemon::new(1).await;
            let relay = Relay::start(None, SocketAddr::from((V4, 0)), root.address()).unwrap();
            relay.set(Weather { stalled: true, ..Weather::default() });
            child.links.call(NodeId(0), relay.address().to_string().parse().unwrap());
            while root.links.strangers() == 0 {
                tokio::task::yield_now().await;
            }
            relay.cut();
            assert_eq!(root.refused().await, Refusal::Closed);
            let why = child.down().await;
            assert!(why.contains("it closed the connection before both had introduced themselves"), "{why}");
        });
    }
}
