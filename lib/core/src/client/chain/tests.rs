use phalanx_spec::Rank;
use phalanx_wire::{DataArray, Nspace};

use super::*;

fn proc(nspace: &str, rank: u32) -> ProcId {
    ProcId::new(&Nspace::new(nspace).unwrap(), Rank(rank))
}

fn me() -> ProcId {
    proc("job", 0)
}

fn event(code: i32, info: Vec<Info>) -> Event {
    Event { code: Status(code), source: proc("job", 1), range: Range::GLOBAL, info }
}

fn on(key: &'static str) -> Info {
    Info::new(key, true)
}

struct Handlers(Chains, u64);

impl Handlers {
    fn new() -> Handlers {
        Handlers(Chains::default(), 0)
    }

    fn add(&mut self, name: &str, codes: &[i32], mut info: Vec<Info>) -> Result<(), Status> {
        self.1 += 1;
        info.push(Info::new(keys::EVENT_HDLR_NAME, name));
        let codes = codes.iter().map(|code| Status(*code)).collect();
        self.0.add(Handler::new(HandlerId(self.1), codes, &info))
    }

    /// The names of the handlers that run, in order.
    fn run(&mut self, event: Event) -> Vec<String> {
        let mut names = Vec::new();
        let mut turn = self.0.start(Time(0), event, &me());
        while let Some(Turn { delivery, event, .. }) = turn {
            names.push(event.info.find(keys::EVENT_HDLR_NAME).and_then(Value::as_str).unwrap().to_owned());
            let verdict = Verdict { status: Status::SUCCESS, results: Vec::new() };
            turn = self.0.go_on(Time(0), delivery, verdict);
        }
        assert_eq!(self.0.explain(&me()).count(), 0);
        names
    }
}

#[test]
fn the_order_is_first_single_multi_default_last() {
    let mut handlers = Handlers::new();
    handlers.add("last", &[-1, -2], vec![on(keys::EVENT_HDLR_LAST)]).unwrap();
    handlers.add("default", &[], vec![]).unwrap();
    handlers.add("multi", &[-1, -2], vec![]).unwrap();
    handlers.add("single", &[-1], vec![]).unwrap();
    handlers.add("other", &[-3], vec![]).unwrap();
    handlers.add("first", &[], vec![on(keys::EVENT_HDLR_FIRST)]).unwrap();
    assert_eq!(handlers.run(event(-1, vec![])), ["first", "single", "multi", "default", "last"]);
    assert_eq!(handlers.run(event(-2, vec![])), ["first", "multi", "default", "last"]);
    assert_eq!(handlers.run(event(-9, vec![])), ["first", "default"]);
    let non_default = event(-2, vec![on(keys::EVENT_NON_DEFAULT)]);
    assert_eq!(handlers.run(non_default), ["multi", "last"]);
}

#[test]
fn handlers_choose_their_place_within_a_category() {
    let mut handlers = Handlers::new();
    handlers.add("a", &[-1], vec![]).unwrap();
    handlers.add("b", &[-1], vec![]).unwrap();
    handlers.add("head", &[-1], vec![on(keys::EVENT_HDLR_FIRST_IN_CATEGORY)]).unwrap();
    handlers.add("tail", &[-1], vec![on(keys::EVENT_HDLR_LAST_IN_CATEGORY)]).unwrap();
    handlers.add("front", &[-1], vec![on(keys::EVENT_HDLR_PREPEND)]).unwrap();
    handlers.add("back", &[-1], vec![on(keys::EVENT_HDLR_APPEND)]).unwrap();
    handlers.add("before a", &[-1], vec![Info::new(keys::EVENT_HDLR_BEFORE, "a")]).unwrap();
    handlers.add("after a", &[-1], vec![Info::new(keys::EVENT_HDLR_AFTER, "a")]).unwrap();
    let order = ["head", "front", "b", "before a", "a", "after a", "back", "tail"];
    assert_eq!(handlers.run(event(-1, vec![])), order);
}

#[test]
fn a_place_that_is_taken_or_cannot_be_is_refused() {
    let mut handlers = Handlers::new();
    handlers.add("first", &[-1], vec![on(keys::EVENT_HDLR_FIRST)]).unwrap();
    handlers.add("last", &[-1], vec![on(keys::EVENT_HDLR_LAST)]).unwrap();
    handlers.add("head", &[-1], vec![on(keys::EVENT_HDLR_FIRST_IN_CATEGORY)]).unwrap();
    handlers.add("tail", &[-1], vec![on(keys::EVENT_HDLR_LAST_IN_CATEGORY)]).unwrap();
    for info in [
        on(keys::EVENT_HDLR_FIRST),
        on(keys::EVENT_HDLR_LAST),
        on(keys::EVENT_HDLR_FIRST_IN_CATEGORY),
        on(keys::EVENT_HDLR_LAST_IN_CATEGORY),
        Info::new(keys::EVENT_HDLR_BEFORE, "first"),
        Info::new(keys::EVENT_HDLR_AFTER, "last"),
        Info::new(keys::EVENT_HDLR_AFTER, "nobody"),
    ] {
        assert_eq!(handlers.add("late", &[-1], vec![info]), Err(Status::ERR_EVENT_REGISTRATION));
    }
    handlers.add("x", &[-1], vec![Info::new(keys::EVENT_HDLR_AFTER, "first")]).unwrap();
    handlers.add("y", &[-1], vec![Info::new(keys::EVENT_HDLR_BEFORE, "last")]).unwrap();
    assert_eq!(handlers.run(event(-1, vec![])), ["first", "x", "head", "tail", "y", "last"]);
}

