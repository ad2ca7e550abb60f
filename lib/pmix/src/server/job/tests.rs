use phalanx_wire::{Blob, DataArray, Text};

use super::*;

const HERE: OwnNode<'_> = OwnNode { hostname: "a.example", node_id: None };

fn told(local: u32, infos: &[Info]) -> JobInfo {
    job(&nspace(), Some(local), infos, &HERE, None).unwrap()
}

fn nspace() -> Nspace {
    Nspace::new("job").unwrap()
}

fn regex(text: &str) -> Value {
    Value::Regex(Blob::from([text.as_bytes(), b"\0"].concat()))
}

fn array(key: &'static str, infos: Vec<Info>) -> Info {
    Info::new(key, DataArray::of_infos(infos))
}

fn value<'a>(values: &'a [Kval], key: &str) -> Option<&'a Value> {
    values.iter().find(|kval| kval.key == *key).map(|kval| &kval.value)
}

/// What Slurm 22.05 provides for four ranks on two nodes, on a machine with another name, to the server on the second node.
fn slurm() -> Vec<Info> {
    let proc = |rank: u32, host: &'static str| {
        array(
            keys::PROC_INFO_ARRAY,
            vec![
                Info::new(keys::RANK, Rank(rank)),
                Info::new(keys::APPNUM, Value::Int(0)),
                Info::new(keys::APPLDR, Value::Int(0)),
                Info::new(keys::GLOBAL_RANK, rank),
                Info::new(keys::APP_RANK, rank),
                Info::new(keys::HOSTNAME, host),
                // The server's own number, whatever the process.
                Info::new(keys::NODEID, 1u32),
            ],
        )
    };
    vec![
        Info::new(keys::SPAWNED, false),
        Info::new(keys::NSDIR, "/tmp/ns"),
        Info::new(keys::JOBID, "7.0"),
        Info::new(keys::NODEID, 1u32),
        proc(0, "n0"),
        proc(1, "n0"),
        proc(2, "n1"),
        proc(3, "n1"),
        Info::new(keys::UNIV_SIZE, 4u32),
        Info::new(keys::JOB_SIZE, 4u32),
        Info::new(keys::LOCAL_SIZE, 2u32),
        Info::new(keys::APP_SIZE, 4u32),
        Info::new(keys::NODE_MAP, regex("raw:n0,n1")),
        Info::new(keys::PROC_MAP, regex("raw:0,1;2,3")),
        Info::new(keys::LOCAL_PEERS, "2,3"),
        Info::new(keys::LOCALLDR, 2u32),
    ]
}

#[test]
fn slurm_tells_enough() {
    let job = told(2, &slurm());
    let places: Vec<_> = job.procs.iter().map(|proc| (proc.node, proc.local_rank, proc.app_rank.0)).collect();
    assert_eq!(places, [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)]);
    assert_eq!(
        job.nodes.iter().map(|node| (node.name.to_string(), node.id)).collect::<Vec<_>>(),
        [("n0".to_owned(), 0), ("n1".to_owned(), 1)]
    );
    assert_eq!(job.here, Some(1));
    assert_eq!(value(&job.job, keys::JOBID), Some(&Value::String(Text::from_bytes(b"7.0"))));
    assert_eq!(value(&job.session, keys::UNIV_SIZE), Some(&Value::Uint32(4)));
    assert_eq!(value(&job.nodes.get(1).unwrap().values, keys::LOCALLDR), Some(&Value::Rank(Rank(2))));
    assert_eq!(value(&job.apps[0].values, keys::APP_SIZE), Some(&Value::Uint32(4)));
    assert_eq!(job.apps.len(), 1);
}

