//! Cuts the command line of `px run` into app contexts, and each of these into options and program.
//!
//! clap knows neither the lone `:` between programs nor that everything after a program's name belongs to the program. So the cuts are made here,
//! with the help of clap's own table, and clap gets each context as `OPTIONS -- PROGRAM ARG...`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{CommandFactory, FromArgMatches, Parser};

use super::{AppArgs, AppLine, Command, JobArgs, Px, RunArgs, usage};
use crate::failure::Failure;

/// The whole command line of a run, still as typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunLine {
    pub(crate) job: JobArgs,
    /// At least one.
    pub(crate) apps: Vec<AppArgs>,
}

/// Parses the arguments after `px run`. A request for help is an `Err` of clap's.
pub(crate) fn run_line(args: Vec<OsString>) -> Result<RunLine, usage::Refusal> {
    let mut table = Px::command();
    let run = table.find_subcommand("run").cloned().unwrap_or_default();
    let mut contexts = contexts(args)?.into_iter();

    let first = behind_dashes(contexts.next().unwrap_or_default(), &run);
    let options = first.iter().position(|arg| arg == "--");
    if options.is_some_and(|end| first.iter().take(end).any(|arg| arg == "-h")) {
        return Err(Failure::usage("'-h' asks for help, but a program is named as well")
            .hint("'px run --help' prints help; hosts are named with --host")
            .into());
    }
    let line = ["px".into(), "run".into()].into_iter().chain(first);
    let matches = table.try_get_matches_from_mut(line)?;
    let RunArgs { app, job } = match Px::from_arg_matches(&matches)?.command {
        Command::Run(run) => *run,
        _ => return Err(Failure::usage("no run").into()),
    };

    let mut apps = vec![app];
    for (index, context) in contexts.enumerate() {
        let line = std::iter::once("px run".into()).chain(behind_dashes(context, &run));
        let parsed =
            AppLine::try_parse_from(line).map_err(|e| usage::Refusal::in_context(e, index + 2, &run))?;
        apps.push(parsed.app);
    }
    Ok(RunLine { job, apps })
}

/// Whether `--json` is among the options of the job, even if the rest is wrong.
pub(crate) fn says_json(args: &[OsString]) -> bool {
    let run = Px::command().find_subcommand("run").cloned().unwrap_or_default();
    let first: Vec<OsString> = args.iter().take_while(|arg| *arg != ":").cloned().collect();
    behind_dashes(first, &run).iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

/// Cuts at every lone `:`. A `\:` is an argument `:`, a `\\:` an argument `\:`, and so on.
pub(crate) fn contexts(args: Vec<OsString>) -> Result<Vec<Vec<OsString>>, Failure> {
    let mut contexts = vec![Vec::new()];
    for arg in args {
        match arg.as_bytes() {
            b":" => contexts.push(Vec::new()),
            [b'\\', rest @ ..] if is_escaped_colon(rest) => {
                push(&mut contexts, OsStr::from_bytes(rest).into())
            }
            _ => push(&mut contexts, arg),
        }
    }
    match contexts.iter().position(Vec::is_empty) {
        Some(empty) if contexts.len() > 1 => {
            let place = match empty {
                0 => "before the first ':'".to_owned(),
                n if n + 1 == contexts.len() => "after the last ':'".to_owned(),
                n => format!("between ':' number {n} and {}", n + 1),
            };
            Err(Failure::usage(format!("there is no program {place}"))
                .hint("a lone ':' stands between two programs; an argument ':' is written '\\:'"))
        }
        _ => Ok(contexts),
    }
}

fn is_escaped_colon(rest: &[u8]) -> bool {
    matches!(rest, [slashes @ .., b':'] if slashes.iter().all(|b| *b == b'\\'))
}

fn push(contexts: &mut [Vec<OsString>], arg: OsString) {
    if let Some(last) = contexts.last_mut() {
        last.push(arg);
    }
}

/// Puts `--` before the program, and rewrites the customary long options with one dash into those of the table.
fn behind_dashes(context: Vec<OsString>, table: &clap::Command) -> Vec<OsString> {
    let mut line = Vec::with_capacity(context.len() + 1);
    let mut args = context.into_iter().peekable();
    while let Some(arg) = args.peek() {
        let bytes = arg.as_bytes();
        if bytes == b"--" {
            args.next();
            break;
        }
        if bytes.len() < 2 || bytes[0] != b'-' {
            break;
        }
        let arg = one_dash(args.next().unwrap_or_default(), table);
        let wants_value = wants_value(&arg, table);
        line.push(arg);
        if wants_value {
            line.extend(args.next());
        }
    }
    if args.peek().is_some() {
        line.push("--".into());
        line.extend(args);
    }
    line
}

/// mpirun takes its long options with one dash, too, and `-np` and `-wd` have been written so for thirty years. What is neither a long option nor a
/// cluster of short ones gets two dashes as well, so that it is refused with the nearest option: `-hosts` is no request for help.
fn one_dash(arg: OsString, table: &clap::Command) -> OsString {
    let Some(rest) = arg.to_str().and_then(|arg| arg.strip_prefix('-')) else { return arg };
    let name = rest.split('=').next().unwrap_or_default();
    if name == "wd" {
        return "--wdir".into();
    }
    let is_one_letter = name.chars().nth(1).is_none();
    if is_one_letter || name.starts_with('-') || (!is_long(name, table) && is_cluster(name, table)) {
        return arg;
    }
    format!("--{rest}").into()
}

fn is_long(name: &str, table: &clap::Command) -> bool {
    long(name, table).is_some()
}

fn long<'a>(name: &str, table: &'a clap::Command) -> Option<&'a clap::Arg> {
    let aliases = |arg: &clap::Arg| arg.get_all_aliases().is_some_and(|all| all.contains(&name));
    table.get_arguments().find(|arg| arg.get_long() == Some(name) || aliases(arg))
}

fn short(name: char, table: &clap::Command) -> Option<&clap::Arg> {
    let aliases = |arg: &clap::Arg| arg.get_all_short_aliases().is_some_and(|all| all.contains(&name));
    table.get_arguments().find(|arg| arg.get_short() == Some(name) || aliases(arg))
}

/// Whether these are short options, of which the last may be followed by its value.
fn is_cluster(name: &str, table: &clap::Command) -> bool {
    for letter in name.chars() {
        match short(letter, table) {
            Some(arg) if arg.get_action().takes_values() => return true,
            Some(_) => {}
            None => return false,
        }
    }
    true
}

/// Whether the option in `arg` takes the next argument as its value.
fn wants_value(arg: &OsStr, table: &clap::Command) -> bool {
    let Some(arg) = arg.to_str() else { return false };
    let takes_values = |found: Option<&clap::Arg>| {
        found.is_some_and(|a| a.get_action().takes_values() && !a.is_require_equals_set())
    };
    if let Some(name) = arg.strip_prefix("--") {
        return !name.contains('=') && takes_values(long(name, table));
    }
    // A cluster of flags: the first one that takes a value takes the rest of the cluster, if there is a rest.
    let shorts = arg.trim_start_matches('-');
    for (at, letter) in shorts.char_indices() {
        if takes_values(short(letter, table)) {
            return at + letter.len_utf8() == shorts.len();
        }
    }
    false
}

#[cfg(test)]
mod tests;
