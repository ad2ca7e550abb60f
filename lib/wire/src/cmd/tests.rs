//! Cases that no captured session contains: the rarer commands, and layouts that depend on the release.

use super::*;
use crate::codec::{Format, Generation, Release};
use crate::info::{Info, Kval};
use crate::name::{Key, Nspace, ProcId};
use crate::text::{Blob, Text};
use crate::value::{DeviceDistance, TopologyBlob};
use phalanx_spec::{Rank, Scope, keys};

fn dialects() -> impl Iterator<Item = Dialect> {
    let releases = [Release::new(4, 2, 2), Release::new(5, 0, 11), Release::new(6, 1, 1)];
    let formats = Generation::ALL
        .into_iter()
        .flat_map(|generation| [false, true].map(|described| Format { generation, described }));
    formats.flat_map(move |format| releases.map(|release| Dialect { format, release }))
}

fn proc(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("job").unwrap(), Rank(rank))
}

fn info() -> Vec<Info> {
    vec![Info::new(keys::TIMEOUT, 3_i32).required()]
}

fn job() -> job_data::JobData {
    job_data::JobData {
        nspace: Nspace::new("job").unwrap(),
        values: vec![Kval::new(keys::JOB_SIZE, 2_u32)],
        procs: vec![(Rank(0), vec![Kval::new(keys::HOSTNAME, "n1")]), (Rank(1), vec![])],
    }
}

#[test]
fn requests_survive_every_dialect() {
    for dialect in dialects() {
        for request in [
            Request::JobDataFallback { store: Some(Text::from("shmem2")) },
            Request::Commit(commit::Commit {
                buckets: vec![(Scope::LOCAL, vec![Kval::new(keys::HOSTNAME, "x")])],
            }),
            Request::Unpublish(publish::Published {
                uid: 7,
                keys: vec![Key::of("a"), Key::of("b")],
                info: info(),
            }),
            Request::GroupLeave(group::Leave { id: Text::from("g"), info: info() }),
            Request::DeviceDistances(fabric::DeviceDistances {
                topology: TopologyBlob { xml: Some(Text::from("<topology/>")), support: vec![1; 32] },
                cpuset: Some(Text::from("0-3")),
                info: info(),
            }),
            Request::DeregisterEvents(event::DeregisterEvents { codes: vec![Status(-1), Status(-2)] }),
        ] {
            let bytes = request.encode(dialect);
            assert_eq!(Request::command_of(&bytes, dialect), Ok(request.command()));
            assert_eq!(Request::decode(&bytes, dialect), Ok(request));
        }
    }
}

#[test]
fn fields_appended_by_newer_releases_are_ignored() {
    for dialect in dialects() {
        let request = Request::Fence(fence::Fence { procs: vec![proc(0)], info: info() });
        let mut bytes = request.encode(dialect);
        bytes.extend_from_slice(&[1, 2, 3]);
        assert_eq!(Request::decode(&bytes, dialect), Ok(request));
    }
}

#[test]
fn unknown_commands_are_distinguished_from_broken_ones() {
    for dialect in dialects() {
        let mut bytes = Request::Finalize.encode(dialect);
        *bytes.last_mut().unwrap() = 200;
        assert_eq!(Request::decode(&bytes, dialect), Err(DecodeError::UnknownCommand { code: 200 }));
        assert!(matches!(Request::decode(&[], dialect), Err(DecodeError::Truncated { .. })));
    }
}

