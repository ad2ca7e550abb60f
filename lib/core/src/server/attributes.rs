//! Attributes that the host honours, as registered with `PMIx_Register_attributes`.
//!
//! A host names the entries of its table of upcalls; queries name the functions that users call.

use std::collections::BTreeMap;

use phalanx_spec::functions::UPCALLS;
use phalanx_spec::{Status, attribute, attribute_by_name};
use phalanx_wire::Info;

use crate::support::Layer;

/// Keys by function.
#[derive(Debug, Default)]
pub(super) struct HostAttributes(BTreeMap<String, Vec<String>>);

impl HostAttributes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The host's part of an answer about attributes; empty if the host registered none, in which case the host is asked.
    pub(super) fn answer(&self, qualifiers: &[Info]) -> Vec<Info> {
        if self.is_empty() {
            return Vec::new();
        }
        let table =
            self.0.iter().map(|(function, keys)| (&**function, keys.iter().map(String::as_str).collect()));
        Layer::Host.answer_of(table, qualifiers)
    }

    pub(super) fn names(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(",")
    }

    /// Accepted once per function. Attributes are given by name or by key.
    pub(super) fn register(&mut self, function: &str, attributes: Vec<String>) -> Status {
        if function.is_empty() {
            return Status::ERR_BAD_PARAM;
        }
        let known = UPCALLS.iter().find(|(entry, _)| *entry == function);
        let functions: &[&str] = known.map_or(&[], |(_, functions)| functions);
        let functions = if functions.is_empty() { &[function][..] } else { functions };
        if functions.iter().any(|function| self.0.contains_key(*function)) {
            return Status::ERR_REPEAT_ATTR_REGISTRATION;
        }
        let key = |name: String| match attribute_by_name(&name).or_else(|| attribute(&name)) {
            Some(attribute) => attribute.key.to_owned(),
            None => name,
        };
        let keys: Vec<String> = attributes.into_iter().map(key).collect();
        for function in functions {
            self.0.insert((*function).to_owned(), keys.clone());
        }
        Status::SUCCESS
    }
}
