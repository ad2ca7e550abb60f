//! Another user of the machine owns every name that can be guessed, and listens: no process sends that user anything or waits for it,
//! and jobs run all the same.
//!
//! The tests run as root; the stranger is the user `nobody`.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx_cluster::{built, emptied, workspace};
use phalanx_interop::{
    Job, Running, copy_program, debian_file, eventually, host, libpmix, needs_root, new_directory, pmix,
    pmix_tool, px_binary, rust_tool, script,
};
use tempfile::TempDir;

/// A directory in which every user can create files.
fn place() -> TempDir {
    let place = new_directory();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("permissions");
    place
}

/// The launcher in a place that every user can reach.
fn px_for_everybody(place: &Path) -> PathBuf {
    let copy = place.join("px");
    fs::copy(px_binary(), &copy).expect("a copy");
    copy
}

/// A program that the stranger runs.
fn of_stranger(program: impl AsRef<Path>) -> Job {
    needs_root("another user takes part");
    let ids = [format!("--reuid={STRANGER}"), format!("--regid={STRANGER}"), "--clear-groups".to_owned()];
    // Other users may not be able to enter the checkout.
    Job::new("setpriv").args(ids).arg(program.as_ref()).dir(Path::new("/"))
}

/// The stranger's program, and the ports at which it listens.
fn stranger() -> (Running, Vec<u16>) {
    let python = debian_file("/usr/bin/python3", "python3");
    let code = fs::read_to_string(script("stranger.py")).expect("the program");
    let running = of_stranger(python).args(["-c", &code]);
    // Its input ends with the test.
    let (keep, end) = std::sync::mpsc::channel::<()>();
    std::mem::forget(keep);
    let running = running.feeding(move |pipe| {
        let _ = end.recv();
        drop(pipe);
    });
    let running = running.start();
    running.until_said(&format!("ready {STRANGER}"));
    let ports = running.said().lines().filter_map(|line| line.strip_prefix("port ")?.parse().ok()).collect();
    (running, ports)
}

fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(STRANGER), Some(STRANGER)).expect("giving a file away");
}

/// Files that lead to the stranger, under all names that tools look for.
fn lure(place: &Path, ports: &[u16]) -> PathBuf {
    let host = host();
    let me = std::process::id();
    let write = |path: &Path, port: u16| {
        let text = format!("px-{host}-{me}.0;tcp4://127.0.0.1:{port}\n5.0.11\n{me}\n0:0\nnow\n\nlocked\n");
        fs::write(path, text).expect("writing");
        give(path);
    };
    let dir = place.join("px.0.1.aaaaaa.aaaaaaaaaaaa");
    fs::create_dir(&dir).expect("a directory");
    for (index, port) in ports.iter().enumerate() {
        for dir in [place, &dir] {
            write(&dir.join(format!("pmix.{host}.tool.{index}")), *port);
        }
    }
    for dir in [place, &dir] {
        let names = [format!("sys.{host}"), format!("{host}.tool"), format!("{host}.tool.{me}")];
        for name in names.into_iter().chain([format!("{host}.tool.px-{host}-{me}")]) {
            write(&dir.join(format!("pmix.{name}")), ports[0]);
        }
    }
    give(&dir);
    let file = place.join("uri");
    write(&file, ports[0]);
    file
}

/// A job in a directory without servers of other tests.
fn below(tmpdir: &Path, program: impl AsRef<Path>, words: &[&str]) -> Job {
    Job::new(program.as_ref()).args(words).env("TMPDIR", tmpdir)
}

/// With only the necessary files in `/tmp`.
fn in_empty_tmp(place: &Path, program: &str, words: &[&str]) -> Job {
    needs_root("a file system is mounted");
    let built = built().expect("what was built");
    let kept = [workspace().to_owned(), built.clone(), place.to_owned()];
    let emptied = emptied(&built.join("cluster"), &["/tmp"], &kept).expect("util-linux");
    Job::new(emptied.get_program()).args(emptied.get_args()).arg(program).args(words)
}

