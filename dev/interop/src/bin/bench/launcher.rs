//! The launchers to compare, and how each starts N copies of a program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use phalanx_interop::{Library, bench, debian_file, px_binary};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Launcher {
    Px,
    OpenMpi,
    Hydra,
    Bare,
}

impl Launcher {
    pub(crate) const ALL: [Self; 4] = [Self::Px, Self::OpenMpi, Self::Hydra, Self::Bare];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Px => "px",
            Self::OpenMpi => "mpirun 4.1",
            Self::Hydra => "hydra",
            Self::Bare => "spawn loop",
        }
    }

    /// A command that runs `ranks` copies of `program`, without requiring as many slots.
    pub(crate) fn command(self, ranks: u32, program: &Path, arguments: &[&OsStr]) -> Command {
        self.command_with(&[], ranks, program, arguments)
    }

    /// The same with options for the launcher.
    pub(crate) fn command_with(
        self,
        options: &[&str],
        ranks: u32,
        program: &Path,
        arguments: &[&OsStr],
    ) -> Command {
        let ranks = ranks.to_string();
        let mut command = match self {
            Self::Px => {
                let mut command = Command::new(px_binary());
                command.args(["run", "--quiet", "-n", &ranks]).args(options);
                command
            }
            Self::OpenMpi => {
                let mut command = Command::new(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin"));
                command.args(["--host", "localhost:512", "--bind-to", "none", "-n", &ranks]).args(options);
                command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
                command
            }
            Self::Hydra => {
                let mut command = Command::new(debian_file("/usr/bin/mpiexec.hydra", "mpich"));
                command.args(["-n", &ranks]).args(options);
                command
            }
            Self::Bare => {
                static LOOP: OnceLock<PathBuf> = OnceLock::new();
                let mut command = Command::new(LOOP.get_or_init(|| bench(Library::Nothing, "spawn_loop")));
                command.arg(&ranks);
                command
            }
        };
        command.arg(program).args(arguments);
        command.envs(quick_networks());
        command
    }
}

/// Both MPI libraries would search for networks for longer than the launch takes.
fn quick_networks() -> Vec<(&'static str, OsString)> {
    vec![
        ("OMPI_MCA_pml", "ob1".into()),
        ("OMPI_MCA_btl", "self,vader".into()),
        ("MPIR_CVAR_NOLOCAL", "0".into()),
        ("UCX_TLS", "self,sm".into()),
    ]
}
