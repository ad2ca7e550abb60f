//! Folders whose files depend on each other in one direction only.
//!
//! A file depends on those that it imports. Methods on one struct that every file shares would hide dependencies. So the methods
//! of a type are in its own file; only the few files at the top of a folder share the struct that holds all tables. These
//! count as one, and no other file may name that struct.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A folder without a circle.
struct Layered {
    folder: &'static str,
    /// The files that may use all tables.
    top: &'static [&'static str],
    /// The structs that hold the tables, which only these files may name.
    whole: &'static [&'static str],
}

const LAYERED: &[Layered] = &[
    Layered {
        folder: "lib/core/src/client",
        top: &["mod", "calls", "handshake", "replies"],
        whole: &["Client", "Tables"],
    },
    Layered {
        folder: "lib/core/src/server",
        top: &["mod", "answers", "calls", "finalize", "frames", "requests"],
        whole: &["Server", "Tables"],
    },
    Layered {
        folder: "run/dvm/src/local",
        top: &["mod", "progress", "upcalls"],
        whole: &["Local", "Tables"],
    },
    Layered {
        folder: "run/dvm/src/root",
        top: &["mod", "boot", "end", "launch", "settle", "upcalls"],
        whole: &["Root"],
    },
];

/// The text of each file of a folder, by its relative path without extension: `get`, `get/told`.
type Files = BTreeMap<String, String>;

pub(crate) fn check(faults: &mut Vec<String>) -> Result<()> {
    for layered in LAYERED {
        let mut files = Files::new();
        read(&crate::root().join(layered.folder), "", &mut files)?;
        faults.extend(layered.faults(&files));
    }
    Ok(())
}

fn read(dir: &Path, prefix: &str, files: &mut Files) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && stem != "tests" {
            read(&path, &format!("{prefix}{stem}/"), files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            files.insert(format!("{prefix}{stem}"), text);
        }
    }
    Ok(())
}

/// What matters of one file.
struct Read<'a> {
    /// The paths that it names below the folder.
    names: BTreeSet<String>,
    /// Types of other files to which it gives methods.
    strangers: Vec<&'a str>,
}

impl Layered {
    fn faults(&self, files: &Files) -> Vec<String> {
        let mut all = BTreeMap::new();
        for (file, text) in files {
            let names = names_in(self.folder, file, text);
            let strangers = implemented(text).filter(|name| !defines(text, name)).collect();
            all.insert(file.as_str(), Read { names, strangers });
        }
        let is_top = |file: &str| self.top.contains(&file);
        let node =
            |file: &'_ str| -> String { if is_top(file) { "mod".to_owned() } else { file.to_owned() } };
        let mut faults = Vec::new();
        let mut graph = BTreeMap::<String, BTreeSet<String>>::new();
        for (file, Read { names, strangers }) in &all {
            if !is_top(file) {
                let has = |what: String| format!("{}/{file}.rs: has {what}", self.folder);
                let wholes = self.whole.iter().filter(|whole| names.contains(**whole));
                faults.extend(wholes.map(|whole| has(format!("{whole}; hand it the tables it needs"))));
                let strangers = strangers.iter();
                faults
                    .extend(strangers.map(|name| has(format!("methods of {name}, which is another file's"))));
            }
            let known = names.iter().filter_map(|name| file_of(files, name)).map(node);
            let known: BTreeSet<String> = known.filter(|known| *known != node(file)).collect();
            graph.entry(node(file)).or_default().extend(known);
        }
        let graph: BTreeMap<&str, BTreeSet<&str>> = graph
            .iter()
            .map(|(file, known)| (file.as_str(), known.iter().map(String::as_str).collect()))
            .collect();
        if let Some(circle) = circle_in(&graph) {
            faults.push(format!("{}: a circle of files: {}", self.folder, circle.join(" -> ")));
        }
        faults
    }
}

fn implemented(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.lines().filter(|line| line.starts_with("impl") && !line.contains(" for "));
    blocks.filter_map(|line| {
        let rest = line.strip_prefix("impl")?;
        let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.trim_start() };
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

fn defines(text: &str, name: &str) -> bool {
    let words =
        |line: &str| line.contains(&format!("struct {name}")) || line.contains(&format!("enum {name}"));
    text.lines().any(words)
}

/// The paths below the folder that a file names, with `/` between their parts.
fn names_in(folder: &str, file: &str, text: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = code.collect::<Vec<_>>().join("\n");
    let from_crate = folder.split_once("src/").map_or(folder, |(_, inner)| inner).replace('/', "::");
    let from_crate = format!("crate::{from_crate}::");
    // `mod.rs` has its child modules beside it, every other file in a folder of its name.
    let own: Vec<&str> = file.split('/').filter(|part| *part != "mod").collect();
    let mut names = BTreeSet::new();
    for child in code.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')) {
        let is_word = |before: Option<char>| before.is_none_or(|c| !c.is_alphanumeric() && !"_:".contains(c));
        let used = format!("{child}::");
        let mut uses = code.match_indices(&used).map(|(at, _)| code[..at].chars().next_back());
        if uses.any(is_word) {
            names.insert(join(&own, &[child.to_owned()]));
        }
    }
    for (at, _) in code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("::")) {
        let rest = code[at..].trim_start_matches("super::");
        let ups = (code[at..].len() - rest.len()) / "super::".len();
        let base = own.len().saturating_sub(ups);
        names.extend(paths(rest).into_iter().map(|path| join(&own[..base], &path)));
    }
    for (at, _) in code.match_indices(&from_crate) {
        names.extend(paths(&code[at + from_crate.len()..]).into_iter().map(|path| path.join("/")));
    }
    names
}

