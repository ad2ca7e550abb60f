//! Decoding allocates in proportion to what has arrived, whatever the bytes claim.
//!
//! The allocator tracks, per thread, the most bytes held at once. Bound: 72 bytes per byte of a message, plus a constant.
//! A value takes 32 bytes in memory and may take one on the wire; a value inside a value takes its own 32.

// Tests may fail; counting needs an allocator of our own, which is unsafe by its nature.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use phalanx_spec::{Command, DataType, Scope};
use phalanx_wire::cmd::Request;
use phalanx_wire::codec::{Dialect, Format, Generation, Reader, Release, Size, Writer};
use phalanx_wire::frame::FrameReader;
use phalanx_wire::hello::HelloReader;
use phalanx_wire::regex::{regex_to_nodes, regex_to_ppn};
use phalanx_wire::{Blob, Value};

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(change: impl FnOnce(usize) -> usize) {
    let held = change(HELD.get());
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call goes to the system's allocator unchanged; the counters are plain cells without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|held| held + layout.size());
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(|held| held.saturating_sub(layout.size()));
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FORMAT: Format = Format { generation: Generation::V41, described: false };
const DIALECT: Dialect = Dialect { format: FORMAT, release: Release::new(5, 0, 0) };
const PER_BYTE: usize = 72;
const CONSTANT: usize = 4096;

/// The most bytes that `run` held beyond what was held before.
fn peak<T>(run: impl FnOnce() -> T) -> usize {
    let before = HELD.get();
    PEAK.set(before);
    drop(run());
    PEAK.get() - before
}

#[test]
fn a_value_is_as_small_as_the_bound_says() {
    assert_eq!(size_of::<Value>(), 32);
}

fn within_bounds<T>(what: &str, bytes: usize, run: impl FnOnce() -> T) {
    let peak = peak(run);
    assert!(peak <= bytes * PER_BYTE + CONSTANT, "{what}: {peak} bytes held for {bytes} bytes of message");
}

/// A value that is an array of `of`, claiming `n` elements, followed by `content`.
fn array(of: DataType, n: u64, content: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(FORMAT);
    writer.put(&Value::from(n));
    let claim = writer.into_bytes();
    // Count 1; type DATA_ARRAY; element type; the number as in the UINT64 value above.
    [&[2, DataType::DATA_ARRAY.0 as u8, of.0 as u8], &claim[2..], content].concat()
}

#[test]
fn claims_cost_nothing() {
    for of in DataType::all() {
        for n in [1 << 16, 1 << 31, u64::MAX] {
            let bytes = array(of, n, &[]);
            within_bounds(&format!("{n} of {of:?}"), bytes.len(), || {
                Reader::new(FORMAT, &bytes).get::<Value>()
            });
        }
    }
    let mut writer = Writer::new(FORMAT);
    writer.put(&Command::FENCENB).put(&Size(u64::MAX));
    let bytes = [writer.into_bytes(), vec![0xfe, 0xff, 0xff, 0xff, 0x0f]].concat();
    within_bounds("a fence", bytes.len(), || Request::decode(&bytes, DIALECT));
    let mut writer = Writer::new(FORMAT);
    writer.put(&Command::COMMIT).put(&Scope::LOCAL);
    let bytes =
        [writer.into_bytes(), vec![2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]].concat();
    within_bounds("a commit", bytes.len(), || Request::decode(&bytes, DIALECT));
}

#[test]
fn the_densest_messages_stay_within_the_bound() {
    const N: usize = 20_000;
    for of in DataType::all() {
        // The most elements that the bytes can encode: all zeros, all ones, and the smallest strings.
        for fill in [&[0][..], &[1], &[2, 0], &[2, 0, 0, 0]] {
            let content: Vec<u8> = fill.iter().copied().cycle().take(N).collect();
            for n in [N, N / 2, N / 3, N / 4, N / 5, N / 6, N / 7, N / 12, N / 17] {
                let bytes = array(of, n as u64, &content);
                within_bounds(&format!("{n} of {of:?}"), bytes.len(), || {
                    Reader::new(FORMAT, &bytes).get::<Value>()
                });
            }
        }
    }
    // Items of a buffer, one by one.
    let bytes = [2, 0].repeat(N);
    within_bounds("values", bytes.len(), || Reader::new(FORMAT, &bytes).get_rest::<Value>());
}

#[test]
fn nesting_ends() {
    let deep: Vec<u8> = [2].into_iter().chain([DataType::VALUE.0 as u8].repeat(1 << 16)).collect();
    within_bounds("values in values", deep.len(), || Reader::new(FORMAT, &deep).get::<Value>());
    let arrays =
        [&[2][..], &[DataType::DATA_ARRAY.0 as u8, DataType::DATA_ARRAY.0 as u8, 1].repeat(1 << 14)].concat();
    within_bounds("arrays in arrays", arrays.len(), || Reader::new(FORMAT, &arrays).get::<Value>());
}

#[test]
fn readers_of_streams_hold_what_arrived() {
    let mut header = vec![0; 16];
    header[8..12].copy_from_slice(&(50_u32 << 20).to_be_bytes());
    within_bounds("a frame", 16, || {
        let mut reader = FrameReader::default();
        reader.feed(&header);
        assert_eq!(reader.next_frame(), Ok(None));
        reader
    });
    let mut hello = vec![0xff; 16];
    hello[8..12].copy_from_slice(&(100_u32 << 10).to_ne_bytes());
    within_bounds("a handshake", 16, || {
        let mut reader = HelloReader::new();
        assert_eq!(reader.feed(&hello), Ok(None));
        reader
    });
}

#[test]
fn maps_expand_no_further_than_allowed() {
    for map in ["pmix[n[9:1-999999999]]", "pmix[0-4294967294]", "pmix[0-4294967294;0-4294967294]"] {
        within_bounds(map, 1000, || (regex_to_nodes(map.as_bytes(), 100), regex_to_ppn(map.as_bytes(), 100)));
    }
}

#[test]
fn bytes_that_are_only_carried_are_copied_once() {
    let mut writer = Writer::new(FORMAT);
    writer.put(&Value::from(Blob::from(vec![7; 1 << 20])));
    let bytes = writer.into_bytes();
    let peak = peak(|| Reader::new(FORMAT, &bytes).get::<Value>());
    assert!(peak < bytes.len() + CONSTANT, "{peak}");
}
