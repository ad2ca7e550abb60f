//! A daemon that the root has started on another host. It announces itself, learns its own place and the addresses of the other daemons, and then
//! joins them.
//!
//! All of this goes over standard input and output, in the format of `phalanx_dvm::start`. The process that started the daemon holds the other end of
//! its standard input for as long as the daemon may live.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use phalanx_dvm::start::{
    self, ALIVE, ALIVE_EARLY, Birth, Cradle, HEARD_OF, LONGEST, Others, STANDS, STANDS_EARLY,
};
use phalanx_dvm::{NodeId, Rules, Tree};
use phalanx_shell::reach::Reach;
use phalanx_wire::Text;
use tokio::sync::mpsc;

use crate::daemon::Running;
use crate::link::{LinkLimits, Links, Network, Secret};
use crate::machine::Machine;
use crate::member::Member;
use crate::neighbours::Neighbours;
use crate::root::open;
use crate::session::Session;
use crate::startup::Inherited;

/// What a daemon finds on the host where it starts.
#[derive(Debug)]
pub struct FarOptions {
    pub inherited: Inherited,
    pub session: Session,
    pub machine: Machine,
    /// Where it registers if it is to be the system server of this host.
    pub system_dir: PathBuf,
    /// Which of the daemons started by the same command this is, if the command has set it.
    pub place: Option<usize>,
}

/// A daemon that has joined its DVM.
#[derive(Debug)]
pub struct Far {
    pub running: Running,
    pub lifeline: Lifeline,
}

/// Standard input, of which only the end is still of interest.
#[derive(Debug)]
pub struct Lifeline(mpsc::Receiver<Heard>);

/// What has arrived on standard input.
#[derive(Debug)]
enum Heard {
    Birth(Secret, Box<Birth>),
    Others(Others),
    /// A sign of life from the process that started us.
    Alive,
    /// The root announces that it is silent until its next sign of life.
    Stands,
    /// Standard input has ended or is malformed.
    End(String),
}

impl Far {
    /// From the greeting to the call to the parent daemon. Must be called within [`crate::block_on`].
    pub async fn begin(options: FarOptions) -> Result<Far> {
        let FarOptions { inherited, session, machine, system_dir, place } = options;
        say(&start::greeting())?;
        let mut heard = listen().context("cannot read standard input")?;
        let (secret, birth) = match hear(&mut heard, "who it is to be").await? {
            Heard::Birth(secret, birth) => (secret, birth),
            Heard::Others(_) | Heard::Alive | Heard::Stands | Heard::End(_) => {
                bail!("standard input makes no sense")
            }
        };
        let Cradle { node, slots, max_slots } = cradle(&birth, place)?;
        let networks = birth.networks.iter().map(network).collect::<Result<Vec<_>>>()?;
        let (mut links, events) = Links::new(&birth.dvm, node, secret, LinkLimits::default());
        let address = open(&mut links, &networks)?;
        say(&start::reached_at(&address))?;
        let Heard::Others(others) = hear(&mut heard, "where other daemons are").await? else {
            bail!("standard input makes no sense")
        };
        let lineage = lineage(&birth, node, &others);
        let Some((parent, at)) = lineage.first() else { bail!("no daemon to link to is known") };
        let at = at.parse().map_err(|error| anyhow!("cannot call daemon {}: {error}", parent.0))?;
        links.call(*parent, at);
        let is_found = machine.hostname != birth.root;
        let running = Running::member(Member {
            inherited,
            session,
            machine,
            dvm: birth.dvm.clone(),
            id: node,
            size: birth.size,
            radix: birth.radix,
            slots,
            max_slots,
            takes_ranks: true,
            called: Vec::new(),
            address,
            lineage,
            neighbours: Neighbours::new(links, events),
            limits: birth.limits,
            env: Vec::new(),
            lasts: birth.lasts,
            rules: Rules::default(),
            plan: None,
            reach: Reach::Node,
            is_found,
            rendezvous_files: Vec::new(),
            system_dir: birth.is_system.then_some(system_dir),
        })?;
        Ok(Far { running, lifeline: Lifeline(heard) })
    }
}

