use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use super::*;
use crate::output::{Channel, Stream};

fn shown(style: &Style, bytes: &[u8]) -> String {
    let proc = ProcId::new(&Nspace::new("px-1@2").unwrap(), Rank(3));
    let stream = Stream { proc, channel: Channel::Stderr };
    let source = Source { stream: &stream, host: Some("n<1>"), pid: Some(77), job: None, rank_width: 2 };
    let mut out = Vec::new();
    append(&mut out, style, &source, bytes, true, Duration::from_micros(1_795_192_741_000_123));
    String::from_utf8(out).unwrap()
}

fn tagged(tag: Tag, bytes: &[u8]) -> String {
    shown(&Style { tag, ..Style::default() }, bytes)
}

fn formed(form: Form, bytes: &[u8]) -> String {
    shown(&Style { form, ..Style::default() }, bytes)
}

#[test]
fn text() {
    assert_eq!(tagged(Tag::None, b"a\nb"), "a\nb");
    assert_eq!(tagged(Tag::Rank, b"a\nb"), "3: a\n3: b");
    assert_eq!(tagged(Tag::Job, b"a\n"), "[2,3]<stderr>: a\n");
    assert_eq!(tagged(Tag::Fullname, b"a\n"), "[px-1@2,3]<stderr>: a\n");
    assert_eq!(tagged(Tag::Detailed, b"a\n"), "[px-1@2,3][n<1>:77]<stderr>: a\n");
    let both = Style { timestamp: true, tag: Tag::Rank, ..Style::default() };
    assert_eq!(shown(&both, b"\n"), "2026-11-20T16:39:01.000123Z 3: \n");
}

#[test]
fn json_is_one_object_for_each_line() {
    assert_eq!(
        formed(Form::Json, b"a \"q\" \\ \x01\t\r\n\xff"),
        "{\"type\":\"output\",\"nspace\":\"px-1@2\",\"rank\":3,\"host\":\"n<1>\",\"stream\":\"stderr\",\
         \"data\":\"a \\\"q\\\" \\\\ \\u0001\\t\\r\\n\"}\n\
         {\"type\":\"output\",\"nspace\":\"px-1@2\",\"rank\":3,\"host\":\"n<1>\",\"stream\":\"stderr\",\
         \"base64\":\"/w==\"}\n"
    );
}

#[test]
fn xml_is_well_formed_whatever_is_written() {
    let attributes = "nspace=\"px-1@2\" rank=\"3\" host=\"n&lt;1&gt;\"";
    assert_eq!(
        formed(Form::Xml, b"a<b> & \"c\"\r\n"),
        format!("<stderr {attributes}>a&lt;b&gt; &amp; &quot;c&quot;&#13;</stderr>\n")
    );
    assert_eq!(formed(Form::Xml, b"open"), format!("<stderr {attributes} newline=\"no\">open</stderr>\n"));
    assert_eq!(
        formed(Form::Xml, b"\x1b[1m\n"),
        format!("<stderr {attributes} encoding=\"base64\">G1sxbQ==</stderr>\n")
    );
}

#[test]
fn dates() {
    let at = |seconds| timestamp(Duration::from_secs(seconds));
    assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
    assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000000Z");
    assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
    assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000000Z");
    assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59.000000Z");
}
