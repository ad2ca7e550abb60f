//! px's own words on standard error: errors with their hints, and remarks; each line with `px:` in front, or JSON.

use std::io::Write;

use serde_json::json;

use crate::failure::Failure;
use crate::render::style::{ERROR, HINT, on_stderr, paint};

/// `px: error: ...`, further lines of it with `px:` in front, and its `px: hint: ...` lines; as JSON one object `{"type":"error",...}`. Without the last line end.
pub(crate) fn failure(failure: &Failure, as_json: bool) -> String {
    if as_json {
        return json!({
            "type": "error",
            "message": failure.message,
            "causes": failure.causes.iter().flat_map(|cause| cause.lines()).map(str::trim).collect::<Vec<_>>(),
            "hints": failure.hints,
            "exit_code": failure.exit_code,
        })
        .to_string();
    }
    let coloured = on_stderr();
    let mut text = format!("px: {}: {failure}", paint(ERROR, "error", coloured)).replace('\n', "\npx:   ");
    for hint in &failure.hints {
        text.push_str(&format!("\npx: {}: {hint}", paint(HINT, "hint", coloured)));
    }
    text
}

/// A remark that is no error: `px: TEXT`; as JSON `{"type":"note",...}`. Without the last line end.
pub(crate) fn note(text: &str, as_json: bool) -> String {
    match as_json {
        true => json!({ "type": "note", "text": text }).to_string(),
        false => format!("px: {}", text.replace('\n', "\npx: ")),
    }
}

/// Writes lines to standard error, before or after a job. When nobody reads them there is nobody to tell.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
