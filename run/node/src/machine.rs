//! What this machine offers to a launcher: its name, and the hardware that the launcher may use.
//!
//! An inherited affinity or cpuset removes CPUs before anything is mapped. A quota of CPU time removes none; it is only reported. Next:
//! [`phalanx_dvm::NodeConfig`].

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use phalanx_topo::Topology;

use crate::spawn::bind;

/// This machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub hostname: Arc<str>,
    /// Only what we may use.
    pub topology: Arc<Topology>,
}

impl Machine {
    pub fn read() -> Result<Machine> {
        let all = Topology::read(Path::new("/")).context("cannot tell which processors this machine has")?;
        let allowed = bind::allowed().context("cannot tell which processors we may use")?;
        let topology = if all.cpus().is_subset(&allowed) { all } else { all.restrict(&allowed) };
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Machine { hostname: hostname.into(), topology: Arc::new(topology) })
    }
}

/// How many CPUs' worth of time the control groups above us allow, if they limit it.
pub fn cpu_quota() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(quota_of).reduce(f64::min)
}

/// The strictest quota along one hierarchy; a line of /proc/self/cgroup is `ID:CONTROLLERS:PATH`.
fn quota_of(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let unified = controllers.is_empty();
    if !unified && !controllers.split(',').any(|c| c == "cpu") {
        return None;
    }
    let root = Path::new(if unified { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" });
    let group = root.join(path.trim_start_matches('/'));
    group
        .ancestors()
        .take_while(|dir| dir.starts_with(root))
        .filter_map(|dir| quota_in(dir, unified))
        .reduce(f64::min)
}

fn quota_in(dir: &Path, unified: bool) -> Option<f64> {
    let number = |file: &str| fs::read_to_string(dir.join(file)).ok()?.trim().parse::<f64>().ok();
    let (quota, period) = if unified {
        let text = fs::read_to_string(dir.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        (quota.parse().ok()?, period.parse().ok()?)
    } else {
        (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
    };
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}
