//! The generated parts of the C headers and the list of exported functions, as text.
//!
//! Headers are written by hand, except for the parts between two marker comments, which come from the data.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use super::abi::{Abi, Field, Prototype};
use super::data::{Attribute, Constant, Family, Spec, Standing};

/// The headers that have generated parts.
pub(super) const HEADERS: [&str; 4] = ["pmix_common.h", "pmix.h", "pmix_server.h", "pmix_tool.h"];

/// The text of a header with its generated parts replaced.
pub(super) fn header(name: &str, text: &str, spec: &Spec, abi: &Abi) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        let (part, behind) = behind.split_once(" */\n").context("a marker without an end")?;
        let end = format!("{END}{part} */\n");
        let (_, behind) =
            behind.split_once(&end).with_context(|| format!("{name}: no `{}`", end.trim_end()))?;
        let made = match part {
            "limits" => limits(spec),
            "constants" => constants(spec)?,
            "attributes" => attributes(spec),
            "types" => types(spec, abi)?,
            "callbacks" => callbacks(name, abi),
            "module" => module(abi),
            "functions" => functions(name, abi),
            other => anyhow::bail!("{name}: nothing is generated as `{other}`"),
        };
        let _ = write!(out, "{before}{BEGIN}{part} */\n{made}{end}");
        rest = behind;
    }
    out += rest;
    Ok(out)
}

/// One exported name per line: the functions, and symbols that programs link without a declaration in a header.
pub(super) fn exports(abi: &Abi) -> String {
    abi.functions.iter().fold(String::new(), |list, function| list + &function.name + "\n") + UNDECLARED
}

/// See `lib/capi/src/frameworks.rs`.
const UNDECLARED: &str = "PMIX_PROXY_BUGREPORT\nPMIX_PROXY_VERSION\npmix_framework_names\n";

/// A C file that compiles if the headers' structures and numbers are those of the data.
pub(super) fn layout_check(spec: &Spec, abi: &Abi) -> String {
    let mut out = String::from(HEAD);
    out += "#include <pmix_tool.h>\n\n";
    out += "#define CHECK_AS(line, condition) typedef char check_on_line_##line[(condition) ? 1 : -1]\n";
    out += "#define CHECK_ON(line, condition) CHECK_AS(line, condition)\n";
    out += "#define CHECK(condition) CHECK_ON(__LINE__, condition)\n\n";
    for s in &abi.structs {
        let _ = writeln!(out, "CHECK(sizeof({}) == {});", s.name, s.size);
        for field in &s.fields {
            let _ = writeln!(out, "CHECK(offsetof({}, {}) == {});", s.name, field.name, field.offset);
        }
    }
    for (index, field) in abi.module.iter().enumerate() {
        let offset = format!("offsetof(pmix_server_module_t, {})", field.name);
        let _ = writeln!(out, "CHECK({offset} == {index} * sizeof(void *));");
    }
    for family in &spec.families {
        if ["capability", "version"].contains(&family.name.as_str()) {
            continue;
        }
        for c in members(spec, family) {
            let number = if family.base.as_deref() == Some("uint64_t") {
                format!("UINT64_C({})", c.value)
            } else {
                c.value.to_string()
            };
            let _ = writeln!(out, "CHECK({} == {number});", c.name);
        }
    }
    out
}

/// A C program that links if the library has everything that the headers declare.
pub(super) fn exports_check(abi: &Abi) -> String {
    let mut out = String::from(HEAD);
    out += "#include <stdio.h>\n\n#include <pmix_tool.h>\n\ntypedef void (*function)(void);\n\n";
    out += "int main(void)\n{\n    function all[] = {\n";
    for function in &abi.functions {
        let _ = writeln!(out, "        (function) {},", function.name);
    }
    out + "    };\n\n    printf(\"%zu functions\\n\", sizeof all / sizeof all[0]);\n    return 0;\n}\n"
}

fn limits(spec: &Spec) -> String {
    define(
        spec.constants.iter().filter(|c| c.family == "limit").map(|c| (c.name.as_str(), c.value.to_string())),
    )
}

fn constants(spec: &Spec) -> Result<String> {
    let mut out = String::new();
    for family in &spec.families {
        if ["limit", "capability", "version"].contains(&family.name.as_str()) || is_enum(family) {
            continue;
        }
        let members = members(spec, family);
        let ctype = family.ctype.as_deref().with_context(|| format!("{} has no C type", family.name))?;
        let _ = writeln!(out, "\n/* {ctype} */");
        out += &define(members.into_iter().map(|c| (c.name.as_str(), number(c.value, family))));
    }
    Ok(out)
}

fn is_enum(family: &Family) -> bool {
    family.base.as_deref() == Some("enum")
}

