//! Reading a log request: its channels in their order, and what goes to each.

use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::host::LogRequest;
use phalanx_spec::{IofChannel, Status, attribute, keys};
use phalanx_wire::{DataArray, Info, InfoList, Nspace, ProcId, Text, Value};

use super::channel::{Channel, Fault, Syslog};
use super::line::Shape;
use super::mail;
use crate::root::dvm::Dvm;
use crate::root::permission;
use crate::root::query::names;

/// What stands beside the channels, among the data or the directives.
pub(super) const DIRECTIVES: &[&str] = &[
    keys::LOG_MSG,
    keys::LOG_ONCE,
    keys::LOG_SYSLOG_PRI,
    keys::LOG_SOURCE,
    keys::LOG_TIMESTAMP,
    keys::LOG_GENERATE_TIMESTAMP,
    keys::LOG_TIMESTAMP_OUTPUT,
    keys::LOG_TAG_OUTPUT,
    keys::LOG_XML_OUTPUT,
    keys::LOG_AGG,
    keys::LOG_KEY,
    keys::LOG_VAL,
    keys::NSPACE,
];

/// A channel of a request: as messages call it, and what goes there or why nothing does.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) name: String,
    pub(super) channel: Result<Channel, Fault>,
}

#[derive(Debug)]
pub(super) struct Wishes {
    /// In the order of the request.
    pub(super) wishes: Vec<Wish>,
    /// The process from which the texts are.
    pub(super) source: ProcId,
    pub(super) once: bool,
    /// What is ignored.
    pub(super) notes: Vec<String>,
}

pub(super) fn read(dvm: &Dvm, now: Time, request: &LogRequest) -> Result<Wishes, Fault> {
    let directives: Vec<Info> = request.directives.iter().chain(&request.data).cloned().collect();
    let source = source(dvm, &request.from, &directives)?;
    let stated = directives.find(keys::LOG_TIMESTAMP).and_then(Value::as_u64).filter(|seconds| *seconds > 0);
    let now = dvm.config.clock.saturating_add(now.since(Time::default()));
    let time = stated.map_or(now, Duration::from_secs);
    let mut reader = Reader {
        dvm,
        from: &request.from,
        is_owner: is_owner(dvm, &request.directives),
        message: directives.find(keys::LOG_MSG).map(as_text),
        shape: Shape::of(&directives, source.clone(), time),
        stated,
        directives: &directives,
        notes: Vec::new(),
    };
    let is_channel = |info: &&Info| !DIRECTIVES.contains(&info.key.as_str());
    let wanted: Vec<&Info> = request.data.iter().filter(is_channel).collect();
    if wanted.len() > MOST_CHANNELS {
        return Err(Fault::bad(format!("it has more than {MOST_CHANNELS} channels")));
    }
    let is_wanted = |info: &&&Info| !matches!(info.value, Value::Bool(false));
    let mut wishes: Vec<Wish> = wanted.iter().filter(is_wanted).map(|info| reader.wish(info)).collect();
    if wanted.is_empty() && reader.message.is_some() {
        wishes.push(reader.wish(&Info::new(keys::LOG_JOB_RECORD, true)));
    }
    if wishes.is_empty() {
        return Err(Fault::bad("it names no channel and has no PMIX_LOG_MSG"));
    }
    let notes = reader.notes;
    Ok(Wishes { wishes, source, once: directives.is_set(keys::LOG_ONCE), notes })
}

/// The process that the request names as the source of its texts, by default the requester.
fn source(dvm: &Dvm, from: &ProcId, directives: &[Info]) -> Result<ProcId, Fault> {
    match directives.find(keys::LOG_SOURCE) {
        None => Ok(from.clone()),
        Some(Value::Proc(source)) if *source == *from => Ok(from.clone()),
        Some(Value::Proc(source)) if permission::may_steer(dvm, from, &source.nspace) => Ok(source.clone()),
        Some(Value::Proc(source)) => {
            let why = format!("it may not log for {source} (PMIX_LOG_SOURCE)");
            Err(Fault::new(Status::ERR_NO_PERMISSIONS, why))
        }
        Some(_) => Err(Fault::bad("PMIX_LOG_SOURCE is no process")),
    }
}

