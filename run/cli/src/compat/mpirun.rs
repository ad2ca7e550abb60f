//! The dialect of `mpirun`, `mpiexec` and `prterun`: options with one dash or two, as Open MPI, PRRTE and MPICH spell them.
//!
//! Options that are understood become the same [`RunLine`] as those of `px run`, so they are checked, resolved and carried out in the same way.
//! Others are refused: an option must not be ignored silently.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use clap::ValueEnum;

use crate::args::split::{RunLine, contexts};
use crate::args::{AppArgs, BadExit, Display, nearest::nearest, words};
use crate::failure::Failure;
use crate::render::words::shell_line;

/// What a dialect's command line requests.
#[derive(Debug)]
pub(crate) enum Invocation {
    Run(Box<RunLine>),
    Help(String),
    Version(String),
}

/// The name of the dialect for `program` (`argv[0]`), if it is one.
pub(crate) fn dialect(program: &OsStr) -> Option<&'static str> {
    let name = Path::new(program).file_name()?;
    ["mpirun", "mpiexec", "prterun"].into_iter().find(|known| name == *known)
}

/// Reads the arguments after `name`. `timeout`: the value of MPIEXEC_TIMEOUT, which all these launchers know.
pub(crate) fn parse(name: &str, args: Vec<OsString>, timeout: Option<&OsStr>) -> Result<Invocation, Failure> {
    let mut reading = Reading::default();
    if let Some(timeout) = timeout {
        let wrong = |e| Failure::usage(format!("MPIEXEC_TIMEOUT is '{}'", timeout.display())).because(e);
        reading.line.job.timeout = Some(words::duration(&timeout.to_string_lossy()).map_err(wrong)?);
    }
    let contexts = contexts(args)?;
    let several = contexts.len() > 1;
    for (index, context) in contexts.into_iter().enumerate() {
        let place = if several { format!(" (program number {})", index + 1) } else { String::new() };
        if let Some(asked) = reading.context(name, context, &place, false)? {
            return Ok(asked);
        }
    }
    Ok(Invocation::Run(Box::new(reading.finish())))
}

/// What the options read so far have set.
#[derive(Default)]
struct Reading {
    line: RunLine,
    /// The current app context.
    app: AppArgs,
    /// Variables for all apps; each app's own take precedence.
    env: Vec<OsString>,
    hostfile: Option<OsString>,
    /// Qualifiers of the map policy that are separate options here.
    map_qualifiers: Vec<&'static str>,
}

impl Reading {
    /// Reads one program with its options, or the programs of the file that is named instead (`--app`), which the options before it hold for.
    fn context(
        &mut self,
        name: &str,
        context: Vec<OsString>,
        place: &str,
        is_of_file: bool,
    ) -> Result<Option<Invocation>, Failure> {
        let mut args = context.into_iter().peekable();
        while let Some(arg) = args.next_if(|arg| arg.as_bytes().starts_with(b"-") && arg.len() > 1) {
            if arg == "--" {
                break;
            }
            let (option, value) = find(name, &arg)?;
            match option.names[0] {
                "help" => return Ok(Some(Invocation::Help(help(name)))),
                "version" => {
                    return Ok(Some(Invocation::Version(format!(
                        "px {} as {name}",
                        env!("CARGO_PKG_VERSION")
                    ))));
                }
                _ => {}
            }
            let mut values: Vec<OsString> = value.into_iter().collect();
            while values.len() < option.takes.len() {
                let missing = option.takes[values.len()];
                let missing = || Failure::usage(format!("'{}' needs {missing}", arg.display()));
                values.push(args.next().ok_or_else(missing)?);
            }
            if option.names[0] == "app" {
                if is_of_file {
                    return Err(Failure::usage(format!("a file of programs cannot name another one{place}")));
                }
                if let Some(program) = args.next() {
                    let both =
                        format!("'{}' and '{}' both name what is to run", arg.display(), program.display());
                    return Err(Failure::usage(both));
                }
                return self.file(name, Path::new(&values[0]));
            }
            (option.apply)(self, &Values(&arg, &values))?;
        }
        self.app.argv = args.collect();
        if self.app.argv.is_empty() {
            return Err(Failure::usage(format!("no program was named{place}"))
                .hint(format!("{name} -n 4 PROGRAM runs four ranks of PROGRAM")));
        }
        self.line.apps.push(std::mem::take(&mut self.app));
        Ok(None)
    }

