//! From the options of a command to a PMIx server, and from the library's errors to those of px.

pub(crate) mod choice;
pub(crate) mod input;
pub(crate) mod job;

use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use phalanx_shell::Trust;
use phalanx_shell::rendezvous::{Search, Wanted, nameless_directories, system_directories};
use phalanx_wire::uri::ServerUri;
use pmix::{DataArray, Info, Nspace, Query, Status, TRUST_USER, Tool, Value, keys};

use crate::args::tools::ServerArgs;
use crate::failure::Failure;
use crate::render::{hint, value, words};
use crate::trace;

/// Attaches to the server that the options name. `as_json`: the form of messages meanwhile.
pub(crate) fn attach(server: &ServerArgs, as_json: bool) -> Result<Tool, Failure> {
    attach_as(server, &[], as_json)
}

/// The same with more attributes for this tool.
pub(crate) fn attach_as(server: &ServerArgs, more: &[Info], as_json: bool) -> Result<Tool, Failure> {
    try_attach(server, more, as_json)?.map_err(|error| not_attached(server, &error))
}

fn try_attach(
    server: &ServerArgs,
    more: &[Info],
    as_json: bool,
) -> Result<Result<Tool, pmix::Error>, Failure> {
    trace::start(None);
    let mut info = connection(server)?;
    info.extend_from_slice(more);
    Ok(unless_soon(as_json, || init(&info)))
}

fn not_attached(server: &ServerArgs, error: &pmix::Error) -> Failure {
    let failure = failed("cannot attach to a PMIx server", error);
    match names_any(server) {
        true => failure.hint("'px ps' lists the servers of this machine"),
        false => failure
            .hint("'px run' is a server while its job runs; --pid, --nspace, --uri and --file name one"),
    }
}

/// Prints a note if the server takes long to answer: a named one may take half a minute.
fn unless_soon<T>(as_json: bool, attach: impl FnOnce() -> T) -> T {
    let (answered, answer) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if answer.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let seconds = PATIENCE.as_secs();
                let text = format!("no PMIx server has answered for {seconds} s; still waiting");
                hint::say(&hint::note(&text, as_json));
            }
        });
        let attached = attach();
        drop(answered);
        attached
    })
}

/// Attaches to the server that the options name. If they name none: to the server of this machine that knows the job, otherwise to the one that a
/// search finds.
pub(crate) fn attach_for(server: &ServerArgs, job: &Nspace, as_json: bool) -> Result<Tool, Failure> {
    let qualifiers = vec![Info::new(keys::NSPACE, job.as_str())];
    let question = Query { keys: vec![keys::JOB_SIZE.into()], qualifiers };
    match try_attach(server, &[], as_json)? {
        Ok(tool) => who_answers(server, tool, &question, as_json),
        // No server was found. Files of dead ones have nothing to do with this job.
        Err(pmix::Error::NoServer { status: Status::ERR_UNREACH, .. }) if !names_any(server) => {
            say_passed_over(server, Search::unasked, as_json);
            Err(Failure::new(format!("no server of this machine that serves you knows job {job}"))
                .hint("the job has ended, or is another user's; 'px ps' lists the servers"))
        }
        Err(error) => Err(not_attached(server, &error)),
    }
}

/// The same for any other query that only the right server can answer.
pub(crate) fn attach_to_who_answers(
    server: &ServerArgs,
    question: Query,
    as_json: bool,
) -> Result<Tool, Failure> {
    who_answers(server, attach(server, as_json)?, &question, as_json)
}

fn who_answers(server: &ServerArgs, tool: Tool, question: &Query, as_json: bool) -> Result<Tool, Failure> {
    if names_any(server) || knows(&tool, question) {
        return Ok(tool);
    }
    let others = servers_here(&tool, server)?;
    Ok(who_knows(server, others, question).unwrap_or_else(|| {
        say_passed_over(server, Search::unasked, as_json);
        tool
    }))
}

/// The first of these servers that has an answer. Silent ones are waited for only if no other has one.
fn who_knows(server: &ServerArgs, found: Vec<DataArray>, question: &Query) -> Option<Tool> {
    let mut found = found.into_iter().peekable();
    while found.peek().is_some() {
        let (tell, told) = mpsc::channel();
        for about in found.by_ref().take(AT_ONCE) {
            let (tell, server, question) = (tell.clone(), server.clone(), question.clone());
            thread::spawn(move || match attach_one(&server, &about) {
                Ok(other) if knows(&other, &question) => drop(tell.send(other)),
                Ok(_) => {}
                Err(error) => tracing::info!(%error, "a server is passed over"),
            });
        }
        drop(tell);
        if let Ok(other) = told.recv() {
            return Some(other);
        }
    }
    None
}

fn knows(tool: &Tool, question: &Query) -> bool {
    tool.query(std::slice::from_ref(question)).is_ok()
}

/// The properties of each trusted server of this machine.
pub(crate) fn servers_here(tool: &Tool, server: &ServerArgs) -> Result<Vec<DataArray>, Failure> {
    let qualifiers = trusted(server);
    let queries = [Query { keys: vec![keys::QUERY_AVAIL_SERVERS.into()], qualifiers }];
    let found = tool.query(&queries).map_err(|error| failed("cannot look for servers", &error))?;
    Ok(value::records(&found, keys::QUERY_AVAIL_SERVERS))
}

