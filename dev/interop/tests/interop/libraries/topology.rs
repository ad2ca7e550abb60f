//! The topology that ranks get, compared with what hwloc itself finds and writes.

use std::collections::BTreeSet;
use std::process::Command;

use phalanx_interop::{Library::Pmix4, debian_file, new_directory, pmix, px};

/// The value that a rank gets for this key.
fn told(key: &str) -> String {
    px(["-n", "1"]).arg(pmix("text")).arg(key).with(Pmix4).run().expect_code(0).stdout
}

/// The output of hwloc's own program. MPICH's packages bring it.
fn lstopo(arguments: &[&str]) -> String {
    let program = debian_file("/usr/bin/lstopo-no-graphics", "hwloc-nox");
    let output = Command::new(program).args(["--of", "xml"]).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("starting lstopo: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && messages.is_empty(), "{arguments:?}: {messages}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every element that describes the node, with its attributes and the names of the enclosing elements.
///
/// Left out is what hwloc reports about itself: its backends, its capabilities, its numbering of objects. So are serial
/// numbers, which only root can read, and devices without a PCI bus or a driver, which are near no rank.
fn elements(xml: &str) -> BTreeSet<String> {
    const ITSELF: &[&str] = &["Backend", "hwlocVersion", "ProcessName"];
    let mut around: Vec<&str> = Vec::new();
    let mut found = BTreeSet::new();
    for line in xml.lines().map(str::trim).filter(|line| !line.starts_with("<?") && !line.starts_with("<!")) {
        if line.starts_with("</") {
            around.pop();
            continue;
        }
        let text = line.trim_matches(['<', '>', '/']);
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut attributes: Vec<&str> = rest.split("\" ").map(|one| one.trim_end_matches('"')).collect();
        attributes.retain(|one| !one.starts_with("gp_index=") && !one.starts_with("complete_"));
        attributes.sort_unstable();
        let value =
            |wanted: &str| attributes.iter().find_map(|one| one.strip_prefix(wanted)?.strip_prefix("=\""));
        let is_individual = |fact: &str| {
            fact.starts_with("DMI")
                && (fact.ends_with("Serial") || fact.ends_with("UUID") || fact.ends_with("Tag"))
        };
        let is_left_out = match name {
            "support" => true,
            "info" => value("name").is_some_and(|fact| ITSELF.contains(&fact) || is_individual(fact)),
            "object" => match value("type") {
                Some("Bridge") => true,
                Some("PCIDev") => line.ends_with("/>"),
                Some("OSDev") => !around.iter().any(|outer| outer.contains("PCIDev")),
                _ => false,
            },
            _ => false,
        };
        let place: Vec<&str> = around.iter().copied().filter(|outer| !outer.contains("\"Bridge\"")).collect();
        if !is_left_out {
            found.insert(format!("{} > {name} {}", place.join(" > "), attributes.join(" ")));
        }
        if !line.ends_with("/>") {
            let shown = if name == "object" { rest } else { name };
            let shown = [" cpuset=", " gp_index="]
                .iter()
                .filter_map(|end| shown.split_once(end))
                .map(|(kept, _)| kept);
            around.push(shown.min_by_key(|kept| kept.len()).unwrap_or(text));
        }
    }
    found
}

#[track_caller]
fn assert_alike(ours: &str, theirs: &str) {
    let (ours, theirs) = (elements(ours), elements(theirs));
    assert!(theirs.len() > 10, "hwloc has found {theirs:#?}");
    let missing: Vec<_> = theirs.difference(&ours).collect();
    let invented: Vec<_> = ours.difference(&theirs).collect();
    assert!(missing.is_empty() && invented.is_empty(), "missing: {missing:#?}\ninvented: {invented:#?}");
}

#[test]
fn ranks_get_the_topology_that_hwloc_finds() {
    assert_alike(&told("pmix.hwlocxml2"), &lstopo(&[]));
    assert_alike(&told("pmix.ltopo"), &lstopo(&[]));
}

#[test]
fn ranks_with_hwloc_1_get_the_same_topology() {
    assert_alike(&told("pmix.hwlocxml1"), &lstopo(&["--export-xml-flags", "v1"]));
}

#[test]
fn hwloc_reads_both_forms_as_its_own() {
    let directory = new_directory();
    let read = |xml: String| {
        let file = directory.path().join("node.xml");
        std::fs::write(&file, xml).unwrap();
        lstopo(&["--input", file.to_str().unwrap()])
    };
    assert_alike(&read(told("pmix.hwlocxml2")), &read(lstopo(&[])));
    assert_alike(&read(told("pmix.hwlocxml1")), &read(lstopo(&["--export-xml-flags", "v1"])));
}
