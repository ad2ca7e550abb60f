//! `px ctl status` and `px ctl cancel`: requests with a name.

use std::time::Duration;

use phalanx_dvm::names;
use pmix::{DataArray, Info, Query, Tool, Value, keys};
use serde_json::json;

use super::{RankResults, results_of};
use phalanx_wire::plain;

use crate::args::control::RequestArgs;
use crate::failure::{EXIT_FAILURE, Failure};
use crate::render::{value, words};
use crate::tool;

/// Exits with 0 if all results shown are successes.
pub(super) fn status(args: &RequestArgs) -> Result<u8, Failure> {
    let (tool, question) = server_of(args)?;
    let found = tool.query(&[question]).map_err(|error| {
        tool::failed(&format!("the server knows no request '{}'", args.id), &error)
            .hint("requests are forgotten ten minutes after their answer")
    })?;
    let mut code = 0;
    for request in value::records(&found, names::REQUESTS) {
        let text = if args.json { in_json(&args.id, &request) } else { in_words(&args.id, &request) };
        super::super::print(&text)?;
        let well = matches!(value::find(&request, names::STATUS), Some(Value::Status(status)) if status.is_success());
        code = code.max(if well { 0 } else { EXIT_FAILURE });
    }
    Ok(code)
}

pub(super) fn cancel(args: &RequestArgs) -> Result<u8, Failure> {
    let (tool, _) = server_of(args)?;
    let directive = Info::new(keys::JOB_CTRL_CANCEL, args.id.as_str());
    tool.job_control(&[], &[directive])
        .map_err(|error| tool::failed(&format!("no request '{}' is under way", args.id), &error))?;
    let text = match args.json {
        true => format!("{}\n", json!({ "request": args.id, "state": "cancelled" })),
        false => format!("{}: cancelled\n", args.id),
    };
    super::super::print(&text)
}

/// The server that knows the request, and the query for it.
fn server_of(args: &RequestArgs) -> Result<(Tool, Query), Failure> {
    let qualifiers = vec![Info::new(keys::JOB_CTRL_ID, args.id.as_str())];
    let question = Query { keys: vec![names::REQUESTS.into()], qualifiers };
    Ok((tool::attach_to_who_answers(&args.server, question.clone(), args.json)?, question))
}

/// The results for the ranks of each job.
fn results(request: &DataArray) -> Vec<(String, RankResults)> {
    let results = request.infos().filter(|info| info.key == *names::RESULT);
    let told = results.filter_map(|info| {
        let job = value::find(info.value.as_array()?, keys::NSPACE)?.as_str()?.to_owned();
        Some((job, results_of(std::slice::from_ref(info)).pop()?))
    });
    told.collect()
}

fn in_words(id: &str, request: &DataArray) -> String {
    let state = plain::line(value::find(request, names::STATE).and_then(Value::as_str).unwrap_or_default());
    let millis = value::find(request, names::AGE).and_then(Value::as_u64).unwrap_or_default();
    let age = words::duration(Duration::from_millis(millis));
    let mut text = match value::find(request, names::STATUS) {
        Some(Value::Status(status)) if status.is_success() => format!("{id}: {state} {age} ago\n"),
        Some(status) => format!("{id}: {state} {age} ago: {status}\n"),
        None => format!("{id}: {state} for {age}\n"),
    };
    for (job, told) in results(request) {
        let ranks = words::ranks(&told.ranks.iter().collect::<Vec<_>>());
        let what = match told.status {
            status if status.is_success() => "done".to_owned(),
            pmix::Status::OPERATION_IN_PROGRESS => "waited for".to_owned(),
            _ => told.why(),
        };
        text += &plain::line(&format!("{job}: {ranks}: {what}"));
        text.push('\n');
    }
    text
}

fn in_json(id: &str, request: &DataArray) -> String {
    let results = results(request).into_iter().map(|(job, RankResults { status, ranks, .. })| {
        json!({ "job": job, "ranks": ranks.to_string(), "status": status.to_string(), "number": status.0 })
    });
    let mut shown = json!({ "request": id, "results": results.collect::<Vec<_>>() });
    for (name, key) in
        [("state", names::STATE), ("status", names::STATUS), ("age_ms", names::AGE), ("by", keys::PROCID)]
    {
        if let (Some(value), Some(shown)) = (value::find(request, key), shown.as_object_mut()) {
            shown.insert(name.to_owned(), value::json(value));
        }
    }
    format!("{shown}\n")
}
