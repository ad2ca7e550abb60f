use phalanx_spec::{DataType, Scope, keys};
use phalanx_wire::cmd::event::{Notification, Notify};
use phalanx_wire::cmd::group::ConstructReply;
use phalanx_wire::frame::TAG_EVENT;
use phalanx_wire::{DataArray, Info, InfoFlags, InfoList, Key};

use super::*;
use crate::host::{Event, GroupFormed};

fn invite(scene: &mut Scene, invited: &[ProcId], info: Vec<Info>) -> CallId {
    let id = scene.call(ClientCall::GroupInvite { id: "g".into(), procs: invited.to_vec(), info });
    confirm(scene);
    id
}

/// Answers registrations and notifications, and returns the raised events.
fn confirm(scene: &mut Scene) -> Vec<Notify> {
    let mut raised = Vec::new();
    for (tag, request) in std::mem::take(&mut scene.asked) {
        match request {
            Request::Notify(notify) => raised.push(notify),
            Request::RegisterEvents(_) => {}
            other => {
                scene.asked.push((tag, other));
                continue;
            }
        }
        let frame = encode_frame(INDEX, tag, &StatusReply(Status::SUCCESS).encode(scene.dialect));
        scene.bytes(&frame);
    }
    raised
}

fn report(scene: &mut Scene, rank: u32, code: Status, info: Vec<Info>) {
    let event = Notification { code, source: proc(rank), info, range: Some(Range::CUSTOM) };
    scene.bytes(&encode_frame(0, TAG_EVENT, &event.encode(scene.dialect)));
}

fn group() -> Info {
    Info::new(keys::GROUP_ID, "g")
}

fn formed(ranks: &[u32], context_id: Option<u64>) -> ClientReturn {
    let members = ranks.iter().map(|rank| proc(*rank)).collect();
    ClientReturn::Group(Ok(GroupFormed { members, context_id, info: vec![] }))
}

fn told(notify: &Notify) -> Vec<ProcId> {
    super::super::chain::procs(&notify.info, keys::EVENT_CUSTOM_RANGE)
}

#[test]
fn a_group_forms_when_all_have_accepted_and_they_hear_of_it() {
    let mut scene = Scene::ready();
    let id = scene.call(ClientCall::GroupInvite {
        id: "g".into(),
        procs: vec![proc(0), proc(1), proc(2)],
        info: vec![Info::new(keys::GROUP_ASSIGN_CONTEXT_ID, true)],
    });
    let invitations = confirm(&mut scene);
    assert_eq!(invitations[0].code, Status::GROUP_INVITED);
    assert_eq!(told(&invitations[0]), [proc(0), proc(2)]);
    assert_eq!(scene.client.explain()[0].missing, [proc(0), proc(2)]);
    report(&mut scene, 2, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    report(&mut scene, 2, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    report(&mut scene, 0, Status::GROUP_INVITE_ACCEPTED, vec![Info::new(keys::GROUP_ID, "another")]);
    assert!(scene.asked.is_empty());
    // Without a group, as OpenPMIx sends it.
    report(&mut scene, 0, Status::GROUP_INVITE_ACCEPTED, vec![]);
    let Request::GroupConstruct(asked) = scene.asked() else { panic!() };
    assert_eq!(asked.procs, [proc(1)]);
    let reply = ConstructReply {
        status: Status::SUCCESS,
        members: vec![proc(1)],
        context_id: Some(9),
        info: vec![],
        jobs: vec![],
    };
    scene.reply(&reply);
    assert_eq!(scene.result(id), formed(&[0, 1, 2], Some(9)));
    let complete = confirm(&mut scene);
    assert_eq!(complete[0].code, Status::GROUP_CONSTRUCT_COMPLETE);
    assert_eq!(told(&complete[0]), [proc(0), proc(2)]);
    assert_eq!(complete[0].info.find(keys::GROUP_CONTEXT_ID), Some(&Value::Size(9)));
    scene.call(ClientCall::GroupDestruct { id: "g".into(), info: vec![] });
    let Request::GroupDestruct(asked) = scene.asked() else { panic!() };
    assert_eq!(asked.procs, [proc(0), proc(1), proc(2)]);
}

#[test]
fn declining_ends_an_invitation_and_late_acceptors_know() {
    let mut scene = Scene::ready();
    let id = invite(&mut scene, &[proc(0), proc(2), proc(3)], vec![]);
    report(&mut scene, 0, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    report(&mut scene, 2, Status::GROUP_INVITE_DECLINED, vec![group()]);
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::GROUP_CONSTRUCT_ABORT)));
    let aborts = confirm(&mut scene);
    assert_eq!((aborts[0].code, told(&aborts[0])), (Status::GROUP_CONSTRUCT_ABORT, vec![proc(0), proc(2)]));
    assert!(scene.client.explain().is_empty());
    report(&mut scene, 3, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    assert_eq!(told(&confirm(&mut scene)[0]), [proc(3)]);
}

#[test]
fn an_optional_member_may_decline_or_die() {
    let mut scene = Scene::ready();
    let all = [proc(0), proc(1), proc(2)];
    let id = invite(&mut scene, &all, vec![Info::new(keys::GROUP_OPTIONAL, true)]);
    report(&mut scene, 0, Status::GROUP_INVITE_DECLINED, vec![group()]);
    let dead = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc(2))];
    report(&mut scene, 5, Status::EVENT_PROC_TERMINATED, dead.clone());
    assert_eq!(scene.result(id), formed(&[1], None));
    let id = invite(&mut scene, &[proc(2)], vec![]);
    report(&mut scene, 5, Status::EVENT_PROC_TERMINATED, dead);
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::GROUP_CONSTRUCT_ABORT)));
}

