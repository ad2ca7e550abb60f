//! `px events`: follows the events of a server until the server is gone, or Ctrl-C; or shows what has happened.

mod past;

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use phalanx_spec::Range;
use phalanx_wire::plain;
use pmix::{Event, Info, Status, Verdict};
use serde_json::json;

use crate::args::nearest::{ending_in, nearest};
use crate::args::tools::EventsArgs;
use crate::failure::Failure;
use crate::render::{hint, value};
use crate::tool::{
    self,
    choice::{self, Requirement},
};

use past::Past;

pub(crate) fn run(args: &EventsArgs) -> Result<u8, Failure> {
    let mut codes = args.code.iter().map(|word| code(word)).collect::<Result<Vec<_>, _>>()?;
    let wanted_codes = codes.clone();
    let tool = tool::attach(&choice::only_one(&args.server, Requirement::Any)?, args.json)?;
    // Without this event, the end of the server would go unnoticed.
    let asked_for_loss = codes.is_empty() || codes.contains(&Status::ERR_LOST_CONNECTION);
    if !asked_for_loss {
        codes.push(Status::ERR_LOST_CONNECTION);
    }
    let (told, events) = mpsc::sync_channel(QUEUE);
    let lost = Arc::new(AtomicU64::new(0));
    // Handlers without a code are spared many events, so all codes with a name are also requested by name.
    let named: Vec<Status> = Status::all().filter(|code| *code != Status::SUCCESS).collect();
    let wanted = if codes.is_empty() { vec![named, codes] } else { vec![codes] };
    for codes in wanted {
        let (told, missed) = (told.clone(), lost.clone());
        tool.register_event_handler(&codes, &[], move |event: &Event, _: &[Info]| {
            // A slow reader loses the newest events rather than stopping the library. After the last event nothing can be held up.
            let is_missed = match event.code {
                Status::ERR_LOST_CONNECTION => told.send(event.clone()).is_err(),
                _ => told.try_send(event.clone()).is_err(),
            };
            missed.fetch_add(u64::from(is_missed), Ordering::Relaxed);
            Verdict { status: Status::EVENT_ACTION_COMPLETE, results: Vec::new() }
        })
        .map_err(|error| tool::failed("cannot follow events", &error))?;
    }
    drop(told);
    let mut shown = 0;
    let is_enough = |shown: u64| args.count.is_some_and(|count| shown >= count);
    let mut past = Past::default();
    if let Some(since) = args.since {
        past = Past::of(&tool, since, &wanted_codes)?;
        past.warn(args.json);
        for line in past.happenings.iter().map(|about| past::show(about, args.json)) {
            if !say(&line) {
                return Ok(0);
            }
            shown += 1;
            if is_enough(shown) {
                return Ok(0);
            }
        }
        if !args.follow {
            return Ok(0);
        }
    }
    while let Ok(event) = events.recv() {
        // Already shown, in its place among the others.
        if past.has(&event) {
            continue;
        }
        let missed = lost.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let text = format!("{missed} events are missing: they came faster than they were read");
            hint::say(&hint::note(&text, args.json));
        }
        let is_last = event.code == Status::ERR_LOST_CONNECTION;
        if !is_last || asked_for_loss {
            if !say(&show(&event, args.json)) {
                return Ok(0);
            }
            shown += 1;
        }
        if is_last || is_enough(shown) {
            break;
        }
    }
    Ok(0)
}

/// False: standard output has no reader any more.
fn say(line: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", plain::line(line)).and_then(|()| stdout.flush()).is_ok()
}

fn show(event: &Event, as_json: bool) -> String {
    let Event { code, source, range, info } = event;
    if as_json {
        return json!({
            "code": code.name(),
            "number": code.0,
            "source": value::json(&source.clone().into()),
            "range": range.name().filter(|_| *range != Range::UNDEF),
            "info": value::object(info),
        })
        .to_string();
    }
    let about: Vec<String> =
        info.iter().map(|info| format!("{}={}", value::name_of(info.key.as_str()), info.value)).collect();
    format!("{code} from {source} {}", about.join(" ")).trim_end().to_owned()
}

/// A code by its name, with or without `PMIX_`, or by its number.
fn code(word: &str) -> Result<Status, Failure> {
    if let Ok(number) = word.parse() {
        return Ok(Status(number));
    }
    let full = if word.starts_with("PMIX_") { word.to_owned() } else { format!("PMIX_{word}") };
    Status::from_name(&full).ok_or_else(|| {
        let names: Vec<&str> = Status::all().filter_map(Status::name).collect();
        let failure = Failure::usage(format!("there is no event '{word}'"));
        match nearest(&full, &names).or_else(|| ending_in(word, &names)) {
            Some(nearest) => failure.hint(format!("the nearest is '{nearest}'")),
            None => failure.hint("without '--code' all events are followed"),
        }
    })
}

/// How many events a slow reader may be behind.
const QUEUE: usize = 4096;

#[cfg(test)]
mod tests {
    use pmix::{Nspace, ProcId, Rank, keys};

    use super::*;

    #[test]
    fn codes_have_names_and_numbers() {
        assert_eq!(code("EVENT_JOB_END").ok(), Some(Status::EVENT_JOB_END));
        assert_eq!(code("PMIX_EVENT_JOB_END").ok(), Some(Status::EVENT_JOB_END));
        assert_eq!(code("-145").ok(), Some(Status(-145)));
        assert_eq!(
            code("EVENT_JOB_ENT").map_err(|f| f.hints),
            Err(vec!["the nearest is 'PMIX_EVENT_JOB_END'".to_owned()])
        );
        assert_eq!(
            code("JOB_END").map_err(|f| f.hints),
            Err(vec!["the nearest is 'PMIX_EVENT_JOB_END'".to_owned()])
        );
    }

    #[test]
    fn an_event_is_one_line() {
        let source = ProcId::new(&Nspace::new("a@1").expect("a name"), Rank(2));
        let info = vec![Info::new(keys::EXIT_CODE, 3_i32)];
        let event = Event { code: Status::EVENT_JOB_END, source, range: Range::SESSION, info };
        assert!(show(&event, false).ends_with("from a@1:2 PMIX_EXIT_CODE=3"), "{}", show(&event, false));
        let shown: serde_json::Value = serde_json::from_str(&show(&event, true)).expect("JSON");
        assert_eq!((&shown["source"]["rank"], &shown["info"]["PMIX_EXIT_CODE"]), (&json!(2), &json!(3)));
    }
}