#[test]
fn arrays_of_each_realm_go_where_they_belong() {
    let job = told(
        1,
        &[
            array(keys::SESSION_INFO_ARRAY, vec![Info::new(keys::SESSION_ID, 9u32)]),
            array(
                keys::JOB_INFO_ARRAY,
                vec![Info::new(keys::JOB_SIZE, 3u32), Info::new(keys::MAPBY, "slot")],
            ),
            Info::new(keys::NODE_MAP, "raw:a.example,b.example"),
            Info::new(keys::PROC_MAP, "raw:0;1,2"),
            array(
                keys::NODE_INFO_ARRAY,
                vec![
                    Info::new(keys::HOSTNAME, "b.example"),
                    Info::new(keys::NODEID, 12u32),
                    Info::new(keys::AVAIL_PHYS_MEMORY, 5u64),
                ],
            ),
            array(
                keys::NODE_INFO_ARRAY,
                vec![Info::new(keys::HOSTNAME, "a.example"), Info::new(keys::NODEID, 11u32)],
            ),
            array(keys::APP_INFO_ARRAY, vec![Info::new(keys::APPNUM, 0u32), Info::new(keys::APPLDR, 0u32)]),
            array(keys::APP_INFO_ARRAY, vec![Info::new(keys::APPNUM, 1u32), Info::new(keys::APPLDR, 1u32)]),
            array(
                keys::PROC_INFO_ARRAY,
                vec![
                    Info::new(keys::RANK, Rank(2)),
                    Info::new(keys::CREDENTIAL, "secret"),
                    Info::new(keys::CPUSET, "0-1"),
                ],
            ),
        ],
    );
    assert_eq!(value(&job.session, keys::SESSION_ID), Some(&Value::Uint32(9)));
    assert!(value(&job.job, keys::MAPBY).is_some());
    assert_eq!(job.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [11, 12]);
    assert!(value(&job.nodes.get(1).unwrap().values, keys::AVAIL_PHYS_MEMORY).is_some());
    assert_eq!(
        job.procs.iter().map(|proc| (proc.app, proc.app_rank.0)).collect::<Vec<_>>(),
        [(0, 0), (1, 0), (1, 1)]
    );
    assert_eq!(job.procs.get(2).unwrap().cpuset.as_deref(), Some("0-1"));
    assert!(value(job.procs.get(2).unwrap().values.as_deref().unwrap(), keys::CREDENTIAL).is_some());
    assert_eq!(job.here, Some(0));
}

#[test]
fn without_maps_what_is_here_is_on_our_node() {
    let job = told(2, &[]);
    assert_eq!((job.procs.len(), job.here), (2, Some(0)));
    assert_eq!(&*job.nodes.get(0).unwrap().name, "a.example");
    let part = told(1, &[Info::new(keys::JOB_SIZE, 3u32)]);
    assert_eq!((part.procs.len(), part.here), (3, None));
    let none = told(0, &[]);
    assert_eq!(none.procs.len(), 0);
}

#[test]
fn hostnames_of_processes_do_for_maps() {
    let proc = |rank: u32, host: &'static str| {
        array(keys::PROC_INFO_ARRAY, vec![Info::new(keys::RANK, Rank(rank)), Info::new(keys::HOSTNAME, host)])
    };
    let job = told(1, &[proc(0, "b"), proc(1, "a"), Info::new(keys::JOB_SIZE, 2u32)]);
    assert_eq!(job.procs.iter().map(|proc| proc.node).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(job.here, Some(1));
}

#[test]
fn a_second_registration_adds() {
    let first = told(2, &slurm());
    let more = [
        Info::new(keys::MAPBY, "node"),
        array(keys::PROC_INFO_ARRAY, vec![Info::new(keys::RANK, Rank(3)), Info::new(keys::CPUSET, "4")]),
    ];
    let job = job(&nspace(), None, &more, &HERE, Some(&first)).unwrap();
    assert_eq!((job.procs.len(), job.here), (4, Some(1)));
    assert_eq!(job.procs.get(3).unwrap().cpuset.as_deref(), Some("4"));
    assert!(job.procs.iter().take(3).eq(first.procs.iter().take(3)));
    assert!(value(&job.job, keys::MAPBY).is_some() && value(&job.job, keys::JOBID).is_some());
}

#[test]
fn nonsense_is_refused_or_left_out() {
    let of = |infos: &[Info]| job(&nspace(), Some(1), infos, &HERE, None).map(|job| job.procs.len());
    assert_eq!(of(&[Info::new(keys::NODE_MAP, "nothing known")]), Err(Status::ERR_BAD_PARAM));
    assert_eq!(of(&[Info::new(keys::PROC_MAP, 7u32)]), Err(Status::ERR_BAD_PARAM));
    assert_eq!(of(&[Info::new(keys::JOB_SIZE, u32::MAX)]), Err(Status::ERR_BAD_PARAM));
    assert_eq!(of(&[array(keys::PROC_INFO_ARRAY, vec![Info::new(keys::CPUSET, "0")])]), Ok(1));
    assert_eq!(of(&[array(keys::PROC_INFO_ARRAY, vec![Info::new(keys::RANK, Rank(u32::MAX - 9))])]), Ok(1));
    assert_eq!(of(&[Info::new(keys::NODE_INFO_ARRAY, 3u32)]), Ok(1));
}
