//! The records of `lib/spec/data/*.toml`, as needed for generating sources.
//!
//! Reading refuses data that sources cannot be generated from: unknown families, duplicate names, values outside
//! the range of their type. `lib/spec/data/README.md` explains the fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(super) struct Spec {
    pub(super) attributes: Vec<Attribute>,
    pub(super) families: Vec<Family>,
    pub(super) constants: Vec<Constant>,
    pub(super) commands: Vec<Command>,
    pub(super) apis: Vec<Api>,
    pub(super) functions: Vec<Function>,
    pub(super) upcalls: Vec<Upcall>,
}

#[derive(Deserialize)]
pub(super) struct Function {
    pub(super) name: String,
    roles: Vec<String>,
}

/// An entry of the table of upcalls.
#[derive(Deserialize)]
pub(super) struct Upcall {
    pub(super) name: String,
    /// The functions that cause it.
    #[serde(default)]
    pub(super) calls: Vec<String>,
}

impl Function {
    /// Whether it involves processes other than its caller. The non-blocking variants share the name of the blocking ones.
    fn is_verb(&self) -> bool {
        let acts = self.roles.iter().any(|role| ["client", "server", "tool"].contains(&role.as_str()));
        acts && !self.name.ends_with("_nb")
    }
}

#[derive(Deserialize)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) key: String,
    pub(super) dtype: String,
    #[serde(default)]
    pub(super) dtype_alt: Vec<String>,
    pub(super) group: String,
    pub(super) status: Standing,
    pub(super) openpmix_first: Option<String>,
    /// The releases whose headers define it.
    #[serde(default)]
    pub(super) openpmix_in: Vec<String>,
    pub(super) renamed_to: Option<String>,
    pub(super) summary: String,
}

#[derive(Deserialize)]
pub(super) struct Family {
    pub(super) name: String,
    /// Name of the Rust type; some families have none.
    #[serde(rename = "type")]
    pub(super) rust_type: Option<String>,
    #[serde(default)]
    pub(super) flags: bool,
    #[serde(default)]
    pub(super) strip: Vec<String>,
    #[serde(default)]
    pub(super) rename: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) summary: String,
    pub(super) ctype: Option<String>,
    /// The underlying C type, or `enum`.
    pub(super) base: Option<String>,
    pub(super) rust: String,
}

#[derive(Deserialize)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: i128,
    pub(super) family: String,
    pub(super) status: Standing,
    /// Only OpenPMIx 1.x had it, with a number that now means something else.
    #[serde(default)]
    pub(super) v1_only: bool,
    #[serde(default)]
    pub(super) openpmix_in: Vec<String>,
    pub(super) summary: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) value: u8,
    pub(super) since: String,
    pub(super) summary: String,
}

#[derive(Deserialize)]
pub(super) struct Api {
    pub(super) name: String,
    pub(super) block: Vec<Block>,
}

#[derive(Deserialize)]
pub(super) struct Block {
    pub(super) kind: String,
    /// Missing in lists that the standard has dropped, as are the next two.
    #[serde(default = "either")]
    pub(super) audience: String,
    #[serde(default = "support")]
    pub(super) role: String,
    #[serde(default = "if_supported")]
    pub(super) when: String,
    pub(super) realm: Option<String>,
    #[serde(default)]
    pub(super) pass_through: bool,
    #[serde(default)]
    pub(super) attributes: Vec<String>,
}

/// Ordered by preference among several names of one value.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Standing {
    Stable,
    Provisional,
    OpenpmixExtension,
    RfcOnly,
    Deprecated,
    Removed,
}

impl Spec {
    pub(super) fn read(dir: &Path) -> Result<Spec> {
        #[derive(Deserialize)]
        struct Attributes {
            attribute: Vec<Attribute>,
        }
        #[derive(Deserialize)]
        struct Constants {
            family: Vec<Family>,
            constant: Vec<Constant>,
        }
        #[derive(Deserialize)]
        struct Required {
            api: Vec<Api>,
        }
        #[derive(Deserialize)]
        struct Functions {
            function: Vec<Function>,
            command: Vec<Command>,
        }
        #[derive(Deserialize)]
        struct Module {
            member: Vec<Upcall>,
        }
        let Attributes { mut attribute } = file(dir, "attributes.toml")?;
        let Constants { family, constant } = file(dir, "constants.toml")?;
        let Required { mut api } = file(dir, "required.toml")?;
        let Functions { mut function, command } = file(dir, "functions.toml")?;
        let Module { member } = file(dir, "server-module.toml")?;
        function.retain(Function::is_verb);
        function.sort_by(|a, b| a.name.cmp(&b.name));

        attribute.sort_by(|a, b| a.name.cmp(&b.name));
        api.sort_by(|a, b| a.name.cmp(&b.name));
        unique("attribute", attribute.iter().map(|a| &a.name))?;
        unique("family", family.iter().map(|f| &f.name))?;
        unique("constant", constant.iter().map(|c| &c.name))?;
        unique("command", command.iter().map(|c| &c.name))?;
        unique("api", api.iter().map(|a| &a.name))?;
        unique("function", function.iter().map(|f| &f.name))?;
        unique("upcall", member.iter().map(|upcall| &upcall.name))?;
        for call in member.iter().flat_map(|upcall| &upcall.calls) {
            ensure!(function.iter().any(|function| function.name == *call), "there is no function {call}");
        }

        for attribute in &attribute {
            ensure!(!attribute.key.is_empty(), "attribute {} has no key", attribute.name);
        }
        for constant in &constant {
            ensure!(
                family.iter().any(|family| family.name == constant.family),
                "constant {} is of an unknown family",
                constant.name
            );
        }
        for (name, of) in api.iter().flat_map(|api| api.block.iter().map(move |block| (&api.name, block))) {
            for wanted in &of.attributes {
                ensure!(
                    attribute.binary_search_by(|a| a.name.cmp(wanted)).is_ok(),
                    "{name} lists the unknown attribute {wanted}"
                );
            }
        }
        Ok(Spec {
            attributes: attribute,
            families: family,
            constants: constant.into_iter().filter(|constant| !constant.v1_only).collect(),
            commands: command,
            apis: api,
            functions: function,
            upcalls: member.into_iter().filter(|upcall| !upcall.calls.is_empty()).collect(),
        })
    }
}

fn either() -> String {
    "library_or_host".to_owned()
}

fn support() -> String {
    "support".to_owned()
}

fn if_supported() -> String {
    "if_supported".to_owned()
}

pub(super) fn file<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<T> {
    let path = dir.join(name);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("parsing {}", path.display()))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        ensure!(seen.insert(name), "{what} {name} occurs twice");
    }
    Ok(())
}
