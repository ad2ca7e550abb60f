use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use super::*;
use crate::output::Channel;

/// Maximum number of waiting bytes in these tests.
const HELD: usize = 1 << 20;
const MS: Duration = Duration::from_millis(1);

/// A sink for text, and what its reader sees.
struct Sink {
    lines: Lines,
    now: Time,
    seen: String,
}

impl Sink {
    fn new(prompt_after: Option<Duration>) -> Sink {
        let rules = Rules { solo: false, opens: true, prompt_after, patience: 100 * MS, most_held: HELD };
        Sink { lines: Lines::new(rules), now: Time::default(), seen: String::new() }
    }

    fn pipe() -> Sink {
        Sink::new(None)
    }

    fn terminal() -> Sink {
        Sink::new(Some(50 * MS))
    }

    fn says(&mut self, rank: u32, text: &str) -> &mut Sink {
        let seen = &mut self.seen;
        self.lines.data(self.now, &stream(rank), text.as_bytes(), &mut |piece| show(seen, piece));
        self
    }

    fn ends(&mut self, rank: u32) -> &mut Sink {
        let seen = &mut self.seen;
        self.lines.end(self.now, &stream(rank), &mut |piece| show(seen, piece));
        self
    }

    fn waits(&mut self, time: Duration) -> &mut Sink {
        let until = self.now.after(time);
        while let Some(at) = self.lines.deadline().filter(|at| *at <= until) {
            assert!(at > self.now || self.now == until || at == self.now, "time runs forward");
            self.now = at.max(self.now);
            let (seen, before) = (&mut self.seen, self.lines.deadline());
            self.lines.tick(self.now, &mut |piece| show(seen, piece));
            assert_ne!(self.lines.deadline(), before, "a tick that changes nothing would spin");
        }
        self.now = until;
        self
    }

    fn finish(&mut self) -> &mut Sink {
        let seen = &mut self.seen;
        self.lines.finish(&mut |piece| show(seen, piece));
        self
    }

    fn shows(&mut self, text: &str) -> &mut Sink {
        assert_eq!(std::mem::take(&mut self.seen), text);
        self
    }
}

fn stream(rank: u32) -> Stream {
    Stream { proc: ProcId::new(&Nspace::new("job").expect("a name"), Rank(rank)), channel: Channel::Stdout }
}

/// Marks the beginning of a line of rank 3 with `^3`.
fn show(seen: &mut String, piece: Segment<'_>) {
    match piece {
        Segment::Text { stream, bytes, starts } => {
            if starts {
                seen.push_str(&format!("^{}", stream.proc.rank.0));
            }
            seen.push_str(std::str::from_utf8(bytes).expect("text"));
        }
        Segment::Break { .. } => seen.push('\n'),
    }
}

#[test]
fn whole_lines_pass_at_once() {
    Sink::pipe().says(0, "a\nb\n").shows("^0a\nb\n").says(1, "c\n").shows("^1c\n");
}

#[test]
fn pieces_of_lines_are_put_together() {
    Sink::pipe()
        .says(0, "he")
        .says(1, "wor")
        .shows("")
        .says(0, "llo\nnext")
        .shows("^0hello\n")
        .says(1, "ld\n")
        .shows("^1world\n")
        .ends(0)
        .shows("^0next");
}

#[test]
fn a_pipe_waits_for_the_end_of_a_line_for_ever() {
    Sink::pipe()
        .says(0, "half")
        .waits(3600 * 1000 * MS)
        .shows("")
        .says(0, " and half\n")
        .shows("^0half and half\n");
}

#[test]
fn a_terminal_shows_a_prompt() {
    Sink::terminal()
        .says(0, "Name: ")
        .shows("")
        .waits(60 * MS)
        .shows("^0Name: ")
        .says(0, "thanks\n")
        .shows("thanks\n");
}

#[test]
fn writers_wait_for_an_open_line_then_break_it() {
    let mut sink = Sink::terminal();
    sink.says(0, "Name: ").waits(60 * MS).shows("^0Name: ");
    sink.says(1, "one\n").says(2, "two\n").shows("");
    sink.waits(50 * MS).shows("").waits(60 * MS).shows("\n^1one\n^2two\n");
    sink.says(0, "late\n").shows("^0late\n");
}

