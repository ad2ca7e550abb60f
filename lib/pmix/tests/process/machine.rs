//! A host that registers its machine, prepares a job in the standard's attributes, and asks for its processes' committed
//! values.

use std::sync::mpsc::channel;

use phalanx_spec::{Status, keys};
use phalanx_wire::{DataArray, Info, Key, ProcId, Value};
use pmix::{Client, Envar, Host, Scope, Server, ServerOptions, Text, generate_ppn, generate_regex};

use crate::server::{job, proc};
use crate::{PATIENCE, Stage};

struct Silent;
impl Host for Silent {}

pub(crate) fn host(stage: Stage) {
    let options = ServerOptions { hostname: Some("here".into()), ..ServerOptions::default() };
    let server = Server::start(options, Silent).unwrap();
    let nspace = &job(1).nspace;
    server.register_resources(&[Info::new(keys::CLUSTER_ID, "testbed")]).unwrap();
    server.register_attributes("allocate", &["PMIX_ALLOC_ID"]).unwrap();
    let again = server.register_attributes("allocate", &[]).unwrap_err();
    assert_eq!(again.status(), Status::ERR_REPEAT_ATTR_REGISTRATION);

    let inventory = server.collect_inventory(&[]).unwrap();
    let own = inventory[0].value.as_array().unwrap();
    let find = |array: &DataArray, key: &str| array.infos().find(|info| info.key == *key).cloned();
    assert_eq!(find(own, keys::HOSTNAME).unwrap().value, "here".into());
    assert!(find(own, keys::AVAIL_PHYS_MEMORY).unwrap().value.as_u64().unwrap() > 0);
    let far = [Info::new(keys::HOSTNAME, "far")];
    server.deliver_inventory(&[Info::new(keys::AVAIL_PHYS_MEMORY, 77_u64)], &far).unwrap();

    let map = Info::new(keys::NODE_MAP, generate_regex(&["here", "far"]));
    let wanted = [Info::new(keys::SETUP_APP_NONENVARS, true), map.clone()];
    let mut setup = server.setup_application(nspace, &wanted).unwrap();
    assert_eq!(setup.len(), 1, "the inventory of the node that has one");
    for (key, name, value) in [
        (keys::SET_ENVAR, "MACHINE", "told"),
        (keys::PREPEND_ENVAR, "MACHINE_PATH", "/first"),
        (keys::APPEND_ENVAR, "MACHINE_PATH", "/third"),
        (keys::ADD_ENVAR, "MACHINE_NEW", "added"),
        (keys::UNSET_ENVAR, "MACHINE_GONE", ""),
        // Inherited from this process.
        (keys::UNSET_ENVAR, "PATH", ""),
    ] {
        let envar = Envar { name: Some(name.into()), value: Some(Text::from(value)), separator: b':' };
        setup.push(Info::new(key, Value::Envar(Box::new(envar))));
    }
    server.setup_local_support(nspace, &setup).unwrap();
    let info = [map, Info::new(keys::PROC_MAP, generate_ppn(&[vec![0, 1], vec![2]]))];
    server.register_nspace(nspace, Some(2), &info).unwrap();
    let unknown = ProcId::all(&pmix::Nspace::new("unknown").unwrap());
    assert!(server.collect_job_info(std::slice::from_ref(&unknown)).unwrap_err().is_not_found());
    assert_eq!(server.collect_job_info(&[proc(0), proc(1), unknown]).unwrap().len(), 1);

    let uid = rustix::process::geteuid().as_raw();
    let ranks = [0, 1].map(|rank| {
        server.register_client(&proc(rank), uid, uid).unwrap();
        stage.start_with(|command| {
            command
                .env("MACHINE_GONE", "of the command")
                .env("MACHINE_PATH", "/second")
                .env_remove("MACHINE_NEW");
            server.setup_fork(&proc(rank), command).unwrap();
        })
    });
    assert!(!server.dmodex_request(&proc(1), Some(Key::new("card").unwrap())).unwrap().is_empty());
    ranks.into_iter().for_each(|rank| stage.wait(rank));
    server.deregister_client(&ProcId::all(nspace)).unwrap();
    server.deregister_resources(&[Info::new(keys::CLUSTER_ID, true)]).unwrap();
    server.deregister_nspace(nspace).unwrap();
    server.finalize();
}

pub(crate) fn rank() {
    let variables = ["MACHINE", "MACHINE_PATH", "MACHINE_NEW", "MACHINE_GONE", "PATH"].map(std::env::var_os);
    let told = [Some("told"), Some("/first:/second:/third"), Some("added"), None, None];
    assert_eq!(variables, told.map(|value| value.map(Into::into)));
    let client = Client::init().unwrap();
    assert_eq!(client.get_job(keys::CLUSTER_ID).unwrap(), "testbed".into());
    assert_eq!(client.get_job(keys::JOB_SIZE).unwrap(), Value::Uint32(3));
    let far = [Info::new(keys::NODE_INFO, true), Info::new(keys::HOSTNAME, "far")];
    assert_eq!(client.get(&client.job(), keys::AVAIL_PHYS_MEMORY, &far).unwrap(), Value::Uint64(77));
    client.put(Scope::GLOBAL, "card", client.proc().rank.0).unwrap();
    client.commit().unwrap();
    let (told, values) = channel();
    client.get_then(&client.peer(1), "card", &[], move |value| told.send(value.unwrap()).unwrap()).unwrap();
    assert_eq!(values.recv_timeout(PATIENCE).unwrap(), Value::Uint32(1));
    let (told, met) = channel();
    let both = [client.peer(0), client.peer(1)];
    client.fence_then(&both, &[], move |ended| told.send(ended.is_ok()).unwrap()).unwrap();
    assert!(met.recv_timeout(PATIENCE).unwrap());
    client.finalize(&[]).unwrap();
}