#[test]
fn commands_send_nothing_to_a_strangers_server() {
    let (place, (stranger, ports)) = (place(), stranger());
    let file = lure(place.path(), &ports);
    let (me, host) = (std::process::id().to_string(), host());
    let uri = |port: u16| format!("px-{host}-{me}.0;tcp4://127.0.0.1:{port}");
    let named = file.display().to_string();
    let nspace = format!("px-{host}-{me}");
    let job = format!("{nspace}@1");
    let secret = "the-secret-of-the-job";
    let px = |words: &[&str]| below(place.path(), px_binary(), words);
    let mut asked: Vec<Job> = vec![
        px(&["ps"]),
        px(&["query", "QUERY_NAMESPACES"]),
        px(&["query", "QUERY_NAMESPACES", "--system"]),
        px(&["query", "QUERY_NAMESPACES", "--pid", &me]),
        px(&["query", "QUERY_NAMESPACES", "--nspace", &nspace]),
        px(&["query", "QUERY_NAMESPACES", "--file", &named]),
        px(&["events", "-n", "1"]),
        px(&["publish", &format!("key={secret}")]),
        px(&["lookup", secret]),
        px(&["unpublish", secret]),
        px(&["why"]),
        px(&["attach", &job]),
        px(&["dvm", "stop"]),
        px(&["run", "--system", "-n", "1", "echo", secret]),
        px(&["run", "--file", &named, "-n", "1", "echo", secret]),
        px(&["hello"])
            .env("PMIX_NAMESPACE", &nspace)
            .env("PMIX_RANK", "0")
            .env("PMIX_SERVER_URI41", uri(ports[0])),
        px(&["run", "-n", "1", "echo", secret]).env("PMIX_LAUNCHER_RNDZ_URI", uri(ports[0])),
    ];
    for port in &ports {
        asked.push(px(&["query", "QUERY_NAMESPACES", "--uri", &uri(*port)]));
        // This address leads to the same server.
        let anywhere = uri(*port).replace("127.0.0.1", "0.0.0.0");
        asked.push(px(&["query", "QUERY_NAMESPACES", "--uri", &anywhere]));
        asked.push(px(&["run", "--uri", &uri(*port), "-n", "1", "echo", secret]));
        asked.push(below(
            place.path(),
            rust_tool("attach"),
            &[&format!("pmix.srvr.uri={}", uri(*port)), "--", "query"],
        ));
        let in_c = below(place.path(), pmix_tool("attach"), &["uri", &uri(*port), "--", "servers"]);
        asked.push(in_c.env("LD_LIBRARY_PATH", libpmix()));
    }
    asked.push(below(place.path(), rust_tool("attach"), &["--", "available", "query"]));
    asked.push(below(
        place.path(),
        rust_tool("attach"),
        &[&format!("pmix.tool.attach={named}"), "--", "query"],
    ));
    asked
        .push(below(place.path(), pmix_tool("attach"), &["--", "servers"]).env("LD_LIBRARY_PATH", libpmix()));
    let rank = below(place.path(), pmix("end"), &["stuck"]).env("LD_LIBRARY_PATH", libpmix());
    asked.push(
        rank.env("PMIX_NAMESPACE", &nspace).env("PMIX_RANK", "0").env("PMIX_SERVER_URI41", uri(ports[1])),
    );
    // All at once: the time that they take shows that none of them waits.
    let asked: Vec<Running> = asked.into_iter().map(Job::start).collect();
    for running in asked {
        let outcome = running.wait();
        assert!(outcome.took < Duration::from_secs(25), "a stranger costs time: {outcome}");
        let _ = match outcome.command.contains("\"ps\"") {
            // It lists no server, which is not a failure, and names those that it has not asked.
            true => outcome.expect_stderr(&["not asked", "to the user 65534, who is not trusted"]),
            false => outcome.expect_failure().expect_nowhere("hello from"),
        };
    }
    let said = stranger.said();
    assert!(!said.contains("heard"), "{said}");
    // A tool that trusts the stranger connects.
    let trusting = px(&["query", "QUERY_NAMESPACES", "--file", &named, "--wait-server", "1"]);
    let trusting = trusting.args(["--trust-user", &STRANGER.to_string()]).run().expect_failure();
    let _ = trusting.expect_stderr(&["did not answer in time"]);
    stranger.until_said("heard");
    stranger.signal(rustix::process::Signal::KILL);
    let _ = stranger.wait();
}

