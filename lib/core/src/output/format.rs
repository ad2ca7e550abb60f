//! The form of a rank's line: text with tags, a JSON object, or an XML element.

use std::io::Write;
use std::time::Duration;

use super::Source;
use super::style::{Form, Style, Tag};
use crate::base64;
use crate::calendar::date;

/// Appends `bytes`, which are lines, pieces of lines or (raw) chunks of `source`. `starts`: they begin a line. `now`: since the
/// beginning of 1970.
pub fn append(
    out: &mut Vec<u8>,
    style: &Style,
    source: &Source<'_>,
    bytes: &[u8],
    starts: bool,
    now: Duration,
) {
    append_as(out, style, source.stream.channel.name(), source, bytes, starts, now);
}

/// The same for what is no output stream, but is shown like one of this name.
pub fn append_as(
    out: &mut Vec<u8>,
    style: &Style,
    name: &str,
    source: &Source<'_>,
    bytes: &[u8],
    starts: bool,
    now: Duration,
) {
    match style.form {
        Form::Text if style.tag == Tag::None && !style.timestamp => out.extend_from_slice(bytes),
        Form::Text => {
            let prefix = prefix(style, name, source, now);
            for (index, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
                if starts || index > 0 {
                    out.extend_from_slice(prefix.as_bytes());
                }
                out.extend_from_slice(line);
            }
        }
        Form::Json => json(out, style, name, source, bytes, now),
        Form::Xml if style.raw => xml(out, style, name, source, bytes, true, now),
        Form::Xml => bytes.split_inclusive(|b| *b == b'\n').for_each(|line| match line.split_last() {
            Some((b'\n', line)) => xml(out, style, name, source, line, true, now),
            _ => xml(out, style, name, source, line, false, now),
        }),
    }
}

/// What precedes the first line.
pub fn opening(form: Form) -> &'static str {
    match form {
        Form::Text | Form::Json => "",
        Form::Xml => "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<output>\n",
    }
}

/// What follows the last line.
pub fn closing(form: Form) -> &'static str {
    match form {
        Form::Text | Form::Json => "",
        Form::Xml => "</output>\n",
    }
}

fn prefix(style: &Style, name: &str, source: &Source<'_>, now: Duration) -> String {
    let mut prefix = String::new();
    if style.timestamp {
        prefix.push_str(&timestamp(now));
        prefix.push(' ');
    }
    let proc = &source.stream.proc;
    let rank = proc.rank.0;
    match style.tag {
        Tag::None => {}
        Tag::Rank => prefix.push_str(&format!("{rank}: ")),
        Tag::Job => {
            prefix.push_str(&format!("[{},{rank}]<{name}>: ", job(source)));
        }
        Tag::Fullname => prefix.push_str(&format!("[{},{rank}]<{name}>: ", proc.nspace)),
        Tag::Detailed => {
            let host = source.host.unwrap_or("unknown");
            let pid = source.pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
            prefix.push_str(&format!("[{},{rank}][{host}:{pid}]<{name}>: ", proc.nspace));
        }
    }
    prefix
}

/// The job's number, or the part of the namespace that replaces it.
fn job(source: &Source<'_>) -> String {
    let name = source.stream.proc.nspace.as_str();
    source
        .job
        .map_or_else(|| name.rsplit_once('@').map_or(name, |(_, job)| job).to_owned(), |job| job.to_string())
}

/// `{"type":"output","nspace":"...","rank":0,"stream":"stdout","data":"..."}`, one object per line, or for the whole chunk.
fn json(out: &mut Vec<u8>, style: &Style, name: &str, source: &Source<'_>, bytes: &[u8], now: Duration) {
    let proc = &source.stream.proc;
    let nspace = quoted(proc.nspace.as_str());
    let mut head = format!("{{\"type\":\"output\",\"nspace\":{nspace},\"rank\":{}", proc.rank.0);
    if let Some(host) = source.host {
        head.push_str(&format!(",\"host\":{}", quoted(host)));
    }
    head.push_str(&format!(",\"stream\":\"{name}\""));
    if style.timestamp {
        head.push_str(&format!(",\"time\":\"{}\"", timestamp(now)));
    }
    let mut object = |bytes: &[u8]| {
        out.extend_from_slice(head.as_bytes());
        let content = match std::str::from_utf8(bytes) {
            Ok(text) => format!(",\"data\":{}", quoted(text)),
            Err(_) => format!(",\"base64\":\"{}\"", base64::encode(bytes)),
        };
        out.extend_from_slice(content.as_bytes());
        out.extend_from_slice(b"}\n");
    };
    match style.raw {
        true => object(bytes),
        false => bytes.split_inclusive(|b| *b == b'\n').for_each(object),
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\0'..='\x1f' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// `<stdout nspace="..." rank="0">...</stdout>`
fn xml(
    out: &mut Vec<u8>,
    style: &Style,
    element: &str,
    source: &Source<'_>,
    bytes: &[u8],
    newline: bool,
    now: Duration,
) {
    let proc = &source.stream.proc;
    let mut text =
        format!("<{element} nspace=\"{}\" rank=\"{}\"", escaped(proc.nspace.as_str()), proc.rank.0);
    if let Some(host) = source.host {
        text.push_str(&format!(" host=\"{}\"", escaped(host)));
    }
    if let Some(pid) = source.pid.filter(|_| style.tag == Tag::Detailed) {
        text.push_str(&format!(" pid=\"{pid}\""));
    }
    if style.timestamp {
        text.push_str(&format!(" time=\"{}\"", timestamp(now)));
    }
    if !newline {
        text.push_str(" newline=\"no\"");
    }
    let content = match std::str::from_utf8(bytes) {
        Ok(content) if content.chars().all(fits_xml) => escaped(content),
        _ => {
            text.push_str(" encoding=\"base64\"");
            base64::encode(bytes)
        }
    };
    let _ = writeln!(out, "{text}>{content}</{element}>");
}

/// XML 1.0 cannot represent most control characters.
fn fits_xml(c: char) -> bool {
    !matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\r' => escaped.push_str("&#13;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// `2026-11-20T16:39:01.123456Z`
fn timestamp(since: Duration) -> String {
    let (days, second) = (since.as_secs() / 86400, since.as_secs() % 86400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", since.subsec_micros())
}

#[cfg(test)]
mod tests;