#[test]
fn a_leader_forms_a_group_of_others() {
    let mut scene = Scene::ready();
    let id = invite(&mut scene, &[proc(0), proc(2)], vec![]);
    report(&mut scene, 0, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    report(&mut scene, 2, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    assert_eq!(scene.result(id), formed(&[0, 2], None));
    assert_eq!(told(&confirm(&mut scene)[0]), [proc(0), proc(2)]);
    let id = invite(&mut scene, &[proc(3)], vec![Info::new(keys::GROUP_OPTIONAL, true)]);
    report(&mut scene, 3, Status::GROUP_INVITE_DECLINED, vec![group()]);
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::GROUP_CONSTRUCT_ABORT)));
}

#[test]
fn a_leader_learns_which_members_are_missing_and_the_result() {
    let mut scene = Scene::ready();
    let codes = vec![Status::GROUP_INVITE_FAILED, Status::GROUP_CONSTRUCT_COMPLETE];
    let handler = HandlerId(7);
    scene.call(ClientCall::RegisterEvents { handler, codes, info: vec![] });
    confirm(&mut scene);
    scene.returned.clear();
    let info = vec![Info::new(keys::GROUP_OPTIONAL, true), Info::new(keys::TIMEOUT, 2_i32)];
    let id = invite(&mut scene, &[proc(0), proc(1), proc(2)], info);
    report(&mut scene, 0, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    scene.pass(Duration::from_secs(3));
    assert_eq!(scene.result(id), formed(&[0, 1], None));
    let heard: Vec<Event> = std::mem::take(&mut scene.delivered)
        .into_iter()
        .map(|(_, to, what)| match what {
            ClientDelivery::Event { event, .. } if to == handler => event,
            other => panic!("{other:?}"),
        })
        .collect();
    let codes: Vec<Status> = heard.iter().map(|event| event.code).collect();
    assert_eq!(codes, [Status::GROUP_INVITE_FAILED, Status::GROUP_CONSTRUCT_COMPLETE]);
    assert_eq!(heard[0].info.find(keys::EVENT_AFFECTED_PROC), Some(&Value::Proc(proc(2))));
    confirm(&mut scene);
    report(&mut scene, 2, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    let late = confirm(&mut scene);
    assert_eq!((late[0].code, told(&late[0])), (Status::GROUP_CONSTRUCT_ABORT, vec![proc(2)]));
}

#[test]
fn silence_ends_with_the_time_given() {
    let mut scene = Scene::ready();
    let id = invite(&mut scene, &[proc(0)], vec![Info::new(keys::TIMEOUT, 2_i32)]);
    scene.pass(Duration::from_secs(3));
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::ERR_TIMEOUT)));
    let unknown = ProcId::all(&Nspace::new("unknown").unwrap());
    let id = invite(&mut scene, &[unknown], vec![]);
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::ERR_BAD_PARAM)));
}

