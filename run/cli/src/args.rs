//! The command line as a table: `--help`, the man pages and the completions are generated from it and from nothing else.
//!
//! Only the form of words is checked here; [`crate::resolve`] turns them into requests. [`split`] cuts a command line of `px run` into app contexts
//! before clap sees it.

pub(crate) mod control;
pub(crate) mod dvm;
pub(crate) mod fleet;
pub(crate) mod nearest;
pub(crate) mod serve;
pub(crate) mod split;
pub(crate) mod tools;
pub(crate) mod usage;
pub(crate) mod words;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use control::{CtlArgs, KillArgs, WaitArgs};
use dvm::DvmArgs;
use fleet::FleetArgs;
use phalanx_dvm::spawn::MOST_RESTARTS;
use serve::ServeArgs;
use tools::{
    AttachArgs, EventsArgs, LogArgs, LookupArgs, PsArgs, PublishArgs, QueryArgs, RanksArgs, ServerArgs,
    TopArgs, UnpublishArgs, WhyArgs,
};

/// Run and observe PMIx jobs.
#[derive(Debug, Parser)]
#[command(name = "px", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Px {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run programs as the ranks of one job
    #[command(override_usage = RUN_USAGE, after_long_help = RUN_AFTER_HELP)]
    Run(Box<RunArgs>),
    /// Start, show or stop a persistent DVM, which runs the jobs of 'px run --system'
    Dvm(DvmArgs),
    /// List servers, jobs and ranks
    Ps(PsArgs),
    /// Show the output of a running job, from now on or from its start
    Attach(AttachArgs),
    /// Pause, resume, signal or end jobs, or ranks of them
    Ctl(CtlArgs),
    /// End jobs, or ranks of them: politely at first
    Kill(KillArgs),
    /// Wait until jobs have ended, and exit as they did
    Wait(WaitArgs),
    /// Send queries to a PMIx server
    Query(QueryArgs),
    /// Follow events
    Events(EventsArgs),
    /// Show the record of a job, or write to it
    Log(LogArgs),
    /// Publish values for others to look up
    Publish(PublishArgs),
    /// Look up what others have published
    Lookup(LookupArgs),
    /// Withdraw what was published
    Unpublish(UnpublishArgs),
    /// Show who is waiting for what
    Why(WhyArgs),
    /// Show where the ranks of a job are: their stacks, as one tree
    Stacks(RanksArgs),
    /// Show what the ranks of a job use and wait for, again and again
    Top(TopArgs),
    /// Greet the other ranks: a first program for 'px run' to start
    Hello,
    /// Be a daemon of a DVM on another host, which starts this command
    #[command(hide = true)]
    Daemon,
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Print or write the man pages
    #[command(hide = true)]
    Man(ManArgs),
}

/// `px run` up to the end of its first app context; later ones are [`AppLine`]s.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) app: AppArgs,
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

/// An app context behind a `:`, parsed by itself.
#[derive(Debug, Parser)]
#[command(name = "px run", disable_help_flag = true, override_usage = RUN_USAGE)]
pub(crate) struct AppLine {
    #[command(flatten)]
    pub(crate) app: AppArgs,
}

/// Options of one app context. They may be given again after each `:`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of one program (again after each ':')")]
pub(crate) struct AppArgs {
    /// Number of ranks
    ///
    /// Without it the program gets one rank per slot, as the map policy counts slots. Also written -np N.
    #[arg(short = 'n', long = "np", value_name = "N", value_parser = words::procs, allow_negative_numbers = true)]
    pub(crate) procs: Option<u32>,

    /// Set NAME in the ranks' environment, or pass on the launcher's value
    ///
    /// NAME=VALUE sets it. NAME alone passes on the launcher's own value. With the wildcards '*' and '?' NAME passes
    /// on all matching variables of the launcher: -x 'OMPI_*'. May be given many times; the last one wins.
    #[arg(short = 'x', long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<OsString>,

    /// Read variables from FILE, one NAME=VALUE per line
    ///
    /// Empty lines and lines that begin with '#' are skipped; a leading 'export ' is allowed; VALUE may be in single
    /// or double quotes. -x takes precedence over the file.
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,