#[test]
fn jobs_run_where_a_stranger_has_taken_all_names() {
    let (place, (stranger, ports)) = (place(), stranger());
    let _ = lure(place.path(), &ports);
    let victim = new_directory();
    fs::write(victim.path().join("precious"), "x").expect("writing");
    let detached = place.path().join("px.0.detached");
    symlink(victim.path(), &detached).expect("a link");
    give(&detached);
    let px = |words: &[&str]| below(place.path(), px_binary(), words);
    let running = px(&["run", "-n", "2", "sh", "-c", "px hello; sleep 1000"]).start();
    let query = || px(&["query", "QUERY_NAMESPACES"]).run();
    eventually("our own server is found among his", || query().stdout.contains("px-"));
    running.signal(rustix::process::Signal::TERM);
    let _ = running.wait().expect_code(143);
    let left: Vec<_> =
        fs::read_dir(victim.path()).expect("a directory").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["precious"]);

    // Files of the stranger in the system server's place do not keep root out.
    let system = px(&["dvm", "start", "--system-server"]).start();
    system.until_said("is ready");
    let _ = px(&["run", "--system", "-n", "2", "px", "hello"]).run().expect_code(0);
    system.signal(rustix::process::Signal::TERM);
    let _ = system.wait().expect_code(0);
    drop((stranger, chown(place.path(), Some(0), Some(0))));
}

/// Directories may give files their own group, and the stranger may be a member.
#[test]
fn rendezvous_files_for_a_group_are_for_the_servers_own() {
    needs_root("files are given to another group");
    let place = place();
    chown(place.path(), None, Some(STRANGER)).expect("giving it to a group");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o3777)).expect("permissions");
    let for_group = format!("pmix.sockmode={}", 0o640);
    let over = place.path().join("over");
    let wait = format!("until [ -e '{}' ]; do sleep 0.05; done", over.display());
    let running = Job::new(rust_tool("host"))
        .args(["pmix.srvr.tool", &for_group, "1", "/bin/sh", "-c", &wait])
        .env("HOST_TMPDIR", place.path())
        .env("TMPDIR", place.path())
        .start();
    let file = place.path().join(format!("pmix.{}.tool.{}", host(), running.pid()));
    eventually("the host can be found", || file.exists());
    let found = fs::metadata(&file).expect("a file");
    assert_eq!((found.gid(), found.mode() & 0o777), (0, 0o640));
    fs::write(&over, "").expect("writing");
    let _ = running.wait().expect_code(0);
}

/// The kernel identifies the user, whatever credentials it presents.
#[test]
fn another_user_is_no_rank_of_a_job() {
    let (place, meeting) = (place(), place());
    let say = "echo $PMIX_NAMESPACE $PMIX_RANK \"$PMIX_SERVER_URI41\"; sleep 1000";
    let running =
        Job::new(px_binary()).args(["run", "-n", "1", "sh", "-c", say]).env("TMPDIR", place.path()).start();
    running.until_said("tcp4://");
    let said = running.said();
    let words: Vec<&str> = said.split_whitespace().collect();
    let code = fs::read_to_string(script("hostile.py")).expect("the program");
    let python = debian_file("/usr/bin/python3", "python3");
    let roots_credential: String = "0".repeat(16);
    let client = |job: Job, mischief: &str| {
        let job = job.arg(python).args(["-c", &code, mischief, "0"]).env("INTEROP_MEETING", meeting.path());
        let job =
            job.env("PMIX_NAMESPACE", words[0]).env("PMIX_RANK", words[1]).env("PMIX_SERVER_URI41", words[2]);
        job.env("INTEROP_CREDENTIAL", &roots_credential).run().expect_code(0)
    };
    for mischief in ["honest", "replayed_credential", "foreign_credential"] {
        let outcome = client(of_stranger("env"), mischief);
        outcome.assert_line(&format!("{mischief}: closed"));
    }
    running.until_said(&format!("of {} has refused rank 0: the process that calls itself so", host()));
    running.until_said(&format!("runs as user {STRANGER}, and the job as user 0"));
    for mischief in ["honest", "replayed_credential"] {
        client(Job::new("env"), mischief).assert_line(&format!("{mischief}: answered 8 bytes"));
    }
    running.signal(rustix::process::Signal::TERM);
    let _ = running.wait().expect_code(143);
}

