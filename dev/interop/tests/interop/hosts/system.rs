//! A system server over several hosts.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use phalanx_interop::{Job, eventually, pmix_tool};

use crate::site::Site;

#[test]
fn a_system_server_over_hosts_is_one_on_each() {
    let site = Site::new();
    let hosts = ["n1", "n2", "n3"].map(str::to_owned);
    let dvm = site.px(1, "dvm start --system-server --host n1,n2,n3").start();
    dvm.until_said("is ready");
    let name = dvm.said().split_whitespace().next().unwrap_or_default().to_owned();
    for host in 1..=3 {
        let job = site.px(host, "run -q --system -n 3 --map-by node hostname");
        job.run().expect_code(0).expect_lines(&hosts);
        let tool = Job::on(site.host(host), pmix_tool("attach")).args(["system", "--", "servers", "query"]);
        let outcome = tool.run().expect_code(0);
        outcome.assert_line("init SUCCESS");
        outcome.expect_stdout(&[&format!("servers SUCCESS {name}"), "query SUCCESS"]);
        let second = site.px(host, "dvm start --system-server").run().expect_code(1);
        second.expect_stderr(&["pmix.sys.", "a machine has one system server"]);
    }
    site.px(3, "dvm stop --system").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
    assert_eq!(registered(&site), [false; 3]);
}

#[test]
fn the_host_of_another_system_server_is_named() {
    let site = Site::new();
    let other = site.px(2, "dvm start --system-server").start();
    other.until_said("is ready");
    let refused = site.px(1, "dvm start --system-server --host n1,n2,n3").run().expect_code(1);
    refused.expect_stderr(&["n2: ", "pmix.sys.n2"]);
    eventually("only the other one is registered", || registered(&site) == [false, true, false]);
    site.px(2, "run -q --system -n 1 hostname").run().expect_code(0).expect_lines(["n2".to_owned()]);
    site.px(2, "dvm stop --system").run().expect_code(0);
    other.wait().expect_code(0);
    site.expect_nothing_left();
}

/// The hosts on which a system server is registered.
fn registered(site: &Site) -> [bool; 3] {
    [1, 2, 3].map(|host| site.host(host).path(&format!("/tmp/pmix.sys.n{host}")).exists())
}