    /// Working directory of the ranks
    ///
    /// A relative path starts at the launcher's working directory, which is also the default. Also written -wd DIR.
    #[arg(long, value_name = "DIR")]
    pub(crate) wdir: Option<PathBuf>,

    /// Put DIR/bin in front of PATH and DIR/lib in front of LD_LIBRARY_PATH
    #[arg(long, value_name = "DIR")]
    pub(crate) prefix: Option<PathBuf>,

    /// Hosts to use, and how many slots each has: a:4,b
    ///
    /// Without -n a program gets one rank per slot named here; a host without a number counts once for each time it
    /// is named. More ranks than stated slots are refused. Hosts may be written as user@a, node[01-16], or +n0 (the first
    /// one of an allocation). In an allocation of a batch system only its hosts can be used; by default all of them are.
    #[arg(long, short_alias = 'H', alias = "hosts", value_name = "HOST[:N],...", value_delimiter = ',')]
    pub(crate) host: Vec<String>,

    /// Read hosts from FILE: a name and 'slots=N' per line
    ///
    /// '#' begins a comment. With --host, too, the hosts of FILE that it names are used, in its order; without -n a host gets
    /// one rank for each time it is named there, or the N of HOST:N.
    #[arg(long, alias = "machinefile", value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,

    /// The program and its arguments
    ///
    /// Everything after the program's name belongs to the program. A lone ':' begins the next program; an argument that
    /// is itself a lone ':' is written '\:'.
    #[arg(value_name = "PROGRAM", required = true, num_args = 1.., last = false)]
    pub(crate) argv: Vec<OsString>,
}