#[test]
fn group_replies_follow_the_release() {
    let full = group::ConstructReply {
        status: Status::SUCCESS,
        members: vec![proc(0), proc(1)],
        context_id: Some(7),
        info: info(),
        jobs: vec![job()],
    };
    for dialect in dialects() {
        let expected = match dialect.release.major {
            4 => group::ConstructReply { members: vec![], info: vec![], jobs: vec![], ..full.clone() },
            5 => group::ConstructReply { info: vec![], ..full.clone() },
            _ => group::ConstructReply { jobs: vec![], ..full.clone() },
        };
        assert_eq!(group::ConstructReply::decode(&full.encode(dialect), dialect), Ok(expected));
        let none = group::ConstructReply { context_id: None, info: vec![], jobs: vec![], ..full.clone() };
        let read = group::ConstructReply::decode(&none.encode(dialect), dialect).unwrap();
        assert_eq!(read.context_id, None);
        let refused = group::ConstructReply { status: Status::ERR_TIMEOUT, ..full.clone() };
        assert_eq!(refused.encode(dialect), StatusReply(Status::ERR_TIMEOUT).encode(dialect));
    }
    for dialect in dialects() {
        let whole = group::WholeReply(full.clone());
        assert_eq!(group::WholeReply::decode(&whole.encode(dialect), dialect), Ok(whole));
        let refused = StatusReply(Status::ERR_TIMEOUT).encode(dialect);
        let group::WholeReply(read) = group::WholeReply::decode(&refused, dialect).unwrap();
        assert_eq!((read.status, read.members.len()), (Status::ERR_TIMEOUT, 0));
    }
    // The first id that PRRTE assigns.
    let first = group::ConstructReply { context_id: Some(0xffff_ffff), ..full.clone() };
    for dialect in dialects() {
        let read = group::ConstructReply::decode(&first.encode(dialect), dialect).unwrap();
        assert_eq!(read.context_id, first.context_id, "{dialect:?}");
    }
    let format = Format { generation: Generation::V41, described: false };
    let [old, new] =
        [Release::new(4, 2, 2), Release::new(5, 0, 11)].map(|release| Dialect { format, release });
    assert!(group::ConstructReply::decode(&full.encode(new), old).is_err());
}

#[test]
fn destruct_names_its_members_from_5_0_on() {
    let request = group::Destruct { id: Text::from("g"), procs: vec![proc(0)], info: info() };
    for dialect in dialects() {
        let read = group::Destruct::decode(&request.encode(dialect), dialect).unwrap();
        assert_eq!(read.procs.is_empty(), dialect.release.major < 5);
        assert_eq!((read.id, read.info), (request.id.clone(), request.info.clone()));
    }
}

#[test]
fn data_packed_before_make_the_same_replies() {
    for dialect in dialects() {
        let encoded = job().encoded(dialect.format);
        assert_eq!(encoded.body(), job().encode(dialect));
        let spawned = spawn::Reply { status: Status::SUCCESS, job: Some(job()) };
        assert_eq!(spawn::encode_success(&encoded, None), spawned.encode(dialect));
        let further = Kval::new(keys::HOSTNAME, "n1");
        let with_it =
            spawn::Reply::decode(&spawn::encode_success(&encoded, Some(&further)), dialect).unwrap();
        assert_eq!(with_it.job.map(|job| job.values.last().cloned()), Some(Some(further)));
        let connected = connect::Reply { status: Status::SUCCESS, jobs: vec![job(), job()] };
        assert_eq!(connect::encode_success([&encoded, &encoded], dialect.format), connected.encode(dialect));

        let owner = get::OwnerData { owner: proc(1), values: vec![Kval::new(keys::HOSTNAME, "n1")] };
        let blobs = [Blob::from(owner.encode(dialect.format))];
        let reply = get::Reply::decode(&get::encode_success(&blobs, dialect.format), dialect).unwrap();
        assert_eq!(reply.data, [owner]);
    }
}

#[test]
fn distances_survive() {
    let distance =
        DeviceDistance { uuid: None, os_name: Some(Text::from("mlx5_0")), device_type: 1, min: 7, max: 9 };
    let reply = fabric::DistancesReply { status: Status::SUCCESS, distances: vec![distance] };
    for dialect in dialects() {
        assert_eq!(fabric::DistancesReply::decode(&reply.encode(dialect), dialect), Ok(reply.clone()));
    }
}

#[test]
fn a_failed_spawn_may_be_followed_by_an_empty_name() {
    let dialect = Dialect {
        format: Format { generation: Generation::V41, described: false },
        release: Release::new(5, 0, 0),
    };
    for bytes in [&[2, 0x5d][..], &[2, 0x5d, 2, 0], &[2, 0x5d, 2, 2, 0]] {
        let reply = spawn::Reply::decode(bytes, dialect).unwrap();
        assert_eq!((reply.status, reply.job), (Status::ERR_NOT_SUPPORTED, None));
    }
}
