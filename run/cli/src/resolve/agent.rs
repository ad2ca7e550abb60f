//! The commands that start daemons on other hosts: ssh, the batch system's own command, or the user's.
//!
//! An agent runs `px daemon` there, and its standard input and output are those of the daemon. It has no terminal: anything that needs a prompt
//! fails.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use phalanx_dvm::{Agent, Allocation, COUNT, HOSTS};
use phalanx_wire::Text;

use super::allocation::System;
use super::{Here, env};
use crate::args::fleet::FleetArgs;
use crate::failure::Failure;

/// A host that gets a daemon.
pub(super) struct Destination {
    pub(super) name: String,
    /// The account there, if it differs from ours.
    pub(super) user: Option<String>,
}

/// Agents and their environment.
#[derive(Default)]
pub(super) struct Agents {
    pub(super) agents: Vec<Agent>,
    pub(super) env: Vec<Text>,
}

/// Whether ranks on this host get a daemon beside the root, which the batch system knows as its own.
pub(super) fn starts_here(args: &FleetArgs, system: Option<&System>, here: &Here) -> Result<bool, Failure> {
    Ok(matches!(Starter::choose(args, system, here)?, Starter::Slurm { .. }) && !(here.is_in_step)())
}

/// The allocation, if its state can be asked for.
pub(super) fn allocation(system: Option<&System>, here: &Here) -> Option<Allocation> {
    let Some(System::Slurm(Some(job))) = system else { return None };
    let ask = ["scontrol", "--oneliner", "show", "job", job].map(Text::from).into();
    here.has_program("scontrol").then(|| Allocation { name: format!("Slurm allocation {job}"), ask })
}

/// The commands that start daemons on these hosts. `system` is the batch system of their allocation.
pub(super) fn agents(
    hosts: &[Destination],
    args: &FleetArgs,
    system: Option<&System>,
    here: &Here,
) -> Result<Agents, Failure> {
    let starter = Starter::choose(args, system, here)?;
    let px = px(args, here)?;
    if hosts.is_empty() {
        return Ok(Agents::default());
    }
    let px = px.ok_or_else(|| {
        Failure::new("cannot tell where this px is, and so where it is on other hosts")
            .hint("--px-path says where")
    })?;
    if !starter.knows_accounts()
        && let Some(Destination { name, user: Some(user) }) = hosts.iter().find(|host| host.user.is_some())
    {
        return Err(Failure::usage(format!(
            "'{user}@{name}': the batch system starts daemons under your own account"
        ))
        .hint("leave out the account, or name another way with --launch-agent ssh"));
    }
    let agents = match &starter {
        Starter::Slurm { job } => {
            let argv = srun(job).into_iter().chain([text(px.as_os_str()), "daemon".into()]).collect();
            vec![Agent { argv, hosts: (0..hosts.len()).collect(), labels: true }]
        }
        one_each => hosts
            .iter()
            .enumerate()
            .map(|(place, host)| Agent { argv: one_each.argv(host, &px), hosts: vec![place], labels: false })
            .collect(),
    };
    let mut env = env::inherited(&here.env);
    if matches!(starter, Starter::Slurm { .. }) {
        env.retain(|variable| !steers_srun(variable.as_bytes()));
        // An srun without --overlap does not need it.
        env.push("SLURM_OVERLAP=1".into());
    }
    Ok(Agents { agents, env })
}

/// One way to start daemons.
enum Starter {
    Ssh,
    Slurm {
        job: String,
    },
    Lsf,
    /// Words in which `{host}` gets replaced.
    Template(Vec<String>),
}

impl Starter {
    fn choose(args: &FleetArgs, system: Option<&System>, here: &Here) -> Result<Starter, Failure> {
        if let Some(template) = &args.launch_agent {
            return Ok(Starter::Template(words(template)?));
        }
        Ok(match system {
            Some(System::Slurm(Some(job))) if here.has_program("srun") => Starter::Slurm { job: job.clone() },
            Some(System::Lsf) if here.has_program("blaunch") => Starter::Lsf,
            // pbsdsh, the command of PBS, passes on neither input nor output.
            _ => Starter::Ssh,
        })
    }

    fn knows_accounts(&self) -> bool {
        matches!(self, Starter::Ssh | Starter::Template(_))
    }

