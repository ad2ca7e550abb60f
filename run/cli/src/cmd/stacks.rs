//! `px stacks`: where the ranks of a job are, as one tree of their stacks.

use phalanx_dvm::{Ranges, names};
use pmix::{DataArray, Info, InfoList, Query, Value, keys};
use serde_json::json;

use crate::args::tools::RanksArgs;
use crate::failure::{EXIT_FAILURE, Failure};
use crate::render::stacks::{Stack, tree};
use crate::render::{hint, value, words};
use crate::tool::{self, job};

pub(crate) fn run(args: &RanksArgs) -> Result<u8, Failure> {
    let (tool, nspace, ranks) = job::attach(args)?;
    let mut qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
    qualifiers.extend(ranks.map(|ranks| Info::new(names::WHICH, ranks.to_string()).required()));
    let query = Query { keys: vec![names::STACKS.into()], qualifiers };
    let info = tool.query(&[query]).map_err(|error| {
        tool::failed(&format!("the server does not show the stacks of job {nspace}"), &error)
            .hint("the job may have ended, or the server is none of px: the standard has no such query")
    })?;
    let found = info.find(names::STACKS).and_then(Value::as_array);
    let stacks: Vec<Stack> = records(found, names::STACK).filter_map(stack).collect();
    let unread: Vec<(Ranges, String)> = records(found, names::UNREAD).filter_map(unread).collect();
    if args.json {
        let all = json!({
            "type": "stacks",
            "job": nspace.to_string(),
            "stacks": stacks.iter().map(Stack::json).collect::<Vec<_>>(),
            "unread": unread
                .iter()
                .map(|(ranks, why)| json!({ "ranks": ranks.to_string(), "why": why }))
                .collect::<Vec<_>>(),
        });
        super::print(&format!("{all}\n"))?;
    } else {
        super::print(&tree(&stacks))?;
        for (ranks, why) in &unread {
            let ranks = words::ranks(&ranks.iter().collect::<Vec<_>>());
            hint::say(&hint::note(&format!("no stacks of {ranks}: {why}"), false));
        }
    }
    Ok(if stacks.is_empty() { EXIT_FAILURE } else { 0 })
}

fn records<'a>(found: Option<&'a DataArray>, key: &'static str) -> impl Iterator<Item = &'a DataArray> {
    let infos = found.into_iter().flat_map(DataArray::infos);
    infos.filter(move |info| info.key == *key).filter_map(|info| info.value.as_array())
}

fn stack(about: &DataArray) -> Option<Stack> {
    let text = |key| value::find(about, key).and_then(Value::as_str);
    let frames = value::find(about, names::FRAMES).and_then(Value::as_array)?;
    Some(Stack {
        program: text(keys::CMD_LINE)?.to_owned(),
        frames: frames.items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        ranks: text(names::WHICH)?.parse().ok()?,
        threads: value::find(about, names::COUNT).and_then(Value::as_u32)?,
    })
}

fn unread(about: &DataArray) -> Option<(Ranges, String)> {
    let text = |key| value::find(about, key).and_then(Value::as_str);
    Some((text(names::WHICH)?.parse().ok()?, text(names::REASON)?.to_owned()))
}