impl Lifeline {
    /// Waits until the process that started us is gone or wants this daemon to end.
    pub async fn cut(&mut self) {
        while let Some(Heard::Birth(..) | Heard::Others(_) | Heard::Alive | Heard::Stands) =
            self.0.recv().await
        {}
    }
}

/// Reports the failure to the root, which reads our standard output.
pub fn say_failed(why: &str) {
    let _ = say(&start::failed(why));
}

fn say(line: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).context("cannot write to standard output")
}

async fn hear(heard: &mut mpsc::Receiver<Heard>, what: &str) -> Result<Heard> {
    let mut stands = false;
    loop {
        let next = heard.recv();
        let next = match stands {
            true => Ok(next.await),
            false => tokio::time::timeout(HEARD_OF, next).await,
        };
        stands = matches!(next, Ok(Some(Heard::Stands)));
        match next {
            Ok(Some(Heard::Alive | Heard::Stands)) => {}
            Ok(Some(Heard::End(why))) => bail!("cannot hear {what}: {why}"),
            Ok(Some(heard)) => return Ok(heard),
            Ok(None) => bail!("cannot hear {what}: nobody reads standard input"),
            Err(_) => {
                bail!("cannot hear {what}: standard input has been silent for {} s", HEARD_OF.as_secs())
            }
        }
    }
}

/// Reads standard input to its end. The thread ends with it, or with the process.
fn listen() -> io::Result<mpsc::Receiver<Heard>> {
    let (tell, heard) = mpsc::channel(4);
    let read = move || {
        let mut input = io::stdin().lock();
        let end = match read_all(&mut input, &tell) {
            Ok(()) => "standard input has ended".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        let _ = tell.blocking_send(Heard::End(end));
    };
    std::thread::Builder::new().name("lifeline".to_owned()).spawn(read)?;
    Ok(heard)
}

fn read_all(input: &mut impl Read, tell: &mpsc::Sender<Heard>) -> Result<()> {
    let mut first = [ALIVE_EARLY];
    while let [ALIVE_EARLY | STANDS_EARLY] = first {
        input.read_exact(&mut first).context("standard input ended before a secret")?;
        tell.blocking_send(if first == [STANDS_EARLY] { Heard::Stands } else { Heard::Alive })?;
    }
    let secret = Secret::read(first.as_slice().chain(&mut *input))?;
    let birth = Birth::from_bytes(&message(input, tell)?).map_err(anyhow::Error::msg)?;
    tell.blocking_send(Heard::Birth(secret, Box::new(birth)))?;
    let others = Others::from_bytes(&message(input, tell)?).map_err(anyhow::Error::msg)?;
    tell.blocking_send(Heard::Others(others))?;
    io::copy(input, &mut io::sink())?;
    Ok(())
}

/// A message without its length prefix. Memory is taken as bytes arrive.
fn message(input: &mut impl Read, tell: &mpsc::Sender<Heard>) -> Result<Vec<u8>> {
    let mut length = ALIVE;
    while let ALIVE | STANDS = length {
        input.read_exact(&mut length).context("standard input ended within a message")?;
        tell.blocking_send(if length == STANDS { Heard::Stands } else { Heard::Alive })?;
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        bail!("standard input announces a message of {length} bytes, at most {LONGEST} are taken");
    }
    let mut body = Vec::new();
    if input.take(length as u64).read_to_end(&mut body)? < length {
        bail!("standard input ended within a message");
    }
    Ok(body)
}

fn cradle(birth: &Birth, place: Option<usize>) -> Result<Cradle> {
    let cradle = match (birth.cradles.as_slice(), place) {
        ([only], _) => Some(only),
        (many, Some(place)) => many.get(place),
        (_, None) => bail!("cannot tell which of {} daemons this is", birth.cradles.len()),
    };
    cradle.cloned().context("there is no daemon of this number")
}

fn network(words: &Text) -> Result<Network> {
    words.to_string_lossy().parse().map_err(anyhow::Error::msg)
}

/// The addresses of the ancestors, the parent first.
fn lineage(birth: &Birth, node: NodeId, others: &Others) -> Vec<(NodeId, Arc<str>)> {
    let tree = Tree::new(birth.size, birth.radix);
    let known = |wanted: NodeId| others.addresses.iter().find(|(node, _)| *node == wanted).cloned();
    tree.ancestors(node).filter_map(known).collect()
}
