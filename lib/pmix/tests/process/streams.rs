//! Output of a job that a tool has spawned, which it writes itself, in the style that its server was started with.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use phalanx_spec::{IofChannel, Rank, keys};
use phalanx_wire::{Info, Nspace, ProcId};
use pmix::server::{SpawnRequest, ToolRequest};
use pmix::{App, Done, Host, Server, ServerOptions, Tool};

use crate::{PATIENCE, Stage};

const FILE: &str = "PHALANX_PMIX_SERVER_FILE";
const FORMS: &str = "PHALANX_PMIX_SPAWN_FORMS";

/// Admits all tools, and starts nothing.
struct Starter;

impl Host for Starter {
    fn tool_connected(&mut self, _: ToolRequest, done: Done<ProcId>) {
        done.complete(ProcId::new(&Nspace::new("tool").unwrap(), Rank(0)));
    }
    fn spawn(&mut self, request: SpawnRequest, done: Done<Nspace>) {
        assert!(
            request.job.iter().all(|info| !info.key.as_str().starts_with("phalanx.")),
            "{:?}",
            request.job
        );
        done.complete(Nspace::new("starter@7").unwrap());
    }
}

pub(crate) fn host(stage: Stage) {
    // The style in the spawn, and the visible line.
    for (forms, line) in [
        ("", "[7,2]<stdout>: words\n"),
        ("local", "[7,2]<stdout>: words\n"),
        ("rank", "2: words\n"),
        ("plain", "words\n"),
        ("xml", "<?xml version"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("server");
        let options = ServerOptions {
            tool_support: true,
            server_tmpdir: place.path().to_str().map(str::to_owned),
            rendezvous_file: Some(file.clone()),
            output: vec![Info::new(keys::IOF_TAG_OUTPUT, true)],
            ..ServerOptions::default()
        };
        let server = Server::start(options, Starter).unwrap();
        let mut tool = stage.start_with(|command| {
            let from_here = command.env(FILE, &file).env(FORMS, forms);
            from_here.stdin(Stdio::piped()).stdout(Stdio::piped());
        });
        let writer = ProcId::new(&Nspace::new("starter@7").unwrap(), Rank(2));
        let began = Instant::now();
        while server.iof_deliver(&writer, IofChannel::STDOUT, b"words\n"[..].into(), &[]).is_err() {
            assert!(began.elapsed() < PATIENCE, "nobody wants the output");
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut output = BufReader::new(tool.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        assert!(first.starts_with(line), "{forms}: {first}");
        drop(tool.stdin.take());
        stage.wait(tool);
    }
}

/// Spawns, and leaves when its standard input ends.
pub(crate) fn tool() {
    let uri = format!("file:{}", std::env::var(FILE).unwrap());
    let tool = Tool::init(&[Info::new(keys::SERVER_URI, uri)]).unwrap();
    let job = match std::env::var(FORMS).unwrap().as_str() {
        "local" => vec![Info::new(keys::IOF_LOCAL_OUTPUT, true)],
        "rank" => vec![Info::new(keys::IOF_RANK_OUTPUT, true), Info::new(keys::IOF_TAG_OUTPUT, false)],
        "plain" => vec![Info::new(keys::IOF_TAG_OUTPUT, false)],
        "xml" => vec![Info::new(keys::IOF_XML_OUTPUT, true)],
        _ => vec![],
    };
    let app = App { cmd: Some("words".into()), max_procs: 3, ..App::default() };
    assert_eq!(tool.spawn(&job, &[app]).unwrap().as_str(), "starter@7");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
