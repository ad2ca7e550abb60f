//! A launcher in a hundred lines: starts copies of a program as one job on this node, and is their PMIx server.
//!
//! `cargo run --example host -- 4 target/debug/examples/ring`
//!
//! Attributes of the server may come first: with `pmix.srvr.tool` it serves tools as well.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, ExitCode};

use pmix::server::{AbortRequest, JobControlRequest, PublishRequest, PublishedRequest, ToolRequest};
use pmix::{
    Done, Host, Info, InfoList, Key, Nspace, Pdata, ProcId, Rank, Server, ServerOptions, Status, Value,
    generate_ppn, generate_regex, keys,
};

/// A minimal resource manager: it keeps published values, and refuses everything else.
#[derive(Default)]
struct SmallHost {
    published: BTreeMap<Key, (ProcId, Value)>,
    tools: u32,
}

impl Host for SmallHost {
    fn abort(&mut self, request: AbortRequest, done: Done<()>) {
        eprintln!("host: {} aborts: {}", request.from, request.message);
        done.complete(());
        std::process::exit(request.status.0);
    }

    fn publish(&mut self, request: PublishRequest, done: Done<()>) {
        for Info { key, value, .. } in request.data() {
            self.published.insert(key.clone(), (request.from.clone(), value.clone()));
        }
        done.complete(());
    }

    fn lookup(&mut self, request: PublishedRequest, done: Done<Vec<Pdata>>) {
        let found = request.keys.iter().filter_map(|key| {
            let (proc, value) = self.published.get(key)?.clone();
            Some(Pdata { proc, key: key.clone(), value })
        });
        let found: Vec<Pdata> = found.collect();
        // An answer may also be given later, from any thread: `done` can be kept.
        if found.is_empty() { done.refuse(Status::ERR_NOT_FOUND) } else { done.complete(found) }
    }

    /// Without targets, the request is for the host itself. It ends at once, without an answer.
    fn job_control(&mut self, request: JobControlRequest, done: Done<Vec<Info>>) {
        if !(request.targets.is_empty() && request.directives.is_set(keys::JOB_CTRL_TERMINATE)) {
            return done.refuse(Status::ERR_NOT_SUPPORTED);
        }
        std::process::exit(0);
    }

    fn tool_connected(&mut self, request: ToolRequest, done: Done<ProcId>) {
        self.tools += 1;
        let given = Nspace::new(&format!("tool.{}.{}", std::process::id(), self.tools));
        match request.claims.map_or_else(|| given.map(|nspace| ProcId::new(&nspace, Rank(0))), Ok) {
            Ok(name) => done.complete(name),
            Err(_) => done.refuse(Status::ERR_BAD_PARAM),
        }
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let usage = "usage: host [KEY | KEY=VALUE]... RANKS PROGRAM [ARGUMENT...]";
    let mut about = Vec::new();
    while let Some(word) = arguments.next_if(|word| word.starts_with("pmix.")) {
        let (key, value) = match word.split_once('=') {
            None => (&*word, true.into()),
            Some((key, text)) => (key, text.parse().map_or_else(|_| text.into(), Value::Uint32)),
        };
        about.push(Info { key: Key::new(key)?, flags: Default::default(), value });
    }
    let size: u32 = arguments.next().ok_or(usage)?.parse()?;
    let program = arguments.next().ok_or(usage)?;
    let arguments: Vec<String> = arguments.collect();

    let server = Server::start(ServerOptions::from_infos(&about)?, SmallHost::default())?;
    let nspace = Nspace::new(&format!("example.{}", std::process::id()))?;
    // Resources of the machine; every job gets them.
    server.register_resources(&[Info::new(keys::RM_NAME, "small host")])?;
    server.register_nspace(&nspace, Some(size), &job(size, server.hostname()))?;

    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut ranks = Vec::new();
    for rank in 0..size {
        let proc = ProcId::new(&nspace, Rank(rank));
        server.register_client(&proc, uid, gid)?;
        let mut command = Command::new(&program);
        server.setup_fork(&proc, command.args(&arguments))?;
        ranks.push((proc, command.spawn()?));
    }
    let mut worst = ExitCode::SUCCESS;
    for (proc, mut child) in ranks {
        let status = child.wait()?;
        if !status.success() {
            eprintln!("host: {proc}: {status}");
            worst = ExitCode::FAILURE;
        }
        // Requests that still wait for the rank are answered.
        server.deregister_client(&proc)?;
    }
    server.deregister_nspace(&nspace)?;
    server.finalize();
    Ok(worst)
}

/// What the standard requires of a job; numbers such as the ranks' positions on their nodes follow from the maps.
fn job(size: u32, hostname: &str) -> [Info; 5] {
    [
        Info::new(keys::JOB_SIZE, size),
        Info::new(keys::UNIV_SIZE, size),
        Info::new(keys::MAPBY, "slot"),
        Info::new(keys::NODE_MAP, generate_regex(&[hostname])),
        Info::new(keys::PROC_MAP, generate_ppn(&[(0..size).collect()])),
    ]
}