/// The program is changed to another user by something in front of it.
#[test]
fn ranks_of_another_user_are_named_with_it() {
    needs_root("another user takes part");
    let place = place();
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).env("TMPDIR", place.path()).start();
    dvm.until_said("is ready");
    let pid = dvm.pid().to_string();
    let hello = fs::read_to_string(script("hostile.py")).expect("the program");
    for options in [&[][..], &["--pid", &pid]] {
        let job = Job::new(px_binary()).args(["run", "-n", "2"]).args(options);
        let job = job.args(["setpriv", &format!("--reuid={STRANGER}"), "--clear-groups"]);
        let job = job.arg(debian_file("/usr/bin/python3", "python3")).args(["-c", &hello, "honest", "0"]);
        let outcome = job.env("TMPDIR", place.path()).env("INTEROP_MEETING", place.path()).run();
        let said = format!("runs as user {STRANGER}, and the job as user 0. Ranks have the user of px");
        assert_eq!(outcome.stderr.matches(&said).count(), 1, "{outcome}");
    }
    let stop = ["dvm", "stop", "--pid", &pid];
    let _ = Job::new(px_binary()).args(stop).env("TMPDIR", place.path()).run().expect_code(0);
    let _ = dvm.wait().expect_code(0);
}

/// A killed OpenPMIx server leaves its file, with a pid and a port that others may reuse.
#[test]
fn stale_file_with_the_port_of_a_stranger_is_no_server() {
    let place = place();
    let (stranger, ports) = stranger();
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).env("TMPDIR", place.path()).start();
    dvm.until_said("is ready");
    let dir = place.path().join("ompi.stale.0");
    fs::create_dir(&dir).expect("a directory");
    let me = std::process::id();
    for (index, port) in ports.iter().enumerate() {
        let text = format!("stale{index}.0;tcp4://127.0.0.1:{port}\n5.0.11\n{me}\n0:0\nnow\n");
        fs::write(dir.join(format!("pmix.{}.tool.{me}{index}", host())), text).expect("writing");
    }
    for words in [&["query", "QUERY_NAMESPACES"][..], &["publish", "a=b"], &["dvm", "stop"]] {
        let _ = below(place.path(), px_binary(), words).run().expect_code(0);
    }
    let _ = dvm.wait().expect_code(0);
    stranger.signal(rustix::process::Signal::TERM);
    let _ = stranger.wait();
}

/// Trusting a user's servers is not a request to stop that user's DVM.
#[test]
fn dvm_of_a_trusted_user_is_stopped_by_name_only() {
    let place = place();
    let theirs = of_stranger(px_for_everybody(place.path())).args(["dvm", "start"]);
    let theirs = theirs.env("TMPDIR", place.path()).start();
    theirs.until_said("is ready");
    let trust = STRANGER.to_string();
    let stop = |words: &[&str]| {
        let words = [&["dvm", "stop", "--trust-user", &trust], words].concat();
        below(place.path(), px_binary(), &words).run()
    };
    let _ = stop(&[]).expect_failure();
    let pid =
        theirs.said().split_whitespace().next().and_then(|name| name.rsplit('-').next()?.parse::<u32>().ok());
    let _ = stop(&["--pid", &pid.expect("a pid").to_string()]).expect_code(0);
    let _ = theirs.wait().expect_code(0);
}

