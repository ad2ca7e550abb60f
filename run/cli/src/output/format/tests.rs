use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use super::*;
use crate::output::Stream;

fn shown(words: &str, bytes: &[u8]) -> String {
    let plan = OutputPlan::parse(&[words.to_owned()]).expect("good words");
    let proc = ProcId::new(&Nspace::new("px-1@2").expect("a name"), Rank(3));
    let stream = Stream { proc, channel: Channel::Stderr };
    let source = Source { stream: &stream, host: Some("n<1>"), job: 2, rank_width: 2 };
    let mut out = Vec::new();
    let now = UNIX_EPOCH + Duration::from_micros(1_795_192_741_000_123);
    append(&mut out, &plan, &source, bytes, true, now);
    String::from_utf8(out).expect("text")
}

#[test]
fn text() {
    assert_eq!(shown("", b"a\nb"), "a\nb");
    assert_eq!(shown("rank", b"a\nb"), "3: a\n3: b");
    assert_eq!(shown("tag", b"a\n"), "[2,3]<stderr>: a\n");
    assert_eq!(shown("tag-fullname", b"a\n"), "[px-1@2,3]<stderr>: a\n");
    assert_eq!(shown("tag-detailed", b"a\n"), "[px-1@2,3][n<1>]<stderr>: a\n");
    assert_eq!(shown("timestamp,rank", b"\n"), "2026-11-20T16:39:01.000123Z 3: \n");
}

#[test]
fn json_gives_back_every_byte() {
    let line = |words, bytes| -> Vec<serde_json::Value> {
        shown(words, bytes).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
    };
    let objects = line("json", b"a \"quoted\"\n\xc3\xa4");
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["type"], "output");
    assert_eq!(objects[0]["nspace"], "px-1@2");
    assert_eq!(objects[0]["rank"], 3);
    assert_eq!(objects[0]["host"], "n<1>");
    assert_eq!(objects[0]["stream"], "stderr");
    assert_eq!(objects[0]["data"], "a \"quoted\"\n");
    assert_eq!(objects[1]["data"], "ä");
    assert_eq!(line("json", b"\xff\xfe\n")[0]["base64"], "//4K");
    assert_eq!(line("json,raw", b"a\nb")[0]["data"], "a\nb");
    assert_eq!(line("json,timestamp", b"a")[0]["time"], "2026-11-20T16:39:01.000123Z");
}

#[test]
fn xml_is_well_formed_whatever_is_written() {
    let attributes = "nspace=\"px-1@2\" rank=\"3\" host=\"n&lt;1&gt;\"";
    assert_eq!(
        shown("xml", b"a<b> & \"c\"\r\n"),
        format!("<stderr {attributes}>a&lt;b&gt; &amp; &quot;c&quot;&#13;</stderr>\n")
    );
    assert_eq!(shown("xml", b"open"), format!("<stderr {attributes} newline=\"no\">open</stderr>\n"));
    assert_eq!(
        shown("xml", b"\x1b[1m\n"),
        format!("<stderr {attributes} encoding=\"base64\">G1sxbQ==</stderr>\n")
    );
}

#[test]
fn dates() {
    let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
    assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000000Z");
    assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
    assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000000Z");
    assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59.000000Z");
}

#[test]
fn base64_of_every_remainder() {
    assert_eq!(
        ["", "f", "fo", "foo", "foob"].map(|s| base64(s.as_bytes())),
        ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
    );
}
