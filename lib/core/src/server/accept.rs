//! Admission of connections, from the first byte until the connection becomes a peer or is closed.
//!
//! Identity comes from two places: the host registered the uid of each rank, and the kernel reports the uid at the other end. Of the handshake's
//! claims only the name is used. `native` and `munge` add nothing to the kernel's answer on one machine, and `none` takes nothing away, so all three
//! are accepted. A peer that the kernel cannot identify is refused, unless it is a tool that presents the secret in this server's rendezvous files:
//! it then counts as the owner's. A rank may have several connections, and each proves its user separately (see `peers`). Clients are refused without
//! a reason: their connection closes. Tools get a status if their release can read one.

use std::collections::BTreeMap;

use phalanx_spec::{Status, keys};
use phalanx_wire::codec::Release;
use phalanx_wire::credential::Credential;
use phalanx_wire::hello::{
    COLLECTED, ClientWelcome, Flavor, Hello, HelloAnswer, HelloReader, MAX_HELLO, SECRET, ToolWelcome,
};
use phalanx_wire::{InfoList, ProcId, Value};
use tracing::{debug, warn};

use super::config::ToolsOf;
use super::host::{Then, as_failure};
use super::limits::{HELLO_WAIT, MAX_CLONES, MAX_STRANGERS};
use super::peer::{Peer, PeerKind};
use super::registry::Stage;
use super::timers::{Timer, TimerId};
use super::turn::Cx;
use crate::host::{ClientLost, ClientRefused, HostOp, HostReply, ToolRequest};
use crate::machine::{ConnId, Output, PeerCred};

/// Connections that are not peers yet.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    all: BTreeMap<ConnId, Shaking>,
}

/// A connection that was admitted as a peer, with the bytes that followed its hello.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) conn: ConnId,
    pub(super) role: PeerKind,
    pub(super) early: Vec<u8>,
}

#[derive(Debug)]
struct Shaking {
    /// None: the kernel here does not know the process, so it may be on another node.
    cred: Option<PeerCred>,
    timer: TimerId,
    state: Expecting,
}

#[derive(Debug)]
enum Expecting {
    ExpectHello(HelloReader),
    /// The host decides. `early`: the bytes that followed the hello.
    ExpectAdmission {
        hello: Box<Hello>,
        early: Vec<u8>,
    },
}

impl Shaking {
    /// Whether the connection claims to be this process and waits for the host's decision.
    fn awaits(&self, proc: &ProcId) -> bool {
        matches!(&self.state, Expecting::ExpectAdmission { hello, .. } if hello.proc.as_ref() == Some(proc))
    }

    fn is_client(&self) -> bool {
        matches!(&self.state, Expecting::ExpectAdmission { hello, .. } if is_welcomed_as_client(hello.flavor))
    }

    fn is_stranger(&self) -> bool {
        matches!(self.state, Expecting::ExpectHello(_))
    }
}

/// Why a peer is refused.
#[derive(Debug)]
struct Refusal {
    status: Status,
    why: &'static str,
    /// For the host.
    of_client: Option<Box<ClientRefused>>,
}

impl Refusal {
    fn new(status: Status, why: &'static str) -> Refusal {
        Refusal { status, why, of_client: None }
    }
}

impl Strangers {
    pub(super) fn on_opened(&mut self, cx: &mut Cx<'_>, conn: ConnId, cred: Option<PeerCred>) {
        if cred.is_none() && cx.config.remote.is_none() {
            warn!(conn = conn.0, "connection refused: the kernel does not say who is at its other end");
            return cx.out.push(Output::Close { conn });
        }
        if self.nameless().count() >= MAX_STRANGERS
            && let Some((oldest, _)) = self.nameless().min_by_key(|(_, stranger)| stranger.timer)
        {
            self.refuse(cx, oldest, "too many connections without identity, and this is the oldest");
        }
        let timer = cx.timers.set(cx.now.after(HELLO_WAIT), Timer::Hello(conn));
        let state = Expecting::ExpectHello(HelloReader::new());
        self.all.insert(conn, Shaking { cred, timer, state });
    }

    pub(super) fn on_hello_overdue(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        match self.all.get(&conn) {
            Some(shaking) if shaking.is_stranger() => {
                self.refuse(cx, conn, "it did not introduce itself in time");
            }
            Some(_) => self.refuse(cx, conn, "the host did not decide in time"),
            None => {}
        }
    }

