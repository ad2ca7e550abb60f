//! Our `libpmix.so.2` in C programs compiled for other libraries, under our launcher and under others.
//!
//! The programs of `programs/` are compiled against Debian's headers. `tests/alone` has those that need only our own.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use phalanx_interop::{
    CLIENT_PROGRAMS, Job, Library::Pmix4, Outcome, SIZES, debian_file, headers, libpmix, own_source, pmix,
    px, workspace,
};

#[test]
fn exactly_what_the_list_names_is_exported() {
    let listing = Command::new(debian_file("/usr/bin/nm", "binutils"))
        .args(["--dynamic", "--defined-only", "--format=just-symbols"])
        .arg(libpmix().join("libpmix.so.2"))
        .output()
        .unwrap();
    let exported: BTreeSet<String> =
        String::from_utf8(listing.stdout).unwrap().lines().map(str::to_owned).collect();
    let list = std::fs::read_to_string(workspace().join("lib/libpmix/exports.txt")).unwrap();
    assert_eq!(exported, list.lines().map(str::to_owned).collect());
}

#[test]
fn headers_compile_and_have_the_right_layout() {
    compiles_everywhere(&own_source("layout"));
}

#[test]
fn headers_have_the_macros_of_all_releases() {
    let data = std::fs::read_to_string(workspace().join("lib/spec/data/functions.toml")).unwrap();
    let is_public = |entry: &&str| {
        let releases = entry.lines().find(|line| line.starts_with("openpmix_in = ")).unwrap_or_default();
        ["4.2", "5.0", "6.1"].iter().any(|release| releases.contains(&format!("\"{release}\"")))
    };
    let entries = data.split("\n[[").filter_map(|entry| entry.strip_prefix("macro]]\n")).filter(is_public);
    // A function in our library, called in the same way.
    let names = entries.filter_map(|entry| entry.lines().find_map(|line| line.strip_prefix("name = ")));
    let mut names: Vec<&str> =
        names.map(|name| name.trim_matches('"')).filter(|name| *name != "PMIx_Heartbeat").collect();
    assert!(names.len() > 100, "{}", names.len());
    names.extend([
        "PMIX_KEEPALIVE_PIPE",
        "PMIX_LAUNCHER_RNDZ_URI",
        "PMIX_LAUNCHER_RNDZ_FILE",
        "PMIX_CAPABILITIES",
        "PMIX_CAP_LTO",
        "PMIX_CAP_INMEMHELP",
        "PMIX_CAP_REGEX2",
        "PMIX_HAVE_VISIBILITY",
        "PMIX_REGEX2_STATIC_INIT",
    ]);
    let checks = names.iter().map(|name| format!("#ifndef {name}\n#error {name} is missing\n#endif\n"));
    let beginnings = names.iter().filter(|name| name.ends_with("_STATIC_INIT")).map(|name| {
        let of = match *name {
            "PMIX_LOOKUP_STATIC_INIT" => "pmix_pdata_t".to_owned(),
            "PMIX_DEVICE_DIST_STATIC_INIT" => "pmix_device_distance_t".to_owned(),
            "PMIX_PROC_NSPACE_STATIC_INIT" => "pmix_nspace_t".to_owned(),
            name => name.trim_end_matches("STATIC_INIT").to_lowercase() + "t",
        };
        format!("extern {of} of_{name};\n{of} of_{name} = {name};\n")
    });
    let headers = "#include <pmix.h>\n#include <pmix_server.h>\n#include <pmix_tool.h>\n".to_owned();
    let text: String = [headers].into_iter().chain(checks).chain(beginnings).collect();
    let source = libpmix().join(format!("macros-{}.c", std::process::id()));
    std::fs::write(&source, text).unwrap();
    compiles_everywhere(&source);
}

fn compiles_everywhere(source: &Path) {
    for (compiler, package, standard) in [
        ("/usr/bin/gcc", "gcc", &["-std=c99"][..]),
        ("/usr/bin/gcc", "gcc", &["-std=c11"]),
        ("/usr/bin/g++", "g++", &["-xc++", "-std=c++17"]),
    ] {
        let mut command = Command::new(debian_file(compiler, package));
        command.args(standard).args(["-pedantic", "-fsyntax-only"]).arg(source);
        compile(command);
    }
}

#[test]
fn ranks_say_whose_library_they_use() {
    let program = pmix("version");
    let version = format!("Phalanx {}", env!("CARGO_PKG_VERSION"));
    for job in [px(["-n", "2"]).arg(&program), mpirun(2).arg(&program)] {
        let outcome = on_ours(job).run().expect_code(0);
        let lines = [0, 1].map(|rank| format!("rank {rank} of 2: {version}"));
        outcome.expect_stdout(&[&lines[0], &lines[1]]);
    }
}

#[test]
fn the_client_api_under_px() {
    for (program, verdict) in CLIENT_PROGRAMS {
        for ranks in SIZES {
            let outcome = on_ours(px(["-n", &ranks.to_string()]).arg(pmix(program))).run().expect_code(0);
            verdicts(&outcome, ranks, verdict);
            outcome.expect_nothing_left();
        }
    }
}

#[test]
fn the_client_api_under_mpirun() {
    for (program, verdict) in [("values", "all values came back"), ("modex", "direct modex is right")] {
        for ranks in SIZES {
            let outcome = on_ours(mpirun(ranks).arg(pmix(program))).run().expect_code(0);
            verdicts(&outcome, ranks, verdict);
        }
    }
}

fn verdicts(outcome: &Outcome, ranks: u32, verdict: &str) {
    for rank in 0..ranks {
        outcome.assert_line(&format!("rank {rank} of {ranks}: {verdict}"));
    }
}

#[test]
fn thousands_of_outstanding_gets_are_all_answered() {
    let job = || px(["-n", "2"]).arg(pmix("pending"));
    for job in [on_ours(job()), job().with(Pmix4)] {
        let outcome = job.run().expect_code(0).expect_nothing_left();
        outcome.expect_lines((0..2).map(|rank| format!("rank {rank} of 2: all gets were answered")));
    }
}

/// The launcher of Debian's Open MPI 4.1, which uses Debian's libpmix itself; `LD_LIBRARY_PATH` is for its ranks.
fn mpirun(ranks: u32) -> Job {
    let launcher = debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin");
    let job = Job::new(debian_file("/usr/bin/env", "coreutils")).arg("--unset=LD_LIBRARY_PATH").arg(launcher);
    let library = format!("LD_LIBRARY_PATH={}", libpmix().display());
    job.args(["--allow-run-as-root", "--oversubscribe", "-x", &library, "-n", &ranks.to_string()])
}

fn on_ours(job: Job) -> Job {
    job.with(Pmix4).env("LD_LIBRARY_PATH", libpmix())
}

fn compile(mut command: Command) {
    command.args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(headers());
    let output = command.output().unwrap_or_else(|error| panic!("running {command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
}
