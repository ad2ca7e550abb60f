//! What the host registers about the machine: resources, inventories, and the attributes it honours.

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::{Body, InfoReply, Request};
use phalanx_wire::{DataArray, Info, ProcId, Query, Value};

use super::world::{World, get, job, ns, proc, v41};
use crate::server::{ServerCall, ServerReturn};

fn node(name: &str, values: impl IntoIterator<Item = Info>) -> Info {
    let all = std::iter::once(Info::new(keys::HOSTNAME, name)).chain(values);
    Info::new(keys::NODE_INFO_ARRAY, DataArray::of_infos(all))
}

fn register(world: &mut World, info: Vec<Info>) {
    assert_eq!(world.call(ServerCall::RegisterResources(info)), ServerReturn::Done(Status::SUCCESS));
}

/// What a rank that starts now gets of its job and of one of its nodes.
fn told(world: &mut World, rank: u32) -> (Vec<Info>, Vec<Info>) {
    let conn = world.connect(rank);
    let data: JobData = world.ask(conn, &Request::JobData);
    let as_info = |kval: &phalanx_wire::Kval| Info {
        key: kval.key.clone(),
        flags: Default::default(),
        value: kval.value.clone(),
    };
    let arrays = data.values.iter().filter(|kval| kval.key == keys::NODE_INFO_ARRAY);
    let arrays: Vec<&DataArray> = arrays.filter_map(|kval| kval.value.as_array()).collect();
    let second = |array: &&&DataArray| array.infos().any(|info| info.value == "node1".into());
    let node = arrays.iter().find(second).map(|array| array.infos().cloned().collect());
    (data.values.iter().map(as_info).collect(), node.unwrap_or_default())
}

fn value(infos: &[Info], key: &str) -> Option<Value> {
    infos.iter().find(|info| info.key == *key).map(|info| info.value.clone())
}

#[test]
fn jobs_get_the_resources_unless_overridden() {
    let mut world = World::with_job(2, 2);
    assert_eq!(value(&told(&mut world, 0).0, keys::CLUSTER_ID), None);
    let memory = Info::new(keys::AVAIL_PHYS_MEMORY, 64_u64);
    let resources = vec![
        Info::new(keys::CLUSTER_ID, "big"),
        Info::new(keys::MAPBY, "not of this job"),
        node("node1", [memory.clone(), Info::new(keys::NSDIR, "not of this job")]),
    ];
    register(&mut world, resources);
    let (of_job, of_node) = told(&mut world, 1);
    assert_eq!(value(&of_job, keys::CLUSTER_ID), Some("big".into()));
    assert_eq!(value(&of_job, keys::MAPBY), Some("slot".into()));
    assert_eq!(value(&of_node, keys::AVAIL_PHYS_MEMORY), Some(64_u64.into()));
    assert_eq!(value(&of_node, keys::NSDIR), Some("/tmp/px/job".into()));

    let gone = vec![Info::new(keys::CLUSTER_ID, false), node("node1", [memory])];
    assert_eq!(world.call(ServerCall::DeregisterResources(gone)), ServerReturn::Done(Status::SUCCESS));
    world.register(job("later", 2, 1));
    let conn = world.connect_as(&proc("later", 0), v41());
    let data: JobData = world.ask(conn, &Request::JobData);
    assert!(!data.values.iter().any(|kval| kval.key == keys::CLUSTER_ID));
    assert!(!format!("{data:?}").contains(keys::AVAIL_PHYS_MEMORY));
}

