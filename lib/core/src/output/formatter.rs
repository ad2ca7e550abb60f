//! The output of one reader: lines of different processes are kept apart, formatted and collected.
//!
//! The amount that it holds is bounded, and nothing is held for ever: [`OutputFormatter::deadline`] is when
//! [`OutputFormatter::tick`] releases what has waited long enough.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_spec::keys;
use phalanx_wire::cmd::iof::DROPPED;
use phalanx_wire::{Info, InfoList, ProcId, Value};

use super::{Channel, Form, Held, Lines, MOST_HELD, Rules, Segment, Source, Stream, Style, append};
use crate::machine::Time;

#[derive(Debug)]
pub struct OutputFormatter {
    style: Style,
    /// None: pieces pass unchanged.
    lines: Option<Lines>,
    formatted: Formatted,
}

/// Bytes for the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub stream: Stream,
    pub data: Vec<u8>,
    /// Bytes that were dropped right before.
    pub lost: u64,
}

/// Formatted lines, until they leave.
#[derive(Debug, Default)]
struct Formatted {
    /// Host and pid of processes, as far as known.
    places: BTreeMap<ProcId, (Option<String>, Option<u32>)>,
    /// Streams in the middle of a line.
    open: BTreeSet<Stream>,
    collected: BTreeMap<Stream, Collected>,
    collected_bytes: usize,
    lost: BTreeMap<Stream, u64>,
    ready: Vec<Ready>,
}

#[derive(Debug)]
struct Collected {
    data: Vec<u8>,
    /// Number of bytes before formatting, by the channel on which they came.
    raw: BTreeMap<Channel, usize>,
    since: Time,
}

/// The current time: for timers, and, since the beginning of 1970, for people.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub time: Time,
    pub wall: Duration,
}

impl OutputFormatter {
    /// For a reader that gets the source with each piece. None: output passes unchanged.
    pub fn for_reader(style: Style) -> Option<OutputFormatter> {
        let plain = !style.marks_lines() && !style.merge && style.buffer == 0 && style.buffer_for.is_none();
        (!plain).then(|| OutputFormatter::new(style.clone(), style.marks_lines(), MOST_HELD_FOR_READER))
    }

    /// For a place where the output of all processes is shown together.
    pub fn for_screen(style: Style) -> OutputFormatter {
        OutputFormatter::new(style, true, MOST_HELD)
    }

    fn new(style: Style, apart: bool, most_held: usize) -> OutputFormatter {
        let rules = Rules {
            solo: false,
            opens: style.form == Form::Text,
            prompt_after: Some(PROMPT_AFTER),
            patience: PATIENCE,
            most_held,
        };
        let lines = (apart && !style.raw).then(|| Lines::new(rules));
        OutputFormatter { style, lines, formatted: Formatted::default() }
    }

    pub fn style(&self) -> &Style {
        &self.style
    }

    /// Bytes of this stream that have not left.
    pub fn held(&self, stream: &Stream) -> Held {
        let lines = self.lines.as_ref().map_or(0, |lines| lines.held(stream));
        let collected = self.formatted.collected.get(&self.formatted.leaving(&self.style, stream));
        let collected = collected.and_then(|held| held.raw.get(&stream.channel)).copied().unwrap_or(0);
        Held { lines, collected }
    }

    /// Takes bytes of a stream, with their infos; no bytes: it has ended. Returns what is to leave now.
    pub fn data(&mut self, now: Moment, stream: &Stream, data: &[u8], info: &[Info]) -> Vec<Ready> {
        self.formatted.learn(stream, info);
        if let Some(lost) = info.find(DROPPED).and_then(Value::as_u64) {
            // The gap belongs exactly here.
            self.release(now, stream);
            *self.formatted.lost.entry(stream.clone()).or_default() += lost;
        }
        let (style, formatted) = (&self.style, &mut self.formatted);
        match &mut self.lines {
            _ if data.is_empty() => self.release(now, stream),
            Some(lines) => lines.data(now.time, stream, data, &mut |piece| formatted.take(now, style, piece)),
            None => {
                let starts = !formatted.open.contains(stream);
                formatted.take(now, style, Segment::Text { stream, bytes: data, starts });
                match data.last() {
                    Some(b'\n') => formatted.open.remove(stream),
                    _ => formatted.open.insert(stream.clone()),
                };
            }
        }
        if data.is_empty() {
            self.formatted.forget(stream);
        }
        std::mem::take(&mut self.formatted.ready)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Moment) -> Vec<Ready> {
        let (style, formatted) = (&self.style, &mut self.formatted);
        if let Some(lines) = &mut self.lines {
            lines.tick(now.time, &mut |piece| formatted.take(now, style, piece));
        }
        if let Some(longest) = style.buffer_for {
            let due = |held: &Collected| held.since.after(longest) <= now.time;
            let due: Vec<Stream> =
                formatted.collected.iter().filter(|(_, held)| due(held)).map(|(s, _)| s.clone()).collect();
            due.iter().for_each(|stream| formatted.pass_on(stream));
        }
        std::mem::take(&mut formatted.ready)
    }

