//! Named servers that do not admit us.

use std::net::TcpListener;

use phalanx_wire::Info;

use super::*;
use crate::engine::Drive;
use crate::environ::Identity;
use phalanx_spec::keys;

/// The outcome for a tool that connects to the server at this address, with this time limit.
fn attach(listener: &TcpListener, more: &[Info], patience: Duration) -> Error {
    let uri = format!("server.0;tcp4://{}", listener.local_addr().unwrap());
    let info = [&[Info::new(keys::SERVER_URI, uri)], more].concat();
    let process = Identity::of_this_process();
    let config = super::super::config(&info, &process, false, "host").unwrap();
    let engine = super::super::start(config, Drive::Thread).unwrap();
    let directives = Directives::read(&info).unwrap();
    let mut search = ServerSearch::new(&engine, &directives, "host", None).unwrap();
    search.patience = patience;
    let error = search.run().map(|attached| format!("{attached:?}")).unwrap_err();
    engine.stop();
    error
}

/// Number of connections that wait to be accepted.
fn calls(listener: &TcpListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    std::iter::from_fn(|| listener.accept().ok()).count()
}

#[test]
fn a_server_that_does_not_answer_is_asked_once() {
    for more in [
        vec![],
        vec![Info::new(keys::CONNECT_MAX_RETRIES, 3_u32), Info::new(keys::CONNECT_RETRY_DELAY, 0_u32)],
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = attach(&listener, &more, Duration::from_millis(50));
        assert_eq!((error.status(), calls(&listener)), (Status::ERR_TIMEOUT, 1), "{error}");
    }
}

#[test]
fn a_server_has_all_the_time_that_the_program_gives() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    let error = attach(&listener, &[Info::new(keys::TIMEOUT, 1_u32)], Duration::from_millis(50));
    assert_eq!((error.status(), calls(&listener)), (Status::ERR_TIMEOUT, 1), "{error}");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{error}");
}
