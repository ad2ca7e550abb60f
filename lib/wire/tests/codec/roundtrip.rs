//! Any value survives packing and unpacking, in every generation, described or not; any bytes decode or are refused.

// Tests may fail.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use phalanx_spec::{
    AllocDirective, Command, DataType, IofChannel, JobState, LinkState, Persistence, ProcState, Range, Rank,
    Scope, Status,
};
use phalanx_wire::codec::{Format, Generation, Reader, Writer};
use phalanx_wire::{
    App, Blob, Buffer, Coord, DataArray, Device, DeviceDistance, DiskStats, Endpoint, Envar, Geometry, Info,
    InfoFlags, Key, Kval, NetStats, NodePid, NodeStats, Nspace, Pdata, ProcId, ProcInfo, ProcStats, Query,
    Regattr, Regex2, ResourceUnit, Text, Timeval, TopologyBlob, Value,
};
use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::TestRunner;

fn formats() -> impl Iterator<Item = Format> {
    let both = |generation| [false, true].map(|described| Format { generation, described });
    Generation::ALL.into_iter().flat_map(both)
}

proptest! {
    #[test]
    fn any_value_survives_every_format(value in value(true)) {
        for format in formats().filter(|format| fits(&value, format.generation)) {
            let mut writer = Writer::new(format);
            writer.put(&value).put_all(&[value.clone(), value.clone()]);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(format, &bytes);
            prop_assert_eq!(reader.get::<Value>(), Ok(value.clone()));
            prop_assert_eq!(reader.get_n::<Value>(2), Ok(vec![value.clone(), value.clone()]));
            prop_assert_eq!(reader.expect_end(), Ok(()));
        }
    }

    #[test]
    fn a_cut_message_never_passes_for_the_whole(value in value(true), cut in any::<prop::sample::Index>()) {
        for format in formats().filter(|format| fits(&value, format.generation)) {
            let mut writer = Writer::new(format);
            writer.put(&value);
            let bytes = writer.into_bytes();
            let found = Reader::new(format, &bytes[..cut.index(bytes.len())]).get::<Value>();
            prop_assert_ne!(found, Ok(value.clone()));
        }
    }

    #[test]
    fn decoding_is_total(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..80_u8], 0..400)) {
        for format in formats() {
            let _ = Reader::new(format, &bytes).get_rest::<Value>();
            let _ = Reader::new(format, &bytes).get_rest::<Kval>();
            let _ = Reader::new(format, &bytes).get_list::<Info>();
        }
    }
}

#[test]
fn types_a_generation_lacks_become_undefined() {
    let device = Value::Device(Box::new(Device { uuid: None, os_name: None, device_type: 1 }));
    let key = |name| Key::new(name).unwrap();
    let array = DataArray { of: device.data_type(), items: vec![device.clone()] };
    let sent = [
        Kval { key: key("a"), value: device },
        Kval { key: key("b"), value: array.into() },
        Kval { key: key("c"), value: 7_u32.into() },
    ];
    let format = Format { generation: Generation::V41, described: false };
    let mut writer = Writer::new(format);
    sent.iter().for_each(|kval| {
        writer.put(kval);
    });
    let bytes = writer.into_bytes();
    let got: Vec<Kval> = Reader::new(format, &bytes).get_rest().unwrap();
    let empty = DataArray { of: DataType::INFO, items: vec![] };
    assert_eq!(
        got.into_iter().map(|k| k.value).collect::<Vec<_>>(),
        [Value::Undef, empty.into(), 7_u32.into()]
    );
}

#[test]
fn every_data_type_is_among_the_values_tried() {
    let mut runner = TestRunner::deterministic();
    let strategy = value(true);
    let tried: BTreeSet<DataType> =
        (0..20_000).map(|_| strategy.new_tree(&mut runner).unwrap().current().data_type()).collect();
    let missing: Vec<DataType> = DataType::all()
        .filter(|of| {
            Generation::ALL.iter().any(|g| *g >= Generation::V4 && g.has(*of)) && !tried.contains(of)
        })
        .collect();
    assert_eq!(missing, []);
}

