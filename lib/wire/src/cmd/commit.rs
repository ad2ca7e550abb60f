//! COMMIT: the values that a process has put since its last commit.

use phalanx_spec::Scope;

use super::Body;
use crate::codec::{DecodeError, Dialect, Format, Reader, Writer};
use crate::info::Kval;
use crate::text::Blob;
use crate::value::Buffer;

/// One bucket per scope. Values of scope GLOBAL appear in both the LOCAL and the REMOTE bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub buckets: Vec<(Scope, Vec<Kval>)>,
}

impl Body for Commit {
    fn write(&self, to: &mut Writer, _: Dialect) {
        let format = to.format();
        for (scope, values) in self.buckets.iter().filter(|(_, values)| !values.is_empty()) {
            let mut bucket = Writer::new(format);
            values.iter().for_each(|value| {
                bucket.put(value);
            });
            to.put(scope);
            to.put(&Buffer { described: format.described, bytes: Blob::from(bucket.into_bytes()) });
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let mut buckets = Vec::new();
        while !from.is_at_end() {
            let scope = from.get()?;
            let bucket: Buffer = from.get()?;
            let format = Format { described: bucket.described, ..from.format() };
            buckets.push((scope, Reader::new(format, bucket.bytes.as_bytes()).get_rest()?));
        }
        Ok(Commit { buckets })
    }
}
