//! The command line from the user's view: words in; exit code, standard output and standard error out.
//!
//! Nothing here depends on this machine's hardware: topologies are read from directories that the tests make.

#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that describes a machine, and px.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    /// A machine with this many packages, cores in each, and hardware threads in each core.
    fn new(packages: u32, cores: u32, threads: u32) -> Bench {
        let dir = tempfile::tempdir().expect("a directory");
        let total = packages * cores * threads;
        let write = |path: String, text: String| {
            let path = dir.path().join("machine").join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text + "\n").expect("a file");
        };
        write("sys/devices/system/cpu/online".into(), format!("0-{}", total - 1));
        for cpu in 0..total {
            let (core, package) = (cpu / threads, cpu / threads / cores);
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            write(format!("{folder}/core_id"), (core % cores).to_string());
            write(format!("{folder}/physical_package_id"), package.to_string());
            write(
                format!("{folder}/core_cpus_list"),
                format!("{}-{}", core * threads, (core + 1) * threads - 1),
            );
            let width = cores * threads;
            write(
                format!("{folder}/package_cpus_list"),
                format!("{}-{}", package * width, (package + 1) * width - 1),
            );
        }
        Bench { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> &Bench {
        fs::write(self.path(name), text).expect("a file");
        self
    }

    /// The output of `px` for these words.
    fn px(&self, words: &str) -> String {
        self.called(Path::new(env!("CARGO_BIN_EXE_px")), words)
    }

    /// The output of px under another name.
    fn px_as(&self, name: &str, words: &str) -> String {
        let link = self.path(name);
        if !link.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_px"), &link).expect("a link");
        }
        self.called(&link, words)
    }

    /// Where px would place ranks on this bench's machine.
    fn dry_run(&self, words: &str) -> String {
        self.px(&format!("run --dry-run --topology-root machine {words}"))
    }

    fn called(&self, program: &Path, words: &str) -> String {
        self.called_with(&[], program, words)
    }

    /// With these variables as well.
    fn called_with(&self, variables: &[(&str, &str)], program: &Path, words: &str) -> String {
        let output = Command::new(program)
            .args(words.split_whitespace())
            .current_dir(self.dir.path())
            .env("NO_COLOR", "1")
            .env("COLUMNS", "100")
            .env_remove("MPIEXEC_TIMEOUT")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("px runs");
        let code = output.status.code().expect("px is not killed");
        let mut text = format!("exit code: {code}\n");
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                text.push_str(&format!("--- {name}\n{}", String::from_utf8_lossy(bytes)));
            }
        }
        let hostname = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let hostname = hostname.trim();
        let text = text.replace(&self.dir.path().display().to_string(), "[DIR]");
        // Columns stay as wide as the name was, whatever its length.
        let text = replace_word(&text, &format!("{hostname:<4}"), "HOST");
        replace_word(&text, hostname, "HOST").replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
    }
}

/// The machine's name may occur inside some word.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
        let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let inside = joins(before.chars().next_back().or(replaced.chars().next_back()))
            || (joins(word.chars().next_back()) && joins(behind.chars().next()));
        replaced.push_str(before);
        replaced.push_str(if inside { word } else { by });
        rest = behind;
    }
    replaced + rest
}

/// Snapshots of several command lines, each under its own heading.
fn session(lines: &[&str], say: impl Fn(&str) -> String) -> String {
    lines.iter().map(|line| format!("$ px {line}\n{}\n", say(line))).collect()
}

#[test]
fn help() {
    let bench = Bench::new(1, 1, 1);
    insta::assert_snapshot!("help", session(&["", "--help", "--version", "-V"], |line| bench.px(line)));
    insta::assert_snapshot!("help_run", bench.px("run --help"));
    assert_eq!(bench.px("help run"), bench.px("run --help"));
    assert_eq!(bench.px("help"), bench.px("--help"));
    insta::assert_snapshot!("help_run_short", bench.px("run -h"));
}