fn join(base: &[&str], path: &[String]) -> String {
    base.iter().map(|part| part.to_string()).chain(path.iter().cloned()).collect::<Vec<_>>().join("/")
}

/// The paths at the start of a text: `a::B`, or `{a::B, c}`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let Some(list) = text.strip_prefix('{') else {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let first = text[..end].to_owned();
        let Some(rest) = text[end..].strip_prefix("::") else { return vec![vec![first]] };
        let with_first = |path: Vec<String>| std::iter::once(first.clone()).chain(path).collect();
        return paths(rest).into_iter().map(with_first).collect();
    };
    let mut depth = 1;
    let mut start = 0;
    let mut found = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            found.extend(Some(list[start..at].trim()).filter(|path| !path.is_empty()).map(paths));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found.into_iter().flatten().collect()
}

/// The file that defines a path's last part: the longest prefix of it that is a file.
fn file_of<'a>(files: &'a Files, path: &str) -> Option<&'a str> {
    let mut rest = path;
    loop {
        let folder = || files.get_key_value(&format!("{rest}/mod"));
        if let Some((file, _)) = files.get_key_value(rest).or_else(folder) {
            return Some(file);
        }
        match rest.rsplit_once('/') {
            Some((shorter, _)) => rest = shorter,
            // An item of the folder itself.
            None => return files.get_key_value("mod").map(|(file, _)| file.as_str()),
        }
    }
}

/// The files of one circle, in order.
fn circle_in<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let mut done = BTreeSet::new();
    graph.keys().find_map(|file| circle_from(graph, file, &mut Vec::new(), &mut done))
}

fn circle_from<'a>(
    graph: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    file: &'a str,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(at) = path.iter().position(|earlier| *earlier == file) {
        return Some(path[at..].iter().copied().chain([file]).collect());
    }
    if done.contains(file) {
        return None;
    }
    path.push(file);
    let circle =
        graph.get(file).into_iter().flatten().find_map(|known| circle_from(graph, known, path, done));
    path.pop();
    done.insert(file);
    circle
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Layered = Layered { folder: "lib/x/src/server", top: &["mod", "calls"], whole: &["Server"] };

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| (name.to_string(), text.to_string()));
        TEST.faults(&files.collect())
    }

    #[test]
    fn files_that_import_in_one_direction_are_fine() {
        let top = ("mod", "mod calls;\nmod get;\nmod peer;\nuse get::Gets;\npub struct Server;");
        let calls = ("calls", "use super::{Server, get};\nimpl Server {}");
        let get = ("get", "mod told;\nuse super::peer::Peer;\nuse told::Told;");
        let told = ("get/told", "use crate::server::peer::Peer;\n// super::Gets");
        let peer = ("peer", "use crate::machine::Time;");
        assert_eq!(faults(&[top, calls, get, told, peer]), Vec::<String>::new());
    }

    #[test]
    fn circles_of_files_are_found() {
        let get = ("get", "use super::{fence::{Fence, Kind}, peer};");
        let fence = ("fence", "fn f() { crate::server::get::look() }");
        let found = faults(&[("mod", ""), get, fence, ("peer", "")]);
        assert_eq!(found, ["lib/x/src/server: a circle of files: fence -> get -> fence"]);
        let parent = ("get", "mod told;\nfn f() { told::f() }");
        let found = faults(&[("mod", ""), parent, ("get/told", "use super::Gets;")]);
        assert_eq!(found, ["lib/x/src/server: a circle of files: get -> get/told -> get"]);
        let folder = ("get/mod", "use super::fence;");
        let found = faults(&[("mod", ""), folder, ("fence", "use super::get::Gets;")]);
        assert_eq!(found, ["lib/x/src/server: a circle of files: fence -> get/mod -> fence"]);
    }

    #[test]
    fn only_the_top_has_all_tables() {
        let found = faults(&[("mod", "mod get;"), ("get", "use super::Server;\nimpl Server {}")]);
        let have = "lib/x/src/server/get.rs: has";
        let tables = format!("{have} Server; hand it the tables it needs");
        assert_eq!(found, [tables, format!("{have} methods of Server, which is another file's")]);
    }

    #[test]
    fn methods_stand_in_the_file_of_their_type() {
        let fine = "struct Gets<'a>(&'a u8);\nimpl Gets<'_> {}\nimpl Clone for Vec {}";
        assert_eq!(faults(&[("mod", ""), ("get", fine)]), Vec::<String>::new());
        let found = faults(&[("mod", ""), ("get/told", "impl<'a> Gets<'a> {}")]);
        assert_eq!(found, ["lib/x/src/server/get/told.rs: has methods of Gets, which is another file's"]);
    }
}
