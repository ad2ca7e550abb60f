use proptest::prelude::*;

use super::*;
use crate::map::CpuItem;

fn hosts(text: &str) -> Vec<(String, Slots)> {
    let entries = parse_hosts("--host", text).unwrap();
    entries.into_iter().map(|entry| (entry.host.to_string(), entry.slots)).collect()
}

fn hostfile(text: &str) -> Vec<(String, Slots, Option<u32>)> {
    let entries = parse_hostfile("hosts", text).unwrap();
    entries.into_iter().map(|entry| (entry.host.to_string(), entry.slots, entry.max_slots)).collect()
}

fn named(name: &str, slots: Slots) -> (String, Slots) {
    (name.to_owned(), slots)
}

#[test]
fn lists_of_hosts() {
    use Slots::{Mentioned, Stated, Unstated};
    let expected =
        [named("a", Mentioned(1)), named("b", Stated(4)), named("c.x.org", Unstated), named("d", Unstated)];
    assert_eq!(hosts("a,b:4, c.x.org:*,d:auto"), expected);
    assert_eq!(hosts("n[1-3]:2"), [named("n1", Stated(2)), named("n2", Stated(2)), named("n3", Stated(2))]);
    assert_eq!(
        hosts("+n2,+e,+e:3"),
        [named("+n2", Unstated), named("+e", Unstated), named("+e:3", Unstated)]
    );
    assert_eq!(hosts("10.0.0.1:2,fe80::1"), [named("10.0.0.1", Stated(2)), named("fe80::1", Mentioned(1))]);
    assert_eq!(hosts("[fe80::1]:2"), [named("fe80::1", Stated(2))]);
    let entry = &parse_hosts("--host", "me@a:2").unwrap()[0];
    assert_eq!((entry.user.as_deref(), entry.slots), (Some("me"), Stated(2)));
}

#[test]
fn ranges_keep_their_width() {
    let names = |text: &str| hosts(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("node[001-003,010]"), ["node001", "node002", "node003", "node010"]);
    assert_eq!(names("n[8-11]"), ["n8", "n9", "n10", "n11"]);
    assert_eq!(names("r[0-1]n[1-2]-ib"), ["r0n1-ib", "r0n2-ib", "r1n1-ib", "r1n2-ib"]);
}

#[test]
fn bad_lists_of_hosts_say_where() {
    let error = |text: &str| parse_hosts("--host", text).unwrap_err().to_string();
    assert_eq!(error("a,b:x"), "--host:1:5: expected a number of slots, * or auto, found \"x\"");
    assert_eq!(error("a:0"), "--host:1:3: expected at least 1 slot, found \"0\"");
    assert_eq!(error("a,,b"), "--host:1:3: expected a host name, found \",b\"");
    assert_eq!(error(""), "--host:1:1: expected a host name, found the end of the line");
    assert_eq!(error("a b"), "--host:1:3: expected \",\" before the next host, found \"b\"");
    assert_eq!(error("n[3-1]"), "--host:1:3: expected a range that ends after its start, found \"3-1]\"");
    assert_eq!(error("n[1-2"), "--host:1:6: expected \",\", \"-\" or \"]\", found the end of the line");
    assert_eq!(
        error("n[1-9999999999]"),
        "--host:1:3: expected at most 262144 names, found \"1-9999999999]\""
    );
    assert_eq!(
        error("n[0-999]x[0-99999]"),
        "--host:1:1: expected at most 262144 names, found \"n[0-999]x[0-99999]\""
    );
    assert_eq!(
        error("n[0-199999],m[0-199999]"),
        "--host:1:13: expected at most 262144 hosts, found \"m[0-199999]\""
    );
    let long = format!("a.{}", "b".repeat(64));
    for wrong in [";", "$(reboot)", "a..b", "a-", "a.-b", long.as_str(), "n[0-1]-"] {
        let said = error(wrong);
        assert!(said.starts_with("--host:1:1: expected a host name, found \""), "{said}");
    }
    assert_eq!(error("n[1-1000000]"), "--host:1:3: expected at most 262144 names, found \"1-1000000]\"");
    assert_eq!(error("-oProxyCommand=x"), "--host:1:1: expected a host name, found \"-oProxyCommand=x\"");
    assert_eq!(error("-l@a"), "--host:1:1: expected an account before the @, found \"-l@a\"");
    assert_eq!(error("+x"), "--host:1:1: expected +n and a number, or +e, found \"+x\"");
}

