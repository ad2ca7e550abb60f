//! Composing a mail from the attributes of a request.
//!
//! What goes into the header is checked, so that no text of a requester becomes a line of the header. The command that sends the mail takes its
//! recipients from there.

use phalanx_core::base64;
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Text, Value};

use super::channel::Fault;
use crate::msg::Mail;

/// `message`: the body, unless the attributes have one. `command`: whether the site has named a command, which finds the server in its environment.
/// The texts name what is ignored.
pub(super) fn compose(
    parts: &[Info],
    message: Option<&str>,
    command: bool,
) -> Result<(Mail, Vec<String>), Fault> {
    let mut notes = Vec::new();
    for part in parts {
        let key = part.key.as_str();
        let why = match key {
            keys::LOG_EMAIL_SERVER | keys::LOG_EMAIL_SRVR_PORT if !command => {
                "sendmail has a server of its own; '--mail-with' names a command that can use another"
            }
            key if PARTS.contains(&key) => continue,
            _ => "mails have no such part",
        };
        let text = format!("{key}: {why}");
        match part.is_required() {
            true => return Err(Fault::new(Status::ERR_NOT_SUPPORTED, text)),
            false => notes.push(text),
        }
    }
    let addresses: Vec<&Info> = parts.iter().filter(|part| part.key == *keys::LOG_EMAIL_ADDR).collect();
    let addresses = addresses.iter().map(|part| words(&part.value, "the list of addresses"));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?.join(",");
    let addresses = addresses.split(',').map(str::trim).filter(|address| !address.is_empty());
    let addresses: Vec<&str> = addresses.collect();
    if addresses.is_empty() {
        return Err(Fault::bad(format!("it has no address ({})", keys::LOG_EMAIL_ADDR)));
    }
    let mut text = String::new();
    if let Some(sender) = parts.find(keys::LOG_EMAIL_SENDER_ADDR) {
        let sender = words(sender, "the sender")?;
        check_address(&sender)?;
        text.push_str(&format!("From: {sender}\n"));
    }
    addresses.iter().try_for_each(|address| check_address(address))?;
    text.push_str(&format!("To: {}\n", addresses.join(",\n ")));
    if let Some(subject) = parts.find(keys::LOG_EMAIL_SUBJECT) {
        text.push_str(&format!("Subject: {}\n", encoded(&words(subject, "the subject")?)));
    }
    let body = match parts.find(keys::LOG_EMAIL_MSG) {
        Some(body) => body.as_text().ok_or_else(|| Fault::bad("its message is no text"))?.to_string_lossy(),
        None => message.ok_or_else(|| Fault::bad(NO_MESSAGE))?.to_owned(),
    };
    let body = body.replace("\r\n", "\n").replace(['\r', '\0'], "\n");
    text.push_str("MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n");
    match body.lines().all(|line| line.len() <= LONGEST_LINE) {
        true => {
            text.push_str(&format!("Content-Transfer-Encoding: 8bit\n\n{}\n", body.trim_end_matches('\n')))
        }
        false => text.push_str(&format!("Content-Transfer-Encoding: base64\n\n{}", folded(body.as_bytes()))),
    }
    if text.len() > LONGEST {
        return Err(Fault::new(Status::ERR_OUT_OF_RESOURCE, format!("it has more than {LONGEST} bytes")));
    }
    let server = parts.find(keys::LOG_EMAIL_SERVER).map(|server| words(server, "the server")).transpose()?;
    let port = match parts.find(keys::LOG_EMAIL_SRVR_PORT) {
        Some(port) => {
            let port = port.as_u32().filter(|port| (1..=0xffff).contains(port));
            Some(port.ok_or_else(|| Fault::bad("the port of the server is not one of 1 to 65535"))?)
        }
        None => None,
    };
    Ok((Mail { text: text.into(), server: server.map(Text::from), port }, notes))
}

/// A text of one line.
fn words(value: &Value, what: &str) -> Result<String, Fault> {
    let text = value.as_str().ok_or_else(|| Fault::bad(format!("{what} is no text")))?;
    match text.chars().any(char::is_control) {
        true => Err(Fault::bad(format!("{what} has a line end or another control character"))),
        false => Ok(text.to_owned()),
    }
}

fn check_address(address: &str) -> Result<(), Fault> {
    match address {
        address if !address.is_ascii() => Err(Fault::bad(format!("the address '{address}' is not ASCII"))),
        address if address.len() > LONGEST_ADDRESS => {
            Err(Fault::bad(format!("an address has more than {LONGEST_ADDRESS} bytes")))
        }
        _ => Ok(()),
    }
}

/// A text in a header: as it is, or in the encoded words of RFC 2047.
fn encoded(text: &str) -> String {
    if text.is_ascii() && !text.contains("=?") && text.len() <= LONGEST_LINE / 2 {
        return text.to_owned();
    }
    let (mut words, mut word) = (Vec::new(), String::new());
    for c in text.chars() {
        if word.len() + c.len_utf8() > BYTES_OF_WORD {
            words.push(std::mem::take(&mut word));
        }
        word.push(c);
    }
    words.push(word);
    let words = words.iter().map(|word| format!("=?UTF-8?B?{}?=", base64::encode(word.as_bytes())));
    words.collect::<Vec<_>>().join("\n ")
}

