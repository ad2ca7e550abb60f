//! PMIx connections: identities of peers, whole frames, peers that do not read.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddr, UnixStream};
use std::time::Duration;

use phalanx_dvm::Effect;
use phalanx_node::StdinSource;

use super::Scenario;
use crate::launcher::{Script, run, shell, with_node};

pub(super) const ALL: &[Scenario] = &[
    ("peers_are_known_and_answered", peers_are_known_and_answered),
    ("large_frames_arrive_whole", large_frames_arrive_whole),
    ("the_last_words_before_a_close_arrive", the_last_words_before_a_close_arrive),
    ("a_thousand_silent_connections_hinder_nobody", a_thousand_silent_connections_hinder_nobody),
];

/// Runs blocking code beside the node.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(work);
    while !thread.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    thread.join().unwrap()
}

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A connection over TCP, and one over the local socket.
fn both_ways(address: SocketAddr) -> [Box<dyn Stream>; 2] {
    let local = LocalAddr::from_abstract_name(format!("phalanx/{address}")).unwrap();
    [Box::new(TcpStream::connect(address).unwrap()), Box::new(UnixStream::connect_addr(&local).unwrap())]
}

fn peers_are_known_and_answered() {
    let script = Script {
        opened: Some(|_, peer, _| {
            assert_eq!(peer.map(|peer| peer.uid), Some(rustix::process::geteuid().as_raw()));
        }),
        answer: Some(|conn, data, effects| {
            effects.push_back(Effect::Send { conn, frame: data.to_ascii_uppercase() });
        }),
        ..Script::default()
    };
    with_node(script, async |_, address| {
        let answer = beside(move || {
            let mut streams: Vec<_> = (0..10).flat_map(|_| both_ways(address)).collect();
            let mut answers = Vec::new();
            for stream in &mut streams {
                stream.write_all(b"hello").unwrap();
                let mut answer = [0; 5];
                stream.read_exact(&mut answer).unwrap();
                answers.push(answer);
            }
            answers
        });
        assert!(answer.await.iter().all(|answer| answer == b"HELLO"));
    });
}

/// A peer that lets megabytes pile up before it reads gets them all, in order. Meanwhile it is not read from.
fn large_frames_arrive_whole() {
    const FRAME: usize = 300_000;
    const FRAMES: usize = 40;
    fn answer(conn: phalanx_core::ConnId, data: &[u8], effects: &mut VecDeque<Effect>) {
        for byte in data {
            effects.push_back(Effect::Send { conn, frame: vec![*byte; FRAME] });
        }
    }
    with_node(Script { answer: Some(answer), ..Script::default() }, async |node, address| {
        let reader = beside(move || {
            let asked: Vec<u8> = (0..FRAMES as u8).collect();
            let mut streams = both_ways(address);
            streams.iter_mut().for_each(|stream| stream.write_all(&asked).unwrap());
            let mut frame = vec![0; FRAME];
            for mut stream in streams {
                for byte in &asked {
                    stream.read_exact(&mut frame).unwrap();
                    assert!(frame.iter().all(|b| b == byte));
                }
            }
        });
        // Other peers are served all the while.
        let job = run(node, shell(2, "exit 1"), StdinSource::Empty);
        let ((), seen) = tokio::join!(reader, job);
        assert!(seen.iter().all(|seen| seen.code() == 1));
    });
}

fn the_last_words_before_a_close_arrive() {
    let script = Script {
        answer: Some(|conn, _, effects| {
            effects.push_back(Effect::Send { conn, frame: vec![1; 1_000_000] });
            effects.push_back(Effect::Close { conn });
        }),
        ..Script::default()
    };
    with_node(script, async |_, address| {
        let read = beside(move || {
            both_ways(address).map(|mut stream| {
                stream.write_all(b"x").unwrap();
                // Unread input on the other side would make a hasty close lose what was sent.
                stream.write_all(&[0; 1000]).unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                all.len()
            })
        });
        assert_eq!(read.await, [1_000_000; 2]);
    });
}

fn a_thousand_silent_connections_hinder_nobody() {
    let script = Script {
        answer: Some(|conn, data, effects| effects.push_back(Effect::Send { conn, frame: data.to_vec() })),
        ..Script::default()
    };
    with_node(script, async |node, address| {
        let silent = beside(move || {
            let silent: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect(address).unwrap()).collect();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"me").unwrap();
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"me");
            silent
        })
        .await;
        assert!(run(node, shell(4, "exit 0"), StdinSource::Empty).await.iter().all(|seen| seen.code() == 0));
        drop(silent);
    });
}
