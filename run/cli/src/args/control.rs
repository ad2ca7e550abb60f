//! The options of the commands that steer jobs: `px ctl`, `px kill`, `px wait`.

use clap::{Args, Subcommand};

use super::tools::ServerArgs;
use super::words;

#[derive(Clone, Debug, Args)]
pub(crate) struct CtlArgs {
    #[command(subcommand)]
    pub(crate) action: CtlAction,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CtlAction {
    /// Stop ranks until they are resumed
    Pause(TargetArgs),
    /// Let paused ranks go on
    Resume(TargetArgs),
    /// Send a signal to ranks
    Signal(SignalArgs),
    /// End ranks at once, with SIGKILL
    Kill(TargetArgs),
    /// Ask ranks to end, with SIGTERM, and kill those that do not
    Terminate(TerminateArgs),
    /// Have ranks take a checkpoint, in the way that they have registered
    Checkpoint(CheckpointArgs),
    /// End ranks that still run, and start them again under the same names
    Restart(RestartArgs),
    /// Have preemptible ranks take a checkpoint, and end them
    Preempt(PreemptArgs),
    /// Show what has become of a request that was given a name
    Status(RequestArgs),
    /// Give a request up; what was done of it by then stays done
    Cancel(RequestArgs),
}

impl CtlAction {
    pub(crate) fn is_json(&self) -> bool {
        match self {
            CtlAction::Signal(args) => args.target.json,
            CtlAction::Terminate(args) => args.target.json,
            CtlAction::Checkpoint(args) => args.target.json,
            CtlAction::Restart(args) => args.target.json,
            CtlAction::Preempt(args) => args.target.json,
            CtlAction::Pause(target) | CtlAction::Resume(target) | CtlAction::Kill(target) => target.json,
            CtlAction::Status(args) | CtlAction::Cancel(args) => args.json,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RequestArgs {
    /// The name of the request, as '--id' has given it
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// What the ranks are to call the checkpoint
    #[arg(short, long, value_name = "NAME", default_value = "checkpoint")]
    pub(crate) name: String,

    /// Send this signal instead of what the ranks have registered: USR1, SIGUSR1 or 10
    #[arg(short, long, value_name = "SIGNAL", value_parser = words::signal)]
    pub(crate) signal: Option<i32>,

    /// Name those that have not completed it after this long: 30, 1.5m [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = words::duration)]
    pub(crate) timeout: Option<std::time::Duration>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RestartArgs {
    /// The checkpoint that the ranks are told to go on from; without it, they begin anew
    #[arg(short, long, value_name = "NAME")]
    pub(crate) from: Option<String>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PreemptArgs {
    /// What the ranks are to call the checkpoint
    #[arg(short, long, value_name = "NAME", default_value = "preempted")]
    pub(crate) name: String,

    /// Pause the ranks instead of ending them
    #[arg(long)]
    pub(crate) pause: bool,

    /// Leave the ranks alone if they have not completed their checkpoint after this long: 30, 1.5m [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = words::duration)]
    pub(crate) timeout: Option<std::time::Duration>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TerminateArgs {
    /// Kill those that have not ended after this long, instead of the job's own time: 30, 1.5s, 10m
    #[arg(long, value_name = "DURATION", value_parser = words::duration)]
    pub(crate) grace: Option<std::time::Duration>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArgs {
    /// The jobs, or ranks of them: px-host-7@7:0-3,8
    #[arg(value_name = "JOB[:RANKS]", required = true)]
    pub(crate) targets: Vec<String>,

    /// Name the request, so that 'px ctl status' and 'px ctl cancel' find it
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Print JSON, one object for each job
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SignalArgs {
    /// The signal: USR1, SIGUSR1 or 10
    #[arg(short, long, value_name = "SIGNAL", value_parser = words::signal, required = true)]
    pub(crate) signal: i32,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct KillArgs {
    /// Send this signal instead of SIGTERM, and nothing after it: KILL, SIGUSR1 or 9
    ///
    /// Without it, the ranks are asked to end with SIGTERM, and killed if they have not ended when their job's time for that
    /// is over ('px run --kill-after').
    #[arg(short, long, value_name = "SIGNAL", value_parser = words::signal)]
    pub(crate) signal: Option<i32>,

    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WaitArgs {
    /// The jobs
    #[arg(value_name = "JOB", required = true)]
    pub(crate) jobs: Vec<String>,

    /// Wait no longer than this, and exit with 124 then: 30, 1.5s, 10m
    #[arg(long, value_name = "DURATION", value_parser = words::duration)]
    pub(crate) timeout: Option<std::time::Duration>,

    /// Print JSON, one object for each job
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