#[test]
fn an_open_line_that_ends_in_time_is_not_broken() {
    let mut sink = Sink::terminal();
    sink.says(0, "Name: ").waits(60 * MS).says(1, "one\n").says(0, "x\n");
    sink.shows("^0Name: x\n^1one\n").waits(1000 * MS).shows("");
}

#[test]
fn two_prompts_do_not_share_a_line() {
    let mut sink = Sink::terminal();
    sink.says(0, "A? ").says(1, "B? ").waits(1000 * MS).shows("^0A? \n^1B? ");
}

#[test]
fn a_line_without_end_is_ended_for_the_next_one() {
    Sink::pipe().says(0, "foo").ends(0).shows("^0foo").says(1, "bar\n").shows("\n^1bar\n");
    Sink::pipe().says(0, "foo").ends(0).says(1, "bar").ends(1).shows("^0foo\n^1bar").finish().shows("");
    Sink::pipe().says(0, "foo").says(1, "bar").finish().shows("^0foo\n^1bar");
}

#[test]
fn only_one_rank_that_writes_is_passed_on_exactly() {
    Sink::pipe().says(0, "no end").ends(0).ends(1).finish().shows("^0no end");
}

#[test]
fn a_line_too_long_to_be_held_takes_the_sink() {
    let long = "x".repeat(LONGEST_HELD);
    let mut sink = Sink::pipe();
    sink.says(0, &long).shows("").says(0, "y").shows(&format!("^0{long}y"));
    sink.says(1, "other\n").shows("").says(0, "z\n").shows("z\n^1other\n");
}

#[test]
fn a_long_line_stays_whole_as_long_as_it_grows() {
    let long = "x".repeat(LONGEST_HELD);
    let mut sink = Sink::pipe();
    sink.says(0, &long).says(0, &long).says(1, "other\n");
    for _ in 0..20 {
        sink.waits(90 * MS).says(0, &long);
    }
    sink.says(0, "\n").shows(&format!("^0{}\n^1other\n", long.repeat(22)));
    // A line that hardly grows is broken off, and so is one that stops.
    for letters in [10, 0] {
        sink.says(0, &long).says(0, "x").says(1, "other\n").shows(&format!("^0{long}x"));
        sink.waits(60 * MS).says(0, &"x".repeat(letters)).waits(60 * MS).says(0, "\n");
        sink.shows(&format!("{}\n^1other\n^0\n", "x".repeat(letters)));
    }
}

#[test]
fn a_sink_that_takes_nothing_breaks_no_line() {
    let long = "x".repeat(LONGEST_HELD + 1);
    let mut sink = Sink::pipe();
    sink.says(0, &long).says(1, "other\n");
    for _ in 0..10 {
        let now = sink.waits(90 * MS).now;
        sink.lines.hold_off(now);
    }
    sink.says(0, "\n").shows(&format!("^0{long}\n^1other\n"));
}

#[test]
fn waiting_requests_are_bounded() {
    let long = "x".repeat(LONGEST_HELD + 1);
    let mut sink = Sink::pipe();
    sink.says(0, &long).shows(&format!("^0{long}"));
    let line = format!("{}\n", "l".repeat(1023));
    for _ in 0..HELD / line.len() {
        sink.says(1, &line).shows("");
    }
    sink.says(1, "\n");
    assert!(sink.seen.starts_with("\n^1lll"));
    assert_eq!(sink.lines.held_bytes, 0);
}

#[test]
fn alone_everything_passes_as_it_comes() {
    let mut sink = Sink::pipe();
    sink.lines.rules.solo = true;
    sink.says(0, "a").shows("^0a").says(0, "b\nc").shows("b\nc");
    sink.lines.no_longer_solo();
    sink.says(1, "d\n").shows("").waits(200 * MS).shows("\n^1d\n");
}

#[test]
fn pieces_that_stand_for_themselves_open_nothing() {
    let mut sink = Sink::terminal();
    sink.lines.rules.opens = false;
    sink.says(0, "Name: ")
        .waits(60 * MS)
        .shows("^0Name: ")
        .says(1, "one\n")
        .shows("^1one\n")
        .says(0, "x\n")
        .shows("^0x\n");
}

