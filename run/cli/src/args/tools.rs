//! The options of the commands that talk to a PMIx server: which server, and what of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::words;

/// Which server is meant. Without any of these it is the one that started this process, or else the only one of this machine
/// that fits.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which server")]
pub(crate) struct ServerArgs {
    /// The server of the process PID
    #[arg(long, value_name = "PID", group = "server")]
    pub(crate) pid: Option<u32>,

    /// The server whose own namespace is NSPACE
    #[arg(long, value_name = "NSPACE", group = "server")]
    pub(crate) nspace: Option<String>,

    /// The server at this address: NSPACE.RANK;tcp4://HOST:PORT
    #[arg(long, value_name = "URI", group = "server")]
    pub(crate) uri: Option<String>,

    /// The server whose address is in FILE
    #[arg(long, value_name = "FILE", group = "server")]
    pub(crate) file: Option<PathBuf>,

    /// The system server, and no other
    #[arg(long, group = "server")]
    pub(crate) system: bool,

    /// The system server if there is one
    #[arg(long, group = "server")]
    pub(crate) system_first: bool,

    /// Believe servers of this user, too, not only your own and root's: a name or a number
    #[arg(long, value_name = "USER", value_parser = words::user)]
    pub(crate) trust_user: Vec<u32>,

    /// Keep looking for the server this long: 30, 1.5s, 10m
    #[arg(long, value_name = "DURATION", value_parser = words::duration)]
    pub(crate) wait_server: Option<Duration>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PsArgs {
    /// Show only this job, with its ranks
    pub(crate) job: Option<String>,

    /// Show the ranks of every job, too
    #[arg(short, long)]
    pub(crate) ranks: bool,

    /// Show jobs that have ended recently, too
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Show how long each job took to be placed, start, connect, finalize, exit and end
    #[arg(short, long)]
    pub(crate) long: bool,

    /// Print JSON, one object for each server
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct QueryArgs {
    /// What to ask, and of what: PMIX_JOB_SIZE:PMIX_NSPACE=px-host-7@7
    ///
    /// Attributes are given by name (PMIX_JOB_SIZE, or JOB_SIZE) or by key (pmix.job.size).
    #[arg(value_name = "KEY[:QUALIFIER=VALUE]...", required_unless_present = "list")]
    pub(crate) keys: Vec<String>,

    /// List what the server, its host and this tool support: each function with its attributes
    #[arg(short, long, conflicts_with = "keys")]
    pub(crate) list: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PublishArgs {
    /// What to publish
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub(crate) data: Vec<OsString>,

    /// Who can look it up
    #[arg(long, value_name = "RANGE", value_enum, default_value_t = RangeWord::Session)]
    pub(crate) range: RangeWord,

    /// How long it stays
    #[arg(long, value_name = "HOW", value_enum, default_value_t = PersistWord::Session)]
    pub(crate) persist: PersistWord,

    /// Print errors as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LookupArgs {
    /// What to look up
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,

    /// Wait up to this long until all of them are published
    #[arg(long, value_name = "DURATION", value_parser = words::duration)]
    pub(crate) wait: Option<Duration>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct UnpublishArgs {
    /// What to withdraw; by default everything that 'px publish' has published
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<String>,

    /// The range it was published with
    #[arg(long, value_name = "RANGE", value_enum, default_value_t = RangeWord::Session)]
    pub(crate) range: RangeWord,

    /// Print errors as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EventsArgs {
    /// Show only these events: PMIX_EVENT_JOB_END, EVENT_JOB_END or a number
    #[arg(short, long, value_name = "CODE,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) code: Vec<String>,

    /// Show what has happened to jobs in this time, as far as the server still knows it: 30, 1.5s, 10m
    ///
    /// That is more than there are events for: jobs are submitted, placed, started, connected, and so on.
    #[arg(short, long, value_name = "DURATION", value_parser = words::duration)]
    pub(crate) since: Option<Duration>,

    /// Follow new events after those of '--since'
    #[arg(short, long, requires = "since")]
    pub(crate) follow: bool,

    /// End after N events
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LogArgs {
    /// The job
    pub(crate) job: String,

    /// A text to write to the record of the job; without one, the record is shown
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Vec<OsString>,

    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AttachArgs {
    /// The job, and which of its ranks: px-host-7@7:0-3,8
    #[arg(value_name = "JOB[:RANKS]")]
    pub(crate) job: String,

    /// Begin with the output kept so far
    #[arg(long)]
    pub(crate) since_start: bool,

    /// Take the output away from 'px run' while this command runs
    #[arg(long)]
    pub(crate) redirect: bool,

    /// Send standard input to those ranks, too
    #[arg(long)]
    pub(crate) stdin: bool,

    /// Print errors as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WhyArgs {
    /// Print JSON, one object for each wait
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RanksArgs {
    /// The job, or ranks of it: px-host-7@7:0-3,8
    #[arg(value_name = "JOB[:RANKS]")]
    pub(crate) job: String,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TopArgs {
    /// How long to wait between two tables: 2, 0.5s, 1m
    #[arg(short, long, value_name = "DURATION", value_parser = words::duration, default_value = "2")]
    pub(crate) interval: std::time::Duration,

    /// End after this many tables [default: without end on a terminal, otherwise 1]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// The ranks to show first
    #[arg(short, long, value_enum, value_name = "BY", default_value_t = TopSort::Cpu)]
    pub(crate) sort: TopSort,

    #[command(flatten)]
    pub(crate) of: RanksArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopSort {
    /// Those that use most of a CPU now
    Cpu,
    /// Those with most memory
    Memory,
    /// Those that have used most CPU time
    Time,
    /// Those that have waited longest
    Wait,
    /// The lowest ranks
    Rank,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RangeWord {
    /// Processes of this node
    Local,
    /// Everybody in the session
    Session,
    /// Everybody
    Global,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PersistWord {
    /// Until it has been looked up once
    FirstRead,
    /// Until the server's session ends
    Session,
    /// Until it is withdrawn
    Indefinite,
}