/// The constants that headers define: those of any OpenPMIx header, or that the standard has at least as provisional.
fn members<'a>(spec: &'a Spec, family: &Family) -> Vec<&'a Constant> {
    spec.constants
        .iter()
        .filter(|c| {
            c.family == family.name && (!c.openpmix_in.is_empty() || c.status <= Standing::Provisional)
        })
        .collect()
}

fn number(value: i128, family: &Family) -> String {
    match family.base.as_deref() {
        _ if value < 0 => format!("({value})"),
        Some("uint64_t") => format!("UINT64_C(0x{value:x})"),
        Some("uint32_t") => format!("UINT32_C(0x{value:x})"),
        _ if family.flags => format!("0x{value:x}"),
        _ => value.to_string(),
    }
}

fn attributes(spec: &Spec) -> String {
    let taken: BTreeSet<&str> = spec.constants.iter().map(|c| c.name.as_str()).collect();
    let known = |a: &&Attribute| !a.openpmix_in.is_empty() || a.status <= Standing::Provisional;
    define(
        spec.attributes
            .iter()
            .filter(known)
            .filter(|a| !taken.contains(a.name.as_str()))
            .map(|a| (a.name.as_str(), format!("{:?}", a.key))),
    )
}

fn define<'a>(rows: impl Iterator<Item = (&'a str, String)>) -> String {
    rows.fold(String::new(), |mut out, (name, value)| {
        let _ = writeln!(out, "#define {name:<46} {value}");
        out
    })
}

fn types(spec: &Spec, abi: &Abi) -> Result<String> {
    let mut out = String::new();
    for scalar in &abi.scalars {
        let name = &scalar.name;
        if scalar.base == "enum" {
            let family = spec.families.iter().find(|family| family.ctype.as_ref() == Some(name));
            let family = family.with_context(|| format!("{name} has no values"))?;
            let values: Vec<String> =
                members(spec, family).iter().map(|c| format!("    {} = {}", c.name, c.value)).collect();
            let _ = writeln!(out, "typedef enum {{\n{}\n}} {name};", values.join(",\n"));
        } else if let Some(length) = scalar.base.strip_prefix("char") {
            let _ = writeln!(out, "typedef char {name}{length};");
        } else {
            let _ = writeln!(out, "typedef {} {name};", scalar.base);
        }
    }
    out.push('\n');
    for s in &abi.structs {
        let _ = writeln!(out, "typedef struct {} {};", s.tag(), s.name);
    }
    for s in &abi.structs {
        let _ = writeln!(out, "\n/* {} */\nstruct {} {{", s.summary, s.tag());
        for field in &s.fields {
            if field.ctype == "union" {
                ensure!(!s.union_members.is_empty(), "{} has an empty union", s.name);
                out += "    union {\n";
                for member in &s.union_members {
                    let _ = writeln!(out, "        {};", declared(&member.ctype, &member.name));
                }
                let _ = writeln!(out, "    }} {};", field.name);
            } else {
                let _ = writeln!(out, "    {};", declared(&field.ctype, &field.name));
            }
        }
        out += "};\n";
    }
    Ok(out)
}

fn declared(ctype: &str, name: &str) -> String {
    if ctype.ends_with('*') { format!("{ctype}{name}") } else { format!("{ctype} {name}") }
}

fn callbacks(header: &str, abi: &Abi) -> String {
    let here = |callback: &&Prototype| callback.header.as_deref() == Some(header);
    abi.callbacks.iter().filter(here).fold(String::new(), |list, callback| list + &callback.signature + "\n")
}

fn module(abi: &Abi) -> String {
    let field = |f: &Field| format!("    {} {};\n", f.ctype, f.name);
    let fields: String = abi.module.iter().map(field).collect();
    format!("typedef struct pmix_server_module_4_0_0_t {{\n{fields}}} pmix_server_module_t;\n")
}

fn functions(header: &str, abi: &Abi) -> String {
    let here = |function: &&Prototype| {
        let declared = function.header.as_deref().unwrap_or("pmix.h");
        // Functions that OpenPMIx has moved to other headers stay in `pmix.h`, which every program includes.
        declared == header
            || (header == "pmix.h" && ["pmix_deprecated.h", "pmix_common.h"].contains(&declared))
    };
    abi.functions
        .iter()
        .filter(here)
        .fold(String::new(), |list, function| list + "PMIX_EXPORT " + &function.signature + "\n")
}

const HEAD: &str = "/* Generated by `cargo xtask gen` from lib/spec/data; do not edit. */\n\n";
const BEGIN: &str = "/* generated: ";
const END: &str = "/* end of generated: ";