/// Whether this generation has the type of the value and of everything inside it.
fn fits(value: &Value, generation: Generation) -> bool {
    let infos = |infos: &[Info]| infos.iter().all(|info| fits(&info.value, generation));
    generation.has(value.data_type())
        && match value {
            Value::Value(v) => fits(v, generation),
            Value::Info(v) => fits(&v.value, generation),
            Value::Kval(v) => fits(&v.value, generation),
            Value::Pdata(v) => fits(&v.value, generation),
            Value::App(v) => infos(&v.info),
            Value::Query(v) => infos(&v.qualifiers),
            Value::DataArray(v) => generation.has(v.of) && v.items.iter().all(|item| fits(item, generation)),
            _ => true,
        }
}

fn text() -> impl Strategy<Value = Text> {
    prop::collection::vec(1..=255_u8, 0..12).prop_map(|bytes| Text::from_bytes(&bytes))
}

fn maybe_text() -> impl Strategy<Value = Option<Text>> {
    prop::option::of(text())
}

fn blob() -> impl Strategy<Value = Blob> {
    prop::collection::vec(any::<u8>(), 0..12).prop_map(Blob::from)
}

fn key() -> impl Strategy<Value = Key> {
    "[a-z.ä]{0,10}".prop_map(|name| Key::new(&name).unwrap())
}

fn nspace() -> impl Strategy<Value = Nspace> {
    "[a-z.@0-9]{0,10}".prop_map(|name| Nspace::new(&name).unwrap())
}

fn proc() -> impl Strategy<Value = ProcId> {
    (nspace(), any::<u32>()).prop_map(|(nspace, rank)| ProcId { nspace, rank: Rank(rank) })
}

fn timeval() -> impl Strategy<Value = Timeval> {
    (any::<i64>(), any::<i64>()).prop_map(|(sec, usec)| Timeval { sec, usec })
}

/// Numbers that six decimals represent exactly.
fn float() -> impl Strategy<Value = f32> {
    (-1_000_000..1_000_000_i32).prop_map(|n| n as f32 / 8.0)
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1_000_000_000_000..1_000_000_000_000_i64).prop_map(|n| n as f64 / 64.0),
        Just(f64::MAX),
        Just(f64::NEG_INFINITY),
    ]
}

fn coord() -> impl Strategy<Value = Coord> {
    (any::<u8>(), prop::collection::vec(any::<u32>(), 0..4)).prop_map(|(view, coord)| Coord { view, coord })
}

fn disk() -> impl Strategy<Value = DiskStats> {
    (maybe_text(), any::<[u64; 11]>()).prop_map(|(disk, counters)| DiskStats { disk, counters })
}

fn net() -> impl Strategy<Value = NetStats> {
    (maybe_text(), any::<[u64; 6]>()).prop_map(|(interface, counters)| NetStats { interface, counters })
}

fn infos() -> impl Strategy<Value = Vec<Info>> {
    prop::collection::vec(info(), 0..3)
}

fn info() -> impl Strategy<Value = Info> {
    (key(), any::<u32>(), value(false)).prop_map(|(key, flags, value)| Info {
        key,
        flags: InfoFlags::from_bits_retain(flags),
        value,
    })
}

fn numbers() -> Union<BoxedStrategy<Value>> {
    Union::new([
        any::<bool>().prop_map(Value::Bool).boxed(),
        any::<u8>().prop_map(Value::Byte).boxed(),
        any::<u64>().prop_map(Value::Size).boxed(),
        any::<u32>().prop_map(Value::Pid).boxed(),
        any::<i32>().prop_map(Value::Int).boxed(),
        any::<i8>().prop_map(Value::Int8).boxed(),
        any::<i16>().prop_map(Value::Int16).boxed(),
        any::<i32>().prop_map(Value::Int32).boxed(),
        any::<i64>().prop_map(Value::Int64).boxed(),
        any::<u32>().prop_map(Value::Uint).boxed(),
        any::<u8>().prop_map(Value::Uint8).boxed(),
        any::<u16>().prop_map(Value::Uint16).boxed(),
        any::<u32>().prop_map(Value::Uint32).boxed(),
        any::<u64>().prop_map(Value::Uint64).boxed(),
        float().prop_map(Value::Float).boxed(),
        double().prop_map(Value::Double).boxed(),
        timeval().prop_map(Value::Timeval).boxed(),
        any::<u64>().prop_map(Value::Time).boxed(),
        any::<u64>().prop_map(Value::DeviceType).boxed(),
        any::<u16>().prop_map(Value::Locality).boxed(),
        any::<u64>().prop_map(Value::StorageMedium).boxed(),
        any::<u64>().prop_map(Value::StorageAccess).boxed(),
        any::<u64>().prop_map(Value::StoragePersistence).boxed(),
        any::<u16>().prop_map(Value::StorageAccessType).boxed(),
    ])
}

