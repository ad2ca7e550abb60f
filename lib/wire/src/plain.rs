//! Foreign text, made safe to show to a person.
//!
//! Names, command lines, messages and values come from peers, programs and files. Characters that a terminal would obey are shown in JSON notation
//! (`\n`, `\u001b`), so that no such text moves the cursor, hides what follows or adds lines; JSON stays JSON.

use std::fmt::{self, Write};

/// On one line.
pub fn line(text: &str) -> String {
    shown(text, "")
}

/// Keeps line ends and tabs, and escapes all other control characters.
pub fn lines(text: &str) -> String {
    shown(text, "\n\t")
}

fn shown(text: &str, kept: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = if kept.contains(c) { plain.write_char(c) } else { write(c, &mut plain) };
    }
    plain
}

/// One character of a line.
pub fn write(c: char, to: &mut impl Write) -> fmt::Result {
    match c {
        '\n' => to.write_str("\\n"),
        '\t' => to.write_str("\\t"),
        '\r' => to.write_str("\\r"),
        c if is_obeyed(c) => write!(to, "\\u{:04x}", u32::from(c)),
        c => to.write_char(c),
    }
}

/// Control characters, other line separators, and characters that change the direction of the text around them.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "a\u{1b}[2Jb\r\n\tc\u{9b}d\u{7f}e\u{202e}f \u{e4}\u{1f600}";
        let shown = "a\\u001b[2Jb\\r\\n\\tc\\u009bd\\u007fe\\u202ef \u{e4}\u{1f600}";
        assert_eq!(line(text), shown);
        assert_eq!(lines(text), shown.replace("\\n", "\n").replace("\\t", "\t"));
    }
}
