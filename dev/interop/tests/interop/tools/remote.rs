//! Tools on another node: two network namespaces of this machine connected by a cable.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use phalanx_interop::{
    Job, Outcome, Running, debian_file, eventually, libpmix, needs_root, new_directory, pmix, pmix_tool,
    px_binary, rust_tool,
};
use rustix::process::Signal;
use tempfile::TempDir;

/// A network namespace, kept alive by an idle process.
struct Node(Running);

impl Node {
    fn new() -> Node {
        needs_root("a network is made");
        let running = Job::new("unshare").args(["--net", "sleep", "1000"]).start();
        let own = fs::read_link("/proc/self/ns/net").expect("our own namespace");
        let other = || fs::read_link(format!("/proc/{}/ns/net", running.pid()));
        eventually("the namespace is there", || other().is_ok_and(|other| other != own));
        Node(running)
    }

    fn job(&self, program: impl AsRef<Path>) -> Job {
        let pid = self.0.pid().to_string();
        Job::new("nsenter").args(["--target", &pid, "--net", "--"]).arg(program.as_ref())
    }

    fn ip(&self, words: &str) {
        let ip = debian_file("/usr/sbin/ip", "iproute2");
        let _ = self.job(ip).args(words.split(' ')).run().expect_code(0);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.0.signal(Signal::KILL);
    }
}

/// The node of the server, and that of the tools.
fn two_nodes() -> (Node, Node) {
    let (here, there) = (Node::new(), Node::new());
    here.ip(&format!("link add cable type veth peer name cable netns {}", there.0.pid()));
    for (node, address) in [(&here, HERE), (&there, "10.77.0.2")] {
        node.ip(&format!("address add {address}/24 dev cable"));
        node.ip("link set cable up");
        node.ip("link set lo up");
    }
    (here, there)
}

/// `px run` on a node, with its rendezvous file.
fn launcher(node: &Node, options: &[&str]) -> (Running, PathBuf, TempDir) {
    let place = new_directory();
    let file = place.path().join("uri");
    let running = node
        .job(px_binary())
        .args(["run", "--report-uri"])
        .arg(&file)
        .args(options)
        .args(["-n", "2", "sleep", "1000"])
        .start();
    eventually("the launcher says where it is", || file.exists());
    (running, file, place)
}

fn uri(file: &Path) -> String {
    fs::read_to_string(file).expect("readable").lines().next().expect("an address").to_owned()
}

fn attach(node: &Node, words: &[&str], secret: Option<&str>) -> Outcome {
    let tool = node.job(rust_tool("attach")).args(words).args(["pmix.tool.mretries=0", "--", "query"]);
    secret.into_iter().fold(tool, |tool, secret| tool.env("PHALANX_TOOL_SECRET", secret)).run()
}

#[test]
fn remote_tool_attaches_with_file_or_secret() {
    let (here, there) = two_nodes();
    let (running, file, _place) = launcher(&here, &["--remote-connections"]);
    let text = fs::read_to_string(&file).expect("readable");
    let address = uri(&file);
    assert!(address.contains(&format!(";tcp4://{HERE}:")), "{address}");
    let secret = text.lines().find_map(|line| line.strip_prefix("secret ")).expect("a secret");
    let by_file = format!("pmix.tool.attach={}", file.display());
    let by_uri = format!("pmix.srvr.uri={address}");
    let _ = attach(&there, &[&by_file], None).expect_code(0).expect_stdout(&["query SUCCESS", "px-"]);
    let _ = attach(&there, &[&by_uri], Some(secret)).expect_code(0).expect_stdout(&["query SUCCESS"]);
    // On the server's node the kernel identifies the tool.
    let _ = attach(&here, &[&by_uri], None).expect_code(0).expect_stdout(&["query SUCCESS"]);
    for wrong in [None, Some("guess"), Some("")] {
        let outcome = attach(&there, &[&by_uri], wrong).expect_failure();
        let _ =
            outcome.expect_stdout(&["PMIX_ERR_NO_PERMISSIONS", "wants the secret in its rendezvous file"]);
    }
    let shown = there.job(px_binary()).args(["ps", "--file"]).arg(&file).run().expect_code(0);
    let _ = shown.expect_stdout(&["sleep 1000"]);
    running.end();
}

