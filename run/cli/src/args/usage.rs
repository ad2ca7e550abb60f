//! Explains in px's own terms what clap found wrong with a command line.

use std::error::Error;
use std::fmt::Write;
use std::net::AddrParseError;
use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::nearest::nearest;
use crate::failure::Failure;

/// Why a command line makes no request: it is wrong, or it asked for help.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Help or the version: clap prints it.
    Help(clap::Error),
    Failure(Failure),
}

impl Refusal {
    /// `error` is from app context number `number`; `run` knows the options of the first one.
    pub(crate) fn in_context(error: clap::Error, number: usize, run: &clap::Command) -> Refusal {
        let unknown = error.kind() == ErrorKind::UnknownArgument;
        let arg = options(&error, ContextKind::InvalidArg);
        let name = arg.split('=').next().unwrap_or_default().trim_start_matches('-');
        let of_job = |a: &clap::Arg| {
            a.get_long() == Some(name) || a.get_short().map(String::from).as_deref() == Some(name)
        };
        if unknown && run.get_arguments().any(of_job) {
            return Failure::usage(format!("'{arg}' concerns the whole job, not program number {number}"))
                .hint(format!("give '{arg}' before the first program"))
                .into();
        }
        match Refusal::from(error) {
            Refusal::Failure(mut failure) => {
                let _ = write!(failure.message, " (program number {number})");
                Refusal::Failure(failure)
            }
            help => help,
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal::Failure(failure)
    }
}

impl From<clap::Error> for Refusal {
    fn from(error: clap::Error) -> Refusal {
        if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Refusal::Help(error);
        }
        Refusal::Failure(in_our_words(&error))
    }
}

fn in_our_words(error: &clap::Error) -> Failure {
    let arg = options(error, ContextKind::InvalidArg);
    let value = strings(error, ContextKind::InvalidValue).join(" ");
    let failure = match error.kind() {
        ErrorKind::UnknownArgument => {
            let failure = Failure::usage(format!("there is no option '{arg}'"));
            match strings(error, ContextKind::SuggestedArg).first() {
                Some(nearest) => return failure.hint(format!("the nearest option is '{nearest}'")),
                None => failure,
            }
        }
        ErrorKind::InvalidSubcommand => {
            let name = strings(error, ContextKind::InvalidSubcommand).join(" ");
            let failure = Failure::usage(format!("there is no command '{name}'"));
            let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
            if usage.contains("px dvm") {
                return failure.hint("'px dvm' has start and stop");
            }
            match nearest(&name, &COMMANDS) {
                Some(nearest) => return failure.hint(format!("the nearest command is '{nearest}'")),
                None => return failure.hint(format!("to run a program: px run {name} ...")),
            }
        }
        ErrorKind::InvalidValue if value.is_empty() => Failure::usage(format!("'{arg}' needs a value")),
        ErrorKind::InvalidValue => {
            let mut failure = Failure::usage(format!("invalid value '{value}' for '{arg}'"));
            if let Some(nearest) = strings(error, ContextKind::SuggestedValue).first() {
                failure = failure.hint(format!("the nearest value is '{nearest}'"));
            }
            return failure.hint(format!("values: {}", strings(error, ContextKind::ValidValue).join(", ")));
        }
        ErrorKind::ValueValidation => {
            let failure = Failure::usage(format!("invalid value '{value}' for '{arg}'"));
            return match error.source() {
                Some(cause) if cause.is::<ParseIntError>() => failure.because("expected a number"),
                Some(cause) if cause.is::<AddrParseError>() => failure.because("expected an IPv4 address"),
                Some(cause) => failure.because(cause),
                None => failure,
            };
        }
        ErrorKind::ArgumentConflict => {
            let prior = options(error, ContextKind::PriorArg);
            if prior == arg || prior.is_empty() {
                return Failure::usage(format!("'{arg}' is given twice"));
            }
            return Failure::usage(format!("'{arg}' and '{prior}' contradict each other"));
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = strings(error, ContextKind::InvalidArg);
            if missing.iter().any(|m| m.contains("PROGRAM")) {
                return Failure::usage("no program was named")
                    .hint("px run -n 4 PROGRAM runs four ranks of PROGRAM");
            }
            let missing: Vec<_> = missing.iter().map(|name| name.trim_end_matches("...")).collect();
            Failure::usage(format!("{} is missing", missing.join(", ")))
        }
        ErrorKind::MissingSubcommand => Failure::usage("no command was named"),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            Failure::usage(format!("'{arg}' needs a value"))
        }
        ErrorKind::TooManyValues => Failure::usage(format!("'{arg}' takes no value '{value}'")),
        ErrorKind::InvalidUtf8 => Failure::usage("an argument is not UTF-8"),
        _ => {
            Failure::usage(error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: "))
        }
    };
    failure.hint("'--help' lists what there is")
}

const COMMANDS: [&str; 13] = [
    "run",
    "dvm",
    "ps",
    "attach",
    "query",
    "events",
    "publish",
    "lookup",
    "unpublish",
    "why",
    "hello",
    "completions",
    "man",
];

/// The options that an error is about, without the names of their values.
fn options(error: &clap::Error, kind: ContextKind) -> String {
    let shown = strings(error, kind);
    let name = |shown: &'_ String| match shown.starts_with('-') {
        true => shown.split([' ', '=', '[']).next().unwrap_or_default().trim_end_matches("...").to_owned(),
        // A positional argument has no value, and clap puts brackets around it.
        false => shown.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned(),
    };
    let names = shown.iter().map(name);
    names.collect::<Vec<_>>().join("', '")
}

fn strings(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(s)) => vec![s.clone()],
        Some(ContextValue::Strings(list)) => list.clone(),
        _ => Vec::new(),
    }
}