#[test]
fn a_join_ends_with_the_leaders_word() {
    let mut scene = Scene::ready();
    let join = |scene: &mut Scene, accept, info| {
        let id = scene.call(ClientCall::GroupJoin { id: "g".into(), leader: Some(proc(0)), accept, info });
        (id, confirm(scene))
    };
    let (id, raised) = join(&mut scene, false, vec![]);
    assert_eq!(scene.result(id), ClientReturn::Group(Ok(GroupFormed::default())));
    assert_eq!((raised[0].code, told(&raised[0])), (Status::GROUP_INVITE_DECLINED, vec![proc(0)]));
    let (id, raised) = join(&mut scene, true, vec![]);
    assert_eq!(raised[0].code, Status::GROUP_INVITE_ACCEPTED);
    assert_eq!(scene.client.explain()[0].missing, [proc(0)]);
    let members = DataArray { of: DataType::PROC, items: vec![Value::Proc(proc(0)), Value::Proc(proc(1))] };
    let complete = vec![group(), Info::new(keys::GROUP_MEMBERSHIP, members)];
    report(&mut scene, 4, Status::GROUP_CONSTRUCT_COMPLETE, complete.clone());
    assert!(scene.returned.is_empty());
    report(&mut scene, 0, Status::GROUP_CONSTRUCT_COMPLETE, complete);
    assert_eq!(scene.result(id), formed(&[0, 1], None));
    let (id, _) = join(&mut scene, true, vec![]);
    report(&mut scene, 0, Status::GROUP_CONSTRUCT_ABORT, vec![group()]);
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::GROUP_CONSTRUCT_ABORT)));
    let codes = vec![Status::GROUP_LEADER_FAILED];
    scene.call(ClientCall::RegisterEvents { handler: HandlerId(3), codes, info: vec![] });
    confirm(&mut scene);
    scene.returned.clear();
    let (id, _) = join(&mut scene, true, vec![]);
    let dead = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc(0))];
    report(&mut scene, 5, Status::PROC_TERMINATED, dead);
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::GROUP_LEADER_FAILED)));
    assert_eq!(scene.delivered.len(), 1);
    let failed = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc(0)), group()];
    report(&mut scene, 0, Status::GROUP_LEADER_FAILED, failed.clone());
    assert_eq!(scene.delivered.len(), 1, "its end has said so before");
    let (id, _) = join(&mut scene, true, vec![]);
    report(&mut scene, 0, Status::GROUP_LEADER_FAILED, failed);
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::GROUP_LEADER_FAILED)));
    assert_eq!(scene.delivered.len(), 2);
    let (id, _) = join(&mut scene, true, vec![Info::new(keys::TIMEOUT, 1_i32)]);
    scene.pass(Duration::from_secs(2));
    assert_eq!(scene.result(id), ClientReturn::Group(Err(Status::ERR_TIMEOUT)));
}

fn card_of(rank: u32) -> Info {
    let me = Info::new(keys::PROCID, proc(rank));
    let scope = Info::new(keys::DATA_SCOPE, Scope::REMOTE);
    // Processes must not set host names.
    let named = Info::new(keys::HOSTNAME, "elsewhere");
    Info::new(keys::PROC_INFO_ARRAY, DataArray::of_infos([me, scope, Info::new("card", rank + 10), named]))
}

fn says(rank: u32) -> Info {
    let me = Info::new(keys::PROCID, proc(rank));
    Info::new(keys::GROUP_INFO, DataArray::of_infos([me, Info::new("colour", rank + 20)]))
}

/// The value of a key without asking the server, with or without the group's context id.
fn known(scene: &Scene, rank: u32, key: &str, number: Option<u64>) -> Option<Value> {
    let qualifier = number.map(|number| Info {
        flags: InfoFlags::QUALIFIER,
        ..Info::new(keys::GROUP_CONTEXT_ID, Value::Size(number))
    });
    let infos: Vec<Info> = qualifier.into_iter().collect();
    scene.client.store().known(&LookupRequest::new(proc(rank), Key::new(key).ok(), &infos))
}