/// Whether the requester's user is that of the DVM, or root. The server has added what it knows of the user behind all that the requester has sent.
fn is_owner(dvm: &Dvm, directives: &[Info]) -> bool {
    let uid = directives.iter().rev().find(|info| info.key == *keys::USERID);
    uid.and_then(|uid| uid.value.as_u32()).is_some_and(|uid| uid == dvm.config.uid || uid == 0)
}

struct Reader<'a> {
    dvm: &'a Dvm,
    from: &'a ProcId,
    is_owner: bool,
    message: Option<String>,
    shape: Shape,
    stated: Option<u64>,
    directives: &'a [Info],
    notes: Vec<String>,
}

impl Reader<'_> {
    fn wish(&mut self, info: &Info) -> Wish {
        let value = &info.value;
        let (name, channel) = match info.key.as_str() {
            keys::LOG_STDERR => ("standard error", self.stream(IofChannel::STDERR, "stderr", value)),
            keys::LOG_STDOUT => ("standard output", self.stream(IofChannel::STDOUT, "stdout", value)),
            keys::LOG_SYSLOG => ("the syslog", self.syslog(Syslog::Any, value)),
            keys::LOG_LOCAL_SYSLOG => ("the local syslog", self.syslog(Syslog::Local, value)),
            keys::LOG_GLOBAL_SYSLOG => ("the global syslog", self.syslog(Syslog::Global, value)),
            keys::LOG_EMAIL => ("mail", self.mail(value)),
            keys::LOG_JOB_RECORD => ("the job record", self.record(value)),
            keys::LOG_GLOBAL_DATASTORE => ("the data store", self.store(value)),
            names::LOG_FILE => ("the file", self.file(value)),
            key => {
                let name = attribute(key).map_or(key, |attribute| attribute.name);
                let unknown = Fault::new(Status::ERR_NOT_SUPPORTED, "there is no such channel");
                return Wish { name: name.to_owned(), channel: Err(unknown) };
            }
        };
        let name = match (name, value.as_str()) {
            ("the file", Some(path)) => format!("the file {path}"),
            (name, _) => name.to_owned(),
        };
        Wish { name, channel }
    }

    fn stream(&self, channel: IofChannel, name: &str, value: &Value) -> Result<Channel, Fault> {
        Ok(Channel::Stream(channel, self.shape.lines(name, &self.text(value)?)))
    }

    fn syslog(&self, which: Syslog, value: &Value) -> Result<Channel, Fault> {
        let priority = match self.directives.find(keys::LOG_SYSLOG_PRI) {
            None => LOG_USER | LOG_ERR,
            Some(stated) => match stated.as_u32().and_then(|stated| u8::try_from(stated).ok()) {
                Some(severity @ 0..8) => LOG_USER | severity,
                Some(priority @ 8..=191) => priority,
                _ => return Err(Fault::bad("PMIX_LOG_SYSLOG_PRI is not one of 0 to 191")),
            },
        };
        let line = format!("{}: {}", self.shape.source(), self.shape.line("syslog", &self.text(value)?));
        Ok(Channel::Syslog(which, priority, bounded(line)?))
    }

    fn mail(&mut self, value: &Value) -> Result<Channel, Fault> {
        self.check_owner("send mails")?;
        let parts: Vec<Info> = infos(value).ok_or_else(|| Fault::bad("its value is no array of infos"))?;
        let has_command = self.dvm.config.rules.mail.is_some();
        let (mail, notes) = mail::compose(&parts, self.message.as_deref(), has_command)?;
        self.notes.extend(notes.into_iter().map(|note| format!("log to mail: ignored: {note}")));
        Ok(Channel::Mail(mail))
    }

    fn file(&self, value: &Value) -> Result<Channel, Fault> {
        self.check_owner("write files")?;
        let path = value.as_text().filter(|path| path.as_bytes().starts_with(b"/"));
        let path = path.ok_or_else(|| Fault::bad("its path does not begin with '/'"))?;
        if path.as_bytes().contains(&0) {
            return Err(Fault::bad("its path has a zero byte"));
        }
        let text = self.message.as_deref().ok_or_else(|| Fault::bad("there is no PMIX_LOG_MSG"))?;
        let line = bounded(format!("{}\n", self.shape.line("file", text)))?;
        Ok(Channel::File(path.clone(), line))
    }

    fn record(&self, value: &Value) -> Result<Channel, Fault> {
        self.check_owner("write to the record of a job")?;
        let named = self.directives.find(keys::NSPACE);
        let nspace = match named {
            None => self.shape.source().nspace.clone(),
            Some(Value::ProcNspace(nspace)) => nspace.clone(),
            Some(Value::String(name)) => name
                .as_str()
                .and_then(|name| Nspace::new(name).ok())
                .ok_or_else(|| Fault::bad("PMIX_NSPACE is not the name of a job"))?,
            Some(_) => return Err(Fault::bad("PMIX_NSPACE is not the name of a job")),
        };
        if !permission::may_steer(self.dvm, self.from, &nspace) {
            return Err(Fault::new(
                Status::ERR_NO_PERMISSIONS,
                format!(
                    "a rank writes to the record of its own job and of those it has spawned, not of {nspace}"
                ),
            ));
        }
        if named.is_none() && self.dvm.is_tool(self.shape.source()) {
            return Err(Fault::bad("a tool names the job with PMIX_NSPACE"));
        }
        let text = self.shape.lines("record", &self.text(value)?).trim_end_matches('\n').to_owned();
        Ok(Channel::Record(nspace, text, self.stated))
    }

    fn store(&self, value: &Value) -> Result<Channel, Fault> {
        let infos = match infos(value) {
            Some(infos) => infos,
            None => {
                let text = self.text(value)?;
                let key = self.directives.find(keys::LOG_KEY).and_then(Value::as_str);
                let key =
                    key.ok_or_else(|| Fault::bad("a text needs the name of its key, in PMIX_LOG_KEY"))?;
                let key = phalanx_wire::Key::new(key)
                    .map_err(|why| Fault::bad(format!("PMIX_LOG_KEY '{key}' is no key: {why}")))?;
                vec![Info { key, flags: Default::default(), value: text.into() }]
            }
        };
        match infos.iter().find(|info| info.key.is_reserved()) {
            Some(info) => Err(Fault::bad(format!("{} is a key of the standard", info.key))),
            None if infos.is_empty() => Err(Fault::bad("it has nothing to publish")),
            None => Ok(Channel::Store(infos)),
        }
    }

    /// The text of a channel: its own, or that of the whole request.
    fn text(&self, value: &Value) -> Result<String, Fault> {
        let message = self.message.as_ref();
        match value {
            Value::Undef | Value::Bool(_) => {
                message.cloned().ok_or_else(|| Fault::bad("it has no text, and there is no PMIX_LOG_MSG"))
            }
            Value::String(text) if text.as_bytes().is_empty() => Ok(message.cloned().unwrap_or_default()),
            value => Ok(as_text(value)),
        }
    }

    fn check_owner(&self, what: &str) -> Result<(), Fault> {
        match self.is_owner {
            true => Ok(()),
            false => {
                let why = format!("only the user of the DVM may {what}");
                Err(Fault::new(Status::ERR_NO_PERMISSIONS, why))
            }
        }
    }
}

fn infos(value: &Value) -> Option<Vec<Info>> {
    value.as_array().map(|array: &DataArray| array.infos().cloned().collect())
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string_lossy(),
        Value::ByteObject(blob) => String::from_utf8_lossy(blob.as_bytes()).into_owned(),
        other => other.to_string(),
    }
}

fn bounded(text: String) -> Result<Text, Fault> {
    match text.len() <= LONGEST {
        true => Ok(text.into()),
        false => {
            let why = format!("its text has more than {LONGEST} bytes");
            Err(Fault::new(Status::ERR_OUT_OF_RESOURCE, why))
        }
    }
}

const MOST_CHANNELS: usize = 64;
const LONGEST: usize = 1 << 20;
const LOG_USER: u8 = 1 << 3;
const LOG_ERR: u8 = 3;
