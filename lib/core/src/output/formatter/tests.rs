use phalanx_spec::Rank;
use phalanx_wire::Nspace;

use super::super::Tag;
use super::*;

/// Seconds since the start.
fn at(seconds: f64) -> Moment {
    let time = Duration::from_secs_f64(seconds);
    Moment { time: Time::default().after(time), wall: time }
}

fn stream(rank: u32, channel: Channel) -> Stream {
    Stream { proc: ProcId::new(&Nspace::new("px@4").unwrap(), Rank(rank)), channel }
}

fn out(rank: u32) -> Stream {
    stream(rank, Channel::Stdout)
}

/// Rank, channel and text of what leaves.
fn shown(ready: Vec<Ready>) -> Vec<(u32, Channel, String)> {
    let text = |ready: Ready| {
        (ready.stream.proc.rank.0, ready.stream.channel, String::from_utf8(ready.data).unwrap())
    };
    ready.into_iter().map(text).collect()
}

fn tagged() -> OutputFormatter {
    OutputFormatter::for_reader(Style { tag: Tag::Job, ..Style::default() }).unwrap()
}

#[test]
fn a_reader_without_wishes_gets_everything_as_it_comes() {
    assert!(OutputFormatter::for_reader(Style::default()).is_none());
    assert!(OutputFormatter::for_reader(Style { raw: true, ..Style::default() }).is_none());
}

#[test]
fn tags_stand_before_whole_lines() {
    let mut formatter = tagged();
    assert_eq!(shown(formatter.data(at(0.0), &out(1), b"be", &[])), []);
    let lines = shown(formatter.data(at(0.0), &out(2), b"two\n", &[]));
    assert_eq!(lines, [(2, Channel::Stdout, "[4,2]<stdout>: two\n".into())]);
    let lines = shown(formatter.data(at(0.0), &out(1), b"gun\nrest", &[]));
    assert_eq!(lines, [(1, Channel::Stdout, "[4,1]<stdout>: begun\n".into())]);
    let deadline = formatter.deadline().expect("a prompt");
    assert_eq!(shown(formatter.tick(at(0.1))), []);
    assert!(deadline <= at(1.0).time);
    assert_eq!(shown(formatter.tick(at(1.0))), [(1, Channel::Stdout, "[4,1]<stdout>: rest".into())]);
    let end = shown(formatter.data(at(1.0), &out(1), b" and more\n", &[]));
    assert_eq!(end, [(1, Channel::Stdout, " and more\n".into())]);
}

#[test]
fn end_of_a_stream_releases_its_last_words() {
    let mut formatter = tagged();
    formatter.data(at(0.0), &out(0), b"prompt", &[]);
    assert_eq!(shown(formatter.tick(at(1.0))).len(), 1);
    assert_eq!(shown(formatter.data(at(1.0), &out(1), b"last\nwords", &[])), []);
    let end = shown(formatter.data(at(1.0), &out(1), b"", &[]));
    let text: String = end.into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(text, "\n[4,1]<stdout>: last\n[4,1]<stdout>: words\n");
}

#[test]
fn raw_chunks_are_tagged_where_lines_begin() {
    let mut formatter =
        OutputFormatter::for_reader(Style { raw: true, tag: Tag::Rank, ..Style::default() }).unwrap();
    let mut say = |rank, text: &str| {
        let ready = formatter.data(at(0.0), &out(rank), text.as_bytes(), &[]);
        ready.into_iter().map(|ready| String::from_utf8(ready.data).unwrap()).collect::<String>()
    };
    assert_eq!(say(0, "a"), "0: a");
    assert_eq!(say(1, "b\nc"), "1: b\n1: c");
    assert_eq!(say(0, "d\n"), "d\n");
    assert_eq!(say(0, "e"), "0: e");
    assert_eq!(formatter.deadline(), None);
}

#[test]
fn both_channels_are_one_when_they_are_merged() {
    let mut formatter = OutputFormatter::for_reader(Style { merge: true, ..Style::default() }).unwrap();
    let piece = shown(formatter.data(at(0.0), &stream(0, Channel::Stderr), b"piece", &[]));
    assert_eq!(piece, [(0, Channel::Stdout, "piece".into())]);
}

#[test]
fn hosts_and_pids_come_with_the_pieces() {
    let mut formatter =
        OutputFormatter::for_reader(Style { tag: Tag::Detailed, ..Style::default() }).unwrap();
    let place = [Info::new(keys::HOSTNAME, "n1"), Info::new(keys::PROC_PID, Value::Pid(9))];
    let line = shown(formatter.data(at(0.0), &out(0), b"a\n", &place));
    assert_eq!(line[0].2, "[px@4,0][n1:9]<stdout>: a\n");
    let line = shown(formatter.data(at(0.0), &out(1), b"a\n", &[]));
    assert_eq!(line[0].2, "[px@4,1][unknown:unknown]<stdout>: a\n");
}

#[test]
fn bytes_are_collected_up_to_a_size_or_a_time() {
    let style = Style { buffer: 10, buffer_for: Some(Duration::from_secs(3)), ..Style::default() };
    let mut formatter = OutputFormatter::for_reader(style).unwrap();
    assert_eq!(shown(formatter.data(at(0.0), &out(0), b"12345", &[])), []);
    assert_eq!(shown(formatter.data(at(1.0), &out(1), b"abc", &[])), []);
    assert_eq!(
        shown(formatter.data(at(1.0), &out(0), b"67890!", &[])),
        [(0, Channel::Stdout, "1234567890!".into())]
    );
    assert_eq!(formatter.deadline(), Some(at(4.0).time));
    assert_eq!(shown(formatter.tick(at(3.9))), []);
    assert_eq!(shown(formatter.tick(at(4.0))), [(1, Channel::Stdout, "abc".into())]);
    formatter.data(at(5.0), &out(0), b"end", &[]);
    assert_eq!(shown(formatter.data(at(5.0), &out(0), b"", &[])), [(0, Channel::Stdout, "end".into())]);
    formatter.data(at(5.0), &out(1), b"rest", &[]);
    assert_eq!(shown(formatter.finish(at(5.0))), [(1, Channel::Stdout, "rest".into())]);
    assert_eq!(formatter.deadline(), None);
}

#[test]
fn collected_bytes_are_bounded() {
    let mut formatter =
        OutputFormatter::for_reader(Style { buffer: usize::MAX, ..Style::default() }).unwrap();
    let mut left = 0;
    for rank in 0..64 {
        left += formatter
            .data(at(0.0), &out(rank), &[b'x'; 60_000], &[])
            .iter()
            .map(|r| r.data.len())
            .sum::<usize>();
        assert!(formatter.formatted.collected_bytes <= MOST_COLLECTED + 60_000);
    }
    left += formatter.finish(at(0.0)).iter().map(|r| r.data.len()).sum::<usize>();
    assert_eq!(left, 64 * 60_000);
}

#[test]
fn losses_are_reported_where_the_bytes_are_missing() {
    let mut formatter = tagged();
    formatter.data(at(0.0), &out(0), b"torn", &[]);
    let ready = formatter.data(at(0.0), &out(0), b"off\n", &[Info::new(DROPPED, 7u64)]);
    let said: Vec<_> =
        ready.iter().map(|r| (String::from_utf8_lossy(&r.data).into_owned(), r.lost)).collect();
    assert_eq!(said, [("[4,0]<stdout>: torn".to_owned(), 0), ("off\n".to_owned(), 7)]);
}