/// Where px runs as the user that stands for all users outside of its user namespace, that uid identifies no one.
#[test]
fn users_outside_of_a_user_namespace_are_strangers() {
    needs_root("other users take part");
    let place = place();
    let px = px_for_everybody(place.path());
    let home = home_of_owner(place.path());
    let as_user = |user: u32, program: &Path| as_user(user, program, &home).dir(&home);
    let script = "px=$1; cd \"$TMPDIR\"; \"$px\" dvm start > started & dvm=$!
        until grep -q ready started; do sleep 0.02; done
        \"$px\" run --pid $dvm -n 2 sh -c 'echo from rank $PMIX_RANK; \"$0\" hello' \"$px\"; echo code $?; echo dvm $dvm
        read over; kill $dvm; wait $dvm";
    let (end, over) = std::sync::mpsc::channel::<()>();
    let inside = as_user(OWNER, Path::new("unshare"))
        .args(["--user", "--map-user=65534", "sh", "-c", script, "sh"])
        .arg(&px)
        .feeding(move |pipe| {
            let _ = over.recv();
            drop(pipe);
        })
        .start();
    inside.until_said("\ndvm ");
    let said = inside.said();
    assert!(said.contains("from rank 1\n") && said.contains("code 0\n"), "{said}");
    let dvm = said.rsplit_once("dvm ").expect("a pid").1.trim().to_owned();
    let name = format!("pmix.{}.tool.{dvm}", host());
    let sessions = fs::read_dir(&home).expect("readable").flatten().map(|entry| entry.path().join(&name));
    let file = sessions.into_iter().find(|file| file.exists()).expect("its file");
    let text = fs::read_to_string(file).expect("readable");
    let uri = text.lines().next().expect("an address");
    let trust = OWNER.to_string();
    let words = ["run", "--uri", uri, "--trust-user", &trust, "-n", "1", "echo", "from outside"];
    let from_outside = |user: u32| as_user(user, &px).args(words).env("TMPDIR", place.path()).run();
    for stranger in [OWNER + 1, STRANGER] {
        let refused = from_outside(stranger).expect_failure();
        assert_eq!(refused.stdout, "", "{refused}");
    }
    // The namespace's own user is the same on both sides.
    from_outside(OWNER).expect_code(0).assert_line("from outside");
    drop(end);
    let _ = inside.wait();
}

/// Tools of other libraries connect over TCP, where the kernel shows the owner's number and nothing else.
#[test]
fn owners_of_user_namespaces_are_known_by_their_own_number() {
    needs_root("other users take part");
    let place = place();
    let px = px_for_everybody(place.path());
    let tool = place.path().join("tool");
    copy_program(&pmix_tool("attach"), &tool);
    let home = home_of_owner(place.path());
    let as_user = |user: u32, program: &Path| as_user(user, program, &home).dir(Path::new("/"));
    for (map, is_known) in [("--map-root-user", true), ("--map-user=65534", false)] {
        let dvm = as_user(OWNER, Path::new("unshare")).args(["--user", map]).arg(&px).args(["dvm", "start"]);
        let dvm = dvm.start();
        dvm.until_said("is ready");
        let name = format!("pmix.{}.tool.{}", host(), dvm.pid());
        let sessions = || fs::read_dir(&home).expect("readable").flatten();
        let file = sessions().map(|entry| entry.path().join(&name)).find(|file| file.exists());
        let text = fs::read_to_string(file.expect("its file")).expect("readable");
        let uri = text.lines().next().expect("an address");
        for user in [OWNER, OWNER + 1, 0, STRANGER] {
            let outcome = as_user(user, &tool).args(["uri", uri, "--", "me"]).run();
            let is_let_in = outcome.stdout.contains("init SUCCESS");
            assert_eq!(is_let_in, is_known && user == OWNER, "{map}, user {user}: {outcome}");
        }
        dvm.signal(rustix::process::Signal::TERM);
        let _ = dvm.wait().expect_code(0);
    }
}

/// The commands for a job in another user namespace mention its server, which cannot be identified from there.
#[test]
fn servers_beyond_a_user_namespace_are_named_as_not_asked() {
    needs_root("another user takes part");
    let place = place();
    let px = px_for_everybody(place.path());
    let home = home_of_owner(place.path());
    let as_owner = |program: &Path| as_user(OWNER, program, &home).dir(&home);
    let running = as_owner(&px).args(["run", "-n", "1", "sh", "-c", "echo $PMIX_NAMESPACE; exec sleep 1000"]);
    let running = running.start();
    running.until_said("\n");
    let job = running.said().trim().to_owned();
    // A launcher announces itself some moments after its ranks have begun.
    eventually("the job can be found", || as_owner(&px).arg("ps").run().stdout.contains(&job));
    let expected = ["px: not asked: ", "a process outside of this user namespace listens at its port"];
    for words in [&["ps"][..], &["ctl", "pause", &job], &["kill", &job], &["attach", &job], &["wait", &job]] {
        let inside = as_owner(Path::new("unshare")).args(["--user", "--map-user=65534"]).arg(&px);
        let outcome = inside.args(words).run();
        let _ = outcome.expect_stderr(&expected);
    }
    running.signal(rustix::process::Signal::TERM);
    let _ = running.wait().expect_code(143);
}

