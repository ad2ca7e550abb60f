//! The options of launchers about other hosts: how daemons get there, and how they reach each other.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use phalanx_node::link::Network;

use super::words;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FleetArgs {
    /// Start daemons on other hosts with this command instead of ssh: 'kubectl exec -i {host} --'
    ///
    /// '{host}' stands for the name of the host; without it the name is the last word. The path of px and 'daemon' follow. Words are
    /// split and quoted as in a shell. The command must pass its standard input and output on. By default it is the batch system's
    /// own command if there is one, otherwise ssh, which must not need to ask anything.
    #[arg(long, value_name = "TEMPLATE", help_heading = OTHER_HOSTS)]
    pub(crate) launch_agent: Option<String>,

    /// Where px is on other hosts, if not at the same path as here
    #[arg(long, value_name = "PATH", help_heading = OTHER_HOSTS)]
    pub(crate) px_path: Option<PathBuf>,

    /// Let daemons use only addresses of this network: 10.2.0.0/16, or the name of an interface
    ///
    /// May be given many times. By default daemons try all addresses that other hosts can use.
    #[arg(long, value_name = "CIDR|IFACE", help_heading = OTHER_HOSTS)]
    pub(crate) network: Vec<Network>,

    /// Leave out hosts whose daemon does not start, and say which; by default one of them ends the start
    #[arg(long, help_heading = OTHER_HOSTS)]
    pub(crate) skip_bad_hosts: bool,

    /// Give a host up that does not get on with its start for this long: 1m (the default), 10s
    ///
    /// A host gets this time for each phase: starting the daemon, telling it who it is, and linking it to the others.
    #[arg(long, visible_alias = "spawn-timeout", value_name = "DURATION", value_parser = words::duration, help_heading = OTHER_HOSTS)]
    pub(crate) start_timeout: Option<Duration>,

    /// Take a host for lost that says nothing for this long: 1m (the default), 10s
    #[arg(long, value_name = "DURATION", value_parser = words::duration, help_heading = OTHER_HOSTS)]
    pub(crate) host_timeout: Option<Duration>,
}

const OTHER_HOSTS: &str = "Other hosts";
