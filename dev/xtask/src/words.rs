//! `cargo xtask words`: counts two families of words in comments and documents.
//!
//! A sentence built on one of these words usually lacks its subject: which process, which table, which caller. In small numbers they are normal
//! English, so the check has a bound per 1,000 lines instead of a ban.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Words that stand for the same lack.
struct Family {
    words: &'static [&'static str],
}

const FAMILIES: [Family; 2] = [
    Family { words: &["who", "whoever", "whom", "whose", "nobody", "somebody"] },
    Family { words: &["told", "tell", "tells", "telling", "say", "says", "said", "saying"] },
];

/// Occurrences per 1,000 lines. Short documents may have [`FEW`].
const MOST: usize = 10;
const FEW: usize = 2;

/// Places that are above the bound, with what they may have per 1,000 lines, by family. This list may only shrink.
const ABOVE: &[(&str, [usize; 2])] = &[];

#[derive(Debug, Default, PartialEq)]
struct Count {
    lines: usize,
    words: [usize; 2],
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let counts = count_all()?;
    if args == ["--list"] {
        println!("{:40}  lines  who..  tell.. (per 1,000 lines)", "");
        for (place, count) in &counts {
            println!("{place:40} {:6} {:6} {:7}", count.lines, count.rate(0), count.rate(1));
        }
        return Ok(());
    }
    if !args.is_empty() {
        bail!("words takes no arguments but --list");
    }
    let faults: Vec<String> = counts.iter().flat_map(|(place, count)| faults(place, count)).collect();
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    println!("{} crates and documents name their subjects", counts.len());
    Ok(())
}

fn faults(place: &str, count: &Count) -> Vec<String> {
    let allowed = ABOVE.iter().find(|(above, _)| *above == place).map_or([MOST; 2], |(_, most)| *most);
    let families = FAMILIES
        .iter()
        .enumerate()
        .filter(|(at, _)| count.words[*at] > FEW && count.rate(*at) > allowed[*at]);
    let fault = |(at, family): (usize, &Family)| {
        format!(
            "{place}: {} of the words {} per 1,000 lines, at most {} are allowed: name the subject",
            count.rate(at),
            family.words.join(", "),
            allowed[at]
        )
    };
    families.map(fault).collect()
}

fn count_all() -> Result<BTreeMap<String, Count>> {
    let mut counts = BTreeMap::new();
    for wing in ["lib", "run", "dev"] {
        for entry in list(&crate::root().join(wing))? {
            let mut count = Count::default();
            count_sources(&entry, &mut count)?;
            if count.lines > 0 {
                counts.insert(name_of(&entry), count);
            }
        }
    }
    count_documents(&crate::root().join("docs"), &mut counts)?;
    for file in list(crate::root())?.iter().filter(|file| is(file, "md")) {
        count_document(file, &mut counts)?;
    }
    Ok(counts)
}

/// The comments of all sources that people write.
fn count_sources(place: &Path, count: &mut Count) -> Result<()> {
    if !place.is_dir() {
        return Ok(());
    }
    for entry in list(place)? {
        if entry.is_dir() && !entry.ends_with("gen") {
            count_sources(&entry, count)?;
        } else if is(&entry, "rs") {
            read(&entry)?.lines().filter_map(comment).for_each(|line| count.add(line));
        }
    }
    Ok(())
}

fn count_documents(place: &Path, counts: &mut BTreeMap<String, Count>) -> Result<()> {
    for entry in list(place)? {
        if entry.is_dir() {
            count_documents(&entry, counts)?;
        } else if is(&entry, "md") {
            count_document(&entry, counts)?;
        }
    }
    Ok(())
}

fn count_document(file: &Path, counts: &mut BTreeMap<String, Count>) -> Result<()> {
    let mut count = Count::default();
    read(file)?.lines().filter(|line| !line.trim().is_empty()).for_each(|line| count.add(line));
    counts.insert(name_of(file), count);
    Ok(())
}

/// The text of a line that is nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//")
}

impl Count {
    fn add(&mut self, line: &str) {
        self.lines += 1;
        for word in line.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            for (count, family) in self.words.iter_mut().zip(&FAMILIES) {
                *count += usize::from(family.words.contains(&word.as_str()));
            }
        }
    }

    /// Per 1,000 lines.
    fn rate(&self, family: usize) -> usize {
        self.words[family] * 1000 / self.lines.max(1)
    }
}

fn list(place: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(place).with_context(|| format!("listing {}", place.display()))?;
    let mut all = Vec::new();
    for entry in entries {
        all.push(entry?.path());
    }
    all.sort();
    Ok(all)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

fn is(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|extension| extension == ending)
}

fn name_of(path: &Path) -> String {
    path.strip_prefix(crate::root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_comments_alone() {
        let mut count = Count::default();
        let source = "/// Whoever asks is told.\nlet who = \"told\"; // whose\n    // The caller says so, and nobody else.\n";
        source.lines().filter_map(comment).for_each(|line| count.add(line));
        assert_eq!(count, Count { lines: 2, words: [2, 2] });
    }

    #[test]
    fn more_than_the_bound_is_a_fault_of_each_family() {
        let count = Count { lines: 1000, words: [MOST + 1, MOST] };
        let faults = faults("lib/x", &count);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("lib/x: 11 of the words who, "), "{faults:?}");
        assert!(super::faults("short.md", &Count { lines: 10, words: [FEW, FEW] }).is_empty());
    }
}
