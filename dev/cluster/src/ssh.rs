//! An sshd on every host, and everything that `ssh HOST` needs to connect without a prompt.
//!
//! The keys are made for this cluster. They, the configuration and the list of hosts are in the hosts' own `/etc/ssh`, so that
//! the user's own files are neither read nor written. Passwords are never accepted.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::debian::debian_file;
use crate::host::finish;
use crate::wait::until;
use crate::{Cluster, Host};

/// The sshds of a cluster. They end when this is dropped; processes that they have started go on.
#[derive(Debug)]
pub struct Ssh {
    daemons: Vec<Child>,
}

impl Ssh {
    /// Starts the daemons, and waits until they can be reached.
    pub fn start(cluster: &Cluster) -> Result<Ssh> {
        let sshd = debian_file("/usr/sbin/sshd", "openssh-server")?;
        let first = cluster.hosts().first().context("there are no hosts")?.path("/etc/ssh");
        for name in ["user_key", "host_key"] {
            make_key(&first.join(name))?;
        }
        let public = read(&first.join("host_key.pub"))?;
        let known: String = cluster
            .hosts()
            .iter()
            .map(|host| format!("{},{},{} {public}", host.name(), host.ipv4(), host.ipv6()))
            .collect();
        let mut ssh = Ssh { daemons: Vec::new() };
        for host in cluster.hosts() {
            let own = host.path("/etc/ssh");
            for (name, mode) in [("user_key", 0o600), ("host_key", 0o600)] {
                write(&own.join(name), &read(&first.join(name))?, mode)?;
            }
            write(&own.join("authorized_keys"), &read(&first.join("user_key.pub"))?, 0o644)?;
            write(&own.join("known_hosts"), &known, 0o644)?;
            write(&own.join("ssh_config"), SSH, 0o644)?;
            write(&own.join("sshd_config"), SSHD, 0o600)?;
            let log = fs::File::create(host.path("/run/sshd.log")).context("making a log file for sshd")?;
            let mut command = host.command(sshd);
            command.args(["-D", "-e"]).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            ssh.daemons.push(command.spawn().context("starting sshd")?);
        }
        for (host, daemon) in cluster.hosts().iter().zip(&mut ssh.daemons) {
            until_reached(host, 22, daemon).with_context(|| {
                let log = fs::read_to_string(host.path("/run/sshd.log")).unwrap_or_default();
                format!("sshd on {} does not start: {}", host.name(), log.trim())
            })?;
        }
        Ok(ssh)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Waits until a daemon accepts connections on a port of its host.
pub(crate) fn until_reached(host: &Host, port: u16, daemon: &mut Child) -> Result<()> {
    let network = host.network()?;
    let address = SocketAddr::from((host.ipv4(), port));
    let mut ended = None;
    until(&format!("{address} accepts connections"), || {
        ended = daemon.try_wait().ok().flatten();
        ended.is_some() || is_reached(&network, address)
    })?;
    ensure!(ended.is_none(), "it has ended");
    Ok(())
}

/// A thread that has entered a network cannot leave it, so each check has its own.
fn is_reached(network: &fs::File, address: SocketAddr) -> bool {
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            use std::os::fd::AsFd;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).is_ok()
                && std::net::TcpStream::connect(address).is_ok()
        });
        asks.join().unwrap_or(false)
    })
}

fn make_key(file: &Path) -> Result<()> {
    let mut command = Command::new(debian_file("/usr/bin/ssh-keygen", "openssh-client")?);
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "cluster", "-f"]).arg(file);
    finish(&mut command, "ssh-keygen").map(drop)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))
}

const SSH: &str = "\
IdentityFile /etc/ssh/user_key
IdentitiesOnly yes
BatchMode yes
GlobalKnownHostsFile /etc/ssh/known_hosts
UserKnownHostsFile none
StrictHostKeyChecking yes
UpdateHostKeys no
";

const SSHD: &str = "\
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
PrintMotd no
PidFile none
MaxStartups 256
MaxSessions 256
";