    pub(super) fn on_hello_bytes(&mut self, cx: &mut Cx<'_>, conn: ConnId, data: &[u8]) -> Option<Admitted> {
        let shaking = self.all.get_mut(&conn)?;
        let cred = shaking.cred;
        match &mut shaking.state {
            Expecting::ExpectHello(reader) => match reader.feed(data) {
                Ok(None) => {}
                Err(error) => self.refuse(cx, conn, &error.to_string()),
                Ok(Some(hello)) => {
                    let early = std::mem::take(reader).into_rest();
                    return self.on_hello(cx, conn, cred, hello, early);
                }
            },
            Expecting::ExpectAdmission { early, .. } if early.len() + data.len() <= MAX_HELLO => {
                early.extend_from_slice(data);
            }
            Expecting::ExpectAdmission { .. } => {
                self.refuse(cx, conn, "it went on for long before it was let in")
            }
        }
        None
    }

    /// A connection closed before it was admitted.
    pub(super) fn on_closed(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        if let Some(shaking) = self.all.remove(&conn) {
            cx.timers.cancel(Some(shaking.timer));
        }
    }

    fn on_hello(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        cred: Option<PeerCred>,
        mut hello: Hello,
        early: Vec<u8>,
    ) -> Option<Admitted> {
        let cred = cred.or_else(|| known_by_secret(cx, &hello));
        hello.info.retain(|info| info.key != *SECRET);
        debug!(
            conn = conn.0, ?cred, flavor = ?hello.flavor, proc = ?hello.proc,
            version = hello.version, format = ?hello.format, store = hello.store, "hello"
        );
        let verdict = cred.ok_or(denied("a peer on another node without the secret of this server"));
        let verdict = verdict.and_then(|cred| self.examine(cx, cred, &hello));
        if let Some(shaking) = self.all.get_mut(&conn) {
            shaking.cred = cred;
            shaking.state = Expecting::ExpectAdmission { hello: Box::new(hello), early };
        }
        match verdict {
            Ok(HostOp::ClientConnected(proc)) => return self.ask_for_client(cx, conn, proc),
            Ok(op) => cx.ask(None, op, Then::AdmitTool(conn)),
            Err(refusal) => self.turn_away(cx, conn, refusal),
        }
        None
    }

    fn examine(&self, cx: &Cx<'_>, cred: PeerCred, hello: &Hello) -> Result<HostOp, Refusal> {
        match hello.flavor {
            Flavor::Client | Flavor::Singleton => self.examine_client(cx, cred, hello),
            Flavor::Tool
            | Flavor::NamedTool
            | Flavor::ClientTool
            | Flavor::Launcher
            | Flavor::NamedLauncher
            | Flavor::ClientLauncher => self.examine_tool(cx, cred, hello),
            Flavor::LegacyTool | Flavor::LegacyLauncher => {
                Err(Refusal::new(Status::ERR_NOT_SUPPORTED, "tools of releases before 3.0 are not served"))
            }
            Flavor::Scheduler => Err(Refusal::new(Status::ERR_NOT_SUPPORTED, "schedulers are not served")),
        }
    }

    /// A client must be registered by the host and run as the registered uid.
    fn examine_client(&self, cx: &Cx<'_>, cred: PeerCred, hello: &Hello) -> Result<HostOp, Refusal> {
        check_credential(hello)?;
        let proc = hello.proc.clone().ok_or(denied("a client without a name"))?;
        let client =
            cx.peers.jobs.client(&proc).ok_or(denied("no such namespace or rank was announced here"))?;
        if cred.uid != client.uid() {
            warn!(%proc, uid = cred.uid, expected = client.uid(), "a process of another user claims to be a rank");
            let refused = ClientRefused { uid: cred.uid, pid: cred.pid, expected: client.uid(), proc };
            let of_client = Some(Box::new(refused));
            return Err(Refusal { of_client, ..denied("its user is not the rank's user") });
        }
        check_free(cx, &proc)?;
        self.check_room(cx, &proc)?;
        Ok(HostOp::ClientConnected(proc))
    }

    /// A tool must belong to the server's owner or to root, unless tools of all users are served. It must not take the name of a
    /// connected peer, but may take a rank's.
    fn examine_tool(&self, cx: &Cx<'_>, cred: PeerCred, hello: &Hello) -> Result<HostOp, Refusal> {
        if cx.config.tools_of == ToolsOf::Nobody {
            return Err(Refusal::new(Status::ERR_NOT_SUPPORTED, "tools are not served here"));
        }
        check_credential(hello)?;
        let is_trusted = cred.uid == cx.config.owner_uid || cred.uid == 0;
        if !is_trusted && cx.config.tools_of != ToolsOf::Everybody {
            return Err(denied("a tool of another user"));
        }
        if let Some(proc) = &hello.proc {
            if proc.nspace.is_none() {
                return Err(denied("a tool with an empty namespace"));
            }
            if cx.peers.jobs.client(proc).is_some_and(|client| client.uid() != cred.uid) {
                return Err(denied("its user is not the rank's user"));
            }
            check_free(cx, proc)?;
            self.check_room(cx, proc)?;
        }
        let info = hello.info.clone();
        Ok(HostOp::ToolConnected(ToolRequest {
            uid: cred.uid,
            gid: cred.gid,
            pid: cred.pid,
            claims: hello.proc.clone(),
            info,
        }))
    }

