//! Which known word an unknown one may have been meant to be.

/// The word of `known` with the smallest edit distance to `typed`, if it is close enough.
pub(crate) fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (typed.chars().count() / 3).clamp(1, 3);
    known
        .iter()
        .map(|word| (distance(typed, word), *word))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// The shortest word of `known` that ends in `_` and `typed`.
pub(crate) fn ending_in<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let ends = |word: &&&str| word.strip_suffix(typed).is_some_and(|start| start.ends_with('_'));
    known.iter().filter(ends).min_by_key(|word| word.len()).copied()
}

/// Insertions, deletions, changes and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let words = ["core", "numa", "package", "node", "slot"];
        assert_eq!(nearest("cores", &words), Some("core"));
        assert_eq!(nearest("pakcage", &words), Some("package"));
        assert_eq!(nearest("nmua", &words), Some("numa"));
        assert_eq!(nearest("banana", &words), None);
        assert_eq!(nearest("", &words), None);
    }

    #[test]
    fn finds_a_name_by_its_end() {
        let names =
            ["PMIX_EVENT_JOB_ENDING", "PMIX_EVENT_SUBJOB_END", "PMIX_EVENT_JOB_END", "PMIX_JOB_END_X"];
        assert_eq!(ending_in("JOB_END", &names), Some("PMIX_EVENT_JOB_END"));
        assert_eq!(ending_in("OB_END", &names), None);
    }
}
