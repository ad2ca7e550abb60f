//! What happened to jobs before `px events` began, from the server's journals.

use std::time::Duration;

use phalanx_dvm::names;
use pmix::{DataArray, Event, Info, InfoList, Query, Status, Tool, Value, keys};
use serde_json::json;

use crate::failure::Failure;
use crate::render::{hint, value, words};
use crate::tool;

#[derive(Debug, Default)]
pub(super) struct Past {
    /// The oldest first.
    pub(super) happenings: Vec<DataArray>,
    /// Everything up to this number was listed.
    last: u64,
    /// How many more the server has forgotten.
    omitted: u64,
}

impl Past {
    /// `codes`: only what these events report; empty: everything.
    pub(super) fn of(tool: &Tool, since: Duration, codes: &[Status]) -> Result<Past, Failure> {
        let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let qualifiers = vec![Info::new(names::SINCE, since)];
        let query = Query { keys: vec![names::HAPPENINGS.into()], qualifiers };
        let found = tool.query(&[query]).map_err(|error| {
            tool::failed("the server does not tell what has happened to its jobs", &error)
        })?;
        let Some(told) = found.find(names::HAPPENINGS).and_then(Value::as_array) else {
            return Ok(Past::default());
        };
        let number = |key| value::find(told, key).and_then(Value::as_u64).unwrap_or_default();
        let (last, omitted) = (number(names::NUMBER), number(names::OMITTED));
        let is_wanted =
            |about: &DataArray| codes.is_empty() || code(about).is_some_and(|c| codes.contains(&c));
        let all = told.infos().filter(|info| info.key == *names::HAPPENING);
        let happenings = all.filter_map(|info| info.value.as_array().cloned()).filter(is_wanted).collect();
        Ok(Past { happenings, last, omitted })
    }

    /// Notes if something is missing.
    pub(super) fn warn(&self, json: bool) {
        if self.omitted > 0 {
            let text = format!("{} more things have happened, which are not listed", self.omitted);
            hint::say(&hint::note(&text, json));
        }
    }

    /// Whether this event is one of them.
    pub(super) fn has(&self, event: &Event) -> bool {
        let number = event.info.find(names::NUMBER).and_then(Value::as_u64);
        number.is_some_and(|number| number <= self.last)
    }
}

fn code(about: &DataArray) -> Option<Status> {
    match value::find(about, names::CODE)? {
        Value::Status(code) => Some(*code),
        _ => None,
    }
}

/// `12.3 s ago: placed px-n1-7@7 PMIX_JOB_SIZE=4`
pub(super) fn show(about: &DataArray, as_json: bool) -> String {
    let text = |key| value::find(about, key).and_then(Value::as_str).unwrap_or_default();
    let ago = value::find(about, names::AGE).and_then(Value::as_u64).unwrap_or_default();
    let ago = Duration::from_millis(ago);
    let (what, job) = (text(names::STATE), text(keys::NSPACE));
    let shown = [names::STATE, names::AGE, names::NUMBER, names::CODE, keys::NSPACE];
    let facts = about.infos().filter(|info| !shown.iter().any(|key| info.key == **key));
    if as_json {
        let code = code(about);
        let facts: Vec<Info> = facts.cloned().collect();
        return json!({
            "happened": what,
            "seconds_ago": ago.as_secs_f64(),
            "job": job,
            "code": code.and_then(Status::name),
            "info": value::object(&facts),
        })
        .to_string();
    }
    let name = |key| value::name_of(key).trim_start_matches("phalanx.").to_owned();
    let facts = facts.map(|info| format!(" {}={}", name(info.key.as_str()), info.value));
    format!("{} ago: {what} {job}{}", words::duration(ago), facts.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_past_event_is_shown_in_one_line() {
        let about = DataArray::of_infos([
            Info::new(names::NUMBER, 7_u64),
            Info::new(names::AGE, 12_300_u64),
            Info::new(keys::NSPACE, "a@1"),
            Info::new(names::STATE, "failed"),
            Info::new(names::CODE, Status::EVENT_PROC_TERMINATED),
            Info::new(names::WHICH, "2,5-7"),
            Info::new(keys::EXIT_CODE, 3_i32),
        ]);
        assert_eq!(show(&about, false), "12 s ago: failed a@1 of_ranks=2,5-7 PMIX_EXIT_CODE=3");
        let shown: serde_json::Value = serde_json::from_str(&show(&about, true)).expect("JSON");
        assert_eq!((&shown["happened"], &shown["seconds_ago"]), (&json!("failed"), &json!(12.3)));
        assert_eq!(shown["code"], "PMIX_EVENT_PROC_TERMINATED");
        assert_eq!(shown["info"]["PMIX_EXIT_CODE"], 3);
    }

    #[test]
    fn events_that_were_shown_are_not_shown_again() {
        let past = Past { last: 7, ..Past::default() };
        let event = |number: Option<u64>| Event {
            code: Status::EVENT_JOB_END,
            source: pmix::ProcId::all(&pmix::Nspace::new("a@1").expect("a name")),
            range: phalanx_spec::Range::SESSION,
            info: number.map(|number| Info::new(names::NUMBER, number)).into_iter().collect(),
        };
        assert_eq!([Some(7), Some(8), None].map(|number| past.has(&event(number))), [true, false, false]);
    }
}
