//! The nodes of a DVM.

use phalanx_dvm::names;
use pmix::{DataArray, Value, keys};
use serde_json::{Value as Json, json};

use super::table::{Column, Table};
use super::value;

/// A node, as far as its server knows it.
#[derive(Debug)]
pub(crate) struct Node {
    id: u32,
    host: String,
    state: String,
    /// `None`: it takes no ranks.
    slots: Option<u32>,
    in_use: Option<u32>,
    load: Option<f64>,
    /// Megabytes of memory.
    free: Option<f64>,
    link: Option<String>,
}

impl Node {
    pub(crate) fn from_record(about: &DataArray) -> Node {
        let find = |key| value::find(about, key);
        let text = |key| find(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key| find(key).and_then(Value::as_u32);
        let float = |key| find(key).and_then(Value::as_f64);
        Node {
            id: number(keys::NODEID).unwrap_or_default(),
            host: text(keys::HOSTNAME).unwrap_or_default(),
            state: text(names::STATE).unwrap_or_default(),
            slots: number(keys::MAX_PROCS),
            in_use: number(names::IN_USE),
            load: float(keys::NODE_LOAD_AVG),
            free: float(keys::NODE_MEM_FREE),
            link: text(names::LINK),
        }
    }

    pub(crate) fn json(&self) -> Json {
        json!({
            "node": self.id,
            "host": self.host,
            "state": self.state,
            "slots": self.slots,
            "in_use": self.in_use,
            "load": self.load,
            "free_megabytes": self.free,
            "link": self.link,
        })
    }
}

pub(crate) fn table(nodes: &[Node]) -> String {
    let mut table = Table::new(&[
        Column::Right("NODE"),
        Column::Left("HOST"),
        Column::Left("STATE"),
        Column::Right("IN USE"),
        Column::Right("SLOTS"),
        Column::Right("LOAD"),
        Column::Right("FREE"),
        Column::Left("LINK"),
    ]);
    for node in nodes {
        let shown = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        table.row([
            node.id.to_string(),
            node.host.clone(),
            node.state.clone(),
            shown(node.in_use),
            shown(node.slots),
            node.load.map(|load| format!("{load:.2}")).unwrap_or_default(),
            node.free.map(|free| format!("{free:.0} MB")).unwrap_or_default(),
            node.link.clone().unwrap_or_default(),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_node() {
        let node = |id, state: &str, slots, link: Option<&str>| Node {
            id,
            host: format!("n{id}"),
            state: state.into(),
            slots,
            in_use: slots.map(|_| 1),
            load: link.map(|_| 0.5),
            free: link.map(|_| 512.4),
            link: link.map(str::to_owned),
        };
        let nodes = [
            node(0, "up", None, None),
            node(1, "up", Some(4), Some("10.0.0.1:4711 (daemon 0)")),
            node(2, "lost", None, None),
        ];
        let text = table(&nodes);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "NODE  HOST  STATE  IN USE  SLOTS  LOAD    FREE  LINK");
        assert_eq!(lines[1], "   0  n0    up          -      -");
        assert_eq!(lines[2], "   1  n1    up          1      4  0.50  512 MB  10.0.0.1:4711 (daemon 0)");
        assert_eq!(lines[3], "   2  n2    lost        -      -");
    }
}
