//! The options of the commands about a DVM that lasts.

use clap::{Args, Subcommand};

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
    /// Be the one system server of this machine, which '--system' of other commands finds
    #[arg(long)]
    pub(crate) system_server: bool,

    /// Go on in the background as soon as tools can connect
    #[arg(long)]
    pub(crate) daemonize: bool,

    /// Say what there is to say as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DvmStopArgs {
    /// Say errors as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
