//! Values as one line of text, for people: logs, `px query`, error messages. Never parsed again.
//!
//! Text of a peer stays on its line: control characters are escaped, invalid UTF-8 is replaced.

use std::fmt::{self, Display, Formatter, Write};

use crate::info::{DataArray, Info, Kval, Pdata};
use crate::plain;
use crate::text::{Blob, Text};
use crate::value::{App, Coord, DiskStats, NetStats, NodeStats, ProcStats, Query, Timeval, Value};

/// At most `limit` characters of what `value` prints; a cut is marked. Takes no more time or room than the cut needs.
pub fn within(value: &impl Display, limit: usize) -> String {
    let mut line = Line { text: String::new(), left: limit };
    if write!(line, "{value}").is_err() {
        line.text.push('…');
    }
    line.text
}

struct Line {
    text: String,
    left: usize,
}

impl Write for Line {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for c in s.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Undef => f.write_str("undefined"),
            Value::NullString => f.write_str("null"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::String(v) => escaped(v, f),
            Value::Byte(v) | Value::Uint8(v) => write!(f, "{v}"),
            Value::Size(v) | Value::Uint64(v) | Value::Time(v) => write!(f, "{v}"),
            Value::Pid(v) | Value::Uint(v) | Value::Uint32(v) => write!(f, "{v}"),
            Value::Int(v) | Value::Int32(v) => write!(f, "{v}"),
            Value::Int8(v) => write!(f, "{v}"),
            Value::Int16(v) => write!(f, "{v}"),
            Value::Int64(v) => write!(f, "{v}"),
            Value::Uint16(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v}"),
            Value::Double(v) => write!(f, "{v}"),
            Value::Timeval(v) => time(v, f),
            Value::Status(v) => write!(f, "{v}"),
            Value::Value(v) => write!(f, "{v}"),
            Value::Proc(v) => write!(f, "{v}"),
            Value::App(v) => app(v, f),
            Value::Info(v) => write!(f, "{v}"),
            Value::Pdata(v) => write!(f, "{v}"),
            Value::Kval(v) => write!(f, "{v}"),
            Value::Buffer(v) => blob(&v.bytes, f),
            Value::ByteObject(v) | Value::DataBuffer(v) => blob(v, f),
            Value::CompressedString(v) | Value::CompressedByteObject(v) => {
                write!(f, "<{} bytes, compressed>", v.len())
            }
            Value::Persistence(v) => write!(f, "{v:?}"),
            Value::Pointer => f.write_str("<pointer>"),
            Value::Scope(v) => write!(f, "{v:?}"),
            Value::Range(v) => write!(f, "{v:?}"),
            Value::Command(v) => write!(f, "{v:?}"),
            Value::InfoFlags(v) => write!(f, "{:#x}", v.bits()),
            Value::DataType(v) => write!(f, "{v:?}"),
            Value::ProcState(v) => write!(f, "{v:?}"),
            Value::ProcInfo(v) => {
                write!(f, "{} pid {} {:?} on ", v.proc, v.pid, v.state)?;
                optional(&v.hostname, f)?;
                f.write_str(" running ")?;
                optional(&v.executable, f)
            }
            Value::DataArray(v) => write!(f, "{v}"),
            Value::Rank(v) => write!(f, "{v}"),
            Value::Query(v) => query(v, f),
            Value::AllocDirective(v) => write!(f, "{v:?}"),
            Value::IofChannel(v) => write!(f, "{v:?}"),
            Value::Envar(v) => {
                optional(&v.name, f)?;
                f.write_str("=")?;
                optional(&v.value, f)
            }
            Value::Coord(v) => coord(v, f),
            Value::Regattr(v) => {
                optional(&v.name, f)?;
                write!(f, " {:?}", v.data_type)
            }
            Value::Regex(v) => match std::str::from_utf8(v.as_bytes()) {
                Ok(text) if !text.contains('\0') => escaped(&Text::from(text), f),
                _ => blob(v, f),
            },
            Value::JobState(v) => write!(f, "{v:?}"),
            Value::LinkState(v) => write!(f, "{v:?}"),
            Value::Cpuset(v) => optional(v, f),
            Value::Geometry(v) => {
                write!(f, "fabric {} ", v.fabric)?;
                optional(&v.os_name, f)?;
                list(&v.coordinates, coord, f)
            }
            Value::DeviceDistance(v) => {
                optional(&v.os_name, f)?;
                write!(f, " {}..{}", v.min, v.max)
            }
            Value::Endpoint(v) => {
                optional(&v.os_name, f)?;
                f.write_str(" ")?;
                blob(&v.bytes, f)
            }
            Value::Topology(v) => {
                write!(f, "<topology, {} bytes>", v.xml.as_ref().map_or(0, |x| x.as_bytes().len()))
            }
            Value::DeviceType(v)
            | Value::StorageMedium(v)
            | Value::StorageAccess(v)
            | Value::StoragePersistence(v) => {
                write!(f, "{v:#x}")
            }
            Value::Locality(v) | Value::StorageAccessType(v) => write!(f, "{v:#x}"),
            Value::ProcNspace(v) => write!(f, "{v}"),
            Value::ProcStats(v) => proc_stats(v, f),
            Value::DiskStats(v) => disk_stats(v, f),
            Value::NetStats(v) => net_stats(v, f),
            Value::NodeStats(v) => node_stats(v, f),
            Value::Device(v) => {
                optional(&v.os_name, f)?;
                write!(f, " type {:#x}", v.device_type)
            }
            Value::ResourceBlockDirective(v) => write!(f, "{v}"),
            Value::ResourceUnit(v) => write!(f, "{} of type {:#x}", v.count, v.device_type),
            Value::NodePid(v) => {
                optional(&v.hostname, f)?;
                write!(f, ":{}", v.pid)
            }
            Value::Regex2(v) => {
                optional(&v.kind, f)?;
                f.write_str(":")?;
                blob(&v.bytes, f)
            }
        }
    }
}

