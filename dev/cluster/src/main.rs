//! `cluster`: several hosts on this machine for the duration of one command, which runs on the first of them.
//!
//! The same program also plays the parts of a cluster.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use phalanx_cluster::{Cluster, Options, Slurm, Ssh, Trust, end_as, run_role, stand_for};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let result = run_role(&arguments).unwrap_or_else(|| run(arguments));
    result.unwrap_or_else(|error| {
        eprintln!("cluster: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let Some(wanted) = parse(arguments)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let program = std::env::current_exe().context("finding our own program")?;
    let cluster = Cluster::start_with(&Options {
        program: Some(program),
        networks: wanted.networks,
        ..Options::new(wanted.hosts)
    })?;
    let ssh = Ssh::start(&cluster)?;
    let slurm = wanted.slurm.then(|| Slurm::start(&cluster, Trust::Munge)).transpose()?;
    let (program, rest) = wanted.command.split_first().context("no command was named")?;
    let status = stand_for(cluster.host(1).command(program).args(rest));
    let status = status.with_context(|| format!("running {}", program.display()))?;
    // Everything must be gone before we end.
    drop((slurm, ssh, cluster));
    Ok(end_as(status))
}

struct Arguments {
    hosts: usize,
    networks: usize,
    slurm: bool,
    command: Vec<OsString>,
}

/// None: the user asked for help.
fn parse(arguments: Vec<OsString>) -> Result<Option<Arguments>> {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut wanted = Arguments { hosts: 4, networks: 1, slurm: false, command: vec![shell] };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some(option @ ("-n" | "--hosts")) => wanted.hosts = number(option, arguments.next())?,
            Some(option @ "--networks") => wanted.networks = number(option, arguments.next())?,
            Some("--slurm") => wanted.slurm = true,
            Some("-h" | "--help") => return Ok(None),
            Some("--") => {
                wanted.command = arguments.collect();
                break;
            }
            Some(option) if option.starts_with('-') => bail!("unknown option {option}\n{USAGE}"),
            _ => {
                wanted.command = [argument].into_iter().chain(arguments).collect();
                break;
            }
        }
    }
    Ok(Some(wanted))
}

fn number(option: &str, value: Option<OsString>) -> Result<usize> {
    let value = value.with_context(|| format!("{option} needs a number\n{USAGE}"))?;
    let number = value.to_str().and_then(|value| value.parse().ok());
    number.with_context(|| format!("invalid value {value:?} for {option}: expected a number\n{USAGE}"))
}

const USAGE: &str = "\
usage: cluster [-n HOSTS] [--networks N] [--slurm] [--] [COMMAND [ARGUMENT..]]

Makes hosts n1, n2 .. (4 without -n) on this machine, connected by a network of their own, with sshd on each,
and runs the command on n1; without one, a shell. With --slurm they are also the nodes of a Slurm, with
--networks they have several interfaces. Everything is gone when the command ends. Needs root.";
