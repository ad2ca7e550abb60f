//! `px why`: which operations wait, which process requested them, which ranks are missing, and since when.

use std::time::Duration;

use phalanx_dvm::names;
use phalanx_wire::plain;
use pmix::{DataArray, Query, Tool, Value, keys};

use crate::args::tools::WhyArgs;
use crate::failure::Failure;
use crate::render::{hint, value, words};
use crate::tool::{self, choice};

pub(crate) fn run(args: &WhyArgs) -> Result<u8, Failure> {
    let is_named = tool::names_any(&args.server) || choice::is_named_by_environment();
    let waits = if is_named { waits(&tool::attach(&args.server, args.json)?)? } else { everywhere(args)? };
    let shown: String = match args.json {
        true => waits.iter().map(|wait| format!("{}\n", value::object(wait.infos()))).collect(),
        false if waits.is_empty() => "nothing is waiting\n".to_owned(),
        false => waits.iter().map(sentence).collect(),
    };
    super::print(&shown)
}

/// The waits at all servers of this machine. Servers that refuse us, or do not answer, are listed.
fn everywhere(args: &WhyArgs) -> Result<Vec<DataArray>, Failure> {
    let servers = tool::servers_here(&tool::alone()?, &args.server)?;
    if servers.is_empty() {
        // Reports where it has looked, or waits for a server.
        return waits(&tool::attach(&args.server, args.json)?);
    }
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    let asked = tool::ask_all(&args.server, &servers, |tool| waits(&tool));
    for (about, asked) in servers.iter().zip(asked) {
        let asked = asked.map_err(|error| tool::failed("cannot attach to it", &error));
        match asked.and_then(|waits| waits) {
            Ok(waits) => all.extend(waits),
            Err(failure) => failures.push((text(about, keys::NSPACE), failure)),
        }
    }
    if failures.len() == servers.len()
        && let Some((_, failure)) = failures.pop()
    {
        return Err(failure);
    }
    for (name, failure) in failures {
        hint::say(&hint::note(&format!("server {name}: {failure}"), args.json));
    }
    Ok(all)
}

fn waits(tool: &Tool) -> Result<Vec<DataArray>, Failure> {
    let query = Query { keys: vec![names::WAITS.into()], qualifiers: Vec::new() };
    let info = tool.query(&[query]).map_err(|error| {
        tool::failed("the server does not say who is waiting", &error)
            .hint("only servers of px can: the standard has no such query")
    })?;
    let mut waits = value::records(&info, names::WAITS);
    // Our own query is one of the waits.
    waits.retain(|wait| text(wait, names::OPERATION) != "query");
    Ok(waits)
}

/// `a fence of a@1:0-3 on host n1 waits 2.1 s for a@1:2, asked by a@1:0 (ends with ...)`
fn sentence(wait: &DataArray) -> String {
    let age = value::find(wait, names::AGE).and_then(Value::as_u64).unwrap_or(0);
    let mut line = text(wait, names::OPERATION);
    let subject = text(wait, names::SUBJECT);
    if !subject.is_empty() {
        line.push_str(&format!(" of {subject}"));
    }
    line.push_str(&format!(
        " on {} has waited {}",
        text(wait, keys::HOSTNAME),
        words::duration(Duration::from_millis(age))
    ));
    let by = if text(wait, names::OPERATION) == "output" { "written by" } else { "asked by" };
    for (key, word) in [(names::MISSING, "for"), (names::ASKED_BY, by)] {
        let procs = value::find(wait, key).and_then(Value::as_array);
        let procs: Vec<String> = procs.into_iter().flat_map(|all| &all.items).map(Value::to_string).collect();
        if !procs.is_empty() {
            line.push_str(&format!("\n  {word} {}", procs.join(" ")));
        }
    }
    line.push_str(&format!("\n  ends with {}\n", text(wait, names::UNBLOCKED_BY)));
    line
}

fn text(wait: &DataArray, key: &str) -> String {
    plain::line(value::find(wait, key).and_then(Value::as_str).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use phalanx_spec::DataType;
    use pmix::{Info, Nspace, ProcId, Rank};

    use super::*;

    #[test]
    fn a_wait_is_shown_with_requesters_and_missing_ranks() {
        let proc = |rank| Value::Proc(ProcId::new(&Nspace::new("a@1").expect("a name"), Rank(rank)));
        let procs =
            |ranks: &[u32]| DataArray { of: DataType::PROC, items: ranks.iter().map(|r| proc(*r)).collect() };
        let wait = DataArray::of_infos([
            Info::new(names::OPERATION, "fence"),
            Info::new(names::SUBJECT, "a@1:*"),
            Info::new(keys::HOSTNAME, "n1"),
            Info::new(names::AGE, 2_100_u64),
            Info::new(names::MISSING, procs(&[2, 3])),
            Info::new(names::ASKED_BY, procs(&[0])),
            Info::new(names::UNBLOCKED_BY, "the missing ones calling it"),
        ]);
        assert_eq!(
            sentence(&wait),
            "fence of a@1:* on n1 has waited 2.1 s\n  for a@1:2 a@1:3\n  asked by a@1:0\n  ends with the missing ones calling it\n"
        );
    }
}