/// Options of the whole job. They stand before the first program.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JobArgs {
    /// Which variables of the launcher's environment ranks get: ALL (the default), NONE, or NAME, NAME=VALUE, ...
    ///
    /// As with srun: a list replaces the environment, unless ALL stands in it, and variables that begin with SLURM_ are always
    /// passed on. Values cannot have commas: -x, which adds to what this option leaves, takes any.
    #[arg(long, value_name = "ALL|NONE|NAME[=VALUE],...", help_heading = ENVIRONMENT)]
    pub(crate) export: Option<OsString>,

    /// Where ranks go: slot, node, core, l3cache, numa, package, ppr:N:OBJECT, seq, rankfile
    ///
    /// 'slot' fills the slots of a node before the next node; 'node' goes round the nodes; an object ('hwthread',
    /// 'core', 'l1cache' to 'l3cache', 'numa', 'package') goes round these objects of a node; 'ppr:N:OBJECT' puts N
    /// on each object; 'seq' takes a line of the hostfile, or of file=PATH, for each rank; 'rankfile:file=PATH' places
    /// each rank as PATH says. Qualifiers follow, separated by colons: pe=N (N CPUs for each rank), span (all nodes as one),
    /// oversubscribe, nooversubscribe, hwtcpus (a hardware thread counts as a CPU), corecpus, nolocal. By default up to
    /// two ranks are mapped by core, more by package.
    #[arg(long, value_name = "POLICY[:MODIFIER]", help_heading = PLACEMENT)]
    pub(crate) map_by: Option<String>,

    /// Put so many ranks on each node: '--map-by ppr:N:node'
    #[arg(short = 'N', long, value_name = "N", conflicts_with = "map_by", value_parser = clap::value_parser!(u32).range(1..), help_heading = PLACEMENT)]
    pub(crate) per_node: Option<u32>,

    /// How ranks are numbered over the map: slot, node, fill, span, or an object
    ///
    /// 'slot' and 'fill' number node by node and object by object, 'node' and 'span' one on each in turn. The default
    /// follows from --map-by.
    #[arg(long, value_name = "POLICY", help_heading = PLACEMENT)]
    pub(crate) rank_by: Option<String>,

    /// What each rank is bound to: none, hwthread, core, l3cache, numa, package
    ///
    /// Also 'l1cache' and 'l2cache'. Qualifiers: overload-allowed (more ranks than CPUs), if-supported (unbound instead
    /// of an error). The default is what ranks were mapped by; a default that does not fit is dropped.
    #[arg(long, value_name = "OBJECT", help_heading = PLACEMENT)]
    pub(crate) bind_to: Option<String>,

    /// Use only these CPUs: 0-3,8
    ///
    /// These are the kernel's numbers. CPUs that px may not use itself are left out.
    #[arg(long, value_name = "LIST", help_heading = PLACEMENT)]
    pub(crate) cpu_set: Option<String>,

    /// Allow more ranks than slots where slots were stated
    ///
    /// Where slots were not stated, more ranks than CPUs run unbound.
    #[arg(long, help_heading = PLACEMENT)]
    pub(crate) oversubscribe: bool,

    /// How the ranks' output is shown and where it goes
    ///
    /// A comma-separated list. Form: 'tag' (job, rank and stream before each line), 'rank' (the rank before each line),
    /// 'timestamp', 'json' (one object per line), 'xml' (one document), 'raw' (chunks as they come; lines may mix).
    /// 'merge' sends standard error where standard output goes. Files: 'file=NAME' writes NAME.RANK.out and
    /// NAME.RANK.err, 'directory=DIR' writes DIR/rank.RANK/stdout and stderr, 'pattern=PATH' expands %n (job), %r
    /// (rank), %R (rank, padded), %h (host), %s (stdout or stderr) and %% in PATH; 'file-only' writes files only.
    /// 'diag' gives ranks a third stream, whose descriptor they find in PHALANX_STDDIAG_FD; it is shown on standard error.
    /// prterun's words are accepted too: tag-detailed, tag-fullname, merge-stderr-to-stdout, dir=, nocopy.
    #[arg(long, value_name = "WORD,...", help_heading = STREAMS)]
    pub(crate) output: Vec<String>,

    /// Who reads standard input: a rank, all, none; or the file to read instead of it
    ///
    /// By default the first rank reads the launcher's standard input and the others read nothing. With a FILE the first
    /// rank reads that file. A file whose name is a number or a keyword is written ./NAME.
    #[arg(long, value_name = "RANK|all|none|FILE", help_heading = STREAMS)]
    pub(crate) stdin: Option<OsString>,

    /// End the job after this time: 30, 1.5s, 10m, 1h30m
    ///
    /// A number without a unit is seconds. The launcher then exits with 124.
    #[arg(long, value_name = "DURATION", value_parser = words::duration, help_heading = ENDING)]
    pub(crate) timeout: Option<Duration>,

    /// How long ranks may take to end after SIGTERM before they are killed [default: 3s]
    #[arg(long, value_name = "DURATION", value_parser = words::duration, help_heading = ENDING)]
    pub(crate) kill_after: Option<Duration>,

    /// Which failures of one rank end the whole job
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = BadExit::Any, help_heading = ENDING)]
    pub(crate) kill_on_bad_exit: BadExit,

    /// How often each rank is started again with '--kill-on-bad-exit restart'
    #[arg(long, value_name = "N", default_value_t = MOST_RESTARTS, value_parser = clap::value_parser!(u32).range(1..), help_heading = ENDING)]
    pub(crate) max_restarts: u32,

    /// What takes a checkpoint of a rank whose program does not do it itself: a command for sh, or 'criu'
    ///
    /// 'px ctl checkpoint' runs it on the rank's host, in its directory and environment, with the rank's process in PHALANX_PID and the name of
    /// the checkpoint in PHALANX_CHECKPOINT. 'criu' is criu, also for the restart; it needs a kernel and rights that allow it.
    #[arg(long, value_name = "COMMAND", help_heading = ENDING)]
    pub(crate) checkpoint_command: Option<String>,

    /// What runs instead of the program of a rank that goes on from a checkpoint: a command for sh
    ///
    /// It finds the name of the checkpoint in PHALANX_RESTART_FROM.
    #[arg(long, value_name = "COMMAND", help_heading = ENDING)]
    pub(crate) restart_command: Option<String>,

    /// Write the exit report as JSON to FILE, or to standard output with '-'
    #[arg(long, value_name = "FILE", help_heading = ENDING)]
    pub(crate) report: Option<PathBuf>,

    /// Show what was decided before the job runs
    ///
    /// On standard error, apart from the ranks' output; with --dry-run on standard output.
    #[arg(long, value_name = "WHAT,...", value_enum, value_delimiter = ',', help_heading = SHOWING)]
    pub(crate) display: Vec<Display>,

    /// Show where ranks would go, with the rule that placed each, and start nothing
    #[arg(long, help_heading = SHOWING)]
    pub(crate) dry_run: bool,

    /// Print the messages of px as JSON, one object per line
    #[arg(long, help_heading = SHOWING)]
    pub(crate) json: bool,

    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose", help_heading = SHOWING)]
    pub(crate) quiet: bool,

    /// Print more; twice: also the log of the runtime
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = SHOWING)]
    pub(crate) verbose: u8,

    /// Continue in the background, and keep the output for 'px attach'
    ///
    /// Prints the name of the job as soon as it runs. The job outlives the terminal. Ranks read nothing, unless --stdin names a
    /// file, or the ranks that read what 'px attach --stdin' sends.
    #[arg(long, help_heading = STREAMS)]
    pub(crate) detach: bool,

    #[command(flatten)]
    pub(crate) fleet: FleetArgs,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,

    /// In which DVM the job runs; without any of these it gets one of its own.
    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Read the machine's topology below DIR instead of /
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) topology_root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write all pages into DIR, which is made if it is not there; without it, print the page of 'px run'
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Display {
    /// Where each rank is, and which rule put it there
    Map,
    /// Which CPUs each rank is bound to
    #[value(alias = "bind")]
    Bindings,
    /// The hosts and their slots
    #[value(alias = "alloc")]
    Allocation,
    /// The hardware of each host
    #[value(alias = "topo")]
    Topology,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BadExit {
    /// Any failing rank ends the job
    #[default]
    Any,
    /// A signal or an abort ends the job; a non-zero exit is tolerated
    Signal,
    /// The others go on; only an abort ends the job
    None,
    /// The rank is started again, as often as '--max-restarts' says; then it ends the job
    Restart,
}

const ENVIRONMENT: &str = "Environment";
const PLACEMENT: &str = "Placement";
const STREAMS: &str = "Input and output";
const ENDING: &str = "How the job ends";
const SHOWING: &str = "What px says";

const RUN_USAGE: &str = "px run [OPTIONS] PROGRAM [ARG]... [: [OPTIONS] PROGRAM [ARG]...]...";

const RUN_AFTER_HELP: &str = "\
Exit code: 0 when every rank ended with 0; else the code of the first rank that failed, or 128 and the number of the \
signal that killed it; 124 after --timeout; 126 and 127 when a program could not be started; 2 when the command line \
was wrong.

Ctrl-C ends the job; a second one kills it. Ctrl-Z suspends the job together with px.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Px;

    #[test]
    fn the_table_is_consistent() {
        Px::command().debug_assert();
        super::AppLine::command().debug_assert();
    }

    #[test]
    fn the_guide_has_every_option() {
        const GUIDE: &[&str] = &[
            include_str!("../../../docs/guide/README.md"),
            include_str!("../../../docs/guide/run.md"),
            include_str!("../../../docs/guide/many-hosts.md"),
            include_str!("../../../docs/guide/placement.md"),
            include_str!("../../../docs/guide/streams.md"),
            include_str!("../../../docs/guide/ending.md"),
            include_str!("../../../docs/guide/tools.md"),
            include_str!("../../../docs/guide/dvm.md"),
            include_str!("../../../docs/guide/control.md"),
            include_str!("../../../docs/guide/log.md"),
        ];
        let px = Px::command();
        let commands = px.get_subcommands().filter(|command| !command.is_hide_set());
        let commands = commands.flat_map(|command| std::iter::once(command).chain(command.get_subcommands()));
        for option in commands.flat_map(|command| command.get_arguments()).filter(|arg| !arg.is_hide_set()) {
            if let Some(name) = option.get_long() {
                let written = [format!("`--{name}`"), format!("`--{name} ")];
                let is_there = GUIDE.iter().any(|page| written.iter().any(|w| page.contains(w)));
                assert!(is_there, "--{name} is not in the guide");
            }
        }
    }
}