/// They read our files, but cannot present our secret.
#[test]
fn tools_of_openpmix_are_served_where_the_kernel_knows_them() {
    let (here, there) = two_nodes();
    let (running, file, _place) = launcher(&here, &["--remote-connections"]);
    let words = ["file", file.to_str().expect("UTF-8"), "retries", "0", "--", "query"];
    let near = here.job(pmix_tool("attach")).args(words).run().expect_code(0);
    near.assert_line("init SUCCESS");
    let far = there.job(pmix_tool("attach")).args(words).run().expect_failure();
    far.assert_line("init UNREACHABLE");
    running.end();
}

#[test]
fn tools_of_other_nodes_cannot_connect_by_default() {
    let (here, there) = two_nodes();
    let (running, file, _place) = launcher(&here, &[]);
    let text = fs::read_to_string(&file).expect("readable");
    assert!(text.contains(";tcp4://127.0.0.1:") && !text.contains("secret"), "{text}");
    let port = uri(&file).rsplit_once(':').expect("a port").1.to_owned();
    let guess = uri(&file).replace(&format!("127.0.0.1:{port}"), &format!("{HERE}:{port}"));
    let outcome = attach(&there, &[&format!("pmix.srvr.uri={guess}")], None).expect_failure();
    let _ = outcome.expect_stdout(&["nobody accepts connections there", "a firewall is in between"]);
    running.end();
}

/// Hosts in Rust and in C, with one rank, that write their address into the file; `remote`: they serve other nodes.
fn hosts(here: &Node, remote: bool, place: &Path) -> Vec<(Running, PathBuf)> {
    let (native, in_c) = (place.join("native"), place.join("in-c"));
    let native_file = format!("pmix.tool.lncrnd={}", native.display());
    let words = ["pmix.srvr.tool", &native_file, "pmix.srvr.remote"];
    let words = if remote { &words[..] } else { &words[..2] };
    let jobs = [
        (here.job(rust_tool("host")).args(words), native),
        (here.job(pmix("host")).env("HOST_SERVES", if remote { "remote" } else { "tools" }), in_c),
    ];
    let start = |(job, file): (Job, PathBuf)| {
        let job = job.env("HOST_FILE", &file).env("HOST_TMPDIR", place).env("TMPDIR", place);
        let over = place.join("over");
        let wait = format!("until [ -e '{}' ]; do sleep 0.05; done", over.display());
        let running = job.env("LD_LIBRARY_PATH", libpmix()).args(["1", "/bin/sh", "-c", &wait]).start();
        eventually("the host says where it is", || file.exists());
        (running, file)
    };
    jobs.into_iter().map(start).collect()
}

#[test]
fn hosts_in_rust_and_in_c_serve_other_nodes_if_they_say_so() {
    let (here, there) = two_nodes();
    for remote in [true, false] {
        let place = new_directory();
        let all = hosts(&here, remote, place.path());
        for (_, file) in &all {
            let by_file = format!("pmix.tool.attach={}", file.display());
            let near = here.job(rust_tool("attach")).args([&by_file, "--", "me"]).run().expect_code(0);
            let _ = near.expect_stdout(&["init SUCCESS", "me tool"]);
            let words = [&by_file, "pmix.tool.mretries=0", "--", "me"];
            let far = there.job(rust_tool("attach")).args(words).run();
            match remote {
                true => drop(far.expect_code(0).expect_stdout(&["init SUCCESS", "me tool"])),
                false => drop(far.expect_failure().expect_stdout(&["nobody accepts connections there"])),
            }
            assert_eq!(uri(file).contains(&format!(";tcp4://{HERE}:")), remote, "{}", uri(file));
        }
        fs::write(place.path().join("over"), "").expect("writing");
        for (running, file) in all {
            let _ = running.wait().expect_code(0);
            assert!(!file.exists(), "it goes with its server");
        }
    }
}

const HERE: &str = "10.77.0.1";
