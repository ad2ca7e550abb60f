//! Finding a word in a short list, by a prefix in any case, and guessing the intended word if it is not there.

use std::fmt;

/// A word and its value.
pub(crate) struct Word<T>(pub(crate) &'static str, pub(crate) T);

/// Why a word was not found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Miss {
    word: String,
    /// All words that could be written.
    known: Vec<&'static str>,
    /// The words that it could be short for, or that look like it.
    near: Vec<&'static str>,
    ambiguous: bool,
}

/// The value of the one word that `word` equals or abbreviates.
pub(crate) fn find<'a, T>(word: &str, words: &'a [Word<T>]) -> Result<&'a T, Miss> {
    let lower = word.to_ascii_lowercase();
    if let Some(Word(_, value)) = words.iter().find(|Word(name, _)| *name == lower) {
        return Ok(value);
    }
    let begins = |entry: &&Word<T>| !lower.is_empty() && entry.0.starts_with(&lower);
    let short: Vec<&Word<T>> = words.iter().filter(begins).collect();
    if let [Word(_, value)] = short.as_slice() {
        return Ok(value);
    }
    let known: Vec<&'static str> = words.iter().map(|Word(name, _)| *name).collect();
    let ambiguous = !short.is_empty();
    let near = match ambiguous {
        true => short.iter().map(|Word(name, _)| *name).collect(),
        false => nearest(&lower, known.iter().copied()).into_iter().collect(),
    };
    Err(Miss { word: word.chars().take(60).collect(), known, near, ambiguous })
}

/// All names of a list, for a message.
pub(crate) fn names<T>(words: &[Word<T>]) -> String {
    words.iter().map(|Word(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The most similar of the names, if any is similar enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    let near = names.map(|name| (distance(word, name), name)).filter(|(distance, _)| *distance <= allowed);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

impl Miss {
    /// A word that may have been meant.
    pub(crate) fn hint(&self) -> Option<String> {
        match self.near.as_slice() {
            [one] if !self.ambiguous => Some(format!("did you mean \"{one}\"?")),
            _ => None,
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ambiguous {
            true => write!(f, "\"{}\" could be {}", self.word, self.near.join(" or ")),
            false => write!(f, "\"{}\" is not one of {}", self.word, self.known.join(", ")),
        }
    }
}

/// How many insertions, removals, replacements and swaps of neighbours turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &[Word<u32>] = &[Word("slot", 1), Word("span", 2), Word("node", 3), Word("none", 4)];

    #[test]
    fn whole_words_and_beginnings_are_found() {
        assert_eq!(find("node", WORDS), Ok(&3));
        assert_eq!(find("SL", WORDS), Ok(&1));
        assert_eq!(find("no", WORDS).unwrap_err().to_string(), "\"no\" could be node or none");
        assert_eq!(find("s", WORDS).unwrap_err().hint(), None);
    }

    #[test]
    fn misspelt_words_are_guessed() {
        let miss = find("sapn", WORDS).unwrap_err();
        assert_eq!(miss.to_string(), "\"sapn\" is not one of slot, span, node, none");
        assert_eq!(miss.hint().as_deref(), Some("did you mean \"span\"?"));
        assert_eq!(find("rankfile", WORDS).unwrap_err().hint(), None);
        assert!(find("", WORDS).is_err());
    }

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("core", "cores", 1), ("ab", "ba", 1), ("slot", "node", 4)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }
}