    /// A program with its options on each line, in the words of a shell.
    fn file(&mut self, name: &str, file: &Path) -> Result<Option<Invocation>, Failure> {
        let reading = || format!("cannot read the file of programs {}", file.display());
        let text = std::fs::read_to_string(file).map_err(|e| Failure::usage(reading()).because(e))?;
        let common = std::mem::take(&mut self.app);
        let before = self.line.apps.len();
        for (number, line) in (1..).zip(text.lines()) {
            let place = format!(" ({}, line {number})", file.display());
            let unreadable = || Failure::usage(format!("a quote is not closed{place}"));
            let words = shlex::split(line).ok_or_else(unreadable)?;
            if words.is_empty() {
                continue;
            }
            self.app = common.clone();
            let words = words.into_iter().map(Into::into).collect();
            if let Some(asked) = self.context(name, words, &place, true)? {
                return Ok(Some(asked));
            }
        }
        if self.line.apps.len() == before {
            return Err(Failure::usage(format!("{} names no program", file.display())));
        }
        Ok(None)
    }

    fn finish(mut self) -> RunLine {
        for app in &mut self.line.apps {
            app.env.splice(0..0, self.env.iter().cloned());
            if app.hostfile.is_none() {
                app.hostfile = self.hostfile.clone().map(Into::into);
            }
        }
        for qualifier in self.map_qualifiers {
            let policy = self.line.job.map_by.get_or_insert_default();
            policy.push(':');
            policy.push_str(qualifier);
        }
        self.line
    }

    fn map_by(&mut self, policy: impl Into<String>) -> Result<(), Failure> {
        let policy = policy.into();
        match &self.line.job.map_by {
            Some(before) if *before != policy => Err(Failure::usage(format!(
                "the map policies '{before}' and '{policy}' contradict each other"
            ))),
            _ => {
                self.line.job.map_by = Some(policy);
                Ok(())
            }
        }
    }

    fn output(&mut self, word: impl Into<String>) {
        self.line.job.output.push(word.into());
    }

    fn display(&mut self, what: Display) {
        self.line.job.display.push(what);
    }
}

/// The values of one option.
struct Values<'a>(&'a OsStr, &'a [OsString]);

impl Values<'_> {
    fn raw(&self, index: usize) -> &OsStr {
        self.1.get(index).map_or(OsStr::new(""), |v| v)
    }

    fn text(&self, index: usize) -> Result<String, Failure> {
        let value = self.raw(index);
        let not_utf8 = || Failure::usage(format!("the value of '{}' is not UTF-8", self.0.display()));
        value.to_str().map(str::to_owned).ok_or_else(not_utf8)
    }

    fn parsed<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Failure> {
        let text = self.text(0)?;
        parse(&text).map_err(|e| {
            Failure::usage(format!("invalid value '{text}' for '{}'", self.0.display())).because(e)
        })
    }

    /// `NAME=VALUE` from two values.
    fn assignment(&self, prefix: &str) -> OsString {
        let mut assignment = OsString::from(prefix);
        assignment.push(self.raw(0));
        assignment.push("=");
        assignment.push(self.raw(1));
        assignment
    }
}

struct Known {
    names: &'static [&'static str],
    takes: &'static [&'static str],
    help: &'static str,
    apply: fn(&mut Reading, &Values<'_>) -> Result<(), Failure>,
}

/// Finds the option that `arg` names, and the value after its `=`.
fn find(dialect: &str, arg: &OsStr) -> Result<(&'static Known, Option<OsString>), Failure> {
    let bytes = arg.as_bytes();
    let dashes = bytes.iter().take_while(|b| **b == b'-').count();
    let end = bytes.iter().position(|b| *b == b'=').unwrap_or(bytes.len());
    let name = String::from_utf8_lossy(bytes.get(dashes..end).unwrap_or_default()).into_owned();
    let value = bytes.get(end + 1..).map(|value| OsStr::from_bytes(value).to_owned());
    let spelled = |known: &&Known| known.names.iter().any(|n| *n == name);
    match OPTIONS.iter().find(spelled) {
        Some(known) if value.is_some() && known.takes.len() != 1 => {
            Err(Failure::usage(format!("'{}' takes no value behind '='", &arg.to_string_lossy()[..end])))
        }
        Some(known) => Ok((known, value)),
        None => {
            let failure = Failure::usage(format!("there is no option '{}'", arg.display()));
            let names: Vec<&str> = OPTIONS.iter().flat_map(|known| known.names).copied().collect();
            Err(match nearest(&name, &names) {
                Some(near) => failure.hint(format!(
                    "the nearest option is '{}{near}'",
                    if near.len() > 1 { "--" } else { "-" }
                )),
                None => failure,
            }
            .hint(format!("'{dialect} --help' lists what px understands under this name")))
        }
    }
}

