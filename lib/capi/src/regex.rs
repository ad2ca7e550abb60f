//! Maps of nodes and processes in compact form.

use phalanx_spec::Status;
use phalanx_wire::regex::{nodes_to_regex, ppn_to_regex};

use crate::cmem;
use crate::guard::{BAD, exported};
use crate::layout::*;
use crate::pointer::Ptr;

exported! {
    /// Takes comma-separated host names.
    fn PMIx_generate_regex(nodes: Ptr<u8>, to: Ptr<Ptr<u8>>) -> Code {
        let text = text(nodes)?;
        let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        give(&nodes_to_regex(&names).ok_or(BAD)?, to)
    }

    /// Takes nodes separated by semicolons, their ranks and ranges of ranks by commas.
    fn PMIx_generate_ppn(map: Ptr<u8>, to: Ptr<Ptr<u8>>) -> Code {
        let nodes = text(map)?.split(';').map(ranks).collect::<Result<Vec<_>, _>>()?;
        give(&ppn_to_regex(&nodes), to)
    }

    /// The list unchanged: other libraries understand no notation of this structure.
    fn PMIx_generate_regex2(
        list: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, to: Ptr<pmix_regex2_t>,
    ) -> Code {
        let _ = (info, count);
        let mut bytes = text(list)?.into_bytes();
        if to.is_null() {
            return Err(BAD);
        }
        bytes.push(0);
        to.write(pmix_regex2_t { type_: cmem::text(RAW), bytes: cmem::bytes(&bytes), len: bytes.len() });
        Ok(())
    }

    fn PMIx_parse_regex2(
        from: Ptr<pmix_regex2_t>, info: Ptr<pmix_info_t>, count: usize, list: Ptr<Ptr<u8>>,
    ) -> Code {
        let _ = (info, count);
        let c = from.read().ok_or(BAD)?;
        let kind = c.type_.text().ok_or(BAD)?;
        if list.is_null() || c.bytes.is_null() {
            return Err(BAD);
        }
        if kind != RAW {
            return Err(Status::ERR_NOT_SUPPORTED);
        }
        let bytes = c.bytes.bytes(c.len);
        list.write(cmem::text(bytes.split(|byte| *byte == 0).next().unwrap_or_default()));
        Ok(())
    }
}

/// The name of the literal notation.
const RAW: &[u8] = b"raw";

fn text(c: Ptr<u8>) -> Result<String, Status> {
    String::from_utf8(c.text().ok_or(BAD)?).map_err(|_| BAD)
}

fn give(map: &str, to: Ptr<Ptr<u8>>) -> Result<(), Status> {
    if to.is_null() {
        return Err(BAD);
    }
    to.write(cmem::text(map.as_bytes()));
    Ok(())
}

fn ranks(node: &str) -> Result<Vec<u32>, Status> {
    let mut all = Vec::new();
    for range in node.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| BAD);
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last - first > MOST_RANKS {
            return Err(BAD);
        }
        all.extend(first..=last);
    }
    Ok(all)
}

const MOST_RANKS: u32 = 1 << 24;