    /// Bounds the connections of one rank.
    fn check_room(&self, cx: &Cx<'_>, proc: &ProcId) -> Result<(), Refusal> {
        let open = cx.peers.jobs.client(proc).map_or(0, |client| client.conns().len());
        if open + self.awaiting(proc).count() < MAX_CLONES {
            return Ok(());
        }
        warn!(%proc, limit = MAX_CLONES, "too many connections of one rank: refused");
        Err(Refusal::new(Status::ERR_OUT_OF_RESOURCE, "its rank has too many connections"))
    }

    /// Asks the host once per rank, even if several connections wait for its answer, and not at all while the rank has a live
    /// connection.
    fn ask_for_client(&mut self, cx: &mut Cx<'_>, conn: ConnId, proc: ProcId) -> Option<Admitted> {
        if cx.peers.jobs.stage(&proc) == Some(Stage::Connected) {
            return self.on_client_admitted(cx, conn, &proc, Status::SUCCESS);
        }
        let is_asked = self.awaiting(&proc).any(|(other, shaking)| other != conn && shaking.is_client());
        if !is_asked {
            let op = HostOp::ClientConnected(proc.clone());
            cx.ask(None, op, Then::AdmitClients(proc));
        }
        None
    }

    /// The connections of a rank that wait for the host's decision.
    pub(super) fn clients_awaiting(&self, proc: &ProcId) -> Vec<ConnId> {
        let clients = self.awaiting(proc).filter(|(_, shaking)| shaking.is_client());
        clients.map(|(conn, _)| conn).collect()
    }

    pub(super) fn on_client_admitted(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        proc: &ProcId,
        status: Status,
    ) -> Option<Admitted> {
        let verdict = match status.is_success() {
            true => check_free(cx, proc),
            false => Err(Refusal::new(status, "the host refused it")),
        };
        // The rank may have ended while the host decided.
        let verdict = verdict.and_then(|()| match cx.peers.jobs.client(proc) {
            Some(_) => Ok(()),
            None => Err(denied("its job has ended")),
        });
        if let Err(refusal) = verdict {
            self.turn_away(cx, conn, refusal);
            return None;
        }
        let welcome = HelloAnswer::Welcome(ClientWelcome { index: proc.rank.0 }).encode();
        self.admit(cx, conn, proc.clone(), PeerKind::Client, welcome)
    }

    pub(super) fn on_tool_admitted(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        reply: HostReply,
    ) -> Option<Admitted> {
        let proc = match reply {
            HostReply::ToolAdmitted(Ok(proc)) => proc,
            reply => {
                let status = as_failure(reply.status());
                self.turn_away(cx, conn, Refusal::new(status, "the host refused it"));
                return None;
            }
        };
        let verdict = match self.expected(conn) {
            // The connection did not wait for the host's decision.
            None => {
                disown(cx, proc);
                return None;
            }
            Some(hello) if hello.proc.as_ref().is_some_and(|claimed| *claimed != proc) => {
                Err(denied("the host gave another name than the tool has"))
            }
            Some(hello) => check_free(cx, &proc).map(|()| hello.flavor.is_given_name()),
        };
        let assigned = match verdict {
            Ok(is_given_name) => is_given_name.then(|| proc.clone()),
            Err(refusal) => {
                self.turn_away(cx, conn, refusal);
                disown(cx, proc);
                return None;
            }
        };
        let server = cx.config.identity.clone();
        let welcome =
            HelloAnswer::Welcome(ToolWelcome { assigned, server, security: Status::SUCCESS }).encode();
        self.admit(cx, conn, proc, PeerKind::Tool, welcome)
    }

    /// The connections that claim to be this process.
    fn awaiting(&self, proc: &ProcId) -> impl Iterator<Item = (ConnId, &Shaking)> {
        let awaiting = self.all.iter().filter(move |(_, shaking)| shaking.awaits(proc));
        awaiting.map(|(conn, shaking)| (*conn, shaking))
    }

    /// The connections that have not sent a hello.
    fn nameless(&self) -> impl Iterator<Item = (ConnId, &Shaking)> {
        let nameless = self.all.iter().filter(|(_, shaking)| shaking.is_stranger());
        nameless.map(|(conn, shaking)| (*conn, shaking))
    }

    fn expected(&self, conn: ConnId) -> Option<&Hello> {
        match &self.all.get(&conn)?.state {
            Expecting::ExpectAdmission { hello, .. } => Some(hello),
            Expecting::ExpectHello(_) => None,
        }
    }

