//! The options of commands that are servers for tools.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::Args;

/// How tools reach this server.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ServeArgs {
    /// Let tools on other nodes connect, too
    ///
    /// The server then listens beyond the loopback interface: at ADDRESS, or everywhere. Tools on other nodes must show
    /// the secret that stands in the server's rendezvous files.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true)]
    pub(crate) remote_connections: Option<Option<Ipv4Addr>>,

    /// Write this server's address to FILE, which is a rendezvous file for '--file' of other commands
    #[arg(long, value_name = "FILE")]
    pub(crate) report_uri: Option<PathBuf>,

    /// What sends the mails that ranks and tools log: a command for sh [default: sendmail -t -i]
    ///
    /// It runs on the first host, reads a mail from standard input and takes the recipients from the header. The server that the
    /// request names is in PHALANX_MAIL_SERVER and PHALANX_MAIL_PORT.
    #[arg(long, value_name = "COMMAND", help_heading = "Logs")]
    pub(crate) mail_with: Option<String>,
}
