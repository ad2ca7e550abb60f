//! Lines of XML: elements, attributes, escaped text, and what both formats share.

use std::fmt::{Display, Write};

use super::element::{Element, Kind};
use crate::details::Fact;

/// The document written so far.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) text: String,
    indent: usize,
}

/// The attributes of one element, in their order.
#[derive(Default)]
pub(super) struct Attributes(String);

impl Attributes {
    pub(super) fn with(mut self, name: &str, value: impl Display) -> Self {
        self.put(name, value);
        self
    }

    pub(super) fn put(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.0, " {name}=\"{value}\"");
    }

    pub(super) fn put_text(&mut self, name: &str, value: &str) {
        self.put(name, escaped(value));
    }
}

impl Writer {
    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", self.indent * 2);
    }

    pub(super) fn open(&mut self, element: &str, attributes: Attributes) {
        self.line(&format!("<{element}{}>", attributes.0));
        self.indent += 1;
    }

    pub(super) fn close(&mut self, element: &str) {
        self.indent -= 1;
        self.line(&format!("</{element}>"));
    }

    pub(super) fn empty(&mut self, element: &str, attributes: Attributes) {
        self.line(&format!("<{element}{}/>", attributes.0));
    }

    /// The pages of a NUMA node, and the facts of any object.
    pub(super) fn contents(&mut self, element: &Element) {
        if let Kind::Numa { pages, .. } = &element.kind {
            for pages in pages {
                self.empty(
                    "page_type",
                    Attributes::default().with("size", pages.size).with("count", pages.count),
                );
            }
        }
        self.facts(&element.facts);
    }

    pub(super) fn facts(&mut self, facts: &[Fact]) {
        for fact in facts {
            self.fact(fact.name, &fact.value);
        }
    }

    pub(super) fn fact(&mut self, name: &str, value: &str) {
        let mut attributes = Attributes::default().with("name", name);
        attributes.put_text("value", value);
        self.empty("info", attributes);
    }
}

/// The properties of memory, caches and devices.
pub(super) fn measures(kind: &Kind, attributes: &mut Attributes) {
    match kind {
        Kind::Numa { bytes, .. } => attributes.put("local_memory", bytes),
        Kind::Cache { level, purpose, bytes, line, ways } => {
            attributes.put("cache_size", bytes);
            attributes.put("depth", level);
            attributes.put("cache_linesize", line);
            attributes.put("cache_associativity", ways);
            attributes.put("cache_type", *purpose as u32);
        }
        Kind::Bridge { domain, buses: [first, last] } => {
            attributes.put("bridge_type", "0-1");
            attributes.put("depth", 0);
            attributes.put("bridge_pci", format_args!("{domain:04x}:[{first:02x}-{last:02x}]"));
        }
        Kind::Function { pci, details } => {
            let [vendor, device, subvendor, subdevice] = pci.ids;
            let revision = details.revision;
            attributes.put("pci_busid", pci.address());
            attributes.put(
                "pci_type",
                format_args!(
                    "{:04x} [{vendor:04x}:{device:04x}] [{subvendor:04x}:{subdevice:04x}] {revision:02x}",
                    pci.class
                ),
            );
            attributes.put("pci_link_speed", format_args!("{:.6}", details.link_speed));
        }
        Kind::Device { number } => attributes.put("osdev_type", number),
        Kind::Machine | Kind::Package | Kind::Group | Kind::Core | Kind::Pu => {}
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 cannot represent control characters.
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