#[test]
fn mentions_of_one_host_are_joined() {
    let merged = merge_hosts(parse_hosts("--host", "a,b:2,a,b:3,a,+e:1,+e:1").unwrap());
    let merged: Vec<_> = merged.into_iter().map(|entry| (entry.host.to_string(), entry.slots)).collect();
    use Slots::{Mentioned, Stated, Unstated};
    let expected =
        [named("a", Mentioned(3)), named("b", Stated(5)), named("+e:1", Unstated), named("+e:1", Unstated)];
    assert_eq!(merged, expected);
}

#[test]
fn hostfiles() {
    use Slots::{Stated, Unstated};
    let text = "# our machines\n\nnode01  slots=10\nnode13 slots = 5 max-slots=8   # the old one\nme@node15\n\
                node[16-17] count=2\nnode18:3\nnode19 max_slots=4\n+n0 slots=1\r\n";
    let row = |name: &str, slots, max| (name.to_owned(), slots, max);
    let expected = [
        row("node01", Stated(10), None),
        row("node13", Stated(5), Some(8)),
        row("node15", Unstated, None),
        row("node16", Stated(2), None),
        row("node17", Stated(2), None),
        row("node18", Stated(3), None),
        row("node19", Stated(4), Some(4)),
        row("+n0", Stated(1), None),
    ];
    assert_eq!(hostfile(text), expected);
    // As batch systems write them: a line for each slot.
    assert_eq!(hostfile("a\na\nb\na\n"), [row("a", Stated(3), None), row("b", Unstated, None)]);
}

#[test]
fn bad_hostfiles_say_where() {
    let error = |text: &str| parse_hostfile("hosts", text).unwrap_err().to_string();
    assert_eq!(error("a\nb slots=x"), "hosts:2:9: expected a number of slots, found \"x\"");
    assert_eq!(error("a slots 4"), "hosts:1:9: expected \"=\" after slots, found \"4\"");
    assert_eq!(error("a slot"), "hosts:1:7: expected \"=\" after slot, found the end of the line");
    assert_eq!(error("a ppn=4"), "hosts:1:3: expected slots=N, max_slots=N or user=NAME, found \"ppn=4\"");
    assert_eq!(error("a, b"), "hosts:1:2: expected slots=N, max_slots=N or the end of the line, found \",\"");
    assert_eq!(error("  !a"), "hosts:1:3: expected a host name, found \"!a\"");
    assert_eq!(
        error("a slots=4 max_slots=2"),
        "hosts:1:21: expected max_slots of at least the 4 slots, found \"2\""
    );
    assert_eq!(error("a user=ä slots=é"), "hosts:1:16: expected a number of slots, found \"é\"");
    assert_eq!(error("a slots=2 slots=3"), "hosts:1:11: expected the slots only once, found \"slots=3\"");
    assert_eq!(error("a slots=2 cpus=3"), "hosts:1:11: expected the slots only once, found \"cpus=3\"");
    assert_eq!(error("a:2 slots=3"), "hosts:1:5: expected the slots only once, found \"slots=3\"");
    assert_eq!(
        error("a max_slots=2 slots=1 max-slots=3"),
        "hosts:1:23: expected max_slots only once, found \"max-slots=3\""
    );
    assert_eq!(error("a user=;x"), "hosts:1:8: expected an account, found \";x\"");
    assert!(error("a user=x;y").starts_with("hosts:1:9: "), "{}", error("a user=x;y"));
    assert_eq!(error("a user=b user=c"), "hosts:1:10: expected the account only once, found \"user=c\"");
}

#[test]
fn names_are_of_hosts() {
    let error = |text: &str| parse_hostfile("hosts", text).unwrap_err().to_string();
    assert_eq!(error("a\nb\nnœud1"), "hosts:3:1: expected a host name in ASCII, found \"nœud1\"");
    assert_eq!(error(" ä[1-3]"), "hosts:1:2: expected a host name in ASCII, found \"ä[1-3]\"");
    for nameless in ["[1-3]", "[1-3][0-1]", "[7]"] {
        let expected = format!("hosts:1:1: expected a name around the numbers, found \"{nameless}\"");
        assert_eq!(error(nameless), expected);
    }
    assert_eq!(hosts("[1-2]n,n_[3]"), ["1n", "2n", "n_3"].map(|name| named(name, Slots::Mentioned(1))));
}

