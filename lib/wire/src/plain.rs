//! Text of others on its way to a person.
//!
//! Names, command lines, messages and values come from peers, programs and files. What a terminal would obey in them is shown as JSON writes it
//! (`\n`, `\u001b`), so that nobody's text moves the cursor, hides what follows or makes lines of its own; and JSON stays JSON.

use std::fmt::{self, Write};

/// As one line.
pub fn line(text: &str) -> String {
    shown(text, "")
}

/// As it is, but for what is neither text nor the end of a line.
pub fn lines(text: &str) -> String {
    shown(text, "\n\t")
}

fn shown(text: &str, kept: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        // A string takes everything.
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

/// Controls, other ends of lines, and what changes the direction of the text around it.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let text = "a\u{1b}[2Jb\r\n\tc\u{9b}d\u{7f}e\u{202e}f \u{e4}\u{1f600}";
        let shown = "a\\u001b[2Jb\\r\\n\\tc\\u009bd\\u007fe\\u202ef \u{e4}\u{1f600}";
        assert_eq!(line(text), shown);
        assert_eq!(lines(text), shown.replace("\\n", "\n").replace("\\t", "\t"));
    }
}
