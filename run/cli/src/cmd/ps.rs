//! `px ps`: the servers of this machine, their jobs and ranks.
//!
//! Servers of ours are queried with our own keys, which return more; other servers with those of the standard.

use phalanx_dvm::names;
use phalanx_shell::rendezvous::Search;
use pmix::{DataArray, Info, InfoList, Query, Tool, Value, keys};
use serde_json::{Value as Json, json};

use crate::args::tools::{PsArgs, ServerArgs};
use crate::failure::Failure;
use crate::render::ps::{self, Details, Job, Rank, Server};
use crate::render::{hint, value};
use crate::tool::{self, choice};

pub(crate) fn run(args: &PsArgs) -> Result<u8, Failure> {
    let mut servers = match tool::names_any(&args.server) {
        true => vec![named(args)?],
        false => all(args)?,
    };
    if let Some(wanted) = &args.job {
        servers.retain(|server| !server.jobs.is_empty());
        if servers.is_empty() {
            return Err(Failure::new(format!("no server knows a job '{wanted}'"))
                .hint("'px ps --all' lists the jobs"));
        }
    }
    if servers.is_empty() {
        tool::say_passed_over(&args.server, Search::passed_over, args.json);
    }
    let with_ranks = args.ranks || args.job.is_some();
    let text = match args.json {
        true => servers.iter().map(|server| format!("{}\n", server.json())).collect(),
        false => ps::table(&servers, Details { ranks: with_ranks, phases: args.long }),
    };
    super::print(&text)
}

/// The one server that the options name.
fn named(args: &PsArgs) -> Result<Server, Failure> {
    let tool = tool::attach(&args.server, args.json)?;
    Ok(Server { jobs: jobs(&tool, args)?, ..server_of(&tool, &args.server)? })
}

/// The server that a tool is attached to, without its jobs.
pub(in crate::cmd) fn server_of(tool: &Tool, server: &ServerArgs) -> Result<Server, Failure> {
    let attached = tool.servers().map_err(|error| tool::failed("cannot tell which server it is", &error))?;
    let attached = attached.into_iter().next();
    let name = attached.as_ref().map(|server| server.server.nspace.to_string()).unwrap_or_default();
    let uri = attached.map(|server| server.uri.to_string());
    let known = tool::servers_here(tool, server)?.iter().map(described).find(|server| server.uri == uri);
    // A server on another node has no file here.
    Ok(known.unwrap_or_else(|| Server { name, uri, ..Server::default() }))
}

/// Every server of this machine. One that refuses us is shown with the reason. Without any, the server that started this process; its files may be
/// elsewhere.
fn all(args: &PsArgs) -> Result<Vec<Server>, Failure> {
    let found = tool::servers_here(&tool::alone()?, &args.server)?;
    if found.is_empty() && choice::is_named_by_environment() {
        return Ok(vec![named(args)?]);
    }
    let asked = tool::ask_all(&args.server, &found, |tool| jobs(&tool, args));
    let mut servers = Vec::new();
    for (about, asked) in found.iter().zip(asked) {
        let mut server = described(about);
        let asked = asked.map_err(|error| tool::failed("cannot attach to it", &error)).and_then(|jobs| jobs);
        match asked {
            Ok(jobs) => server.jobs = jobs,
            Err(failure) => {
                if !args.json {
                    hint::say(&hint::note(&format!("server {}: {failure}", server.name), false));
                }
                server.problem = Some(failure.to_string());
            }
        }
        servers.push(server);
    }
    Ok(servers)
}

/// As described in its rendezvous file.
fn described(about: &DataArray) -> Server {
    let text = |key| value::find(about, key).and_then(Value::as_str).map(str::to_owned);
    Server {
        name: text(keys::NSPACE).unwrap_or_default(),
        pid: value::find(about, keys::SERVER_PIDINFO).and_then(Value::as_u32),
        uri: text(keys::SERVER_URI),
        version: text(keys::VERSION_INFO),
        ..Server::default()
    }
}

fn jobs(tool: &Tool, args: &PsArgs) -> Result<Vec<Job>, Failure> {
    let mut jobs = all_jobs(tool)?;
    match &args.job {
        Some(wanted) => jobs.retain(|job| job.nspace == *wanted),
        None => jobs.retain(|job| args.all || job.state != "ended"),
    }
    if args.ranks || args.job.is_some() || args.json {
        for job in &mut jobs {
            let of = [Info::new(keys::NSPACE, job.nspace.as_str())];
            job.ranks = match ask(tool, names::RANKS, &of) {
                Ok(info) => value::records(&info, names::RANKS).iter().map(Rank::from_record).collect(),
                Err(_) => standard_ranks(tool, &of)?,
            };
            job.size = job.size.or(u32::try_from(job.ranks.len()).ok());
        }
    }
    Ok(jobs)
}

/// The jobs without their ranks, those that have ended included.
pub(in crate::cmd) fn all_jobs(tool: &Tool) -> Result<Vec<Job>, Failure> {
    match ask(tool, names::JOBS, &[]) {
        Ok(info) => Ok(value::records(&info, names::JOBS).iter().map(Job::from_record).collect()),
        Err(_) => standard_jobs(tool),
    }
}

/// The jobs by the keys of the standard.
fn standard_jobs(tool: &Tool) -> Result<Vec<Job>, Failure> {
    let failed = |error: &pmix::Error| tool::failed("the server does not list its jobs", error);
    let info = ask(tool, keys::QUERY_NAMESPACES, &[]).map_err(|error| failed(&error))?;
    let names = info.find(keys::QUERY_NAMESPACES).and_then(Value::as_str).unwrap_or_default().to_owned();
    let commands = ask(tool, keys::QUERY_NAMESPACE_INFO, &[]).unwrap_or_default();
    let commands = value::records(&commands, keys::QUERY_NAMESPACE_INFO);
    let command = |nspace: &str| {
        let of = |about: &&DataArray| match value::find(about, keys::NSPACE) {
            Some(Value::ProcNspace(name)) => name.as_str() == nspace,
            Some(value) => value.as_str() == Some(nspace),
            None => false,
        };
        let about = commands.iter().find(of)?;
        value::find(about, keys::CMD_LINE).and_then(Value::as_str).map(str::to_owned)
    };
    let names = names.split(',').filter(|name| !name.is_empty());
    Ok(names.map(|name| Job { command: command(name), ..Job::named(name) }).collect())
}

/// The process table by the key of the standard.
fn standard_ranks(tool: &Tool, of: &[Info]) -> Result<Vec<Rank>, Failure> {
    let info = match ask(tool, keys::QUERY_PROC_TABLE, of) {
        Ok(info) => info,
        // A server without this table still has jobs.
        Err(_) => return Ok(Vec::new()),
    };
    let table = info.find(keys::QUERY_PROC_TABLE).and_then(Value::as_array);
    let lines = table.into_iter().flat_map(|table| &table.items);
    Ok(lines.filter_map(Rank::from_table).collect())
}

fn ask(tool: &Tool, key: &str, qualifiers: &[Info]) -> Result<Vec<Info>, pmix::Error> {
    tool.query(&[Query { keys: vec![key.into()], qualifiers: qualifiers.to_vec() }])
}

impl Server {
    pub(in crate::cmd) fn json(&self) -> Json {
        json!({
            "server": self.name,
            "pid": self.pid,
            "uri": self.uri,
            "version": self.version,
            "problem": self.problem,
            "jobs": self.jobs.iter().map(Job::json).collect::<Vec<_>>(),
        })
    }
}
