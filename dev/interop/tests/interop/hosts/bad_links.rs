//! Jobs over hosts with bad links: slow, split, stalled, cut, or not read for a while.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use phalanx_cluster::{Relay, Weather};
use phalanx_interop::mpi_programs::expect_ring;
use phalanx_interop::{Job, Library::OpenMpi4, Outcome, Running, eventually, mpi, px_binary, rss_kib};

use crate::site::{Site, over_tcp};

/// Three hosts in two networks. Traffic from the daemon of n2 to its root goes through a relay.
struct BadLink {
    site: Site,
}

/// From n2 to n3, and from there to the root: on n2 the root's address is a local one, where the relay listens.
struct Passage {
    near: Relay,
    _far: Relay,
}

impl BadLink {
    fn new() -> BadLink {
        let site = Site::in_networks(2);
        // Other hosts must not learn of that address.
        let quiet = "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore";
        site.host(2).run(&["sh", "-c", quiet]).expect("an option of the kernel");
        let root = format!("{}/32", site.host(1).ipv4_in(1));
        site.host(2).run(&["ip", "address", "add", &root, "dev", "lo"]).expect("an address");
        let agent = "host=$1; shift; for word; do shift; set -- \"$@\" \"'$word'\"; done; until [ $host != n2 ] || [ -e /tmp/go ]; do sleep 0.05; done\n\
                     exec ssh -x -T -o BatchMode=yes -- $host exec \"$@\"\n";
        fs::write(site.host(1).path("/tmp/agent"), agent).expect("an agent");
        BadLink { site }
    }

    /// px with two ranks on each host, with daemons that use the second network only.
    fn run(&self) -> Job {
        let words = "run -q --host n1:2,n2:2,n3:2 --map-by node -n 6 --launch-agent";
        let job = self.site.px(1, words).arg("sh /tmp/agent");
        job.args(["--network", "10.77.1.0/24", "--host-timeout", "9"])
    }

    /// Starts the job, and lets n2 connect to it through a relay.
    fn start(&self, job: Job, weather: Weather) -> (Running, Passage) {
        let job = job.start();
        let mut port = None;
        eventually("the root listens", || {
            port = self.listening();
            port.is_some()
        });
        let (site, port) = (&self.site, port.unwrap_or_default());
        let root = SocketAddr::from((site.host(1).ipv4_in(1), port));
        let between = SocketAddr::from((site.host(3).ipv4_in(0), port));
        let far = Relay::start(Some(site.host(3)), between, root).expect("a relay on n3");
        let near = Relay::start(Some(site.host(2)), root, between).expect("a relay on n2");
        near.set(weather);
        fs::write(site.host(1).path("/tmp/go"), "").expect("a file");
        (job, Passage { near, _far: far })
    }

    /// The port at which the root listens for daemons.
    fn listening(&self) -> Option<u16> {
        let table = self.site.host(1).run(&["cat", "/proc/net/tcp"]).expect("the sockets of n1");
        let address = u32::from_ne_bytes(self.site.host(1).ipv4_in(1).octets());
        table.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (at, port) = words.get(1)?.split_once(':')?;
            let is_it = words.get(3) == Some(&"0A") && at == format!("{address:08X}");
            is_it.then(|| u16::from_str_radix(port, 16).ok())?
        })
    }

    fn expect_nothing_left(&self) {
        let _ = fs::remove_file(self.site.host(1).path("/tmp/go"));
        self.site.expect_nothing_left();
    }
}

/// Checks the output of `yes`.
fn expect_whole(outcome: Outcome, bytes: usize) {
    let outcome = outcome.expect_code(0);
    let line = b"word of many\n";
    let is_right = outcome.stdout.bytes().enumerate().all(|(at, byte)| byte == line[at % line.len()]);
    assert!(is_right && outcome.stdout.len() == bytes, "{} of {bytes} bytes", outcome.stdout.len());
}

fn writes(bytes: usize) -> [String; 3] {
    let script = format!("[ $PMIX_RANK = 1 ] || exit 0; yes word of many | head -c {bytes}");
    ["sh".to_owned(), "-c".to_owned(), script]
}

#[test]
fn mpi_and_output_go_through_slow_and_split_links() {
    let hosts = BadLink::new();
    let weather = Weather { delay: Duration::from_millis(3), split: Some(900), stalled: false };
    let mpi_job = over_tcp(hosts.run().arg(mpi(OpenMpi4, "ring")), OpenMpi4);
    let mpi_job = mpi_job.env("OMPI_MCA_btl_tcp_if_include", "10.77.0.0/24");
    let (job, passage) = hosts.start(mpi_job, weather);
    expect_ring(job.wait(), 6);
    assert!(passage.near.passed() > 1000, "the link does not go through the relay");
    drop(passage);
    hosts.expect_nothing_left();

    let bytes = 50_000_000;
    let (job, passage) = hosts.start(hosts.run().args(writes(bytes)), weather);
    expect_whole(job.wait(), bytes);
    assert!(passage.near.passed() > bytes as u64, "the link does not go through the relay");
    hosts.expect_nothing_left();
}