    pub fn deadline(&self) -> Option<Time> {
        let lines = self.lines.as_ref().and_then(Lines::deadline);
        let held = self.formatted.collected.values().map(|held| held.since).min();
        let collected = self.style.buffer_for.zip(held).map(|(longest, since)| since.after(longest));
        lines.into_iter().chain(collected).min()
    }

    /// No more output comes: releases everything that is held.
    pub fn finish(&mut self, now: Moment) -> Vec<Ready> {
        let (style, formatted) = (&self.style, &mut self.formatted);
        if let Some(lines) = &mut self.lines {
            lines.finish(&mut |piece| formatted.take(now, style, piece));
        }
        formatted.pass_all_on();
        std::mem::take(&mut formatted.ready)
    }

    /// Releases all that is held of a stream, even if another stream is in the middle of a line.
    fn release(&mut self, now: Moment, stream: &Stream) {
        let (style, formatted) = (&self.style, &mut self.formatted);
        if let Some(lines) = &mut self.lines {
            let emit = &mut |piece: Segment<'_>| formatted.take(now, style, piece);
            if lines.held(stream) > 0 {
                lines.yield_line(emit);
            }
            lines.end(now.time, stream, emit);
        }
        formatted.pass_on(&formatted.leaving(style, stream));
    }
}

impl Formatted {
    fn learn(&mut self, stream: &Stream, info: &[Info]) {
        let host = info.find(keys::HOSTNAME).and_then(Value::as_str);
        let pid = info.find(keys::PROC_PID).and_then(|value| match value {
            Value::Pid(pid) => Some(*pid),
            other => other.as_u32(),
        });
        if host.is_some() || pid.is_some() {
            self.places.insert(stream.proc.clone(), (host.map(str::to_owned), pid));
        }
    }

    fn forget(&mut self, stream: &Stream) {
        self.open.remove(stream);
        self.lost.remove(stream);
    }

    fn take(&mut self, now: Moment, style: &Style, piece: Segment<'_>) {
        let (stream, bytes, starts) = match piece {
            Segment::Text { stream, bytes, starts } => (stream, bytes, starts),
            Segment::Break { stream, .. } if style.marks_lines() => {
                return self.collect(now, style, stream, 0, b"\n".to_vec());
            }
            Segment::Break { .. } => return,
        };
        let mut data = Vec::with_capacity(bytes.len());
        let place = self.places.get(&stream.proc);
        let host = place.and_then(|(host, _)| host.as_deref());
        let pid = place.and_then(|(_, pid)| *pid);
        let source = Source { stream, host, pid, job: None, rank_width: 0 };
        append(&mut data, style, &source, bytes, starts, now.wall);
        self.collect(now, style, stream, bytes.len(), data);
    }

    /// The stream as which the reader gets it.
    fn leaving(&self, style: &Style, stream: &Stream) -> Stream {
        let channel = if style.merge { Channel::Stdout } else { stream.channel };
        Stream { proc: stream.proc.clone(), channel }
    }

    fn collect(&mut self, now: Moment, style: &Style, stream: &Stream, raw: usize, data: Vec<u8>) {
        let leaving = self.leaving(style, stream);
        if style.buffer == 0 && style.buffer_for.is_none() {
            return self.leave(leaving, data);
        }
        self.collected_bytes += data.len();
        let new = || Collected { data: Vec::new(), raw: BTreeMap::new(), since: now.time };
        let held = self.collected.entry(leaving.clone()).or_insert_with(new);
        *held.raw.entry(stream.channel).or_default() += raw;
        held.data.extend(data);
        if style.buffer > 0 && held.data.len() >= style.buffer {
            self.pass_on(&leaving);
        } else if self.collected_bytes > MOST_COLLECTED {
            self.pass_all_on();
        }
    }

    fn pass_on(&mut self, stream: &Stream) {
        if let Some(held) = self.collected.remove(stream) {
            self.collected_bytes -= held.data.len();
            self.leave(stream.clone(), held.data);
        }
    }

    fn pass_all_on(&mut self) {
        let all: Vec<Stream> = self.collected.keys().cloned().collect();
        all.iter().for_each(|stream| self.pass_on(stream));
    }

    fn leave(&mut self, stream: Stream, data: Vec<u8>) {
        let lost = self.lost.remove(&stream).unwrap_or(0);
        self.ready.push(Ready { stream, data, lost });
    }
}

/// Longer than a program needs between two pieces of one line.
const PROMPT_AFTER: Duration = Duration::from_millis(200);
/// How long an open line may keep others waiting.
const PATIENCE: Duration = Duration::from_secs(2);
/// A server has many readers, so less is held until the end of a line than elsewhere.
const MOST_HELD_FOR_READER: usize = 1 << 20;
/// Maximum number of bytes collected for one reader.
const MOST_COLLECTED: usize = 1 << 20;

#[cfg(test)]
mod tests;
