//! Maps of nodes and processes in their compact form.

use phalanx_spec::Status;
use phalanx_wire::regex::{nodes_to_regex, ppn_to_regex};

use crate::cmem;
use crate::guard::{BAD, exported};
use crate::pointer::Ptr;

exported! {
    /// Host names between commas.
    fn PMIx_generate_regex(nodes: Ptr<u8>, to: Ptr<Ptr<u8>>) -> Code {
        let text = text(nodes)?;
        let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        give(&nodes_to_regex(&names).ok_or(BAD)?, to)
    }

    /// Nodes between semicolons, their ranks and ranges of ranks between commas.
    fn PMIx_generate_ppn(map: Ptr<u8>, to: Ptr<Ptr<u8>>) -> Code {
        let nodes = text(map)?.split(';').map(ranks).collect::<Result<Vec<_>, _>>()?;
        give(&ppn_to_regex(&nodes), to)
    }
}

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