fn help(dialect: &str) -> String {
    let mut help = format!(
        "px, called as {dialect}: runs programs as the ranks of one job.\n\n\
         Usage: {dialect} [OPTIONS] PROGRAM [ARG]... [: [OPTIONS] PROGRAM [ARG]...]...\n\n\
         Options, with one dash or two:\n"
    );
    for (option, text) in options() {
        let gap = if option.len() > 36 { format!("\n{:40}", "") } else { " ".repeat(38 - option.len()) };
        help.push_str(&format!("  {option}{gap}{text}\n"));
    }
    help.push_str("\n'px run --help' describes px's own command line.\n");
    help
}

/// Each option as it is written, with its meaning.
pub(crate) fn options() -> impl Iterator<Item = (String, &'static str)> {
    OPTIONS.iter().map(|known| {
        let names = format!("-{}", known.names.join(", -"));
        let written = known.takes.iter().fold(names, |written, value| written + " " + value);
        (written, known.help)
    })
}

const OPTIONS: &[Known] = &[
    known(&["help", "h"], &[], "this text", |_, _| Ok(())),
    known(&["version", "V"], &[], "the version of px", |_, _| Ok(())),
    known(
        &["app", "configfile"],
        &["FILE"],
        "a program with its options on each line of FILE",
        |_, _| Ok(()),
    ),
    known(&["n", "np", "c"], &["N"], "number of ranks", |r, v| {
        r.app.procs = Some(v.parsed(words::procs)?);
        Ok(())
    }),
    known(&["x"], &["NAME[=VALUE]"], "set or hand on a variable", |r, v| {
        r.app.env.push(v.raw(0).to_owned());
        Ok(())
    }),
    known(&["env"], &["NAME", "VALUE"], "set a variable of this program", |r, v| {
        r.app.env.push(v.assignment(""));
        Ok(())
    }),
    known(&["genv"], &["NAME", "VALUE"], "set a variable of all programs", |r, v| {
        r.env.push(v.assignment(""));
        Ok(())
    }),
    known(&["envlist"], &["NAME,..."], "hand on variables to this program", |r, v| {
        r.app.env.extend(v.text(0)?.split(',').map(OsString::from));
        Ok(())
    }),
    known(&["genvlist"], &["NAME,..."], "hand on variables to all programs", |r, v| {
        r.env.extend(v.text(0)?.split(',').map(OsString::from));
        Ok(())
    }),
    known(&["envall", "genvall"], &[], "hand on all variables (always done)", |_, _| Ok(())),
    known(&["mca", "gmca"], &["NAME", "VALUE"], "set OMPI_MCA_NAME for all programs", |r, v| {
        if !runtime_parameter(r, v)? {
            r.env.push(v.assignment("OMPI_MCA_"));
        }
        Ok(())
    }),
    known(&["prtemca"], &["NAME", "VALUE"], "set plm_ssh_agent or prte_if_include", |r, v| {
        match runtime_parameter(r, v)? {
            true => Ok(()),
            false => Err(Failure::usage(format!("px has no parameter '{}' of PRRTE", v.raw(0).display()))
                .hint("there are plm_ssh_agent, which starts daemons, and prte_if_include, their network")),
        }
    }),
    known(
        &["launcher-exec", "bootstrap-exec"],
        &["PROGRAM"],
        "what starts daemons, instead of ssh",
        |r, v| {
            r.line.job.fleet.launch_agent = Some(shell_line(&[v.text(0)?]));
            Ok(())
        },
    ),
    known(&["iface"], &["IFACE"], "network of the daemons", |r, v| {
        r.line.job.fleet.network.push(v.parsed(str::parse)?);
        Ok(())
    }),
    known(&["omca"], &["NAME", "VALUE"], "set OMPI_MCA_NAME for all programs", |r, v| {
        r.env.push(v.assignment("OMPI_MCA_"));
        Ok(())
    }),
    known(&["pmixmca"], &["NAME", "VALUE"], "set PMIX_MCA_NAME for all programs", |r, v| {
        r.env.push(v.assignment("PMIX_MCA_"));
        Ok(())
    }),
    known(&["wdir", "wd"], &["DIR"], "working directory of the ranks", |r, v| {
        r.app.wdir = Some(v.raw(0).into());
        Ok(())
    }),
    known(&["prefix", "app-prefix"], &["DIR"], "put DIR/bin and DIR/lib into the search paths", |r, v| {
        r.app.prefix = Some(v.raw(0).into());
        Ok(())
    }),
    known(&["host", "H", "hosts"], &["HOST[:N],..."], "hosts to use", |r, v| {
        r.app.host.extend(v.text(0)?.split(',').map(str::to_owned));
        Ok(())
    }),
    known(&["hostfile", "machinefile", "f"], &["FILE"], "file of hosts to use", |r, v| {
        r.app.hostfile = Some(v.raw(0).into());
        Ok(())
    }),
    known(&["default-hostfile"], &["FILE"], "file of hosts for programs that name none", |r, v| {
        r.hostfile = Some(v.raw(0).to_owned());
        Ok(())
    }),
    known(&["map-by"], &["POLICY"], "where ranks go", |r, v| {
        let policy = v.text(0)?;
        r.map_by(policy)
    }),
    known(&["rank-by"], &["POLICY"], "how ranks are numbered", |r, v| {
        r.line.job.rank_by = Some(v.text(0)?);
        Ok(())
    }),
    known(&["bind-to"], &["OBJECT"], "what ranks are bound to", |r, v| {
        r.line.job.bind_to = Some(v.text(0)?);
        Ok(())
    }),
    known(&["bind-to-core"], &[], "--bind-to core", |r, _| bind(r, "core")),
    known(&["bind-to-socket"], &[], "--bind-to package", |r, _| bind(r, "package")),
    known(&["bind-to-none"], &[], "--bind-to none", |r, _| bind(r, "none")),
    known(&["bynode"], &[], "--map-by node", |r, _| r.map_by("node")),
    known(&["byslot"], &[], "--map-by slot", |r, _| r.map_by("slot")),
    known(&["bycore"], &[], "--map-by core", |r, _| r.map_by("core")),
    known(&["N", "npernode", "ppn", "perhost"], &["N"], "so many ranks on each node", |r, v| {
        let count = v.parsed(words::procs)?;
        r.map_by(format!("ppr:{count}:node"))
    }),
    known(&["npersocket"], &["N"], "so many ranks on each package", |r, v| {
        let count = v.parsed(words::procs)?;
        r.map_by(format!("ppr:{count}:package"))
    }),
    known(&["rankfile", "rf"], &["FILE"], "place each rank as FILE says", |r, v| {
        let file = v.text(0)?;
        r.map_by(format!("rankfile:file={file}"))
    }),
    known(&["cpu-set", "cpu-list"], &["LIST"], "use only these CPUs", |r, v| {
        r.line.job.cpu_set = Some(v.text(0)?);
        Ok(())
    }),
    known(&["use-hwthread-cpus"], &[], "a hardware thread counts as a CPU", |r, _| {
        r.map_qualifiers.push("hwtcpus");
        Ok(())
    }),
    known(&["oversubscribe"], &[], "allow more ranks than slots", |r, _| {
        r.line.job.oversubscribe = true;
        Ok(())
    }),
    known(&["nooversubscribe"], &[], "refuse more ranks than slots", |r, _| {
        r.map_qualifiers.push("nooversubscribe");
        Ok(())
    }),
    known(&["output"], &["WORD,..."], "how output is shown and where it goes", |r, v| {
        r.output(v.text(0)?);
        Ok(())
    }),
    known(&["tag-output"], &[], "job, rank and stream before each line", |r, _| {
        r.output("tag");
        Ok(())
    }),
    known(&["prepend-rank", "l"], &[], "the rank before each line", |r, _| {
        r.output("rank");
        Ok(())
    }),
    known(&["timestamp-output"], &[], "the time before each line", |r, _| {
        r.output("timestamp");
        Ok(())
    }),
    known(&["xml", "xml-output"], &[], "output as one XML document", |r, _| {
        r.output("xml");
        Ok(())
    }),
    known(&["merge-stderr-to-stdout"], &[], "standard error to standard output", |r, _| {
        r.output("merge");
        Ok(())
    }),
    known(&["output-filename", "output-directory"], &["DIR"], "output also in DIR/rank.RANK/", |r, v| {
        let dir = v.text(0)?;
        r.output(format!("directory={dir}"));
        Ok(())
    }),
    known(&["stdin", "s"], &["RANK|all|none"], "who reads standard input", |r, v| {
        r.line.job.stdin = Some(v.raw(0).to_owned());
        Ok(())
    }),
    known(&["timeout"], &["SECONDS"], "end the job when it has run this long", |r, v| {
        r.line.job.timeout = Some(v.parsed(words::duration)?);
        Ok(())
    }),
    known(&["display"], &["WHAT,..."], "show map, bindings, allocation, topology", |r, v| {
        for word in v.text(0)?.split(',') {
            let what = Display::from_str(word, true);
            r.display(what.map_err(|_| Failure::usage(format!("there is no '--display {word}'")))?);
        }
        Ok(())
    }),
    known(&["display-map"], &[], "show which rank is where", |r, _| {
        r.display(Display::Map);
        Ok(())
    }),
    known(&["display-allocation"], &[], "show the hosts and their slots", |r, _| {
        r.display(Display::Allocation);
        Ok(())
    }),
    known(&["display-topo"], &[], "show the hardware", |r, _| {
        r.display(Display::Topology);
        Ok(())
    }),
    known(&["report-bindings"], &[], "show which CPUs each rank is bound to", |r, _| {
        r.display(Display::Bindings);
        Ok(())
    }),
    known(&["do-not-launch"], &[], "decide everything, start nothing", |r, _| {
        r.line.job.dry_run = true;
        Ok(())
    }),
    known(&["disable-auto-cleanup", "continuous"], &[], "let the others go on when a rank fails", |r, _| {
        r.line.job.kill_on_bad_exit = BadExit::None;
        Ok(())
    }),
    known(
        &["with-ft"],
        &["ulfm|mpi|none"],
        "fault tolerance: the others hear of a failed rank, and go on",
        |r, v| {
            match v.text(0)?.to_ascii_lowercase().as_str() {
                "ulfm" | "mpi" | "ompi" | "true" | "yes" | "1" => {
                    r.env.push("OMPI_MCA_mpi_ft_enable=true".into());
                    r.line.job.kill_on_bad_exit = BadExit::None;
                }
                "none" | "false" | "no" | "0" => r.env.push("OMPI_MCA_mpi_ft_enable=false".into()),
                other => {
                    return Err(Failure::usage(format!("there is no fault tolerance '{other}'"))
                        .hint("'--with-ft ulfm' is that of Open MPI, '--with-ft none' turns it off"));
                }
            }
            Ok(())
        },
    ),
    known(&["q", "quiet"], &[], "say nothing but errors", |r, _| {
        r.line.job.quiet = true;
        Ok(())
    }),
    known(&["v", "verbose"], &[], "say more", |r, _| {
        r.line.job.verbose += 1;
        Ok(())
    }),
    known(&["allow-run-as-root"], &[], "nothing: px does not mind", |_, _| Ok(())),
];