#[test]
fn wrong_command_lines() {
    let bench = Bench::new(1, 1, 1);
    let lines = [
        "rnu",
        "hostname",
        "--frobnicate",
        "run",
        "run --dispaly map prog",
        "run --frobnicate prog",
        "run -n",
        "run -n four prog",
        "run -n 0 prog",
        "run -n -1 prog",
        "run -n 99999999999 prog",
        "run -n 2 -n 3 prog",
        "run --quiet --verbose prog",
        "run --timeout soon prog",
        "run --kill-on-bad-exit maybe prog",
        "run --display mapp prog",
        "run --oversubscribe=yes prog",
        "run a :",
        "run : a",
        "run a : --timeout 3 b",
        "run a : -m b",
        "run --map-by croe prog",
        "run --map-by core:pe=0 prog",
        "run --map-by rankfile prog",
        "run --bind-to cor3 prog",
        "run --cpu-set 3-1 prog",
        "run --output tag,jsno prog",
        "run --output file-only prog",
        "run --output raw,tag prog",
        "run --stdin nowhere prog",
        "run -n 2 --stdin 5 prog",
        "run --launch-agent false --host other prog",
        "run --host , prog",
        "run --hostfile nowhere prog",
        "run --env-file nowhere prog",
        "run -x =1 prog",
        "run --remote-connections=nowhere prog",
        "run --system --report-uri 1 prog",
        "run --system --skip-bad-hosts prog",
        "dvm start --launch-agent false --host other",
        "dvm start --hostfile nowhere",
        "run --pid 1 --uri x prog",
        "dvm begin",
        "dvm start --systemserver",
        "dvm stop --pid one",
        "ps --pid 1 --nspace x",
        "query",
        "query --list JOB_SIZE",
        "attach",
        "attach :1",
        "attach job:3-1",
        "events --code NONSENSE",
        "events --count many",
        "publish novalue",
        "publish --range everywhere a=b",
        "lookup",
        "lookup key --wait never",
        "why now",
        "completions",
        "completions csh",
    ];
    insta::assert_snapshot!("wrong_command_lines", session(&lines, |line| bench.px(line)));
}

#[test]
fn errors_as_json() {
    let bench = Bench::new(1, 1, 1);
    let lines = [
        "run --json --launch-agent false --host other prog",
        "run --json --frobnicate prog",
        "run --json",
        "run --json -n four prog",
        "run --json -n 2 -n 3 prog",
        "run --timeout soon --json prog",
        "run -n 1 prog --json : -n x prog",
        "dvm start --json --systemserver",
        "dvm stop --json --pid one",
        "ps --json --pid 1 --nspace x",
        "query --json",
        "query --json JOB_SIZ",
        "attach --json",
        "attach job:3-1 --json",
        "events --json --code NONSENSE",
        "publish --json novalue",
        "publish --json --range everywhere a=b",
        "lookup --json key --wait never",
        "unpublish --json --frobnicate",
        "why --json now",
        "frobnicate --json",
    ];
    insta::assert_snapshot!("errors_as_json", session(&lines, |line| bench.px(line)));
}

#[test]
fn hello_alone_says_how_to_start_some() {
    let said = Bench::new(1, 1, 1).px("hello");
    assert!(said.starts_with("exit code: 1\n"), "{said}");
    assert!(said.ends_with("hint: try: px run -n 4 px hello\n"), "{said}");
}

#[test]
fn bad_files_are_shown_with_line_and_column() {
    let bench = Bench::new(1, 1, 1);
    bench.file("hosts", "localhost slots=2\nlocalhost slots=two\n");
    bench.file("names", "localhost\n\n  b@d host\n");
    bench.file("env", "GOOD=1\nBAD LINE\n");
    bench.file("ranks", "rank 0=localhost slot=0\nrank one=localhost slot=1\n");
    let lines = [
        "run --hostfile hosts prog",
        "run --hostfile names prog",
        "run --env-file env prog",
        "run --map-by rankfile:file=ranks prog",
        "run --map-by seq:file=nowhere prog",
    ];
    insta::assert_snapshot!("bad_files", session(&lines, |line| bench.px(line)));
}