/// Notes which rendezvous files of this machine lead to no usable server, and why.
pub(crate) fn say_passed_over(server: &ServerArgs, lines: fn(&Search) -> Vec<String>, as_json: bool) {
    let variable = |name: &str| std::env::var(name).ok();
    let trust = Trust::of_users(server.trust_user.iter().copied());
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let search = |wanted, dirs| lines(&Search::run(wanted, &hostname, dirs, &trust));
    let mut passed = search(Wanted::System, system_directories(None, variable));
    for one in search(Wanted::Any, nameless_directories(None, variable)) {
        if !passed.contains(&one) {
            passed.push(one);
        }
    }
    for one in passed.iter().take(MOST_NOTES) {
        hint::say(&hint::note(&format!("not asked: {one}"), as_json));
    }
    if let more @ 1.. = passed.len().saturating_sub(MOST_NOTES) {
        hint::say(&hint::note(&format!("not asked: {}", words::count(more, "more file")), as_json));
    }
}

/// Attaches to these servers in parallel, and queries each: silent ones do not delay the others. A server found by search gets less time to answer
/// than a named one.
pub(crate) fn ask_all<T: Send>(
    server: &ServerArgs,
    found: &[DataArray],
    ask: impl Fn(Tool) -> T + Sync,
) -> Vec<Result<T, pmix::Error>> {
    let attach = |about: &DataArray| attach_one(server, about).map(&ask);
    let mut all = Vec::new();
    for some in found.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let asked: Vec<_> = some.iter().map(|about| scope.spawn(|| attach(about))).collect();
            let answers = asked.into_iter().map(|one| one.join().unwrap_or(Err(pmix::Error::Ended)));
            all.extend(answers.collect::<Vec<_>>());
        });
    }
    all
}

fn attach_one(server: &ServerArgs, about: &DataArray) -> Result<Tool, pmix::Error> {
    let uri = value::find(about, keys::SERVER_URI).and_then(Value::as_str).unwrap_or_default();
    let limit = u32::try_from(PATIENCE.as_secs()).unwrap_or(u32::MAX);
    let mut info = vec![
        Info::new(keys::SERVER_URI, uri),
        Info::new(keys::CONNECT_MAX_RETRIES, 0_u32),
        Info::new(keys::TIMEOUT, limit),
    ];
    info.extend(trusted(server));
    init(&info)
}

/// What is written to our own streams we write ourselves.
pub(crate) fn init(info: &[Info]) -> Result<Tool, pmix::Error> {
    let mut info = info.to_vec();
    info.push(Info::new(keys::IOF_LOCAL_OUTPUT, false));
    Tool::init(&info)
}

/// The users that are trusted beside us and root.
fn trusted(server: &ServerArgs) -> Vec<Info> {
    server.trust_user.iter().map(|user| Info::new(TRUST_USER, *user)).collect()
}

/// A tool without a server, for what can be found without one.
pub(crate) fn alone() -> Result<Tool, Failure> {
    init(&[Info::new(keys::TOOL_DO_NOT_CONNECT, true)])
        .map_err(|error| failed("cannot become a PMIx tool", &error))
}

/// The attributes for these options.
pub(crate) fn connection(server: &ServerArgs) -> Result<Vec<Info>, Failure> {
    let mut info = Vec::new();
    info.extend(server.pid.map(|pid| Info::new(keys::SERVER_PIDINFO, Value::Pid(pid))));
    info.extend(server.nspace.as_deref().map(|nspace| Info::new(keys::SERVER_NSPACE, nspace)));
    info.extend(server.uri.as_deref().map(|uri| Info::new(keys::SERVER_URI, uri)));
    if let Some(file) = &server.file {
        info.push(Info::new(keys::TOOL_ATTACHMENT_FILE, utf8(file)?));
    }
    if server.system {
        info.push(Info::new(keys::CONNECT_TO_SYSTEM, true));
    }
    if server.system_first {
        info.push(Info::new(keys::CONNECT_SYSTEM_FIRST, true));
    }
    info.extend(trusted(server));
    if let Some(wait) = server.wait_server {
        let seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        info.push(Info::new(keys::TIMEOUT, seconds));
    }
    Ok(info)
}

pub(crate) fn names_any(server: &ServerArgs) -> bool {
    let ServerArgs { pid, nspace, uri, file, system, system_first, wait_server: _, trust_user: _ } = server;
    pid.is_some() || nspace.is_some() || uri.is_some() || file.is_some() || *system || *system_first
}

/// An error of the library, as the cause why `doing` failed.
pub(crate) fn failed(doing: &str, error: &pmix::Error) -> Failure {
    let failure = Failure::new(doing);
    match error {
        pmix::Error::NoServer { tried, .. } => failure.because(tried.join("\n").trim_start()),
        pmix::Error::Failed { status, .. } | pmix::Error::Reported { status, .. } => failure.because(status),
        error => failure.because(error),
    }
}

/// Whether the connection ended before the answer came.
pub(crate) fn is_lost(error: &pmix::Error) -> bool {
    matches!(error, pmix::Error::Failed { status: Status::ERR_LOST_CONNECTION, .. })
}

/// Waits up to `patience` for a server to end: until its address refuses connections.
pub(crate) fn ends(uri: &ServerUri, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        match TcpStream::connect_timeout(&uri.address, ONE_TRY) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return true,
            _ => thread::sleep(PAUSE),
        }
    }
    false
}

fn utf8(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| Failure::usage(format!("'{}' is not UTF-8", path.display())))
}

/// How long one of several servers may take to let us in.
const PATIENCE: Duration = Duration::from_secs(3);
const ONE_TRY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// How many unusable files are listed one by one.
const MOST_NOTES: usize = 10;
/// How many servers are queried at the same time.
const AT_ONCE: usize = 32;