fn folded(bytes: &[u8]) -> String {
    bytes.chunks(BYTES_OF_LINE).map(|chunk| format!("{}\n", base64::encode(chunk))).collect()
}

const PARTS: [&str; 6] = [
    keys::LOG_EMAIL_ADDR,
    keys::LOG_EMAIL_SENDER_ADDR,
    keys::LOG_EMAIL_SUBJECT,
    keys::LOG_EMAIL_MSG,
    keys::LOG_EMAIL_SERVER,
    keys::LOG_EMAIL_SRVR_PORT,
];
const NO_MESSAGE: &str = "it has no message, and there is no PMIX_LOG_MSG";
/// Of a mail, in bytes, without its end (RFC 5322).
const LONGEST_LINE: usize = 998;
const LONGEST_ADDRESS: usize = 320;
/// An encoded word has at most 75 characters.
const BYTES_OF_WORD: usize = 45;
/// A line of base64 has at most 76 characters.
const BYTES_OF_LINE: usize = 57;
const LONGEST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(parts: &[(&'static str, &str)]) -> Result<String, Fault> {
        let parts: Vec<Info> = parts.iter().map(|(key, text)| Info::new(key, *text)).collect();
        compose(&parts, Some("body"), true).map(|(mail, _)| mail.text.to_string_lossy())
    }

    const TO: (&str, &str) = (keys::LOG_EMAIL_ADDR, "a@x, b@y,");

    #[test]
    fn a_mail_has_a_header_and_a_body() {
        let all = [
            TO,
            (keys::LOG_EMAIL_SENDER_ADDR, "me@z"),
            (keys::LOG_EMAIL_SUBJECT, "it is done"),
            (keys::LOG_EMAIL_MSG, "one\r\n.\nzw\u{f6}lf\n"),
        ];
        let wanted = "From: me@z\nTo: a@x,\n b@y\nSubject: it is done\nMIME-Version: 1.0\n\
                      Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n\
                      one\n.\nzw\u{f6}lf\n";
        assert_eq!(mail(&all).as_deref(), Ok(wanted));
        assert!(mail(&[TO]).unwrap().ends_with("\n\nbody\n"));
        let long = "x".repeat(1000);
        let text = mail(&[TO, (keys::LOG_EMAIL_MSG, &long)]).unwrap();
        assert!(text.contains("Encoding: base64\n\n") && text.lines().all(|line| line.len() <= 76), "{text}");
    }

    #[test]
    fn no_text_adds_lines_to_the_header() {
        for key in [keys::LOG_EMAIL_ADDR, keys::LOG_EMAIL_SENDER_ADDR, keys::LOG_EMAIL_SUBJECT] {
            for end in ["\n", "\r", "\u{85}"] {
                let text = format!("a@x{end}Bcc: all@y");
                let refused = mail(&[(key, &text), TO]).unwrap_err();
                assert_eq!(refused.status, Status::ERR_BAD_PARAM, "{key}");
            }
        }
        for parts in [&[][..], &[(keys::LOG_EMAIL_ADDR, " , ")], &[(keys::LOG_EMAIL_ADDR, "\u{f6}@x")]] {
            assert_eq!(mail(parts).unwrap_err().status, Status::ERR_BAD_PARAM);
        }
    }

    #[test]
    fn subjects_beyond_ascii_are_encoded_words() {
        let subject = |text: &str| {
            let mail = mail(&[TO, (keys::LOG_EMAIL_SUBJECT, text)]).unwrap();
            let (_, rest) = mail.split_once("Subject: ").unwrap();
            rest.split_once("\nMIME").unwrap().0.to_owned()
        };
        assert_eq!(subject("\u{f6}"), "=?UTF-8?B?w7Y=?=");
        assert_eq!(subject("=?x"), "=?UTF-8?B?PT94?=");
        let long = subject(&"\u{20ac}".repeat(100));
        assert!(long.lines().count() == 7 && long.lines().all(|word| word.trim().len() <= 75), "{long}");
    }

    #[test]
    fn a_server_needs_a_command_that_uses_it() {
        let server = || Info::new(keys::LOG_EMAIL_SERVER, "mx");
        let parts = [Info::new(TO.0, TO.1), server(), Info::new(keys::LOG_EMAIL_SRVR_PORT, 25_i32)];
        let (mail, notes) = compose(&parts, Some("x"), true).unwrap();
        assert_eq!((mail.server, mail.port, notes.len()), (Some("mx".into()), Some(25), 0));
        assert_eq!(compose(&parts, Some("x"), false).unwrap().1.len(), 2);
        let required = [Info::new(TO.0, TO.1), server().required()];
        let refused = compose(&required, Some("x"), false).unwrap_err();
        assert!(refused.status == Status::ERR_NOT_SUPPORTED && refused.why.contains("pmix.log.esrvr"));
    }
}