const fn known(
    names: &'static [&'static str],
    takes: &'static [&'static str],
    help: &'static str,
    apply: fn(&mut Reading, &Values<'_>) -> Result<(), Failure>,
) -> Known {
    Known { names, takes, help, apply }
}

/// Parameters of Open MPI's and PRRTE's runtime that also have a meaning here.
fn runtime_parameter(reading: &mut Reading, values: &Values<'_>) -> Result<bool, Failure> {
    let fleet = &mut reading.line.job.fleet;
    match values.raw(0).as_bytes() {
        b"plm_ssh_agent" | b"plm_rsh_agent" => {
            // A list of alternatives, the preferred one first.
            let agents = values.text(1)?;
            fleet.launch_agent = agents.split(" : ").next().map(|agent| agent.trim().to_owned());
        }
        b"oob_tcp_if_include" | b"if_include" | b"prte_if_include" => {
            for word in values.text(1)?.split(',') {
                let wrong = |cause: String| {
                    Failure::usage(format!("invalid value for '{}'", values.raw(0).display())).because(cause)
                };
                fleet.network.push(word.parse().map_err(wrong)?);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn bind(reading: &mut Reading, object: &str) -> Result<(), Failure> {
    reading.line.job.bind_to = Some(object.into());
    Ok(())
}

#[cfg(test)]
mod tests;
