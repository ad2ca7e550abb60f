//! What a line of a rank looks like: as text with tags, as a JSON object, as an XML element.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::output::plan::{Form, OutputPlan, Tag};
use crate::output::{Channel, Source};

/// Appends `bytes`, which are lines, pieces of lines or (raw) chunks of `source`. `starts`: they begin a line.
pub(crate) fn append(
    out: &mut Vec<u8>,
    plan: &OutputPlan,
    source: &Source<'_>,
    bytes: &[u8],
    starts: bool,
    now: SystemTime,
) {
    match plan.form {
        Form::Text if plan.tag == Tag::None && !plan.timestamp => out.extend_from_slice(bytes),
        Form::Text => {
            let prefix = prefix(plan, source, now);
            for (index, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
                if starts || index > 0 {
                    out.extend_from_slice(prefix.as_bytes());
                }
                out.extend_from_slice(line);
            }
        }
        Form::Json => json(out, plan, source, bytes, now),
        Form::Xml if plan.raw => xml(out, plan, source, bytes, true, now),
        Form::Xml => bytes.split_inclusive(|b| *b == b'\n').for_each(|line| match line.split_last() {
            Some((b'\n', line)) => xml(out, plan, source, line, true, now),
            _ => xml(out, plan, source, line, false, now),
        }),
    }
}

/// What stands before the first line.
pub(crate) fn opening(form: Form) -> &'static str {
    match form {
        Form::Text | Form::Json => "",
        Form::Xml => "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<output>\n",
    }
}

/// What stands after the last line.
pub(crate) fn closing(form: Form) -> &'static str {
    match form {
        Form::Text | Form::Json => "",
        Form::Xml => "</output>\n",
    }
}

fn prefix(plan: &OutputPlan, source: &Source<'_>, now: SystemTime) -> String {
    let mut prefix = String::new();
    if plan.timestamp {
        prefix.push_str(&timestamp(now));
        prefix.push(' ');
    }
    let proc = &source.stream.proc;
    let (rank, name) = (proc.rank.0, source.stream.channel.name());
    match plan.tag {
        Tag::None => {}
        Tag::Rank => prefix.push_str(&format!("{rank}: ")),
        Tag::Job => {
            prefix.push_str(&format!("[{},{rank}]<{name}>: ", source.job));
        }
        Tag::Fullname => prefix.push_str(&format!("[{},{rank}]<{name}>: ", proc.nspace)),
        Tag::Detailed => {
            let host = source.host.unwrap_or("?");
            prefix.push_str(&format!("[{},{rank}][{host}]<{name}>: ", proc.nspace));
        }
    }
    prefix
}

/// `{"type":"output","nspace":"...","rank":0,"stream":"stdout","data":"..."}`, an object for each line, or for the whole
/// chunk.
fn json(out: &mut Vec<u8>, plan: &OutputPlan, source: &Source<'_>, bytes: &[u8], now: SystemTime) {
    let proc = &source.stream.proc;
    let quoted = |text: &str| serde_json::Value::from(text);
    let nspace = quoted(proc.nspace.as_str());
    let mut head = format!("{{\"type\":\"output\",\"nspace\":{nspace},\"rank\":{}", proc.rank.0);
    if let Some(host) = source.host {
        head.push_str(&format!(",\"host\":{}", quoted(host)));
    }
    head.push_str(&format!(",\"stream\":\"{}\"", source.stream.channel.name()));
    if plan.timestamp {
        head.push_str(&format!(",\"time\":\"{}\"", timestamp(now)));
    }
    let mut object = |bytes: &[u8]| {
        out.extend_from_slice(head.as_bytes());
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.extend_from_slice(b",\"data\":");
                // Writing to memory does not fail.
                let _ = serde_json::to_writer(&mut *out, text);
            }
            Err(_) => out.extend_from_slice(format!(",\"base64\":\"{}\"", base64(bytes)).as_bytes()),
        }
        out.extend_from_slice(b"}\n");
    };
    match plan.raw {
        true => object(bytes),
        false => bytes.split_inclusive(|b| *b == b'\n').for_each(object),
    }
}

/// `<stdout nspace="..." rank="0">...</stdout>`
fn xml(
    out: &mut Vec<u8>,
    plan: &OutputPlan,
    source: &Source<'_>,
    bytes: &[u8],
    newline: bool,
    now: SystemTime,
) {
    let proc = &source.stream.proc;
    let element = source.stream.channel.name();
    let mut text =
        format!("<{element} nspace=\"{}\" rank=\"{}\"", escaped(proc.nspace.as_str()), proc.rank.0);
    if let Some(host) = source.host {
        text.push_str(&format!(" host=\"{}\"", escaped(host)));
    }
    if plan.timestamp {
        text.push_str(&format!(" time=\"{}\"", timestamp(now)));
    }
    if !newline {
        text.push_str(" newline=\"no\"");
    }
    let content = match std::str::from_utf8(bytes) {
        Ok(content) if content.chars().all(fits_xml) => escaped(content),
        _ => {
            text.push_str(" encoding=\"base64\"");
            base64(bytes)
        }
    };
    let _ = writeln!(out, "{text}>{content}</{element}>");
}

/// XML 1.0 has no way at all to say most control characters.
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

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().chain([&0, &0]).take(3).fold(0u32, |bits, b| bits << 8 | u32::from(*b));
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= group.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

/// `2026-11-20T16:39:01.123456Z`
pub(crate) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86400, since.as_secs() % 86400);
    // Days since the epoch to a date of the Gregorian calendar, whose cycle of 400 years has 146,097 days. Years are
    // counted from March, so that the leap day is a year's last.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = cycle * 400 + year + later;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", since.subsec_micros())
}

impl Channel {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Channel::Stdout => "stdout",
            Channel::Stderr => "stderr",
        }
    }
}

#[cfg(test)]
mod tests;
