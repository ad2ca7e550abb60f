//! The options of the commands about a DVM that lasts.

use clap::{Args, Subcommand};
use phalanx_dvm::Limits;

use super::serve::ServeArgs;
use super::tools::ServerArgs;

#[derive(Debug, Args)]
pub(crate) struct DvmArgs {
    #[command(subcommand)]
    pub(crate) command: DvmCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DvmCommand {
    /// Start a DVM that runs jobs until it is stopped
    Start(DvmStartArgs),
    /// End the jobs of a DVM, and then the DVM
    Stop(DvmStopArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DvmStartArgs {
    /// Be the system server of this machine, which other commands find with '--system'
    #[arg(long)]
    pub(crate) system_server: bool,

    /// Continue in the background once tools can connect
    #[arg(long)]
    pub(crate) daemonize: bool,

    /// Remember how the last N jobs ended, fewer if they were large
    #[arg(long, value_name = "N", default_value_t = Limits::default().ended_jobs, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_jobs: u32,

    /// Print messages as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DvmStopArgs {
    /// Print errors as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
