//! Stops for a debugger: each rank gets its own stops only.

use std::sync::Arc;

use phalanx_spec::{DataType, Rank, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::get::Reply;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::{DataArray, Kval, ProcId, Value};

use super::world::{World, get, job, ns, proc, v41};
use crate::host::HostReply;

const STOPS: [&str; 2] = [keys::DEBUG_STOP_IN_INIT, keys::DEBUG_STOP_IN_APP];

fn ranks(ranks: &[u32]) -> Value {
    let items = ranks.iter().map(|rank| Value::Rank(Rank(*rank))).collect();
    DataArray { of: DataType::PROC_RANK, items }.into()
}

/// The stop that each rank of a job of three finds.
fn told(stop: &Value) -> [Option<Value>; 3] {
    let mut world = World::new();
    let mut info = job("job", 1, 3);
    info.job = info.job.iter().cloned().chain(STOPS.map(|key| Kval::new(key, stop.clone()))).collect();
    world.register(info);
    [0, 1, 2].map(|rank| {
        let conn = world.connect(rank);
        let data: JobData = world.ask(conn, &Request::JobData);
        let [init, app] = STOPS.map(|key| {
            let mut found = data.values.iter().filter(|kval| kval.key == key).map(|kval| kval.value.clone());
            (found.next(), found.next())
        });
        assert_eq!(init, app);
        // Libraries ask for keys that are not in their job data.
        let asked: Reply = world.ask(conn, &get(&ProcId::all(&ns("job")), STOPS[0], Vec::new()));
        let found = asked.status.is_success().then(|| asked.data[0].values[0].value.clone());
        assert_eq!((found, None), init);
        init.0
    })
}

#[test]
fn a_rank_finds_its_own_stop_and_nobody_elses() {
    let all = |value: Value| [(); 3].map(|()| Some(value.clone()));
    let me = |rank| Some(Value::Rank(Rank(rank)));
    assert_eq!(told(&true.into()), all(true.into()));
    assert_eq!(told(&Rank::WILDCARD.into()), all(Rank::WILDCARD.into()));
    assert_eq!(told(&ranks(&[0, Rank::WILDCARD.0])), all(true.into()));
    assert_eq!(told(&false.into()), [None, None, None]);
    assert_eq!(told(&Rank(1).into()), [None, me(1), None]);
    assert_eq!(told(&ranks(&[2, 0])), [me(0), None, me(2)]);
}

#[test]
fn others_are_told_what_was_stated() {
    let mut world = World::with_job(1, 1);
    let mut debugged = job("debugged", 1, 2);
    debugged.job = Arc::from([Kval::new(STOPS[0], Rank(1))]);
    world.register(debugged);
    let conn = world.connect_as(&proc("job", 0), v41());
    let tag = world.send(conn, &get(&ProcId::all(&ns("debugged")), STOPS[0], Vec::new()));
    if !world.has_reply(conn, tag) {
        let (call, _) = world.take_upcall();
        world.answer(call, HostReply::Done(Status::ERR_NOT_FOUND));
    }
    assert_eq!(world.value(conn, tag, STOPS[0]), Some(Rank(1).into()));
}
