//! `px log`: the record of a job, which is what its processes and tools have logged there; or a text for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use phalanx_core::calendar;
use phalanx_dvm::names;
use phalanx_wire::plain;
use pmix::{DataArray, Info, InfoList, IofChannel, Nspace, ProcId, Query, Status, Tool, Value, keys};
use serde_json::json;

use crate::args::tools::LogArgs;
use crate::failure::Failure;
use crate::render::{hint, value};
use crate::tool::{self, job};

pub(crate) fn run(args: &LogArgs) -> Result<u8, Failure> {
    let (nspace, ranks) = job::target(&args.job)?;
    if ranks.is_some() {
        return Err(Failure::usage(format!("'{}' names ranks: a record is of a whole job", args.job)));
    }
    let words = args.message.iter().map(|word| word.to_str());
    let words =
        words.collect::<Option<Vec<_>>>().ok_or_else(|| Failure::usage("an argument is not UTF-8"))?;
    let tool = tool::attach_for(&args.server, &nspace, args.json)?;
    match words.is_empty() {
        true => show(&tool, &nspace, args.json),
        false => write(&tool, &nspace, &words.join(" ")),
    }
}

fn write(tool: &Tool, nspace: &Nspace, text: &str) -> Result<u8, Failure> {
    let doing = format!("cannot write to the record of job {nspace}");
    let said = Arc::new(Mutex::new(String::new()));
    let hears = said.clone();
    let hear = move |_: &ProcId, _: IofChannel, data: &[u8], _: &[Info]| {
        let text = String::from_utf8_lossy(data);
        hears.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    };
    tool.on_unasked_output(hear).map_err(|error| tool::failed(&doing, &error))?;
    let data = [Info::new(keys::LOG_JOB_RECORD, text)];
    tool.log(&data, &[Info::new(keys::NSPACE, nspace.as_str()).required()]).map_err(|error| {
        // The server states the reason before it answers.
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = said.trim().trim_start_matches("log to the job record failed: ");
        match (reason, error.status()) {
            ("", Status::ERR_NOT_SUPPORTED) => {
                tool::failed(&doing, &error).hint("servers of px have such records")
            }
            ("", _) => tool::failed(&doing, &error),
            (reason, _) => Failure::new(&doing).because(reason),
        }
    })?;
    Ok(0)
}

fn show(tool: &Tool, nspace: &Nspace, as_json: bool) -> Result<u8, Failure> {
    job::size(tool, nspace)?;
    let qualifiers =
        vec![Info::new(keys::NSPACE, nspace.as_str()), Info::new(names::STATE, names::LOGGED).required()];
    let found = tool.query(&[Query { keys: vec![names::HAPPENINGS.into()], qualifiers }]);
    let found = found.map_err(|error| {
        tool::failed(&format!("the server does not show the record of job {nspace}"), &error)
            .hint("only servers of px have such records")
    })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let told = found.find(names::HAPPENINGS).and_then(Value::as_array);
    let entries = told.into_iter().flat_map(DataArray::infos).filter(|info| info.key == *names::HAPPENING);
    let entries = entries.filter_map(|info| Entry::of(info.value.as_array()?));
    let text: String = entries.map(|entry| entry.show(nspace, now, as_json)).collect();
    let omitted = told.and_then(|told| value::find(told, names::OMITTED)).and_then(Value::as_u64);
    if let Some(omitted @ 1..) = omitted {
        hint::say(&hint::note(&format!("{omitted} earlier texts are not shown"), as_json));
    }
    super::print(&text)
}

/// A text of the record.
struct Entry {
    ago: Duration,
    by: ProcId,
    text: String,
    /// When it was, as its process stated: since the beginning of 1970.
    stated: Option<u64>,
}

impl Entry {
    fn of(about: &DataArray) -> Option<Entry> {
        let Value::Proc(by) = value::find(about, keys::PROCID)? else { return None };
        Some(Entry {
            ago: Duration::from_millis(value::find(about, names::AGE)?.as_u64()?),
            by: by.clone(),
            text: value::find(about, keys::LOG_MSG)?.as_text()?.to_string_lossy(),
            stated: value::find(about, keys::LOG_TIMESTAMP).and_then(Value::as_u64),
        })
    }

    fn show(&self, nspace: &Nspace, now: Duration, as_json: bool) -> String {
        let Entry { ago, by, text, stated } = self;
        if as_json {
            let by = value::json(&by.clone().into());
            let shown = json!({
                "type": "logged",
                "job": nspace.as_str(),
                "by": by,
                "seconds_ago": ago.as_secs_f64(),
                "stated": stated,
                "text": text,
            });
            return format!("{shown}\n");
        }
        let at = stated.map_or_else(|| now.saturating_sub(*ago), Duration::from_secs);
        // The lines of one text stay apart from the next text.
        let text = plain::lines(text).replace('\n', "\n  ");
        format!("{} {by}: {text}\n", moment(at))
    }
}

/// `2026-11-20T16:39:01Z`
fn moment(since: Duration) -> String {
    let (days, second) = (since.as_secs() / 86400, since.as_secs() % 86400);
    let (year, month, day) = calendar::date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_shown_with_its_time_and_process() {
        let by = ProcId::new(&Nspace::new("a@1").expect("a name"), pmix::Rank(2));
        let about = |more: Option<Info>| {
            DataArray::of_infos(
                [
                    Info::new(names::AGE, 1_500_u64),
                    Info::new(keys::PROCID, by.clone()),
                    Info::new(keys::LOG_MSG, "one\ntwo"),
                ]
                .into_iter()
                .chain(more),
            )
        };
        let now = Duration::from_secs(1_795_192_742);
        let show = |about: &DataArray, as_json| {
            Entry::of(about).map(|entry| entry.show(&by.nspace, now, as_json)).expect("an entry")
        };
        assert_eq!(show(&about(None), false), "2026-11-20T16:39:00Z a@1:2: one\n  two\n");
        let stated = Info::new(keys::LOG_TIMESTAMP, Value::Time(0));
        assert_eq!(show(&about(Some(stated)), false), "1970-01-01T00:00:00Z a@1:2: one\n  two\n");
        let shown: serde_json::Value = serde_json::from_str(&show(&about(None), true)).expect("JSON");
        assert_eq!((&shown["seconds_ago"], &shown["by"]["rank"]), (&json!(1.5), &json!(2)));
        assert_eq!((&shown["text"], &shown["stated"]), (&json!("one\ntwo"), &json!(null)));
    }
}