#[test]
fn bytes_that_are_no_text_say_where() {
    assert_eq!(text_of("hosts", b"a\n\xc3\xa4"), Ok("a\n\u{e4}"));
    let error = |bytes: &[u8]| text_of("hosts", bytes).unwrap_err().to_string();
    assert_eq!(error(b"a\nb\xc3\xa4 \xff\xfe"), "hosts:2:4: expected text in UTF-8, found \"\\xff\"");
    assert_eq!(error(b"\0\xc3"), "hosts:1:2: expected text in UTF-8, found \"\\xc3\"");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    for (text, shown) in [("a\0b\n", "\\u{0}b"), ("a\u{1b}[2Jb\n", "\\u{1b}[2Jb")] {
        let error = parse_hostfile("hosts", text).unwrap_err().to_string();
        assert!(error.contains(shown) && !error.contains(char::is_control), "{error:?}");
    }
}

#[test]
fn rankfiles() {
    let text =
        "rank 0=aa slot=1:0-2\nrank 2 = +n1 slots = 0,1,4   # two\nrank 1=bb\nrank 3=cc slot=P0;1:*;7\n";
    let rankfile = parse_rankfile("ranks", text).unwrap();
    let shown: Vec<_> = rankfile
        .ranks
        .iter()
        .map(|(rank, entry)| {
            let cpus = entry.cpus.as_ref().map(ToString::to_string);
            (*rank, entry.host.to_string(), cpus.unwrap_or_default(), entry.line)
        })
        .collect();
    let row = |rank, host: &str, cpus: &str, line| (rank, host.to_owned(), cpus.to_owned(), line);
    let expected = [
        row(0, "aa", "1:0-2", 1),
        row(1, "bb", "", 3),
        row(2, "+n1", "0-1,4", 2),
        row(3, "cc", "P0;P1;7", 4),
    ];
    assert_eq!(shown, expected);
    assert!(matches!(rankfile.ranks[&0].cpus.as_ref().unwrap().items[0], CpuItem::InPackages { .. }));
}

#[test]
fn bad_rankfiles_say_where() {
    let error = |text: &str| parse_rankfile("ranks", text).unwrap_err().to_string();
    assert_eq!(
        error("rnak 0=a"),
        "ranks:1:1: expected a line of the form: rank 0=HOST slot=0-1, found \"rnak\""
    );
    assert_eq!(error("rank x=a"), "ranks:1:6: expected the number of a rank, found \"x=a\"");
    assert_eq!(
        error("rank 0=a\nrank 0=b"),
        "ranks:2:6: expected a rank that no earlier line has, found \"0=b\""
    );
    assert_eq!(error("rank 0 a"), "ranks:1:8: expected \"=\" after the rank, found \"a\"");
    assert_eq!(error("rank 0=a slot=0-x"), "ranks:1:17: expected the end of the range, found \"x\"");
    assert_eq!(
        error("rank 0=a slot=3-1"),
        "ranks:1:15: expected a range that ends after its start, found \"3-1\""
    );
    assert_eq!(
        error("rank 0=a slot=0:1:2"),
        "ranks:1:18: expected \",\", \"-\", \":\", \";\" or a blank, found \":2\""
    );
    assert_eq!(error("rank 0=a slot=70000"), "ranks:1:15: expected numbers below 65536, found \"70000\"");
    assert_eq!(error("rank 0=a[1-2] slot=0"), "ranks:1:8: expected one host, found \"a[1-2]\"");
    assert_eq!(error("rank 0=+e slot=0"), "ranks:1:8: expected a host name or +nK, found \"+e\"");
    assert_eq!(
        error("rank 0=a core=0"),
        "ranks:1:10: expected slot= or the end of the line, found \"core=0\""
    );
}