#[test]
fn a_leader_hands_on_what_the_members_give() {
    let mut scene = Scene::ready();
    let put = |scope, key: &str| {
        scene.client.store().put(scope, Kval { key: Key::new(key).unwrap(), value: 11_u32.into() });
    };
    put(Scope::GLOBAL, "card");
    put(Scope::LOCAL, "for neighbours");
    let said = Info::new(keys::GROUP_INFO, DataArray::of_infos([Info::new("colour", 21_u32)]));
    let id = invite(&mut scene, &[proc(0), proc(1), proc(2)], vec![said]);
    // Values that it sends about another process are not passed on.
    report(&mut scene, 0, Status::GROUP_INVITE_ACCEPTED, vec![group(), card_of(0), says(0), card_of(2)]);
    report(&mut scene, 2, Status::GROUP_INVITE_ACCEPTED, vec![group()]);
    let ClientReturn::Group(Ok(formed)) = scene.result(id) else { panic!() };
    assert_eq!(formed.info, [says(1), says(0)]);
    let complete = confirm(&mut scene);
    let given = |key: &'static str| complete[0].info.iter().filter(move |info| info.key == key).cloned();
    let mine = DataArray::of_infos([
        Info::new(keys::PROCID, proc(1)),
        Info::new(keys::DATA_SCOPE, Scope::REMOTE),
        Info::new("card", 11_u32),
    ]);
    assert_eq!(
        given(keys::PROC_INFO_ARRAY).collect::<Vec<_>>(),
        [Info::new(keys::PROC_INFO_ARRAY, mine), card_of(0)]
    );
    assert_eq!(given(keys::GROUP_INFO).collect::<Vec<_>>(), [says(1), says(0)]);
    assert_eq!(known(&scene, 0, "card", None), Some(Value::Uint32(10)));
    assert_eq!(known(&scene, 0, keys::HOSTNAME, None), None);
    assert_eq!(known(&scene, 2, "card", None), None);
}

#[test]
fn joiners_exchange_values_with_the_others() {
    let mut scene = Scene::ready();
    scene.client.store().put(Scope::REMOTE, Kval { key: Key::new("card").unwrap(), value: 11_u32.into() });
    let join = |scene: &mut Scene, accept, info| {
        let id = scene.call(ClientCall::GroupJoin { id: "g".into(), leader: Some(proc(0)), accept, info });
        (id, confirm(scene))
    };
    let (_, raised) = join(&mut scene, false, vec![]);
    assert_eq!(raised[0].info.find(keys::PROC_INFO_ARRAY), None);
    scene.returned.clear();
    let said = Info::new(keys::GROUP_INFO, DataArray::of_infos([Info::new("colour", 21_u32)]));
    let (id, raised) = join(&mut scene, true, vec![said]);
    assert!(raised[0].info.find(keys::PROC_INFO_ARRAY).is_some());
    assert_eq!(raised[0].info.find(keys::GROUP_INFO), Some(&says(1).value));
    let members = DataArray { of: DataType::PROC, items: vec![Value::Proc(proc(0)), Value::Proc(proc(1))] };
    let context = Info::new(keys::GROUP_CONTEXT_ID, Value::Size(9));
    let told =
        vec![group(), Info::new(keys::GROUP_MEMBERSHIP, members), context, card_of(0), says(0), card_of(3)];
    report(&mut scene, 0, Status::GROUP_CONSTRUCT_COMPLETE, told);
    let ClientReturn::Group(Ok(formed)) = scene.result(id) else { panic!() };
    assert_eq!((formed.context_id, formed.info), (Some(9), vec![says(0)]));
    assert_eq!(known(&scene, 0, "card", Some(9)), Some(Value::Uint32(10)));
    assert_eq!(known(&scene, 0, "colour", Some(9)), Some(Value::Uint32(20)));
    assert_eq!(known(&scene, 0, "card", None), None);
    assert_eq!(known(&scene, 3, "card", Some(9)), None, "it is no member");
}