/// In any order of chunks: no byte is lost, and no line mixes text of two ranks.
#[test]
fn nothing_is_lost_and_nothing_mixes() {
    let mut seed = 12345u32;
    let mut random = move |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    for terminal in [false, true] {
        let mut sink = if terminal { Sink::terminal() } else { Sink::pipe() };
        let mut sent = vec![String::new(); 4];
        for _ in 0..4000 {
            let rank = random(4);
            let letter = char::from(b'a' + rank as u8).to_string().repeat(random(5) as usize);
            let text = if random(3) == 0 { letter + "\n" } else { letter };
            sent[rank as usize].push_str(&text);
            sink.says(rank, &text).waits(random(120) * MS);
        }
        for rank in 0..4 {
            sink.ends(rank);
        }
        sink.finish();
        let text = sink.seen.replace(|c: char| c == '^' || c.is_ascii_digit(), "");
        for line in text.lines() {
            assert!(line.chars().all(|c| line.starts_with(c)), "a mixed line: {line}");
        }
        for (rank, sent) in (b'a'..).zip(&sent) {
            let count = |s: &str| s.bytes().filter(|b| *b == rank).count();
            assert_eq!(count(&text), count(sent));
        }
    }
}

#[test]
fn beginnings_of_lines_are_not_held_without_bound() {
    let mut sink = Sink::pipe();
    for rank in 0..100 {
        sink.says(rank, &"x".repeat(LONGEST_HELD));
    }
    assert!(sink.lines.held_bytes <= HELD, "{} bytes are held", sink.lines.held_bytes);
    sink.finish();
    assert_eq!(sink.seen.matches('x').count(), 100 * LONGEST_HELD);
}

#[test]
fn memory_of_a_long_wait_serves_the_next_one() {
    let rules = Rules { solo: false, opens: true, prompt_after: None, patience: 100 * MS, most_held: HELD };
    let (mut lines, mut places) = (Lines::new(rules), Vec::new());
    let piece = vec![b'x'; LONGEST_HELD + 1];
    let now = Time::default();
    for _ in 0..HELD / piece.len() * 8 {
        for rank in [0, 1] {
            lines.data(now, &stream(rank), &piece, &mut |said| {
                if let Segment::Text { bytes, .. } = said
                    && bytes.len() > HELD
                {
                    places.push(bytes.as_ptr());
                }
            });
        }
    }
    assert!(places.len() > 2 && places.iter().all(|place| *place == places[0]), "{places:?}");
}

#[test]
fn a_broken_line_is_not_waited_for_as_long_again() {
    let most_held = 4 << 20;
    let rules = Rules { solo: false, opens: true, prompt_after: None, patience: 100 * MS, most_held };
    let mut lines = Lines::new(rules);
    // The ranks in the order in which they wrote, with the bytes of each turn.
    let mut turns: Vec<(u32, usize)> = Vec::new();
    let mut says = |rank, bytes: &[u8], turns: &mut Vec<(u32, usize)>| {
        lines.data(Time::default(), &stream(rank), bytes, &mut |said| {
            if let Segment::Text { stream, bytes, .. } = said {
                match turns.last_mut().filter(|(last, _)| *last == stream.proc.rank.0) {
                    Some((_, count)) => *count += bytes.len(),
                    None => turns.push((stream.proc.rank.0, bytes.len())),
                }
            }
        });
    };
    let piece = vec![b'x'; LONGEST_HELD + 1];
    for _ in 0..400 {
        says(0, &piece, &mut turns);
        says(1, &piece, &mut turns);
    }
    let (longest, later) = turns.split_at(3);
    assert!(longest.iter().all(|(_, count)| *count > most_held), "{turns:?}");
    let (_, later) = later.split_last().expect("more turns");
    assert!(
        later.len() > 3 && later.iter().all(|(_, count)| *count < 2 * MOST_HELD_FOR_BROKEN + 2 * piece.len()),
        "{turns:?}"
    );
    // New lines are whole again.
    let end = [b"\n", &piece[..]].concat();
    for _ in 0..40 {
        for rank in [0, 1] {
            says(rank, &end, &mut turns);
        }
    }
    turns.clear();
    for rank in [0, 1] {
        (0..55).for_each(|_| says(rank, &piece, &mut turns));
    }
    assert!(turns.len() < 3, "{turns:?}");
}
