//! Keeps lines of different ranks apart on one sink, and still shows prompts.
//!
//! Complete lines pass at once. The beginning of a line is held until its end arrives; it passes earlier when it has been
//! quiet for a while on a terminal (a prompt), when it grows too long to be held, or when its stream ends. From then on the
//! sink belongs to that line until it ends. Others wait, but not for ever: when the line has hardly grown for some time, or
//! when too much waits, it is broken off. The writer of the sink decides how that looks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::Stream;
use crate::machine::Time;

/// The properties of a sink.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Only one rank writes here: everything passes unchanged.
    pub solo: bool,
    /// A piece of a line leaves the sink in the middle of a line (text). Otherwise each piece is complete in itself (JSON).
    pub opens: bool,
    /// A piece that was quiet for this long is a prompt and is shown.
    pub prompt_after: Option<Duration>,
    /// How long an open line that hardly grows may keep others waiting.
    pub patience: Duration,
    /// An open line is broken off when more bytes than this wait for its end; sooner if it was broken before.
    pub most_held: usize,
}

/// The next thing to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Lines and pieces of lines of one stream. `starts`: the first byte begins a line.
    Text { stream: &'a Stream, bytes: &'a [u8], starts: bool },
    /// What follows does not belong to the open line of this stream, although its rank has not ended it. `aside`: what
    /// follows was written by no rank.
    Break { stream: &'a Stream, aside: bool },
}

#[derive(Debug)]
pub struct Lines {
    rules: Rules,
    held: BTreeMap<Stream, Held>,
    held_bytes: usize,
    /// Streams that want to write while the sink belongs to another one, in the order of arrival.
    waiting: VecDeque<Stream>,
    waiting_since: Option<Time>,
    open: Option<Stream>,
    /// How much the open line has grown since others began to wait, or since their wait was last extended.
    grown: usize,
    /// The open line's stream has ended: no more bytes will end the line.
    open_ended: bool,
    next_prompt: Option<Time>,
    /// Streams whose line has been broken off and goes on: it cannot be kept whole any more.
    broken: BTreeSet<Stream>,
    spare: Spare,
}

#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    last: Time,
    ended: bool,
    /// It is in the queue of waiting streams.
    waiting: bool,
    /// The bytes are in the spare buffer.
    has_spare: bool,
}

/// A buffer that a long wait has filled is reused for the next one: fresh memory from the kernel costs more than copying
/// into it.
#[derive(Debug)]
enum Spare {
    None,
    Here(Vec<u8>),
    Lent,
}

impl Lines {
    pub fn new(rules: Rules) -> Lines {
        Lines {
            rules,
            held: BTreeMap::new(),
            held_bytes: 0,
            waiting: VecDeque::new(),
            waiting_since: None,
            open: None,
            grown: 0,
            open_ended: false,
            next_prompt: None,
            broken: BTreeSet::new(),
            spare: Spare::None,
        }
    }

    /// A second rank writes here after all.
    pub fn no_longer_solo(&mut self) {
        self.rules.solo = false;
    }

    /// Whether the sink is in the middle of a line.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Number of bytes of this stream that wait.
    pub fn held(&self, stream: &Stream) -> usize {
        self.held.get(stream).map_or(0, |held| held.bytes.len())
    }