fn codes() -> Union<BoxedStrategy<Value>> {
    Union::new([
        any::<i32>().prop_map(|n| Value::Status(Status(n))).boxed(),
        any::<u32>().prop_map(|n| Value::Rank(Rank(n))).boxed(),
        any::<u8>().prop_map(|n| Value::Persistence(Persistence(n))).boxed(),
        any::<u8>().prop_map(|n| Value::Scope(Scope(n))).boxed(),
        any::<u8>().prop_map(|n| Value::Range(Range(n))).boxed(),
        any::<u8>().prop_map(|n| Value::Command(Command(n))).boxed(),
        any::<u32>().prop_map(|n| Value::InfoFlags(InfoFlags::from_bits_retain(n))).boxed(),
        any::<u16>().prop_map(|n| Value::DataType(DataType(n))).boxed(),
        any::<u8>().prop_map(|n| Value::ProcState(ProcState(n))).boxed(),
        any::<u8>().prop_map(|n| Value::AllocDirective(AllocDirective(n))).boxed(),
        any::<u16>().prop_map(|n| Value::IofChannel(IofChannel(n))).boxed(),
        any::<u8>().prop_map(|n| Value::JobState(JobState(n))).boxed(),
        any::<u8>().prop_map(|n| Value::LinkState(LinkState(n))).boxed(),
        any::<u8>().prop_map(Value::ResourceBlockDirective).boxed(),
        Just(Value::Pointer).boxed(),
        Just(Value::Undef).boxed(),
        Just(Value::NullString).boxed(),
    ])
}

fn blocks() -> Union<BoxedStrategy<Value>> {
    Union::new([
        text().prop_map(Value::String).boxed(),
        proc().prop_map(Value::Proc).boxed(),
        nspace().prop_map(Value::ProcNspace).boxed(),
        maybe_text().prop_map(Value::Cpuset).boxed(),
        blob().prop_map(Value::ByteObject).boxed(),
        blob().prop_map(Value::CompressedString).boxed(),
        blob().prop_map(Value::CompressedByteObject).boxed(),
        blob().prop_map(Value::DataBuffer).boxed(),
        (any::<bool>(), blob())
            .prop_map(|(described, bytes)| Value::Buffer(Buffer { described, bytes }))
            .boxed(),
        "(pmix|raw:)?[a-z0-9,;:]{0,10}".prop_map(|text| Value::Regex(text.into_bytes().into())).boxed(),
        blob()
            .prop_map(|bytes| {
                let head = format!("blob:\0component=zlib:\0size={}:\0", bytes.len());
                Value::Regex([head.as_bytes(), bytes.as_bytes()].concat().into())
            })
            .boxed(),
        (maybe_text(), blob())
            .prop_map(|(kind, bytes)| Value::Regex2(Box::new(Regex2 { kind, bytes })))
            .boxed(),
        (any::<u64>(), any::<u64>())
            .prop_map(|(device_type, count)| Value::ResourceUnit(ResourceUnit { device_type, count }))
            .boxed(),
    ])
}

