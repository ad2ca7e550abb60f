//! px's own messages on standard error: errors with their hints, and notes; each line with `px:` in front, or JSON.

use std::io::Write;

use phalanx_wire::plain;
use serde_json::json;

use crate::failure::Failure;
use crate::render::style::{ERROR, HINT, on_stderr, paint};

/// `px: error: ...`, its further lines with `px:` in front, and its `px: hint: ...` lines; as JSON one object `{"type":"error",...}`. Without the
/// last line end.
pub(crate) fn failure(failure: &Failure, as_json: bool) -> String {
    if as_json {
        let object = json!({
            "type": "error",
            "message": failure.message,
            "causes": failure.causes.iter().flat_map(|cause| cause.lines()).map(str::trim).collect::<Vec<_>>(),
            "hints": failure.hints,
            "exit_code": failure.exit_code,
        });
        return plain::line(&object.to_string());
    }
    let coloured = on_stderr();
    let mut text = format!("px: {}: {}", paint(ERROR, "error", coloured), indented(&failure.to_string()));
    for hint in &failure.hints {
        text.push_str(&format!("\npx: {}: {}", paint(HINT, "hint", coloured), indented(hint)));
    }
    text
}

/// A note: `px: TEXT`; as JSON `{"type":"note",...}`. Without the last line end.
pub(crate) fn note(text: &str, as_json: bool) -> String {
    match as_json {
        true => plain::line(&json!({ "type": "note", "text": text }).to_string()),
        false => format!("px: {}", indented(text)),
    }
}

/// Marks lines after the first as parts of the message: their text may be from others.
fn indented(text: &str) -> String {
    plain::lines(text).replace('\n', "\npx:   ")
}

/// Writes lines to standard error, before or after a job. A missing reader is ignored.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_obey_no_terminal_and_look_like_nobody_elses() {
        let failure = Failure::new("a\x1b]0;b\x07").because("c\npx: hint: d").hint("e\u{9b}f");
        let text = super::failure(&failure, false);
        let plain = "a\\u001b]0;b\\u0007: c\npx:   px: hint: d\n";
        assert!(text.contains(plain) && text.ends_with("e\\u009bf"), "{text:?}");
        let told: serde_json::Value = serde_json::from_str(&super::failure(&failure, true)).expect("JSON");
        assert_eq!(told["hints"][0], "e\u{9b}f");
        assert_eq!(note("a\x1b\nb", false), "px: a\\u001b\npx:   b");
    }
}