    pub fn data(&mut self, now: Time, stream: &Stream, bytes: &[u8], emit: &mut dyn FnMut(Segment<'_>)) {
        if bytes.is_empty() {
            return;
        }
        if self.rules.solo {
            return self.pass(stream, bytes, emit);
        }
        if self.open_ended && self.open.as_ref() != Some(stream) {
            self.break_off(false, emit);
        }
        match &self.open {
            Some(open) if open != stream => self.hold(now, stream, bytes),
            Some(_) => {
                self.grow(now, bytes.len());
                self.pass_lines(now, stream, bytes, emit);
            }
            None => match self.held.get(stream).map(|held| held.bytes.len()) {
                None => self.pass_lines(now, stream, bytes, emit),
                Some(before) => {
                    self.hold(now, stream, bytes);
                    if bytes.contains(&b'\n') || before + bytes.len() > LONGEST_HELD {
                        self.release(now, stream, emit);
                    }
                }
            },
        }
        self.after(now, emit);
    }

    /// `stream` has ended.
    pub fn end(&mut self, now: Time, stream: &Stream, emit: &mut dyn FnMut(Segment<'_>)) {
        self.broken.remove(stream);
        if self.open.as_ref() == Some(stream) {
            self.open_ended = true;
        } else if let Some(held) = self.held.get_mut(stream) {
            held.ended = true;
            if self.open_ended {
                self.break_off(false, emit);
            }
            match self.open {
                Some(_) => self.wait(now, stream),
                None => self.release(now, stream, emit),
            }
        }
        self.after(now, emit);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time, emit: &mut dyn FnMut(Segment<'_>)) {
        if let Some(quiet) = self.rules.prompt_after
            && self.next_prompt.is_some_and(|at| at <= now)
        {
            let due: Vec<Stream> = self
                .held
                .iter()
                .filter(|(_, held)| held.last.after(quiet) <= now)
                .map(|(s, _)| s.clone())
                .collect();
            for stream in due {
                match self.open {
                    Some(_) => self.wait(now, &stream),
                    None => self.show(&stream, emit),
                }
            }
            self.next_prompt = self.held.values().map(|h| h.last.after(quiet)).filter(|at| *at > now).min();
        }
        self.after(now, emit);
    }

    /// The sink takes no bytes: restarts the wait, since an open line that does not grow is not to blame.
    pub fn hold_off(&mut self, now: Time) {
        if let Some(since) = &mut self.waiting_since {
            *since = now;
        }
    }

    /// When [`Lines::tick`] is due.
    pub fn deadline(&self) -> Option<Time> {
        let patience = self.waiting_since.map(|since| since.after(self.rules.patience));
        [patience, self.next_prompt].into_iter().flatten().min()
    }

    /// The next bytes were written by no rank: ends an open line.
    pub fn interrupt(&mut self, emit: &mut dyn FnMut(Segment<'_>)) {
        self.break_off(true, emit);
    }

    /// Stops waiting for the end of the open line.
    pub(super) fn yield_line(&mut self, emit: &mut dyn FnMut(Segment<'_>)) {
        self.break_off(false, emit);
    }

    /// Writes complete lines that belong to no stream's text: an open line is ended first.
    pub fn aside(&mut self, stream: &Stream, bytes: &[u8], emit: &mut dyn FnMut(Segment<'_>)) {
        self.break_off(true, emit);
        emit(Segment::Text { stream, bytes, starts: true });
    }

    /// All streams have ended.
    pub fn finish(&mut self, emit: &mut dyn FnMut(Segment<'_>)) {
        while let Some(stream) = self.held.keys().next().cloned() {
            if self.open.as_ref() != Some(&stream) {
                self.break_off(false, emit);
            }
            self.show(&stream, emit);
        }
    }

    /// Breaks off an open line when others have waited enough.
    fn after(&mut self, now: Time, emit: &mut dyn FnMut(Segment<'_>)) {
        while let Some(open) = &self.open
            && !self.waiting.is_empty()
        {
            let patient = self.waiting_since.is_some_and(|since| now < since.after(self.rules.patience));
            let most_held = match self.broken.contains(open) {
                true => self.rules.most_held.min(MOST_HELD_FOR_BROKEN),
                false => self.rules.most_held,
            };
            if patient && !self.open_ended && self.held_bytes <= most_held {
                return;
            }
            if !self.open_ended {
                self.broken.insert(open.clone());
            }
            self.break_off(false, emit);
            self.drain(now, emit);
        }
        if self.open.is_none() {
            self.drain(now, emit);
        }
        // Many streams have begun a line: some have to pass incomplete.
        while self.held_bytes > self.rules.most_held
            && let Some(stream) = self.held.keys().next().cloned()
        {
            self.break_off(false, emit);
            self.show(&stream, emit);
        }
    }

    fn break_off(&mut self, aside: bool, emit: &mut dyn FnMut(Segment<'_>)) {
        if let Some(stream) = self.open.take() {
            emit(Segment::Break { stream: &stream, aside });
        }
        self.open_ended = false;
    }

    /// Lets waiting streams write, until one of them leaves its line open.
    fn drain(&mut self, now: Time, emit: &mut dyn FnMut(Segment<'_>)) {
        while self.open.is_none() {
            let Some(stream) = self.waiting.pop_front() else { break };
            let quiet = self
                .rules
                .prompt_after
                .zip(self.held.get(&stream))
                .is_some_and(|(q, h)| h.last.after(q) <= now);
            self.release(now, &stream, emit);
            if quiet && self.open.is_none() && self.held.contains_key(&stream) {
                self.show(&stream, emit);
            }
        }
        self.waiting_since = if self.waiting.is_empty() { None } else { Some(now) };
    }

    /// Writes the complete lines of what is held of `stream`, and the rest if it cannot be held.
    fn release(&mut self, now: Time, stream: &Stream, emit: &mut dyn FnMut(Segment<'_>)) {
        if let Some(held) = self.held.remove(stream) {
            self.held_bytes -= held.bytes.len();
            self.pass_lines(now, stream, &held.bytes, emit);
            self.spare.take_back(held.bytes, held.has_spare);
            if held.ended {
                self.show(stream, emit);
                self.open_ended = self.open.as_ref() == Some(stream);
            }
        }
    }

    /// Writes complete lines, and of the last, incomplete one what may not be held.
    fn pass_lines(&mut self, now: Time, stream: &Stream, bytes: &[u8], emit: &mut dyn FnMut(Segment<'_>)) {
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(whole);
        if !lines.is_empty() {
            self.broken.remove(stream);
            self.pass(stream, lines, emit);
        }
        if self.open.is_some() || rest.len() > LONGEST_HELD {
            self.pass(stream, rest, emit);
        } else if !rest.is_empty() {
            self.hold(now, stream, rest);
        }
    }

    /// Writes all that is held of `stream`.
    fn show(&mut self, stream: &Stream, emit: &mut dyn FnMut(Segment<'_>)) {
        if let Some(held) = self.held.remove(stream) {
            self.held_bytes -= held.bytes.len();
            self.pass(stream, &held.bytes, emit);
            self.spare.take_back(held.bytes, held.has_spare);
        }
    }

    fn pass(&mut self, stream: &Stream, bytes: &[u8], emit: &mut dyn FnMut(Segment<'_>)) {
        if let Some(last) = bytes.last() {
            emit(Segment::Text { stream, bytes, starts: self.open.is_none() });
            self.open = (self.rules.opens && *last != b'\n').then(|| stream.clone());
            self.open_ended = false;
        }
    }

    fn hold(&mut self, now: Time, stream: &Stream, bytes: &[u8]) {
        let held = self.held.entry(stream.clone()).or_insert_with(|| Held {
            bytes: Vec::new(),
            last: now,
            ended: false,
            waiting: false,
            has_spare: false,
        });
        if held.bytes.len() + bytes.len() > LONGEST_HELD {
            self.spare.lend(held);
        }
        held.bytes.extend_from_slice(bytes);
        held.last = now;
        self.held_bytes += bytes.len();
        if self.open.is_some() && (bytes.contains(&b'\n') || held.bytes.len() > LONGEST_HELD) {
            self.wait(now, stream);
        }
        if let Some(quiet) = self.rules.prompt_after {
            self.next_prompt.get_or_insert(now.after(quiet));
        }
    }

    /// A long line keeps its turn as long as it grows.
    fn grow(&mut self, now: Time, bytes: usize) {
        self.grown += bytes;
        if self.grown >= LONGEST_HELD {
            self.grown = 0;
            self.hold_off(now);
        }
    }

    fn wait(&mut self, now: Time, stream: &Stream) {
        if let Some(held) = self.held.get_mut(stream)
            && !std::mem::replace(&mut held.waiting, true)
        {
            self.waiting.push_back(stream.clone());
        }
        if self.waiting_since.is_none() {
            self.grown = 0;
            self.waiting_since = Some(now);
        }
    }
}

impl Spare {
    fn lend(&mut self, to: &mut Held) {
        if let Spare::Here(buffer) = self {
            let mut buffer = std::mem::take(buffer);
            *self = Spare::Lent;
            buffer.extend_from_slice(&to.bytes);
            to.bytes = buffer;
            to.has_spare = true;
        }
    }

    /// One buffer is kept.
    fn take_back(&mut self, mut buffer: Vec<u8>, was_lent: bool) {
        if was_lent || (matches!(self, Spare::None) && buffer.len() > LONGEST_HELD) {
            buffer.clear();
            *self = Spare::Here(buffer);
        }
    }
}

/// The beginning of a line is held up to this many bytes.
const LONGEST_HELD: usize = 64 << 10;
/// [`Rules::most_held`] for output that a user sees: long lines stay whole.
pub const MOST_HELD: usize = 64 << 20;
/// How many bytes wait for a line that has been broken before.
const MOST_HELD_FOR_BROKEN: usize = 1 << 20;

#[cfg(test)]
mod tests;
