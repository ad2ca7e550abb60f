//! The first message of a connecting process: its identity, its credential, its packing rules.
//!
//! A header of four words in *host* byte order, the only one of its kind, then a body of NUL terminated strings and
//! big-endian words.

use phalanx_spec::Rank;

use super::{Flavor, HelloError};
use crate::codec::{DESCRIBED, Dialect, Format, Generation, NOT_DESCRIBED, Reader, Release, Writer};
use crate::credential::Credential;
use crate::info::Info;
use crate::name::{Nspace, ProcId};

/// The longest body that is accepted, in bytes; OpenPMIx has the same limit.
pub const MAX_HELLO: usize = 128 << 10;

#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    pub flavor: Flavor,
    pub credential: Credential,
    /// The ids that the peer claims beside its credential; 0 from plain clients, which claim none.
    pub uid: u32,
    pub gid: u32,
    /// Absent if the server should name the peer.
    pub proc: Option<ProcId>,
    /// The release of its library as the peer writes it: `4.2.2rc2`.
    pub version: String,
    /// How both sides pack from then on.
    pub format: Format,
    /// The store that the peer wants its data for (OpenPMIx: gds module): `hash`, `shmem2`, ...
    pub store: String,
    /// `pmix.ppid` (its own pid), `pmix.cmd.line` and the like. Plain clients before 6.1 send none.
    pub info: Vec<Info>,
}

impl Hello {
    /// The whole message, header included.
    ///
    /// A name is sent if and only if the flavor has one; otherwise `proc` is ignored.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_string(&mut body, self.credential.module());
        let credential = self.credential.to_bytes();
        put_u32(&mut body, u32::try_from(credential.len()).unwrap_or(u32::MAX));
        body.extend_from_slice(&credential);
        body.push(self.flavor.flag());
        if self.flavor.states_ids() {
            put_u32(&mut body, self.uid);
            put_u32(&mut body, self.gid);
        }
        if self.flavor.has_name() {
            put_string(&mut body, self.proc.as_ref().map_or("", |proc| proc.nspace.as_str()));
            put_u32(&mut body, self.proc.as_ref().map_or(Rank::UNDEF, |proc| proc.rank).0);
        }
        put_string(&mut body, &self.version);
        put_string(&mut body, self.format.generation.module_name());
        body.push(if self.format.described { DESCRIBED } else { NOT_DESCRIBED });
        put_string(&mut body, &self.store);
        if !self.info.is_empty() {
            let mut writer = Writer::new(self.format);
            writer.put_list(&self.info);
            body.extend_from_slice(&writer.into_bytes());
        }
        let mut message = Vec::with_capacity(HEADER_LEN + body.len());
        message.extend_from_slice(&MAGIC);
        message.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_ne_bytes());
        message.extend_from_slice(&[0; 4]);
        message.extend_from_slice(&body);
        message
    }

    /// The dialect of this peer.
    pub fn dialect(&self) -> Dialect {
        Dialect { format: self.format, release: self.release() }
    }

    pub fn release(&self) -> Release {
        Release::parse(&self.version).unwrap_or(Release::new(0, 0, 0))
    }

    fn decode(body: &[u8]) -> Result<Hello, HelloError> {
        let mut fields = Fields { left: body };
        let module = fields.string("the name of the security module")?;
        let length = fields.u32("the length of the credential")?;
        let credential = Credential::from_wire(module, fields.take(length as usize, "the credential")?);
        let flag = fields.u8("the process flag")?;
        let flavor = Flavor::from_flag(flag).ok_or(HelloError::UnknownFlavor(flag))?;
        let (uid, gid) =
            if flavor.states_ids() { (fields.u32("the uid")?, fields.u32("the gid")?) } else { (0, 0) };
        let proc = if flavor.has_name() {
            let nspace = fields.string("the namespace")?;
            let nspace = Nspace::new(nspace).map_err(|_| HelloError::Malformed("the namespace"))?;
            Some(ProcId { nspace, rank: Rank(fields.u32("the rank")?) })
        } else {
            None
        };
        let version = fields.string("the version")?.to_owned();
        if fields.left.is_empty() {
            // The hello of a 2.0 peer ends here; such peers have their own packing rules.
            return Err(HelloError::UnknownCodec("v20".to_owned()));
        }
        let codec = fields.string("the name of the codec")?;
        let generation =
            Generation::from_module_name(codec).ok_or_else(|| HelloError::UnknownCodec(codec.to_owned()))?;
        let described = match fields.u8("the buffer type")? {
            NOT_DESCRIBED => false,
            DESCRIBED => true,
            _ => return Err(HelloError::Malformed("the buffer type")),
        };
        let format = Format { generation, described };
        let store = fields.string("the name of the store")?.to_owned();
        let info = attributes(format, fields.left).map_err(HelloError::Info)?;
        Ok(Hello { flavor, credential, uid, gid, proc, version, format, store, info })
    }
}