#[test]
fn dry_runs() {
    let bench = Bench::new(2, 4, 2);
    let lines = [
        "-n 4 prog arg",
        "-n 4 --map-by package --display bindings prog",
        "-n 2 --map-by slot:pe=3 --display bindings prog",
        "-n 2 --bind-to none prog",
        "--map-by ppr:1:package prog",
        "-n 1 server --port 1 : -n 3 worker",
        "-n 40 prog",
        "-n 3 --cpu-set 4-7 prog",
        "-n 2 --display allocation,topology prog",
        "-n 2 --host localhost:4 --display allocation prog",
        "-n 2 -x NOT_SET_ANYWHERE prog",
    ];
    insta::assert_snapshot!("dry_runs", session(&lines, |line| bench.dry_run(line)));
}

#[test]
fn dry_runs_that_cannot_be() {
    let bench = Bench::new(1, 2, 1);
    let lines = [
        "-n 5 --host localhost:2 prog",
        "-n 3 --map-by core:nooversubscribe prog",
        "-n 2 --map-by numa:pe=4 prog",
        "-n 4 --map-by ppr:1:core prog",
        "-n 1 --cpu-set 17 prog",
    ];
    insta::assert_snapshot!("dry_runs_that_cannot_be", session(&lines, |line| bench.dry_run(line)));
}

#[test]
fn dry_runs_over_several_hosts() {
    let bench = Bench::new(2, 2, 1);
    bench.file("hosts", "a slots=2\nb slots=3 max_slots=4\nc.cluster.org slots=1\n");
    bench.file("seq", "c\na\nC\n");
    bench.file("ranks", "rank 0=b slot=1\nrank 1=c slot=0:1\nrank 2=A slot=P1\n");
    let lines = [
        "-n 5 --hostfile hosts --map-by slot --display allocation prog",
        "-n 5 --hostfile hosts --map-by node prog",
        "--hostfile hosts prog",
        "--hostfile hosts --host c,a --map-by ppr:1:node prog",
        "--hostfile hosts --host c,a:5,b:2 --map-by slot:oversubscribe prog",
        "--hostfile hosts --host b,b,a --map-by slot prog",
        "--hostfile seq --map-by seq prog",
        "-n 9 --host a:2,b:3,c:1 --map-by node:oversubscribe --bind-to none prog",
        "--host a:2,b:2 --map-by ppr:2:node prog",
        "-n 3 --host a:2,b:2 --map-by ppr:2:node --rank-by node prog",
        "-n 4 --host a:2,b:2,a prog",
        "-n 6 --host a:2,b:2 --oversubscribe --map-by slot prog",
        "-n 8 --hostfile hosts --oversubscribe --bind-to none prog",
        "-n 4 --host a,a,b --map-by slot prog",
        "-n 3 --host a:2,b:2 --map-by :span prog",
        "-n 3 --map-by seq:file=seq prog",
        "-n 3 --map-by rankfile:file=ranks prog",
        "-n 2 --host a,b,c --map-by seq prog",
        "-n 1 --host b server : -n 3 --host a:2,b:2 worker",
        "-n 1 --host a first : -n 1 --host +n1,b second",
    ];
    insta::assert_snapshot!("dry_runs_over_several_hosts", session(&lines, |line| bench.dry_run(line)));
}