    fn admit(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        proc: ProcId,
        role: PeerKind,
        welcome: Vec<u8>,
    ) -> Option<Admitted> {
        let shaking = self.all.remove(&conn)?;
        cx.timers.cancel(Some(shaking.timer));
        let (Expecting::ExpectAdmission { hello, early }, Some(cred)) = (shaking.state, shaking.cred) else {
            return None;
        };
        // The kernel vouches for the user; the host registered which of the user's groups counts.
        let mut gid = cred.gid;
        if let Some(client) = cx.peers.jobs.client_mut(&proc) {
            client.connect(conn);
            let told = || hello.info.find(keys::PROC_PID).and_then(Value::as_u32);
            client.guess_pid(cred.pid.or_else(told));
            gid = client.gid();
        }
        let mut peer = Peer::new(proc, cred.uid, gid, role, hello.dialect(), cx.now);
        peer.set_reads_files(hello.info.is_set(COLLECTED));
        cx.peers.conns.insert(conn, peer);
        cx.out.push(Output::Send { conn, frame: welcome });
        Some(Admitted { conn, role, early })
    }

    /// Refuses a connection that has sent its hello.
    fn turn_away(&mut self, cx: &mut Cx<'_>, conn: ConnId, refusal: Refusal) {
        let Some(hello) = self.expected(conn) else { return };
        warn!(conn = conn.0, flavor = ?hello.flavor, proc = ?hello.proc, status = %refusal.status, "refused");
        if !is_welcomed_as_client(hello.flavor) && hello.release() >= READS_REFUSALS {
            let frame = HelloAnswer::<ToolWelcome>::Refused(as_failure(refusal.status)).encode();
            cx.out.push(Output::Send { conn, frame });
        }
        self.refuse(cx, conn, refusal.why);
        if let Some(refused) = refusal.of_client {
            cx.ask(None, HostOp::ClientRefused(*refused), Then::Nothing);
        }
    }

    fn refuse(&mut self, cx: &mut Cx<'_>, conn: ConnId, why: &str) {
        warn!(conn = conn.0, why, "connection refused");
        self.on_closed(cx, conn);
        cx.out.push(Output::Close { conn });
    }
}

/// A tool that can read our files acts for the owner. Only tools connect from other nodes.
fn known_by_secret(cx: &Cx<'_>, hello: &Hello) -> Option<PeerCred> {
    let wanted = &cx.config.remote.as_ref()?.secret;
    let shown = hello.info.find(SECRET)?.as_str()?;
    let owner = PeerCred { uid: cx.config.owner_uid, gid: hello.gid, pid: None };
    (!is_welcomed_as_client(hello.flavor) && is_same(shown, wanted)).then_some(owner)
}

fn check_free(cx: &Cx<'_>, proc: &ProcId) -> Result<(), Refusal> {
    let peers = &*cx.peers;
    match peers.jobs.client(proc) {
        Some(client) if client.stage() == Stage::Gone => Err(denied("the process has ended")),
        Some(_) if cx.config.refuse_clones && peers.live_connections(proc).next().is_some() => {
            Err(Refusal::new(Status::ERR_EXISTS, "the rank is connected already"))
        }
        Some(_) => Ok(()),
        None if peers.conns.peers().any(|(_, peer)| peer.proc() == proc && !peer.has_finalized()) => {
            Err(Refusal::new(Status::ERR_EXISTS, "a process of that name is connected already"))
        }
        None => Ok(()),
    }
}

/// The host admitted a tool that is no longer connected: tells the host to forget it.
fn disown(cx: &mut Cx<'_>, proc: ProcId) {
    let is_here = cx.peers.conns.peers().any(|(_, peer)| *peer.proc() == proc);
    if !is_here && cx.peers.jobs.client(&proc).is_none() {
        cx.ask(None, HostOp::ClientLost(ClientLost { proc, cut_off: None }), Then::Nothing);
    }
}

fn check_credential(hello: &Hello) -> Result<(), Refusal> {
    match &hello.credential {
        Credential::None | Credential::Native { .. } | Credential::Munge(_) => Ok(()),
        Credential::Other { .. } => Err(denied("its kind of credential is not known")),
    }
}

/// Compares in constant time, so that the time does not reveal how much was right.
fn is_same(shown: &str, wanted: &str) -> bool {
    let differing = shown.bytes().zip(wanted.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    shown.len() == wanted.len() && differing == 0
}

/// As servers of OpenPMIx 5 do, treats a singleton as a client.
fn is_welcomed_as_client(flavor: Flavor) -> bool {
    matches!(flavor, Flavor::Client | Flavor::Singleton)
}

fn denied(why: &'static str) -> Refusal {
    Refusal::new(Status::ERR_NO_PERMISSIONS, why)
}

/// Tools of earlier releases take any answer as a welcome, and then hang or fail at random.
const READS_REFUSALS: Release = Release::new(5, 0, 0);
