//! A running node, as seen by the program that runs it.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use phalanx_core::server::Remote;
use phalanx_shell::listen::Listener;
use phalanx_shell::reach::Door;
use phalanx_shell::rendezvous::Notice;
use tokio::task::{JoinHandle, LocalSet};

use crate::announce::Announcer;
use crate::drive::{Decide, Owner};
use crate::handle::{self, Handle, Reports};
use crate::neighbours::Neighbours;
use crate::session::Session;
use crate::startup::Inherited;

/// Runs a program on one thread, as everything in this crate expects.
pub fn block_on<T>(program: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    Ok(LocalSet::new().block_on(&runtime, program))
}

/// Where a node lives.
#[derive(Debug)]
pub struct Site<'a> {
    /// What PMIx clients connect to.
    pub address: SocketAddr,
    /// What tools connect to, possibly from other nodes.
    pub outside: SocketAddr,
    /// None: no tools on other nodes.
    pub remote: Option<Remote>,
    /// The session directory.
    pub dir: &'a Path,
}

/// A node that runs. Dropping it leaves the node running until the program ends.
#[derive(Debug)]
pub struct Running {
    pub handle: Handle,
    pub reports: Reports,
    /// The namespace of its server, if tools can find it.
    pub name: String,
    /// The address of its server, likewise.
    pub uri: String,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts what `decide` makes for the site, and publishes `notice` so that tools find it. Must be called within [`block_on`].
    pub fn start<D: Decide + 'static>(
        inherited: Inherited,
        session: Session,
        door: &Door,
        notice: impl FnOnce(&Site<'_>) -> Option<Notice>,
        decide: impl FnOnce(&Site<'_>) -> D,
    ) -> Result<Running> {
        Running::among(Neighbours::default(), inherited, session, door, notice, decide)
    }

    /// The same with links to other daemons.
    pub(crate) fn among<D: Decide + 'static>(
        neighbours: Neighbours,
        inherited: Inherited,
        session: Session,
        door: &Door,
        notice: impl FnOnce(&Site<'_>) -> Option<Notice>,
        decide: impl FnOnce(&Site<'_>) -> D,
    ) -> Result<Running> {
        let listener = Listener::open(door.listen);
        let listener = listener.with_context(|| format!("cannot listen on {}", door.listen))?;
        let address = listener.address();
        let site = Site {
            address: door.inside(address),
            outside: door.outside(address),
            remote: door.remote(address),
            dir: session.dir(),
        };
        let notice = notice(&site);
        let name = notice.as_ref().map(|notice| notice.uri.server.nspace.to_string()).unwrap_or_default();
        let uri = notice.as_ref().map(|notice| notice.uri.to_string()).unwrap_or_default();
        let announcer = Announcer::new(notice)?;
        let decide = decide(&site);
        let (handle, reports, channels) = handle::node_channels();
        let owner = Owner::new(decide, inherited, session, announcer, (listener, neighbours), channels)?;
        Ok(Running { handle, reports, name, uri, task: tokio::task::spawn_local(owner.run()) })
    }

    /// Waits until the node has stopped and all of it is gone. Must be called after [`Handle::shutdown`], when the reports have ended.
    pub async fn finish(self) -> Result<()> {
        let Running { handle, reports, task, .. } = self;
        drop((handle, reports));
        task.await.context("the node has failed")
    }
}