/// A host may call a node by its name and by its number.
#[test]
fn registering_again_replaces_a_job() {
    let memory = |bytes: u64| Info::new(keys::AVAIL_PHYS_MEMORY, bytes);
    let array = |of: Vec<Info>| Info::new(keys::NODE_INFO_ARRAY, DataArray::of_infos(of));
    let by_name = |bytes| array(vec![Info::new(keys::HOSTNAME, "node1"), memory(bytes)]);
    let by_number = |bytes| array(vec![Info::new(keys::NODEID, 101_u32), memory(bytes)]);
    let by_both = |bytes| {
        array(vec![Info::new(keys::HOSTNAME, "node1"), Info::new(keys::NODEID, 101_u32), memory(bytes)])
    };
    let orders: [[Info; 3]; 4] = [
        [by_name(1), by_name(2), by_name(3)],
        [by_name(1), by_number(2), by_name(3)],
        [by_number(1), by_name(2), by_number(3)],
        [by_number(1), by_name(2), by_both(3)],
    ];
    for order in orders {
        for (known_before, gone) in [(false, by_name(0)), (true, by_number(0)), (true, by_name(0))] {
            let mut world = if known_before { World::with_job(2, 2) } else { World::new() };
            for info in &order {
                register(&mut world, vec![info.clone(), Info::new(keys::CLUSTER_ID, "big")]);
            }
            if !known_before {
                world.register(job("job", 2, 2));
            }
            let (of_job, of_node) = told(&mut world, 1);
            let times = |infos: &[Info], key: &str| infos.iter().filter(|info| info.key == *key).count();
            assert_eq!(times(&of_job, keys::CLUSTER_ID), 1);
            assert_eq!(times(&of_node, keys::AVAIL_PHYS_MEMORY), 1, "{order:?}");
            assert_eq!(value(&of_node, keys::AVAIL_PHYS_MEMORY), Some(3_u64.into()), "{order:?}");
            let gone = ServerCall::DeregisterResources(vec![gone]);
            assert_eq!(world.call(gone), ServerReturn::Done(Status::SUCCESS));
            let (_, of_node) = told(&mut world, 0);
            assert_eq!(value(&of_node, keys::AVAIL_PHYS_MEMORY), None, "{order:?}");
        }
    }
}

#[test]
fn impossible_resources_are_refused() {
    let mut world = World::new();
    let nameless = Info::new(keys::NODE_INFO_ARRAY, DataArray::of_infos([]));
    let of_group = Info::new(keys::GROUP_ENDPT_DATA, DataArray::of_infos([]));
    for (info, status) in [(nameless, Status::ERR_BAD_PARAM), (of_group, Status::ERR_NOT_SUPPORTED)] {
        assert_eq!(world.call(ServerCall::RegisterResources(vec![info])), ServerReturn::Done(status));
    }
    register(&mut world, vec![Info::new(keys::USERID, 7_u32)]);
    assert!(
        world.server.tables.known.describer.resources.values().is_empty(),
        "an identity is nobody's resource"
    );
}

