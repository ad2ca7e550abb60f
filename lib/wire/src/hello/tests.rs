use super::*;
use crate::codec::{Format, Generation};
use crate::credential::Credential;
use crate::info::Info;
use crate::name::{Nspace, ProcId};
use phalanx_spec::{Rank, keys};

fn hello(flavor: Flavor, info: Vec<Info>) -> Hello {
    Hello {
        flavor,
        credential: Credential::Native { uid: 1000, gid: 100 },
        uid: if flavor.states_ids() { 1000 } else { 0 },
        gid: if flavor.states_ids() { 100 } else { 0 },
        proc: flavor.has_name().then(|| ProcId::new(&Nspace::new("job.1").unwrap(), Rank(3))),
        version: "5.0.11".to_owned(),
        format: Format { generation: Generation::V41, described: false },
        store: "hash".to_owned(),
        info,
    }
}

#[test]
fn every_flavor_survives_every_way_of_arriving() {
    for flavor in Flavor::ALL {
        assert_eq!(Flavor::from_flag(flavor.flag()), Some(flavor));
        let sent = hello(flavor, vec![Info::new(keys::CMD_LINE, "tool -x")]);
        let bytes = sent.encode();
        for step in [1, 7, bytes.len()] {
            let mut reader = HelloReader::new();
            let mut got = None;
            for piece in bytes.chunks(step) {
                assert_eq!(got, None);
                got = reader.feed(piece).unwrap();
            }
            assert_eq!(got.as_ref(), Some(&sent));
            assert!(reader.into_rest().is_empty());
        }
    }
}

#[test]
fn the_stray_zero_of_4_2_is_ignored() {
    for info in [vec![], vec![Info::new(keys::CMD_LINE, "x")]] {
        let sent = hello(Flavor::Tool, info);
        let mut bytes = sent.encode();
        bytes.push(0);
        let body = u32::try_from(bytes.len() - 16).unwrap();
        bytes[8..12].copy_from_slice(&body.to_ne_bytes());
        assert_eq!(HelloReader::new().feed(&bytes), Ok(Some(sent)));
    }
}

#[test]
fn bytes_behind_the_hello_are_kept() {
    let mut reader = HelloReader::new();
    let mut bytes = hello(Flavor::Client, vec![]).encode();
    bytes.extend_from_slice(b"next");
    assert!(reader.feed(&bytes).unwrap().is_some());
    assert_eq!(reader.into_rest(), b"next");
}

#[test]
fn strangers_are_rejected_at_once() {
    assert_eq!(HelloReader::new().feed(b"G"), Err(HelloError::NotPmix));
    let mut long = [0xff; 12];
    long[8..].copy_from_slice(&200_000_u32.to_ne_bytes());
    assert_eq!(
        HelloReader::new().feed(&long),
        Err(HelloError::TooLong { claimed: 200_000, limit: MAX_HELLO })
    );
    let mut other = hello(Flavor::Client, vec![]).encode();
    let at = other.windows(3).position(|w| w == b"v41").unwrap();
    other[at + 1] = b'9';
    assert_eq!(HelloReader::new().feed(&other), Err(HelloError::UnknownCodec("v91".to_owned())));
}

#[test]
fn any_prefix_waits_and_any_cut_body_says_where_it_ends() {
    let bytes = hello(Flavor::NamedTool, vec![Info::new(keys::CMD_LINE, "x")]).encode();
    for len in 0..bytes.len() {
        assert_eq!(HelloReader::new().feed(&bytes[..len]), Ok(None));
        if len >= 16 {
            let mut cut = bytes[..len].to_vec();
            cut[8..12].copy_from_slice(&u32::try_from(len - 16).unwrap().to_ne_bytes());
            let whole = HelloReader::new().feed(&cut);
            assert!(whole.is_err() || whole.unwrap().unwrap().info.is_empty());
        }
    }
}

#[test]
fn answers_round_trip() {
    let server = ProcId::new(&Nspace::new("server").unwrap(), Rank(0));
    let client = HelloAnswer::Welcome(ClientWelcome { index: 5 });
    assert_eq!(HelloAnswer::<ClientWelcome>::decode(&client.encode()), Some((client.clone(), 8)));
    assert_eq!(HelloAnswer::<ClientWelcome>::decode(&client.encode()[..7]), None);
    let refused = HelloAnswer::<ClientWelcome>::Refused(Status::ERR_NOT_SUPPORTED);
    assert_eq!(HelloAnswer::<ClientWelcome>::decode(&refused.encode()), Some((refused.clone(), 4)));
    for (flavor, length) in [(Flavor::Tool, 528), (Flavor::NamedTool, 268)] {
        let assigned = flavor.is_given_name().then(|| ProcId::new(&Nspace::new("tool-1").unwrap(), Rank(9)));
        let tool =
            HelloAnswer::Welcome(ToolWelcome { assigned, server: server.clone(), security: Status::SUCCESS });
        let bytes = tool.encode();
        assert_eq!(HelloAnswer::<ToolWelcome>::decode(&bytes, flavor), Ok(Some((tool, length))));
        assert_eq!(HelloAnswer::<ToolWelcome>::decode(&bytes[..length - 1], flavor), Ok(None));
    }
}

#[test]
fn releases_are_read_leniently() {
    for (text, release) in [
        ("4.2.2rc2", (4, 2, 2)),
        ("v5.0.11", (5, 0, 11)),
        ("6.1", (6, 1, 0)),
        ("6.1.1rc2 (master)", (6, 1, 1)),
    ] {
        assert_eq!(Release::parse(text), Some(Release::new(release.0, release.1, release.2)));
    }
    assert_eq!(Release::parse("master"), None);
}