fn structures() -> Union<BoxedStrategy<Value>> {
    let names = || (maybe_text(), maybe_text());
    Union::new([
        (proc(), names(), any::<u32>(), any::<u8>())
            .prop_map(|(proc, (hostname, executable), pid, state)| {
                let state = ProcState(state);
                Value::ProcInfo(Box::new(ProcInfo { proc, hostname, executable, pid, state }))
            })
            .boxed(),
        (names(), any::<u8>())
            .prop_map(|((name, value), separator)| Value::Envar(Box::new(Envar { name, value, separator })))
            .boxed(),
        coord().prop_map(|coord| Value::Coord(Box::new(coord))).boxed(),
        (names(), any::<u16>(), prop::collection::vec(text(), 0..3))
            .prop_map(|((name, key), data_type, description)| {
                let data_type = DataType(data_type);
                Value::Regattr(Box::new(Regattr { name, key, data_type, description }))
            })
            .boxed(),
        (any::<u64>(), names(), prop::collection::vec(coord(), 0..3))
            .prop_map(|(fabric, (uuid, os_name), coordinates)| {
                Value::Geometry(Box::new(Geometry { fabric, uuid, os_name, coordinates }))
            })
            .boxed(),
        (names(), any::<u64>(), any::<u16>(), any::<u16>())
            .prop_map(|((uuid, os_name), device_type, min, max)| {
                Value::DeviceDistance(Box::new(DeviceDistance { uuid, os_name, device_type, min, max }))
            })
            .boxed(),
        (names(), blob())
            .prop_map(|((uuid, os_name), bytes)| Value::Endpoint(Box::new(Endpoint { uuid, os_name, bytes })))
            .boxed(),
        (text(), any::<[u8; 32]>())
            .prop_map(|(xml, support)| {
                Value::Topology(Box::new(TopologyBlob { xml: Some(xml), support: support.to_vec() }))
            })
            .boxed(),
        Just(Value::Topology(Box::new(TopologyBlob { xml: None, support: vec![] }))).boxed(),
        (names(), any::<u64>())
            .prop_map(|((uuid, os_name), device_type)| {
                Value::Device(Box::new(Device { uuid, os_name, device_type }))
            })
            .boxed(),
        (maybe_text(), any::<u32>(), any::<u32>())
            .prop_map(|(hostname, node_id, pid)| Value::NodePid(Box::new(NodePid { hostname, node_id, pid })))
            .boxed(),
        disk().prop_map(|disk| Value::DiskStats(Box::new(disk))).boxed(),
        net().prop_map(|net| Value::NetStats(Box::new(net))).boxed(),
        (
            (names(), proc(), any::<(u32, u8, i32, i16, i16)>()),
            (timeval(), timeval()),
            [float(), float(), float()],
        )
            .prop_map(
                |(
                    ((node, cmd), proc, (pid, state, priority, threads, processor)),
                    (time, sample_time),
                    x,
                )| {
                    let [pss, vsize, rss] = x;
                    Value::ProcStats(Box::new(ProcStats {
                        node,
                        proc,
                        pid,
                        cmd,
                        state,
                        time,
                        priority,
                        threads,
                        pss,
                        vsize,
                        rss,
                        processor,
                        sample_time,
                    }))
                },
            )
            .boxed(),
        (
            maybe_text(),
            prop::array::uniform11(float()),
            timeval(),
            prop::collection::vec(disk(), 0..2),
            net(),
        )
            .prop_map(|(node, gauges, sample_time, disks, net)| {
                let nets = vec![net];
                Value::NodeStats(Box::new(NodeStats { node, gauges, sample_time, disks, nets }))
            })
            .boxed(),
    ])
}

/// Values that contain others, one level deep.
fn holders() -> Union<BoxedStrategy<Value>> {
    Union::new([
        value(false).prop_map(|value| Value::Value(Box::new(value))).boxed(),
        info().prop_map(|info| Value::Info(Box::new(info))).boxed(),
        (key(), value(false)).prop_map(|(key, value)| Value::Kval(Box::new(Kval { key, value }))).boxed(),
        (proc(), key(), value(false))
            .prop_map(|(proc, key, value)| Value::Pdata(Box::new(Pdata { proc, key, value })))
            .boxed(),
        (maybe_text(), prop::collection::vec(text(), 0..3), any::<i32>(), infos())
            .prop_map(|(cmd, argv, max_procs, info)| {
                let (env, cwd) = (argv.clone(), cmd.clone());
                Value::App(Box::new(App { cmd, argv, env, cwd, max_procs, info }))
            })
            .boxed(),
        (prop::collection::vec(text(), 0..3), infos())
            .prop_map(|(keys, qualifiers)| Value::Query(Box::new(Query { keys, qualifiers })))
            .boxed(),
        infos().prop_map(|infos| DataArray::of_infos(infos).into()).boxed(),
        (value(false), 0..3_usize)
            .prop_filter("arrays of nothing are not sent", |(value, _)| *value != Value::Undef)
            .prop_map(|(value, n)| DataArray { of: value.data_type(), items: vec![value; n] }.into())
            .boxed(),
    ])
}

fn value(outermost: bool) -> BoxedStrategy<Value> {
    let plain = prop_oneof![numbers(), codes(), blocks(), structures()];
    if outermost { prop_oneof![2 => plain, 1 => holders()].boxed() } else { plain.boxed() }
}
