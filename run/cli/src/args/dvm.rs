//! The options of the commands about a DVM that lasts.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use phalanx_dvm::{Limits, Steer};

use super::fleet::FleetArgs;
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
    /// Show the nodes of a DVM, their slots and links, and its jobs
    Status(DvmStatusArgs),
    /// End the jobs of a DVM, and then the DVM
    Stop(DvmStopArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DvmStartArgs {
    /// Be the system server of this machine and of the DVM's other hosts, which other commands find with '--system'
    #[arg(long)]
    pub(crate) system_server: bool,

    /// Continue in the background once tools can connect
    #[arg(long)]
    pub(crate) daemonize: bool,

    /// Remember how the last N jobs ended, fewer if they were large
    #[arg(long, value_name = "N", default_value_t = Limits::default().ended_jobs, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep_jobs: u32,

    /// The jobs that a rank may steer: 'own' are its own and those that it has spawned
    #[arg(long, value_name = "JOBS", value_enum, default_value_t)]
    pub(crate) steer: SteerWord,

    /// What provisions nodes for PMIX_JOB_CTRL_PROVISION: a command for sh
    ///
    /// It finds the nodes in PHALANX_PROVISION_NODES and the image in PHALANX_PROVISION_IMAGE.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) provision_command: Option<String>,

    /// Print messages as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// The hosts of the DVM, and how many slots each has: a:4,b
    ///
    /// This host runs ranks only if it is named. Without --host and --hostfile they are the hosts of the batch system's allocation, if px
    /// runs in one, otherwise only this one.
    #[arg(long, value_name = "HOST[:N],...", value_delimiter = ',')]
    pub(crate) host: Vec<String>,

    /// Read hosts from FILE: a name and 'slots=N' per line
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) fleet: FleetArgs,

    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// [`Steer`] as it is typed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SteerWord {
    #[default]
    Own,
    Any,
}

impl From<SteerWord> for Steer {
    fn from(word: SteerWord) -> Steer {
        match word {
            SteerWord::Own => Steer::Own,
            SteerWord::Any => Steer::Any,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DvmStatusArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DvmStopArgs {
    /// Print errors as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