#[test]
fn a_handler_gets_events_of_its_range_and_named_processes() {
    let mut handlers = Handlers::new();
    let range = |range: Range| Info::new(keys::RANGE, range);
    handlers.add("own", &[-1], vec![range(Range::PROC_LOCAL)]).unwrap();
    handlers.add("namespace", &[-1], vec![range(Range::NAMESPACE)]).unwrap();
    let custom = vec![range(Range::CUSTOM), Info::new(keys::EVENT_CUSTOM_RANGE, proc("other", 7))];
    handlers.add("custom", &[-1], custom).unwrap();
    let items = [proc("job", 2), ProcId::all(&Nspace::new("pair").unwrap())].map(Value::from).to_vec();
    let about = DataArray { of: phalanx_spec::DataType::PROC, items };
    let about = Info::new(keys::EVENT_AFFECTED_PROCS, Value::DataArray(Box::new(about)));
    handlers.add("about", &[-1], vec![about]).unwrap();
    let mut from = |source: ProcId, info| handlers.run(Event { source, ..event(-1, info) });
    let about = |proc: ProcId| vec![Info::new(keys::EVENT_AFFECTED_PROC, proc)];
    assert_eq!(from(me(), about(proc("job", 3))), ["namespace", "own"]);
    assert_eq!(from(proc("job", 1), about(proc("job", 3))), ["namespace"]);
    assert_eq!(from(proc("other", 7), about(proc("job", 3))), ["custom"]);
    assert_eq!(from(proc("x", 0), about(proc("job", 2))), ["about"]);
    assert_eq!(from(proc("x", 0), about(proc("pair", 9))), ["about"]);
    assert_eq!(from(proc("x", 0), about(proc("job", 3))), [""; 0]);
}

#[test]
fn an_event_that_names_no_process_reaches_filtered_handlers() {
    let mut handlers = Handlers::new();
    handlers.add("one", &[-1], vec![Info::new(keys::EVENT_AFFECTED_PROC, proc("child", 0))]).unwrap();
    let items = vec![proc("child", 1).into(), proc("child", 2).into()];
    let several = DataArray { of: phalanx_spec::DataType::PROC, items };
    let several = Info::new(keys::EVENT_AFFECTED_PROCS, Value::DataArray(Box::new(several)));
    handlers.add("several", &[], vec![several]).unwrap();
    assert_eq!(handlers.run(event(-1, vec![])), ["one", "several"]);
    let about = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc("child", 2))];
    assert_eq!(handlers.run(event(-1, about)), ["several"]);
}

#[test]
fn results_are_handed_on_until_one_handler_ends_the_chain() {
    let mut handlers = Handlers::new();
    for name in ["c", "b", "a"] {
        handlers.add(name, &[-1], vec![]).unwrap();
    }
    let result = |n: u32| vec![Info::new(keys::EVENT_TEXT_MESSAGE, n)];
    let chains = &mut handlers.0;
    let a = chains.start(Time(5), event(-1, vec![]), &me()).unwrap();
    assert!(a.results.is_empty());
    let waiting: Vec<_> = chains.explain(&me()).collect();
    assert!(waiting[0].subject.ends_with("at a"), "{}", waiting[0].subject);
    let done = Verdict { status: Status::SUCCESS, results: result(1) };
    let b = chains.go_on(Time(6), a.delivery, done.clone()).unwrap();
    assert_eq!(b.results, result(1));
    assert!(chains.go_on(Time(6), a.delivery, done).is_none(), "a delivery is completed once");
    let complete = Verdict { status: Status::EVENT_ACTION_COMPLETE, results: result(2) };
    assert!(chains.go_on(Time(7), b.delivery, complete).is_none());
    assert_eq!(chains.explain(&me()).count(), 0);
}

#[test]
fn one_shot_and_removed_handlers_do_not_run_again() {
    let mut handlers = Handlers::new();
    handlers.add("stays", &[-1], vec![]).unwrap();
    handlers.add("once", &[-1], vec![on(keys::EVENT_ONESHOT)]).unwrap();
    let first = handlers.0.start(Time(0), event(-1, vec![]), &me()).unwrap();
    assert_eq!(first.spent.map(|handler| handler.id), Some(HandlerId(2)));
    handlers.0.remove(HandlerId(1)).unwrap();
    let done = Verdict { status: Status::SUCCESS, results: vec![] };
    assert!(handlers.0.go_on(Time(0), first.delivery, done).is_none(), "it went while the chain ran");
    assert_eq!(handlers.run(event(-1, vec![])), [""; 0]);
}
