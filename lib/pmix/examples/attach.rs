//! A tool: attaches to a server of this machine and prints what runs there.
//!
//! ```text
//! cargo run -p pmix --example attach -- pmix.srvr.pidinfo=PID
//! ```
//!
//! Arguments are attributes that select the server; without any, the newest server found. After `--`: `me`, `servers`,
//! `query`, `table NSPACE`, `available`, `spawn COMMAND`, `attach KEY=VALUE`, `detach NSPACE`, `primary NSPACE`.

use std::process::ExitCode;
use std::time::Instant;

use pmix::{App, Info, Key, Nspace, ProcId, Query, Rank, Text, Tool, Value, keys};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("init failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let named = words.by_ref().take_while(|word| word != "--");
    let info = named.map(|word| directive(&word)).collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let tool = Tool::init(&info)?;
    eprintln!("init took {:.2} ms", began.elapsed().as_secs_f64() * 1e3);
    println!("init SUCCESS");
    while let Some(verb) = words.next() {
        let mut word = || words.next().ok_or(format!("{verb} needs more words"));
        match verb.as_str() {
            "me" => println!("me {} {}", tool.proc().nspace, tool.proc().rank),
            "servers" => println!("servers {}", servers(&tool)?),
            "query" => {
                println!("query {}", told(tool.query(&[question(keys::QUERY_NAMESPACES, Vec::new())])))
            }
            "table" => {
                let nspace = [Info::new(keys::NSPACE, word()?)];
                println!("table {}", told(tool.query(&[question(keys::QUERY_PROC_TABLE, nspace.to_vec())])));
            }
            "available" => {
                println!(
                    "available {}",
                    told(tool.query(&[question(keys::QUERY_AVAIL_SERVERS, Vec::new())]))
                );
            }
            "spawn" => {
                let argv = ["sh", "-c", &word()?].map(Text::from).to_vec();
                let app = App { cmd: Some("/bin/sh".into()), argv, max_procs: 1, ..App::default() };
                match tool.spawn(&[], &[app]) {
                    Ok(child) => println!("spawn {child}"),
                    Err(error) => println!("spawn failed: {error}"),
                }
            }
            "attach" => match tool.attach(&[directive(&word()?)?]) {
                Ok(server) => println!("attach {server}"),
                Err(error) => println!("attach failed: {error}"),
            },
            "detach" => println!("detach {:?}", tool.detach(&server(&word()?)?)),
            "primary" => println!("primary {:?}", tool.set_server(&server(&word()?)?, &[])),
            other => return Err(format!("what is {other}?").into()),
        }
    }
    let began = Instant::now();
    tool.close(&[])?;
    eprintln!("finalize took {:.2} ms", began.elapsed().as_secs_f64() * 1e3);
    println!("finalize SUCCESS");
    Ok(())
}

/// `KEY=VALUE`; a key alone is a flag.
fn directive(word: &str) -> Result<Info, Failure> {
    let (key, value) = match word.split_once('=') {
        None => (word, Value::Bool(true)),
        Some((key, text)) => match text.parse::<u32>() {
            Ok(number) if key == keys::SERVER_PIDINFO => (key, Value::Pid(number)),
            Ok(number) => (key, Value::Uint32(number)),
            Err(_) => (key, text.into()),
        },
    };
    Ok(Info { key: Key::new(key)?, flags: Default::default(), value })
}

fn question(key: &str, qualifiers: Vec<Info>) -> Query {
    Query { keys: vec![key.into()], qualifiers }
}

fn server(nspace: &str) -> Result<ProcId, Failure> {
    Ok(ProcId::new(&Nspace::new(nspace)?, Rank(0)))
}

fn servers(tool: &Tool) -> Result<String, Failure> {
    let all: Vec<String> = tool.servers()?.iter().map(|it| it.server.nspace.to_string()).collect();
    Ok(all.join(" "))
}

fn told(result: Result<Vec<Info>, pmix::Error>) -> String {
    match result {
        Ok(answers) => {
            let answers: Vec<String> = answers.iter().map(|answer| format!("{:?}", answer.value)).collect();
            format!("SUCCESS {}", answers.join(" "))
        }
        Err(error) => format!("failed: {error}"),
    }
}