/// A directory of the owner of a user namespace.
fn home_of_owner(place: &Path) -> PathBuf {
    let home = place.join("home");
    fs::create_dir(&home).expect("a directory");
    chown(&home, Some(OWNER), Some(OWNER)).expect("an owner");
    home
}

fn as_user(user: u32, program: &Path, tmpdir: &Path) -> Job {
    let ids = [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()];
    Job::new("setpriv").args(ids).arg(program).env("TMPDIR", tmpdir)
}

const OWNER: u32 = 4242;
const STRANGER: u32 = 65534;

/// Another user may be able to rename the directory for temporary files, or a link on the way to it.
#[test]
fn tmpdir_that_others_can_rename_is_not_used() {
    needs_root("files are given away");
    let place = place();
    let make = |name: &str, mode: u32, owner: u32| {
        let dir = place.path().join(name);
        fs::create_dir_all(&dir).expect("a directory");
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("permissions");
        chown(&dir, Some(owner), None).expect("an owner");
        dir
    };
    let link = |to: &Path, name: &str, owner: u32| {
        let link = place.path().join(name);
        symlink(to, &link).expect("a link");
        std::os::unix::fs::lchown(&link, Some(owner), None).expect("an owner");
        link
    };
    let own = make("own", 0o700, 0);
    let open = make("open", 0o777, 0);
    let theirs = make("theirs", 0o755, STRANGER);
    let below = make("theirs/own", 0o700, 0);
    let sticky = make("sticky", 0o1777, 0);
    let refused = [
        open.clone(),
        theirs.clone(),
        below,
        link(&own, "open/link", 0),
        link(&own, "theirs/link", 0),
        link(&own, "link-of-theirs", STRANGER),
        link(&place.path().join("open/link"), "link-to-link", 0),
    ];
    // Ranks see what is stored for their jobs in /tmp and in TMPDIR.
    let script = "px=$1; export SEE='echo $(ls /tmp | grep -c $0) $(ls \"$TMPDIR/\" | grep -c $0)'
        \"$px\" run -n 1 sh -c \"$SEE\" lock
        job=$(\"$px\" run --detach -n 1 sh -c \"$SEE\" detached) && \"$px\" attach --since-start \"$job\"";
    let run = |tmpdir: &Path| {
        let px = px_binary();
        let job = in_empty_tmp(place.path(), "sh", &["-c", script, "sh", &px.to_string_lossy()]);
        job.env("TMPDIR", tmpdir).outlived().run().expect_code(0)
    };
    for tmpdir in refused {
        let seen = run(&tmpdir);
        assert_eq!(seen.stdout, "1 0\n1 0\n", "{seen}");
        // Printed by px run, by px run --detach, and by the second job's session into its kept output.
        assert_eq!(seen.stderr.matches("using /tmp instead of TMPDIR").count(), 3, "{seen}");
    }
    for tmpdir in [&own, &sticky, &link(&own, "link", 0), &link(&own, "sticky/link", 0)] {
        let seen = run(tmpdir);
        assert_eq!((&*seen.stdout, &*seen.stderr), ("0 1\n0 1\n", ""), "{seen}");
    }
    // The same for other users: they may use a directory that only they and root can rename.
    let px = px_for_everybody(place.path());
    for (tmpdir, is_used) in [(&theirs, true), (&sticky, true), (&make("third", 0o777, 4242), false)] {
        let job = of_stranger(&px).args(["run", "-n", "1", "true"]);
        let seen = job.env("TMPDIR", tmpdir).run().expect_code(0);
        assert_eq!(!seen.stderr.contains("using /tmp instead of TMPDIR"), is_used, "{seen}");
    }
}
