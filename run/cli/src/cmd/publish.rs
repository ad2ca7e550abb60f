//! `px publish`, `px lookup` and `px unpublish`: values for others, found by key.
//!
//! Published values belong to their publisher, so all calls of one user share one name: a later call can withdraw what an earlier one has published.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use phalanx_spec::Persistence;
use phalanx_wire::plain;
use pmix::{Info, InfoFlags, Key, Range, Status, Tool, keys};
use serde_json::json;

use crate::args::tools::{LookupArgs, PersistWord, PublishArgs, RangeWord, ServerArgs, UnpublishArgs};
use crate::failure::Failure;
use crate::render::{hint, value};
use crate::tool::{
    self,
    choice::{self, Requirement},
};

pub(crate) fn publish(args: &PublishArgs) -> Result<u8, Failure> {
    let mut info = vec![
        Info::new(keys::RANGE, range(args.range)),
        Info::new(keys::PERSISTENCE, persistence(args.persist)),
    ];
    for word in &args.data {
        let (key, value) = datum(word)?;
        let name = Key::new(&key)
            .map_err(|why| Failure::usage(format!("'{key}' is not a valid key")).because(why))?;
        info.push(Info { key: name, flags: InfoFlags::empty(), value: value.into() });
    }
    let publisher = Publisher::attach(&args.server, args.json)?;
    publisher.tool.publish(&info).map_err(|error| {
        let failure = tool::failed("cannot publish", &error);
        match error.status() {
            Status::ERR_DUPLICATE_KEY => {
                failure.hint("'px unpublish' withdraws what 'px publish' has published")
            }
            _ => failure,
        }
    })?;
    if !publisher.is_known {
        hint::say(&hint::note(
            "the server did not accept the name of 'px publish', so nobody can withdraw this",
            args.json,
        ));
    }
    Ok(0)
}

pub(crate) fn lookup(args: &LookupArgs) -> Result<u8, Failure> {
    let keys: Vec<&str> = args.keys.iter().map(String::as_str).collect();
    let tool = tool::attach(&choice::only_one(&args.server, Requirement::Any)?, args.json)?;
    let mut info = Vec::new();
    if let Some(wait) = args.wait {
        let seconds = i32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(i32::MAX);
        info.extend([Info::new(keys::WAIT, 0_i32), Info::new(keys::TIMEOUT, seconds)]);
    }
    let found = tool.lookup(&keys, &info).map_err(|error| match error.status() {
        Status::ERR_TIMEOUT => Failure::new(format!("nobody has published all of {} in time", quoted(&keys))),
        Status::ERR_NOT_FOUND => Failure::new(format!("nobody has published {}", quoted(&keys))),
        _ => tool::failed("cannot look up", &error),
    })?;
    let text: String = match args.json {
        true => found
            .iter()
            .map(|data| {
                let by = value::json(&data.proc.clone().into());
                format!(
                    "{}\n",
                    json!({ "key": data.key.as_str(), "value": value::json(&data.value), "by": by })
                )
            })
            .collect(),
        false => found
            .iter()
            .map(|data| format!("{} = {}\n", plain::line(data.key.as_str()), data.value))
            .collect(),
    };
    super::print(&text)?;
    let missing: Vec<&str> =
        keys.into_iter().filter(|key| !found.iter().any(|data| data.key == *key)).collect();
    match missing.is_empty() {
        true => Ok(0),
        false => Err(Failure::new(format!("nobody has published {}", quoted(&missing)))),
    }
}

fn quoted(keys: &[&str]) -> String {
    format!("'{}'", keys.join("', '"))
}

pub(crate) fn unpublish(args: &UnpublishArgs) -> Result<u8, Failure> {
    let keys: Vec<&str> = args.keys.iter().map(String::as_str).collect();
    let Publisher { tool, is_known } = Publisher::attach(&args.server, args.json)?;
    if !is_known {
        return Err(Failure::new("cannot withdraw: the server does not recognise 'px publish'")
            .hint("OpenPMIx servers refuse a name that a tool has used before"));
    }
    tool.unpublish(&keys, &[Info::new(keys::RANGE, range(args.range))])
        .map_err(|error| tool::failed("cannot withdraw", &error))?;
    Ok(0)
}

/// A tool that publishes.
struct Publisher {
    tool: Tool,
    /// Under the name that all calls of this user share.
    is_known: bool,
}

impl Publisher {
    /// Attaches under this user's name for publishing; if another call has it just now, that one will be done soon.
    fn attach(server: &ServerArgs, as_json: bool) -> Result<Publisher, Failure> {
        let server = &choice::only_one(server, Requirement::Any)?;
        let name = format!("px-publisher-{}", rustix::process::geteuid().as_raw());
        let own = [Info::new(keys::TOOL_NSPACE, name), Info::new(keys::TOOL_RANK, pmix::Rank(0))];
        let until = Instant::now() + PATIENCE;
        loop {
            match tool::attach_as(server, &own, as_json) {
                Ok(tool) => return Ok(Publisher { tool, is_known: true }),
                Err(failure) if failure.to_string().contains("PMIX_ERR_EXISTS") && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                // Servers of OpenPMIx accept no name a second time.
                Err(failure) => {
                    let tool = tool::attach(server, as_json).map_err(|_| failure)?;
                    return Ok(Publisher { tool, is_known: false });
                }
            }
        }
    }
}

fn datum(word: &OsString) -> Result<(String, String), Failure> {
    let text = word.to_str().ok_or_else(|| Failure::usage("an argument is not UTF-8"))?;
    match text.split_once('=') {
        Some((key, _)) if key.starts_with("pmix") => {
            Err(Failure::usage(format!("'{key}' is a key of the PMIx standard"))
                .hint("choose one that does not begin with 'pmix'"))
        }
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!("'{text}' is not of the form KEY=VALUE"))),
    }
}

fn range(word: RangeWord) -> Range {
    match word {
        RangeWord::Local => Range::LOCAL,
        RangeWord::Session => Range::SESSION,
        RangeWord::Global => Range::GLOBAL,
    }
}

fn persistence(word: PersistWord) -> Persistence {
    match word {
        PersistWord::FirstRead => Persistence::FIRST_READ,
        PersistWord::Session => Persistence::SESSION,
        PersistWord::Indefinite => Persistence::INDEF,
    }
}

const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_keys_with_values() {
        let datum = |word: &str| datum(&word.into()).map_err(|failure| failure.exit_code);
        assert_eq!(datum("port=tcp://a=b"), Ok(("port".into(), "tcp://a=b".into())));
        assert_eq!(datum("empty="), Ok(("empty".into(), String::new())));
        assert_eq!((datum("port"), datum("=x"), datum("pmix.x=1")), (Err(2), Err(2), Err(2)));
    }
}