#[test]
fn dry_runs_over_several_hosts_that_cannot_be() {
    let bench = Bench::new(2, 2, 1);
    bench.file("hosts", "a slots=2 max_slots=2\nb slots=3 max_slots=4\n");
    bench.file("ranks", "rank 0=b slot=1\nrank 1=c slot=0\n");
    let lines = [
        "-n 5 --host a:2,b:2 prog",
        "-n 7 --hostfile hosts --oversubscribe prog",
        "--host a:1,b:2 --map-by ppr:2:node prog",
        "-n 5 --host a,b --map-by ppr:2:node prog",
        "-n 2 --host a,b --map-by rankfile:file=ranks prog",
        "-n 3 --host a,b --map-by seq prog",
        "--host a,b first : --host +n2 prog",
        "--host a,+n7 prog",
        "--hostfile hosts --host c prog",
        "-n 5 --hostfile hosts --host b prog",
        "--host a,b:2 --stdin 9 prog",
        "--host nobody@localhost prog",
        "--host b --launch-agent 'docker prog",
        "--host b --launch-agent={host prog",
        "--host b --launch-agent={hosts} prog",
        "--host b --px-path bin/px prog",
        "--host b --network 10.0.0.0/33 prog",
    ];
    insta::assert_snapshot!(
        "dry_runs_over_several_hosts_that_cannot_be",
        session(&lines, |line| bench.dry_run(line))
    );
}

#[test]
fn allocations_are_used_without_options() {
    let bench = Bench::new(1, 4, 1);
    bench.file("nodes", "a\na\nb\n");
    let dry_run = |variable: &str, value: &str, words: &str| {
        let words = format!("run --dry-run --topology-root machine {words}");
        bench.called_with(&[(variable, value)], Path::new(env!("CARGO_BIN_EXE_px")), &words)
    };
    let cases = [
        ("PBS_NODEFILE", "nodes", "--display allocation prog"),
        ("SLURM_JOB_NODELIST", "far[1-2]", "-n 3 --map-by node prog"),
        ("LSB_MCPU_HOSTS", "a 2 b 1", "--host b prog"),
        ("LSB_MCPU_HOSTS", "a 2 b 1", "--host b:2 prog"),
        ("LSB_MCPU_HOSTS", "a 2 b 1", "-n 4 prog"),
        ("LSB_MCPU_HOSTS", "a 2 b 1", "--host c prog"),
        ("LSB_MCPU_HOSTS", "a 2 b 1", "--host localhost prog"),
        ("PBS_NODEFILE", "nowhere", "prog"),
        ("PE_HOSTFILE", "/dev/null", "prog"),
    ];
    let said = cases.map(|(variable, value, words)| {
        format!("$ {variable}={value} px {words}\n{}\n", dry_run(variable, value, words))
    });
    insta::assert_snapshot!("allocations", said.concat());
}

#[test]
fn dry_run_as_json() {
    let bench = Bench::new(1, 2, 1);
    insta::assert_snapshot!(bench.dry_run("-n 2 --json --display allocation,bindings,topology,map prog"));
}

#[test]
fn dialects() {
    let bench = Bench::new(1, 1, 1);
    insta::assert_snapshot!("mpirun_help", bench.px_as("mpirun", "--help"));
    let lines = [
        "",
        "--version",
        "-np two prog",
        "--frob prog",
        "--tag-ouput prog",
        "-n 2 prog :",
        "--prtemca plm_ssh_agent false --host other prog",
        "--prtemca rmaps_default_mapping_policy core prog",
    ];
    insta::assert_snapshot!("mpirun_errors", session(&lines, |line| bench.px_as("mpiexec", line)));
}

#[test]
fn completions_and_man_pages_come_from_the_same_table() {
    let bench = Bench::new(1, 1, 1);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.px(&format!("completions {shell}"));
        assert!(script.contains("kill-on-bad-exit"), "{shell}");
    }
    assert_eq!(bench.px("man man"), "exit code: 0\n");
    let mut pages: Vec<String> = fs::read_dir(bench.path("man"))
        .expect("a directory")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    pages.sort();
    assert!(pages.contains(&"px.1".to_owned()) && pages.contains(&"px-run.1".to_owned()), "{pages:?}");
    let page = fs::read_to_string(bench.path("man/px-run.1")).expect("a page");
    let wanted =
        ["kill\\-on\\-bad\\-exit", "EXIT STATUS", "SIGNALS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"];
    for part in wanted {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let page = fs::read_to_string(bench.path("man/px-mpirun.1")).expect("a page");
    assert!(page.contains("\\-\\-mca") || page.contains("\\-mca"), "{page}");
}