#[test]
fn output_is_whole_after_stalls_and_cuts_of_a_link() {
    let hosts = BadLink::new();
    let bytes = 20_000_000;
    let (job, passage) = hosts.start(hosts.run().args(writes(bytes)), Weather::default());
    let until = |passed: u64| eventually("more has come", || passage.near.passed() >= passed);
    until(2_000_000);
    passage.near.set(Weather { stalled: true, ..Weather::default() });
    let before = passage.near.answers();
    eventually("heartbeats of the root wait at the relay", || passage.near.answers() > before + 2);
    passage.near.set(Weather { delay: Duration::from_millis(1), ..Weather::default() });
    until(5_000_000);
    passage.near.cut();
    until(10_000_000);
    passage.near.cut();
    expect_whole(job.wait(), bytes);
    hosts.expect_nothing_left();
}

#[test]
fn a_link_that_stays_stalled_or_broken_is_a_lost_host() {
    let hosts = BadLink::new();
    let running = || {
        let (job, passage) = hosts.start(hosts.run().args(["sleep", "1000"]).outlived(), Weather::default());
        eventually("all ranks run", || hosts.site.count("sleep") == [2, 2, 2]);
        (job, passage)
    };
    let (job, passage) = running();
    passage.near.set(Weather { stalled: true, ..Weather::default() });
    job.wait()
        .expect_code(1)
        .expect_stderr(&["node n2 was lost, and with it ranks 1, 4: it has said nothing for 9 s"]);
    drop(passage);
    hosts.expect_nothing_left();

    let (job, passage) = running();
    drop(passage);
    job.wait().expect_code(1).expect_stderr(&[
        "node n2 was lost, and with it ranks 1, 4: its daemon has ended: no ancestor can be reached",
    ]);
    hosts.expect_nothing_left();
}

/// Ranks of a remote host write more than is read: they wait, and neither daemons nor px buffer it all.
#[test]
fn output_that_nobody_reads_holds_up_its_own_job_only() {
    let each = 16_000_000_u64;
    let site = Site::new();
    let (dvm, name) = site.dvm("n1:1,n2:16,n3:2");
    let (reads, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (may, counted) = (reads.clone(), count.clone());
    let take = move |bytes: &[u8]| {
        while !may.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
        counted.fetch_add(bytes.len() as u64, Ordering::SeqCst);
    };
    let all = || (1..=3).flat_map(|host| px_of(&site, host));
    let before: BTreeMap<u32, u64> = all().filter_map(|pid| Some((pid, rss_kib(pid)?.1))).collect();
    let words = format!("run -q --nspace {name} --host n2 -n 16");
    let script = format!("yes word of many | head -c {each}");
    let slow = site.px(1, &words).args(["sh", "-c", &script]).reading(take).start();
    eventually("they write", || site.count("head") == [0, 16, 0]);

    let words = format!("run -q --nspace {name} --host n3 -n 2");
    let bytes = 20_000_000;
    expect_whole(site.px(1, &words).args(writes(bytes)).run(), bytes);
    assert_eq!(site.count("head"), [0, 16, 0], "all of them wait");
    let pids: Vec<u32> = all().collect();
    assert!(pids.len() >= 4, "{pids:?}");
    let check = || {
        for pid in &pids {
            let Some((_, most)) = rss_kib(*pid) else { continue };
            let took = most.saturating_sub(before.get(pid).copied().unwrap_or(BEGINNING_KIB));
            println!("px {pid} has taken {took} KiB");
            assert!(took < MOST_KIB, "px {pid} on one of three hosts has taken {took} KiB");
        }
    };
    check();
    reads.store(true, Ordering::SeqCst);
    eventually("most has come", || count.load(Ordering::SeqCst) > 12 * each);
    check();
    slow.wait().expect_code(0);
    assert_eq!(count.load(Ordering::SeqCst), 16 * each);
    site.px(1, "dvm stop").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

/// The px processes on a host.
fn px_of(site: &Site, host: usize) -> Vec<u32> {
    let program = px_binary().file_name().expect("a name").to_string_lossy().into_owned();
    let is_px = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == program)
    };
    site.host(host).processes().into_iter().filter(is_px).collect()
}

/// Most memory that a daemon or px may take for 256 MB of output.
const MOST_KIB: u64 = 48 << 10;
/// Memory of a px that starts during the test.
const BEGINNING_KIB: u64 = 32 << 10;
