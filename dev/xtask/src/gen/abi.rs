//! The C side of the data: structs, scalars, callbacks and functions, as needed for headers and layouts.
//!
//! Of a struct with several layouts the newest one is used; its union has the members of all.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::data::file;

pub(super) struct Abi {
    pub(super) scalars: Vec<Scalar>,
    pub(super) structs: Vec<Struct>,
    pub(super) callbacks: Vec<Prototype>,
    /// Those that a release from 4.2 to 6.1 declares, sorted by name.
    pub(super) functions: Vec<Prototype>,
    /// The upcalls of a host, in the order of 6.1.
    pub(super) module: Vec<Field>,
}

#[derive(Deserialize)]
pub(super) struct Scalar {
    pub(super) name: String,
    /// A C type, `enum`, or `char[LIMIT+1]`.
    pub(super) base: String,
}

#[derive(Deserialize)]
pub(super) struct Struct {
    pub(super) name: String,
    tag: Option<String>,
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) summary: String,
    pub(super) fields: Vec<Field>,
    #[serde(default)]
    pub(super) union_members: Vec<Member>,
}

#[derive(Deserialize)]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ctype: String,
    pub(super) offset: usize,
}

#[derive(Deserialize)]
pub(super) struct Member {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ctype: String,
}

#[derive(Deserialize)]
pub(super) struct Prototype {
    pub(super) name: String,
    pub(super) signature: String,
    pub(super) header: Option<String>,
    #[serde(default)]
    in_4_2_2: bool,
    #[serde(default)]
    in_4_2: bool,
    #[serde(default)]
    in_5_0: bool,
    #[serde(default)]
    in_6_1: bool,
}

impl Struct {
    pub(super) fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or_else(|| self.name.strip_suffix("_t").unwrap_or(&self.name))
    }
}

impl Prototype {
    fn is_declared(&self) -> bool {
        self.in_4_2_2 || self.in_4_2 || self.in_5_0 || self.in_6_1
    }
}

impl Abi {
    pub(super) fn read(dir: &Path) -> Result<Abi> {
        #[derive(Deserialize)]
        struct Structs {
            r#struct: Vec<Struct>,
            scalar: Vec<Scalar>,
        }
        #[derive(Deserialize)]
        struct Functions {
            function: Vec<Prototype>,
            callback: Vec<Prototype>,
        }
        #[derive(Deserialize)]
        struct Layout {
            version: String,
            fields: Vec<Field>,
        }
        #[derive(Deserialize)]
        struct Module {
            layout: Vec<Layout>,
        }
        let Structs { r#struct: variants, scalar } = file(dir, "structs.toml")?;
        let Functions { mut function, mut callback } = file(dir, "functions.toml")?;
        let Module { layout } = file(dir, "server-module.toml")?;

        let mut structs: Vec<Struct> = Vec::new();
        for variant in variants {
            let Some(known) = structs.iter_mut().find(|s| s.name == variant.name) else {
                structs.push(variant);
                continue;
            };
            ensure!(known.size == variant.size, "{} has several sizes", known.name);
            let earlier = std::mem::replace(known, variant);
            for member in earlier.union_members {
                if !known.union_members.iter().any(|m| m.name == member.name) {
                    known.union_members.push(member);
                }
            }
        }
        function.retain(Prototype::is_declared);
        function.sort_by(|a, b| a.name.cmp(&b.name));
        callback.retain(Prototype::is_declared);
        let module = layout.into_iter().find(|layout| layout.version == HOST_LEVEL);
        let module = module.with_context(|| format!("no server module of {HOST_LEVEL}"))?.fields;
        Ok(Abi {
            scalars: scalar,
            structs,
            callbacks: in_order_of_use(callback),
            functions: function,
            module,
        })
    }
}

/// Sorts each callback behind those that its signature names.
fn in_order_of_use(mut waiting: Vec<Prototype>) -> Vec<Prototype> {
    let mut ordered: Vec<Prototype> = Vec::new();
    while !waiting.is_empty() {
        let names: Vec<String> = waiting.iter().map(|callback| callback.name.clone()).collect();
        let is_ready = |callback: &Prototype| {
            names.iter().all(|name| *name == callback.name || !callback.signature.contains(name.as_str()))
        };
        let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_ready);
        // A cycle cannot be declared in C either; compiling the header will report it.
        let done = ready.is_empty();
        ordered.extend(ready);
        waiting = rest;
        if done {
            ordered.append(&mut waiting);
        }
    }
    ordered
}

const HOST_LEVEL: &str = "6.1";