    /// The command for one host.
    fn argv(&self, host: &Destination, px: &Path) -> Vec<Text> {
        let account = match &host.user {
            Some(user) => format!("{user}@{}", host.name),
            None => host.name.clone(),
        };
        let mut argv: Vec<Text> = match self {
            Starter::Ssh => {
                ["ssh", "-x", "-T", "-o", "BatchMode=yes", "--", &account, "exec"].map(Text::from).into()
            }
            Starter::Lsf => ["blaunch", &account].map(Text::from).into(),
            Starter::Slurm { job } => srun(job),
            Starter::Template(words) => {
                let mut argv: Vec<Text> =
                    words.iter().map(|word| Text::from(word.replace(HOST, &account))).collect();
                if !words.iter().any(|word| word.contains(HOST)) {
                    argv.push(account.as_str().into());
                }
                argv
            }
        };
        argv.push(if self.ends_in_shell() { quoted(px) } else { text(px.as_os_str()) });
        argv.push("daemon".into());
        argv
    }

    /// Whether the command's words are joined, and split again by a shell on the host.
    fn ends_in_shell(&self) -> bool {
        match self {
            Starter::Ssh | Starter::Lsf => true,
            Starter::Slurm { .. } => false,
            Starter::Template(words) => {
                let program = words.first().and_then(|word| Path::new(word).file_name());
                program.is_some_and(|program| program == "ssh" || program == "rsh")
            }
        }
    }
}

/// One step for all hosts. Only with the arbitrary distribution are tasks numbered in the order of the list; otherwise in Slurm's own order.
fn srun(job: &str) -> Vec<Text> {
    let own = [
        "srun".to_owned(),
        format!("--jobid={job}"),
        format!("--nodes={COUNT}"),
        format!("--ntasks={COUNT}"),
        format!("--nodelist={HOSTS}"),
    ];
    // A daemon is no rank: it needs no PMI, no binding and all memory of the allocation, and it may end before others.
    let same = [
        "--distribution=arbitrary",
        "--ntasks-per-node=1",
        "--label",
        "--input=all",
        "--chdir=/",
        "--mpi=none",
        "--cpu-bind=none",
        "--mem-bind=none",
        "--mem=0",
        "--kill-on-bad-exit=0",
        "--no-kill",
        "--wait=0",
    ];
    own.into_iter().map(Text::from).chain(same.map(Text::from)).collect()
}

/// Variables that act as options of srun. Those of the allocation are meant for its ranks, not for the step of the daemons.
fn steers_srun(variable: &[u8]) -> bool {
    let keeps: [&[u8]; 3] = [b"SLURM_CONF=", b"SLURM_CLUSTERS=", b"SLURM_JWT="];
    let steers: [&[u8]; 3] = [b"SLURM_", b"SRUN_", b"SBATCH_"];
    steers.iter().any(|prefix| variable.starts_with(prefix))
        && !keeps.iter().any(|kept| variable.starts_with(kept))
}

/// The words of `--launch-agent`.
fn words(template: &str) -> Result<Vec<String>, Failure> {
    let wrong = |cause: &str| {
        Failure::usage(format!("invalid value '{template}' for '--launch-agent'"))
            .because(cause)
            .hint("a command such as 'kubectl exec -i {host} --' or 'ssh -p 2222'")
    };
    let words = shlex::split(template).ok_or_else(|| wrong("a quote is not closed"))?;
    if words.first().is_none_or(String::is_empty) {
        return Err(wrong("it names no program"));
    }
    match words.iter().find_map(|word| unknown_name(word)) {
        Some(name) => Err(wrong(&format!("'{name}' stands for nothing, only '{HOST}' does"))),
        None => Ok(words),
    }
}

/// A name in braces other than `{host}`.
fn unknown_name(word: &str) -> Option<&str> {
    let braces = word.match_indices('{').filter_map(|(at, _)| {
        let inside = word.get(at..)?;
        inside.get(..=inside.find('}')?)
    });
    let is_name = |text: &&str| {
        let name = text.trim_matches(['{', '}']);
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
    };
    braces.filter(is_name).find(|name| *name != HOST)
}

/// The path of px on the hosts.
fn px(args: &FleetArgs, here: &Here) -> Result<Option<PathBuf>, Failure> {
    match &args.px_path {
        Some(path) if !path.is_absolute() => {
            Err(Failure::usage(format!("'--px-path {}' is not an absolute path", path.display()))
                .hint("the working directory of this px is not that of those on other hosts"))
        }
        Some(path) => Ok(Some(path.clone())),
        None => Ok(here.px.clone()),
    }
}

/// Quotes a path as one word for any shell, C shells and fish included.
fn quoted(path: &Path) -> Text {
    let mut word = b"'".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\'' => word.extend(b"'\\''"),
            byte => word.push(*byte),
        }
    }
    word.push(b'\'');
    Text::from_bytes(&word)
}

fn text(word: &std::ffi::OsStr) -> Text {
    Text::from_bytes(word.as_bytes())
}

const HOST: &str = "{host}";

#[cfg(test)]
mod tests;