#[test]
fn inventories_are_returned_only_on_request() {
    let mut world = World::with_job(2, 1);
    let deliver = |info, directives| ServerCall::DeliverInventory { info, directives };
    let memory = Info::new(keys::AVAIL_PHYS_MEMORY, 8_u64);
    let elsewhere = vec![Info::new(keys::HOSTNAME, "node1")];
    let calls = [
        deliver(vec![memory.clone()], Vec::new()),
        deliver(vec![Info::new(keys::AVAIL_PHYS_MEMORY, 16_u64)], elsewhere),
        deliver(vec![node("far", [Info::new(keys::AVAIL_PHYS_MEMORY, 32_u64)])], Vec::new()),
    ];
    for call in calls {
        assert_eq!(world.call(call), ServerReturn::Done(Status::SUCCESS));
    }
    let (of_job, of_node) = told(&mut world, 0);
    assert!(!format!("{of_job:?}{of_node:?}").contains(keys::AVAIL_PHYS_MEMORY));

    let conn = crate::machine::ConnId(1);
    let all = ProcId::new(&ns("job"), Rank::WILDCARD);
    let ask = |world: &mut World, info: Vec<Info>| {
        let tag = world.send(conn, &get(&all, keys::AVAIL_PHYS_MEMORY, info));
        let array = world.value(conn, tag, keys::NODE_INFO_ARRAY)?;
        let members: Vec<Info> = array.as_array()?.infos().cloned().collect();
        value(&members, keys::AVAIL_PHYS_MEMORY)
    };
    assert_eq!(ask(&mut world, Vec::new()), Some(8_u64.into()), "our own");
    for (name, bytes) in [("node1", 16_u64), ("far", 32)] {
        let info = vec![Info::new(keys::NODE_INFO, true), Info::new(keys::HOSTNAME, name)];
        assert_eq!(ask(&mut world, info.clone()), Some(bytes.into()), "{name}");
        let query = Query { keys: vec![keys::AVAIL_PHYS_MEMORY.into()], qualifiers: info };
        let reply: InfoReply = world.ask(conn, &Request::Query(Queries { queries: vec![query] }));
        assert_eq!(reply.info, [Info::new(keys::AVAIL_PHYS_MEMORY, bytes)]);
    }
    let hosts = vec!["node0".to_owned(), "nowhere".to_owned()];
    // The number comes from the job.
    let known = [Info::new(keys::NODEID, 100_u32), memory];
    let known = ServerReturn::Infos(vec![node("node0", known)]);
    assert_eq!(world.call(ServerCall::Inventory { hosts }), known);
}

#[test]
fn a_host_says_once_which_attributes_it_honours() {
    let mut world = World::with_job(1, 1);
    let register = |function: &str, attributes: &[&str]| ServerCall::RegisterAttributes {
        function: function.into(),
        attributes: attributes.iter().map(|name| (*name).to_owned()).collect(),
    };
    let ok = ServerReturn::Done(Status::SUCCESS);
    assert_eq!(world.call(register("allocate", &["PMIX_TIMEOUT", keys::ALLOC_ID, "site.flavor"])), ok);
    let again = ServerReturn::Done(Status::ERR_REPEAT_ATTR_REGISTRATION);
    assert_eq!(world.call(register("PMIx_Allocation_request", &[])), again);
    assert_eq!(world.call(register("group", &[])), ok);

    let conn = world.connect(0);
    let qualifiers = vec![
        Info::new(keys::HOST_ATTRIBUTES, "PMIx_Allocation_request"),
        Info::new(keys::HOST_FUNCTIONS, true),
    ];
    let query = Query { keys: vec![keys::QUERY_ATTRIBUTE_SUPPORT.into()], qualifiers };
    let reply: InfoReply = world.ask(conn, &Request::Query(Queries { queries: vec![query] }));
    let answers = reply.info[0].value.as_array().unwrap();
    let answers: Vec<&Info> = answers.infos().collect();
    let functions = answers[0].value.as_array().unwrap();
    let allocation = functions.infos().next().unwrap();
    let names = allocation.value.as_array().unwrap().items.iter().map(|item| match item {
        Value::Regattr(attribute) => attribute.name.clone().unwrap().to_string(),
        other => panic!("{other:?}"),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["PMIX_TIMEOUT", "PMIX_ALLOC_ID", "site.flavor"]);
    let all = "PMIx_Allocation_request,PMIx_Group_construct,PMIx_Group_destruct";
    assert_eq!(*answers[1], Info::new(keys::HOST_FUNCTIONS, all));
}

#[test]
fn jobs_are_packed_for_other_servers() {
    let mut world = World::with_job(2, 2);
    let call = ServerCall::CollectJobInfo { nspaces: vec![ns("unknown"), ns("job")], format: v41().format };
    let ServerReturn::JobInfo(blobs) = world.call(call) else { panic!("job info") };
    let [blob] = &blobs[..] else { panic!("{} jobs", blobs.len()) };
    let data = JobData::decode(blob.as_bytes(), v41()).unwrap();
    assert_eq!((data.nspace, data.procs.len()), (ns("job"), 4));
}
