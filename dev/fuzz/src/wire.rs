//! Bytes decoded as messages between processes, or as files of theirs.

use phalanx_spec::Rank;
use phalanx_wire::cmd::{
    Body, InfoReply, Request, StatusReply, abort, connect, credential, event, fabric, fence, get, group, iof,
    job_data, publish, resolve, spawn,
};
use phalanx_wire::codec::{DecodeError, Dialect, Format, Generation, Item, Reader, Release, Writer};
use phalanx_wire::collected::{self, Collection};
use phalanx_wire::frame::{FrameReader, encode_frame};
use phalanx_wire::hello::{ClientWelcome, Flavor, HelloAnswer, HelloReader, ToolWelcome};
use phalanx_wire::modex::Contribution;
use phalanx_wire::regex::{regex_to_nodes, regex_to_ppn};
use phalanx_wire::rendezvous::Rendezvous;
use phalanx_wire::{App, Info, Kval, Nspace, Pdata, ProcId, Query, Value, show};

/// The first byte is the size of the pieces in which the rest arrives.
pub(crate) fn frame(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let mut reader = FrameReader::new(1 << 16);
    let mut whole = Vec::new();
    for piece in stream.chunks(usize::from(*step).max(1)) {
        reader.feed(piece);
        loop {
            match reader.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => whole.push(frame),
                Err(error) => {
                    assert!(error.claimed as usize > error.limit);
                    return;
                }
            }
        }
    }
    let length: usize = whole.iter().map(|f| encode_frame(f.index, f.tag, &f.payload).len()).sum();
    assert_eq!(length + reader.waiting(), stream.len());
}

/// The first byte is the size of the pieces in which the rest arrives.
pub(crate) fn hello(data: &[u8]) {
    let Some((step, stream)) = data.split_first() else { return };
    let mut reader = HelloReader::new();
    for piece in stream.chunks(usize::from(*step).max(1)) {
        match reader.feed(piece) {
            Ok(None) => {}
            Ok(Some(hello)) => {
                let bytes = hello.encode();
                let again = HelloReader::new().feed(&bytes);
                assert_eq!(again.ok().flatten().map(|hello| hello.encode()).as_ref(), Some(&bytes));
                break;
            }
            Err(_) => break,
        }
    }
    let _ = HelloAnswer::<ClientWelcome>::decode(stream);
    for flavor in Flavor::ALL {
        let _ = HelloAnswer::<ToolWelcome>::decode(stream, flavor);
    }
}

/// The first byte selects how the rest is packed, and as what.
pub(crate) fn value(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    let format = format(*kind);
    match kind >> 4 {
        0..=7 => {
            items::<Value>(format, bytes);
            if let Ok(values) = Reader::new(format, bytes).get_rest::<Value>() {
                values.iter().for_each(|value| assert!(!show::within(value, 1000).contains('\n')));
            }
        }
        8 | 9 => items::<Kval>(format, bytes),
        10 => items::<Info>(format, bytes),
        11 => items::<Pdata>(format, bytes),
        12 => items::<App>(format, bytes),
        13 => items::<Query>(format, bytes),
        14 => items::<ProcId>(format, bytes),
        _ => {
            let _ = regex_to_nodes(bytes, 1000);
            let _ = regex_to_ppn(bytes, 1000);
        }
    }
}

/// The first byte selects the packing of the rest, the second the release, the third the message.
pub(crate) fn request(data: &[u8]) {
    let [kind, release, message, bytes @ ..] = data else { return };
    let dialect = Dialect { format: format(*kind), release: Release::new(4 + u16::from(release % 3), 0, 0) };
    match message % 20 {
        0..=3 => {
            if let Ok(request) = Request::decode(bytes, dialect) {
                let bytes = request.encode(dialect);
                let again = Request::decode(&bytes, dialect).expect("our own bytes");
                assert_eq!(again.command(), request.command());
                assert_eq!(again.encode(dialect), bytes);
            }
        }
        4 => body::<job_data::JobData>(bytes, dialect),
        5 => body::<get::Reply>(bytes, dialect),
        6 => body::<get::RefreshReply>(bytes, dialect),
        7 => body::<publish::LookupReply>(bytes, dialect),
        8 => body::<spawn::Reply>(bytes, dialect),
        9 => body::<connect::Reply>(bytes, dialect),
        10 => body::<InfoReply>(bytes, dialect),
        11 => body::<credential::Reply>(bytes, dialect),
        12 => {
            body::<iof::PullReply>(bytes, dialect);
            body::<iof::Taken>(bytes, dialect);
        }
        13 => {
            body::<group::WholeReply>(bytes, dialect);
            body::<group::ConstructReply>(bytes, dialect);
        }
        14 => body::<resolve::PeersReply>(bytes, dialect),
        15 => body::<resolve::NodeReply>(bytes, dialect),
        16 => body::<event::Notification>(bytes, dialect),
        17 => body::<iof::Output>(bytes, dialect),
        18 => body::<fabric::DistancesReply>(bytes, dialect),
        _ => {
            let _ = Contribution::decode_all(bytes, dialect, 1 << 16);
            body::<StatusReply>(bytes, dialect);
            body::<fence::Reply>(bytes, dialect);
            body::<abort::Abort>(bytes, dialect);
        }
    }
}

pub(crate) fn rendezvous(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(Some(file)) = Rendezvous::parse(text) {
        let again = Rendezvous::parse(&file.to_string());
        assert_eq!(again.ok().flatten().map(|again| again.uri).as_ref(), Some(&file.uri));
    }
}

/// Anything read from a file must be written back unchanged.
pub(crate) fn collection(data: &[u8]) {
    let nspace = Nspace::new("job@1").expect("a name");
    let Ok(collection) = Collection::open(data, 0, &nspace) else { return };
    for rank in (0..8).chain([100, u32::MAX]).map(Rank) {
        if let Ok(Some(values)) = collection.values_of(rank) {
            let block = collected::block(&ProcId::new(&nspace, rank), values.iter().cloned());
            let again = collected::collection(&nspace, std::iter::once((rank, &block)));
            let again = Collection::open(again.as_slice(), 0, &nspace).expect("our own bytes");
            assert_eq!(
                again.values_of(rank).map(|values| values.map(|values| values.len())),
                Ok(Some(values.len()))
            );
        }
    }
}

fn format(kind: u8) -> Format {
    let generation = Generation::ALL[usize::from(kind & 7) % Generation::ALL.len()];
    Format { generation, described: kind & 8 != 0 }
}

fn items<T: Item>(format: Format, bytes: &[u8]) {
    if let Ok(items) = Reader::new(format, bytes).get_rest::<T>() {
        let bytes = written(format, &items);
        let again = Reader::new(format, &bytes).get_rest::<T>().expect("our own bytes");
        assert_eq!(written(format, &again), bytes);
    }
}

fn written<T: Item>(format: Format, items: &[T]) -> Vec<u8> {
    let mut writer = Writer::new(format);
    items.iter().for_each(|item| {
        writer.put(item);
    });
    writer.into_bytes()
}

fn body<T: Body>(bytes: &[u8], dialect: Dialect) {
    let read: Result<T, DecodeError> = T::decode(bytes, dialect);
    if let Ok(body) = read {
        let bytes = body.encode(dialect);
        let again = T::decode(&bytes, dialect).expect("our own bytes");
        assert_eq!(again.encode(dialect), bytes);
    }
}