#[test]
fn sequences() {
    let sequence = parse_sequence("seq", "a\nb 0-1\na slots=4\n\nc[1-2]\n# end\nb P1\n").unwrap();
    let shown: Vec<_> = sequence
        .entries
        .iter()
        .map(|entry| (entry.host.to_string(), entry.cpus.as_ref().map(ToString::to_string), entry.line))
        .collect();
    let row = |host: &str, cpus: Option<&str>, line| (host.to_owned(), cpus.map(str::to_owned), line);
    let expected = [
        row("a", None, 1),
        row("b", Some("0-1"), 2),
        row("a", None, 3),
        row("c1", None, 5),
        row("c2", None, 5),
        row("b", Some("P1"), 7),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn batch_systems() {
    let shown = |entries: Vec<HostEntry>| {
        entries.into_iter().map(|e| (e.host.to_string(), e.slots)).collect::<Vec<_>>()
    };
    use Slots::{Stated, Unstated};
    let slurm = |names: &str, counts: &str| parse_slurm(names, Some(counts));
    let expected = [named("n1", Stated(2)), named("n2", Stated(2)), named("gpu7", Stated(16))];
    assert_eq!(shown(slurm("n[1-2],gpu7", "2(x2),16").unwrap()), expected);
    assert_eq!(shown(parse_slurm("a,b", None).unwrap()), [named("a", Unstated), named("b", Unstated)]);
    let error = |names: &str, counts: &str| slurm(names, counts).unwrap_err().to_string();
    assert_eq!(
        error("n[1-2", "2"),
        "SLURM_JOB_NODELIST:1:6: expected \",\", \"-\" or \"]\", found the end of the line"
    );
    assert_eq!(
        error("a,b,c", "2(x2)"),
        "SLURM_TASKS_PER_NODE:1:6: expected numbers for 3 nodes, found the end of the line"
    );
    assert_eq!(
        error("a", "2(x4000000000"),
        "SLURM_TASKS_PER_NODE:1:14: expected \")\", found the end of the line"
    );
    assert_eq!(error("a", "x"), "SLURM_TASKS_PER_NODE:1:1: expected a number of tasks, found \"x\"");
    assert_eq!(shown(parse_lsf("a 4 b 2 a 1 ").unwrap()), [named("a", Stated(5)), named("b", Stated(2))]);
    assert_eq!(
        parse_lsf("a 4 b").unwrap_err().to_string(),
        "LSB_MCPU_HOSTS:1:6: expected a number of slots, found the end of the line"
    );
}

#[test]
fn grid_engine_files() {
    let text = "n1.a.org 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 <NULL>\nn2 1 other.q 0-1\n";
    let hosts = parse_grid_engine("nodes", text).unwrap();
    let hosts: Vec<_> = hosts.iter().map(|entry| (entry.host.to_string(), entry.slots)).collect();
    assert_eq!(hosts, [("n1.a.org".to_owned(), Slots::Stated(4)), ("n2".to_owned(), Slots::Stated(3))]);
    let error = parse_grid_engine("nodes", "n1\n").unwrap_err().to_string();
    assert_eq!(error, "nodes:1:3: expected a number of slots, found the end of the line");
}

#[test]
fn names_are_written_in_order_with_ranges() {
    let written = |names: &str| write_names(names.split(' '));
    assert_eq!(written("n3 n1 n2"), "n3,n[1-2]");
    assert_eq!(written("n08 n09 n10 n011 n9 n10"), "n[08-10],n011,n[9-10]");
    assert_eq!(written("login n1 m2 m3 m5 10.0.0.1 10.0.0.2"), "login,n1,m[2-3],m5,10.0.0.1,10.0.0.2");
    let many = (1..=20_000).map(|number| format!("node{number:05}")).collect::<Vec<_>>();
    assert_eq!(write_names(many.iter().map(String::as_str)), "node[00001-20000]");
}

proptest! {
    #[test]
    fn no_text_panics(text in "[ -~\\n\u{e4}\t]{0,60}", words in "(node|rank|slots?|=|\\[|\\]|[0-9]|,|-|:|@|\\+[ne]|#| |\\n){0,20}") {
        for text in [text, words] {
            let _ = parse_hosts("--host", &text);
            let _ = parse_hostfile("hosts", &text);
            let _ = parse_rankfile("ranks", &text);
            let _ = parse_sequence("seq", &text);
            let _ = parse_slurm(&text, Some(&text));
            let _ = parse_lsf(&text);
            let _ = parse_grid_engine("nodes", &text);
        }
    }

    #[test]
    fn written_names_are_read_as_they_were(names in prop::collection::vec("[a-b]{1,2}(-?[0-9]{1,3})?|10\\.0\\.0\\.[1-3]", 1..20)) {
        let written = write_names(names.iter().map(String::as_str));
        let read = parse_slurm(&written, None).unwrap();
        let read: Vec<String> = read.iter().map(|entry| entry.host.to_string()).collect();
        prop_assert_eq!(read, names, "{}", written);
    }

    #[test]
    fn ranges_expand_to_their_length(low in 0u32..2000, count in 1u32..50, width in 0usize..6) {
        let text = format!("n[{low:0width$}-{:0width$}]", low + count - 1);
        let names = hosts(&text);
        prop_assert_eq!(names.len(), count as usize);
        prop_assert_eq!(&names[0].0, &format!("n{low:0width$}"));
    }
}
