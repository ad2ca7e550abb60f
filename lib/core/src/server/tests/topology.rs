use std::sync::Arc;

use phalanx_spec::{Status, keys};
use phalanx_topo::Topology;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::{InfoReply, Request};
use phalanx_wire::{Info, ProcId, Query, Value};

use super::world::{World, config, dialect, get, ns, proc};
use crate::host::{HostOp, HostReply};
use crate::machine::ConnId;
use crate::server::ServerConfig;

const KEYS: [&str; 4] = [keys::HWLOC_XML_V2, keys::LOCAL_TOPO, keys::HWLOC_XML_V1, keys::HWLOC_SHMEM_FILE];

fn told(world: &mut World, conn: ConnId) -> Vec<&'static str> {
    let data: JobData = world.ask(conn, &Request::JobData);
    KEYS.into_iter().filter(|key| data.values.iter().any(|kval| kval.key == **key)).collect()
}

fn of_node_with(topology: Option<Topology>) -> World {
    World::configured(ServerConfig { topology: topology.map(Arc::new), ..config() })
}

#[test]
fn clients_that_load_a_topology_in_init_get_it() {
    let mut world = of_node_with(Some(Topology::synthetic(1, 1, 1, 2, 1)));
    for (release, expected) in [
        ((4, 2, 2), &[][..]),
        ((4, 2, 3), &[keys::HWLOC_XML_V2]),
        ((5, 0, 11), &[keys::HWLOC_XML_V2]),
        ((6, 1, 0), &[keys::HWLOC_XML_V2]),
    ] {
        let (major, minor, patch) = release;
        let conn = world.connect_as(&proc("job", 0), dialect(major, minor, patch));
        assert_eq!(told(&mut world, conn), expected, "{release:?}");
    }
}

#[test]
fn the_topology_is_returned_on_request() {
    let topology = Topology::synthetic(1, 1, 1, 2, 1);
    let mut world = of_node_with(Some(topology.clone()));
    let conn = world.connect(0);
    let all = ProcId::all(&ns("job"));
    let (v2, v1) = (topology.to_hwloc_xml(), topology.to_hwloc1_xml());
    for (key, xml) in KEYS.into_iter().zip([&v2, &v2, &v1]) {
        let tag = world.send(conn, &get(&all, key, Vec::new()));
        assert_eq!(world.value(conn, tag, key), Some(Value::from(xml.as_str())), "{key}");
    }
    // By query, too, as servers of PRRTE and Open MPI answer.
    let query = |key: &str, qualifiers| Query { keys: vec![key.into()], qualifiers };
    let queries = [keys::HWLOC_XML_V1, keys::HWLOC_XML_V2].map(|key| query(key, Vec::new())).to_vec();
    let reply: InfoReply = world.ask(conn, &Request::Query(Queries { queries }));
    let expected = [(keys::HWLOC_XML_V1, v1.as_str()), (keys::HWLOC_XML_V2, v2.as_str())];
    assert_eq!(reply.status, Status::SUCCESS);
    assert_eq!(reply.info, expected.map(|(key, xml)| Info::new(key, xml)));
    // The host may know other nodes.
    let other = vec![Info::new(keys::HOSTNAME, "elsewhere")];
    world.send(conn, &Request::Query(Queries { queries: vec![query(keys::HWLOC_XML_V2, other)] }));
    let (call, op) = world.take_upcall();
    assert!(matches!(op, HostOp::Query(_)));
    world.answer(call, HostReply::Done(Status::ERR_NOT_FOUND));
    let shared_memory = get(&all, keys::HWLOC_SHMEM_FILE, Vec::new());
    assert_eq!(world.ask_status(conn, &shared_memory), Status::ERR_NOT_FOUND);
}

#[test]
fn a_server_without_a_topology_tells_none() {
    let mut world = of_node_with(None);
    let conn = world.connect_as(&proc("job", 0), dialect(5, 0, 11));
    assert_eq!(told(&mut world, conn), [""; 0]);
    let all = ProcId::all(&ns("job"));
    assert_eq!(world.ask_status(conn, &get(&all, keys::HWLOC_XML_V2, Vec::new())), Status::ERR_NOT_FOUND);
}