impl Display for Info {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        pair(self.key.as_str(), &self.value, f)
    }
}

impl Display for Kval {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        pair(self.key.as_str(), &self.value, f)
    }
}

impl Display for Pdata {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        pair(self.key.as_str(), &self.value, f)?;
        write!(f, " from {}", self.proc)
    }
}

impl Display for DataArray {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        list(&self.items, Display::fmt, f)
    }
}

fn pair(key: &str, value: &Value, f: &mut Formatter<'_>) -> fmt::Result {
    escaped(&Text::from(key), f)?;
    match value {
        Value::Undef => Ok(()),
        value => write!(f, "={value}"),
    }
}

fn escaped(text: &Text, f: &mut Formatter<'_>) -> fmt::Result {
    for chunk in text.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            plain::write(c, f)?;
        }
        if !chunk.invalid().is_empty() {
            f.write_char(char::REPLACEMENT_CHARACTER)?;
        }
    }
    Ok(())
}

fn optional(text: &Option<Text>, f: &mut Formatter<'_>) -> fmt::Result {
    match text {
        Some(text) => escaped(text, f),
        None => f.write_str("-"),
    }
}

fn blob(blob: &Blob, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "<{} bytes>", blob.len())
}

fn list<T>(
    items: &[T],
    show: impl Fn(&T, &mut Formatter<'_>) -> fmt::Result,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    f.write_str("[")?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        show(item, f)?;
    }
    f.write_str("]")
}

fn time(time: &Timeval, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{}.{:06}s", time.sec, time.usec)
}

fn app(app: &App, f: &mut Formatter<'_>) -> fmt::Result {
    optional(&app.cmd, f)?;
    write!(f, " x{} ", app.max_procs)?;
    list(&app.argv, escaped, f)
}

fn query(query: &Query, f: &mut Formatter<'_>) -> fmt::Result {
    list(&query.keys, escaped, f)?;
    if !query.qualifiers.is_empty() {
        f.write_str(" where ")?;
        list(&query.qualifiers, Display::fmt, f)?;
    }
    Ok(())
}

fn coord(coord: &Coord, f: &mut Formatter<'_>) -> fmt::Result {
    list(&coord.coord, Display::fmt, f)
}

fn proc_stats(stats: &ProcStats, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{} pid {} cpu ", stats.proc, stats.pid)?;
    time(&stats.time, f)?;
    write!(f, " threads {} rss {} vsize {} pss {}", stats.threads, stats.rss, stats.vsize, stats.pss)
}

fn disk_stats(stats: &DiskStats, f: &mut Formatter<'_>) -> fmt::Result {
    optional(&stats.disk, f)?;
    f.write_str(" ")?;
    list(&stats.counters, Display::fmt, f)
}

fn net_stats(stats: &NetStats, f: &mut Formatter<'_>) -> fmt::Result {
    optional(&stats.interface, f)?;
    f.write_str(" ")?;
    list(&stats.counters, Display::fmt, f)
}

fn node_stats(stats: &NodeStats, f: &mut Formatter<'_>) -> fmt::Result {
    let [load, load5, load15, total, free, ..] = stats.gauges;
    optional(&stats.node, f)?;
    write!(f, " load {load} {load5} {load15} memory {free} free of {total}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx_spec::{Rank, keys};

    #[test]
    fn values_stay_on_their_line() {
        for (value, line) in [
            (Value::from("two\nlines\x1b[31m"), "two\\nlines\\u001b[31m"),
            (Value::String(Text::from_bytes(b"a\xffb")), "a\u{fffd}b"),
            (Value::from(Rank(3)), "3"),
            (Value::ByteObject(vec![1, 2, 3].into()), "<3 bytes>"),
            (
                Value::from(DataArray::of_infos([
                    Info::new(keys::HOSTNAME, "n1"),
                    Info::new(keys::COLLECT_DATA, Value::Undef),
                ])),
                "[pmix.hname=n1, pmix.collect]",
            ),
        ] {
            assert_eq!(value.to_string(), line);
        }
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(within(&Value::from("abcdef"), 6), "abcdef");
        assert_eq!(within(&Value::from("abcdefg"), 6), "abcdef…");
        assert_eq!(within(&Value::from("ä".repeat(10)), 2), "ää…");
    }
}
