//! Colours. They carry no information; `NO_COLOR`, `TERM=dumb` and a standard error that is no terminal turn them off.

use anstyle::{AnsiColor, Style};

/// Whether px's messages on standard error may be coloured.
pub(crate) fn on_stderr() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// `text` in a style, if `coloured`.
pub(crate) fn paint(style: Style, text: &str, coloured: bool) -> String {
    if coloured { format!("{style}{text}{style:#}") } else { text.into() }
}

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