/// 4.2 appends one zero byte, with or without attributes.
fn attributes(format: Format, bytes: &[u8]) -> Result<Vec<Info>, crate::codec::DecodeError> {
    if matches!(bytes, [] | [0]) {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new(format, bytes);
    let info = reader.get_list()?;
    if reader.rest() != [0] {
        reader.expect_end()?;
    }
    Ok(info)
}

/// Assembles a handshake from the bytes that arrive. Rejects them as soon as they cannot become one.
#[derive(Debug, Default)]
pub struct HelloReader {
    bytes: Vec<u8>,
}

impl HelloReader {
    pub fn new() -> HelloReader {
        HelloReader::default()
    }

    /// `None`: more bytes are needed. After a message or an error the reader is useless, except for
    /// [`into_rest`](HelloReader::into_rest).
    pub fn feed(&mut self, data: &[u8]) -> Result<Option<Hello>, HelloError> {
        self.bytes.extend_from_slice(data);
        let magic = self.bytes.len().min(MAGIC.len());
        if self.bytes[..magic] != MAGIC[..magic] {
            return Err(HelloError::NotPmix);
        }
        let Some(&[l0, l1, l2, l3]) = self.bytes.get(8..12) else { return Ok(None) };
        let claimed = u32::from_ne_bytes([l0, l1, l2, l3]);
        if claimed as usize > MAX_HELLO {
            return Err(HelloError::TooLong { claimed, limit: MAX_HELLO });
        }
        let end = HEADER_LEN + claimed as usize;
        let Some(body) = self.bytes.get(HEADER_LEN..end) else { return Ok(None) };
        let hello = Hello::decode(body)?;
        self.bytes.drain(..end);
        Ok(Some(hello))
    }

    /// The bytes that arrived behind the message.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }
}

/// Both the index and the tag of the header are -1.
const MAGIC: [u8; 8] = [0xff; 8];
const HEADER_LEN: usize = 16;

fn put_string(body: &mut Vec<u8>, text: &str) {
    body.extend(text.bytes().filter(|byte| *byte != 0));
    body.push(0);
}

fn put_u32(body: &mut Vec<u8>, n: u32) {
    body.extend_from_slice(&n.to_be_bytes());
}

struct Fields<'a> {
    left: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], HelloError> {
        let (taken, left) = self.left.split_at_checked(n).ok_or(HelloError::Truncated(what))?;
        self.left = left;
        Ok(taken)
    }

    fn u8(&mut self, what: &'static str) -> Result<u8, HelloError> {
        Ok(self.take(1, what)?[0])
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, HelloError> {
        Ok(self.take(4, what)?.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
    }

    fn string(&mut self, what: &'static str) -> Result<&'a str, HelloError> {
        let end = self.left.iter().position(|byte| *byte == 0).ok_or(HelloError::Truncated(what))?;
        let text = self.take(end + 1, what)?;
        std::str::from_utf8(&text[..end]).map_err(|_| HelloError::Malformed(what))
    }
}
