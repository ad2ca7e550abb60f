use super::*;
use crate::hosts::{parse_hosts, parse_rankfile, parse_sequence};

mod invariants;

/// Nodes named a, b, c, ... with the given topology.
fn alike(count: usize, topology: Topology) -> Vec<NodeResources> {
    let topology = Arc::new(topology);
    ('a'..='z').take(count).map(|name| NodeResources::new(name, topology.clone())).collect()
}

/// Two packages with two cores each, two threads in a core: cores 0-1, 2-3, 4-5, 6-7.
fn small() -> Topology {
    Topology::synthetic(2, 1, 1, 2, 2)
}

fn stated(mut nodes: Vec<NodeResources>, slots: &[u32]) -> Vec<NodeResources> {
    nodes.iter_mut().zip(slots).for_each(|(node, slots)| node.slots = Slots::Stated(*slots));
    nodes
}

fn policy(options: &str) -> Policy {
    let mut policy = Policy::default();
    let mut words = options.split_whitespace();
    while let (Some(option), Some(value)) = (words.next(), words.next()) {
        match option {
            "map" => policy.map = value.parse().unwrap(),
            "rank" => policy.rank = Some(value.parse().unwrap()),
            "bind" => policy.bind = value.parse().unwrap(),
            "cpus" => policy.cpu_set = Some(value.parse().unwrap()),
            other => panic!("{other}"),
        }
    }
    policy
}

fn procs(procs: u32) -> AppRequest {
    AppRequest { procs: Some(procs), ..AppRequest::default() }
}

fn every() -> AppRequest {
    AppRequest::default()
}

fn on(hosts: &str, procs: Option<u32>) -> AppRequest {
    AppRequest { procs, hosts: parse_hosts("--host", hosts).unwrap(), policy: None }
}

fn mapped(nodes: &[NodeResources], app: AppRequest, options: &str) -> JobMap {
    map_job(nodes, &[app], &policy(options)).unwrap()
}

fn refused(nodes: &[NodeResources], app: AppRequest, options: &str) -> String {
    let error = map_job(nodes, &[app], &policy(options)).unwrap_err();
    match error.hint() {
        Some(hint) => format!("{error} | {hint}"),
        None => error.to_string(),
    }
}

/// For each rank its node, and its CPUs if it is bound: `a:0-1 b`.
fn shown(nodes: &[NodeResources], map: &JobMap) -> String {
    let place = |proc: &Placement| match &proc.cpus {
        Some(cpus) => format!("{}:{cpus}", nodes[proc.node as usize].name),
        None => nodes[proc.node as usize].name.clone(),
    };
    map.procs.iter().map(place).collect::<Vec<_>>().join(" ")
}

fn places(nodes: &[NodeResources], app: AppRequest, options: &str) -> String {
    shown(nodes, &mapped(nodes, app, options))
}

#[test]
fn few_ranks_get_a_core_each() {
    let nodes = alike(1, small());
    assert_eq!(places(&nodes, procs(2), ""), "a:0-1 a:2-3");
    let map = mapped(&nodes, procs(2), "");
    assert_eq!(
        (map.apps[0].map, map.apps[0].bind),
        (MapBy::Object(Level::Core), BindTo::Object(Level::Core))
    );
    assert!(map.notes.is_empty());
    assert_eq!(map.procs[1].rule.to_string(), "slot 2 of 4, core 1, first core with a free CPU");
}

#[test]
fn ranks_alternate_on_packages_and_are_numbered_there() {
    let nodes = alike(1, small());
    assert_eq!(places(&nodes, procs(4), ""), "a:0-3 a:0-3 a:4-7 a:4-7");
    let map = mapped(&nodes, procs(4), "");
    assert_eq!((map.apps[0].map, map.apps[0].rank), (MapBy::Object(Level::Package), RankBy::Fill));
}

#[test]
fn without_a_number_there_is_a_rank_for_each_slot() {
    let nodes = stated(alike(2, small()), &[3, 1]);
    assert_eq!(mapped(&nodes, every(), "").procs.len(), 4);
    assert_eq!(mapped(&alike(2, small()), every(), "").procs.len(), 8);
    assert_eq!(mapped(&alike(2, small()), every(), "map :hwtcpus").procs.len(), 16);
    assert_eq!(mapped(&alike(1, small()), every(), "map slot:pe=3").procs.len(), 1);
    assert_eq!(places(&nodes, on("a,b", None), "bind none"), "a b");
    assert_eq!(mapped(&alike(2, small()), on("b:*", None), "").procs.len(), 4);
}

#[test]
fn mapping_by_slot_fills_nodes_and_by_node_alternates() {
    let nodes = stated(alike(3, small()), &[2, 2, 2]);
    assert_eq!(places(&nodes, procs(5), "map slot bind none"), "a a b b c");
    assert_eq!(places(&nodes, procs(5), "map node bind none"), "a b c a b");
    assert_eq!(places(&nodes, procs(5), "map node rank slot bind none"), "a a b b c");
    assert_eq!(places(&nodes, procs(4), "map slot bind core"), "a:0-1 a:2-3 b:0-1 b:2-3");
}

#[test]
fn mapping_by_object_takes_turns_within_a_node() {
    let nodes = alike(2, small());
    assert_eq!(places(&nodes, procs(3), "map package bind core rank slot"), "a:0-1 a:4-5 a:2-3");
    assert_eq!(places(&nodes, procs(3), "map package bind core"), "a:0-1 a:2-3 a:4-5");
    assert_eq!(places(&nodes, procs(6), "map core"), "a:0-1 a:2-3 a:4-5 a:6-7 b:0-1 b:2-3");
    assert_eq!(places(&nodes, procs(4), "map core bind hwthread"), "a:0 a:2 a:4 a:6");
    assert_eq!(places(&nodes, procs(5), "map core bind hwthread"), "a:0 a:1 a:2 a:4 a:6");
    assert_eq!(places(&nodes, procs(2), "map core bind package"), "a:0-3 a:0-3");
    assert_eq!(places(&nodes, procs(3), "map hwthread"), "a:0 a:1 a:2");
}

#[test]
fn span_makes_one_node_of_all() {
    let nodes = alike(2, small());
    assert_eq!(places(&nodes, procs(4), "map package:span bind none"), "a a b b");
    assert_eq!(places(&nodes, procs(3), "map package:span bind core"), "a:0-1 a:4-5 b:0-1");
    assert_eq!(places(&nodes, procs(6), "map package:span bind core"), "a:0-1 a:4-5 b:0-1 b:4-5 a:2-3 b:2-3");
}

#[test]
fn ranking_by_objects_of_another_level() {
    let nodes = alike(1, Topology::synthetic(2, 1, 2, 2, 1));
    // Eight cores in four caches in two packages.
    assert_eq!(places(&nodes, procs(8), "map core rank package"), "a:0 a:4 a:1 a:5 a:2 a:6 a:3 a:7");
    assert_eq!(places(&nodes, procs(8), "map core rank l3cache"), "a:0 a:2 a:4 a:6 a:1 a:3 a:5 a:7");
    assert_eq!(places(&nodes, procs(8), "map l3 bind core rank slot"), "a:0 a:2 a:4 a:6 a:1 a:3 a:5 a:7");
    assert_eq!(places(&nodes, procs(3), "map slot bind none rank span"), "a a a");
}

#[test]
fn so_many_per_object() {
    let nodes = alike(2, small());
    let expected = "a:0-1 a:4-5 b:0-1 b:4-5";
    assert_eq!(places(&nodes, every(), "map ppr:1:package bind core"), expected);
    assert_eq!(places(&nodes, procs(3), "map ppr:1:package bind core"), "a:0-1 a:4-5 b:0-1");
    assert_eq!(places(&nodes, every(), "map ppr:2:node bind none"), "a a b b");
    assert_eq!(places(&nodes, every(), "map ppr:1:node:pe=2"), "a:0-3 b:0-3");
    let map = mapped(&nodes, every(), "map ppr:2:package");
    assert_eq!(map.procs[2].rule.to_string(), "1 of 2 per object, package 1, first package with a free CPU");
    assert_eq!(
        refused(&nodes, procs(9), "map ppr:2:package"),
        "asked for 9 ranks, but 2 per package makes 8 on 2 nodes | leave out -n to get them all, or raise N in \
         ppr:N:OBJECT"
    );
    let nodes = stated(nodes, &[1, 4]);
    assert!(
        refused(&nodes, every(), "map ppr:2:node")
            .starts_with("asked for 2 ranks, but 1 slot is free on 1 node (a: 1)")
    );
    assert_eq!(places(&nodes, every(), "map ppr:2:node:oversubscribe bind none"), "a a b b");
}

#[test]
fn several_cpus_for_a_rank() {
    let nodes = alike(2, Topology::synthetic(2, 1, 1, 4, 1));
    assert_eq!(places(&nodes, procs(2), "map slot:pe=3"), "a:0-2 a:4-6");
    assert_eq!(places(&nodes, procs(3), "map slot:pe=4"), "a:0-3 a:4-7 b:0-3");
    assert_eq!(places(&nodes, procs(3), "map package:pe=2"), "a:0-1 a:2-3 a:4-5");
    assert_eq!(places(&nodes, procs(2), "map slot:pe=8"), "a:0-7 b:0-7");
    assert_eq!(places(&nodes, procs(2), "map slot:pe=2:hwtcpus"), "a:0-1 a:2-3");
    assert_eq!(places(&nodes, procs(1), "map slot:pe=2 bind numa"), "a:0-3");
    assert_eq!(
        refused(&nodes, procs(5), "map package:pe=3"),
        "asked for 5 ranks of 3 cores each, but there is room for 4 on 2 nodes | --bind-to none leaves ranks unbound, \
         :overload-allowed lets them share CPUs, --map-by :hwtcpus counts hardware threads"
    );
    assert_eq!(
        refused(&nodes, procs(1), "map core:pe=2"),
        "node a: a rank of 2 cores does not fit a core, which has 1 | map by a larger object, e.g. --map-by slot:pe=N"
    );
    let one = alike(1, Topology::synthetic(1, 1, 1, 2, 1));
    assert_eq!(places(&one, procs(2), "map slot:pe=2 bind :overload-allowed"), "a:0-1 a:0-1");
}

#[test]
fn unstated_slots_give_way_with_one_line() {
    let nodes = alike(1, Topology::synthetic(1, 1, 1, 2, 1));
    let map = mapped(&nodes, procs(4), "");
    assert_eq!(shown(&nodes, &map), "a a a a");
    assert_eq!(map.notes, ["a has 2 cores for 4 ranks: they are not bound"]);
    assert!(map.nodes[0].oversubscribed);
    assert_eq!(
        map.procs[3].rule.to_string(),
        "number 2 beyond the slots, package 0, not bound: more ranks than CPUs"
    );
    let nodes = alike(3, Topology::synthetic(1, 1, 1, 2, 1));
    let map = mapped(&nodes, procs(8), "");
    assert_eq!(shown(&nodes, &map), "a a a b b b c:0-1 c:0-1");
    assert_eq!(map.notes, ["2 nodes have more ranks than cores (a: 3 on 2): ranks there are not bound"]);
}

#[test]
fn forbidden_placement_is_refused_with_numbers() {
    let nodes = alike(1, Topology::synthetic(1, 1, 1, 2, 1));
    assert_eq!(
        refused(&nodes, procs(4), "map :nooversubscribe"),
        "asked for 4 ranks, but 2 slots are free on 1 node (a: 2) | leave out nooversubscribe, or ask for fewer ranks"
    );
    assert_eq!(
        refused(&nodes, procs(3), "bind core"),
        "asked for 3 ranks bound to core, each with a core of its own, but there is room for 2 on 1 node | --bind-to \
         none leaves ranks unbound, :overload-allowed lets them share CPUs, --map-by :hwtcpus counts hardware threads"
    );
    assert_eq!(places(&nodes, procs(3), "bind core:overload-allowed"), "a:0 a:0 a:1");
    assert_eq!(places(&nodes, procs(3), "bind core:if-supported"), "a:0 a a:1");
    let map = mapped(&nodes, procs(3), "bind core:if-supported");
    assert_eq!(map.notes, ["1 of the ranks could not be bound as asked, and run unbound"]);
    assert_eq!(places(&nodes, procs(3), "bind none"), "a a a");
}

#[test]
fn stated_slots_hold() {
    let nodes = stated(alike(2, small()), &[2, 4]);
    assert_eq!(
        refused(&nodes, procs(7), ""),
        "asked for 7 ranks, but 6 slots are free on 2 nodes (a: 2, b: 4) | --map-by :oversubscribe runs more ranks \
         than slots; slots=N in a hostfile or --host NAME:N states others"
    );
    let map = mapped(&nodes, procs(10), "map :oversubscribe");
    assert_eq!(map.nodes.iter().map(|node| node.procs).collect::<Vec<_>>(), [4, 6]);
    assert_eq!(map.nodes.iter().map(|node| node.oversubscribed).collect::<Vec<_>>(), [true, true]);
    // More slots than CPUs is no oversubscription, but ranks cannot be bound.
    let nodes = stated(alike(1, small()), &[8]);
    let map = mapped(&nodes, procs(6), "");
    assert_eq!((shown(&nodes, &map).as_str(), map.nodes[0].oversubscribed), ("a a a a a a", false));
}

#[test]
fn a_bound_on_slots_is_never_passed() {
    let mut nodes = alike(2, small());
    nodes[0].max_slots = Some(3);
    assert_eq!(places(&nodes, procs(12), "bind none map slot"), "a a a b b b b b b b b b");
    nodes[1].max_slots = Some(5);
    let error = refused(&nodes, procs(12), "map :oversubscribe");
    assert_eq!(error, "asked for 12 ranks, but max_slots allows 8 on 2 nodes (a: 3, b: 5)");
}

#[test]
fn hosts_named_once_take_one_rank_each_turn() {
    let nodes = alike(3, small());
    assert_eq!(places(&nodes, on("c,a", Some(2)), "bind none map slot"), "c a");
    assert_eq!(places(&nodes, on("c,a", Some(5)), "bind none map slot"), "c c c a a");
    assert_eq!(places(&nodes, on("a,a,b", Some(3)), "bind none map slot"), "a a b");
    assert_eq!(places(&nodes, on("a:1,b:3", Some(4)), "bind none map slot"), "a b b b");
    assert_eq!(places(&nodes, on("+n2,+n0", Some(5)), "bind none map slot"), "c c c c a");
    assert!(
        refused(&nodes, on("a:1,b:3", Some(5)), "").starts_with("asked for 5 ranks, but 4 slots are free")
    );
    assert_eq!(
        refused(&nodes, on("+n7", Some(1)), ""),
        "host +n7 is not among the 3 nodes of the allocation"
    );
}

#[test]
fn names_are_compared_with_and_without_domain() {
    let topology = Arc::new(small());
    let nodes = ["node1.x.org", "node2", "10.0.0.1"].map(|name| NodeResources::new(name, topology.clone()));
    assert_eq!(
        places(&nodes, on("node1,NODE2.x.org,10.0.0.1", Some(3)), "bind none"),
        "node1.x.org node2 10.0.0.1"
    );
    assert_eq!(
        refused(&nodes, on("node3", Some(1)), ""),
        "host node3 is not among the 3 nodes of the allocation | did you mean \"node2\"?"
    );
    assert!(refused(&nodes, on("10", Some(1)), "").starts_with("host 10 is not among"));
}

#[test]
fn empty_nodes_are_those_that_nobody_uses() {
    let mut nodes = alike(4, small());
    nodes[1].numbers = Ranges::first(1);
    let app = |hosts: &str| on(hosts, None);
    let map = |apps: &[AppRequest]| map_job(&nodes, apps, &policy("bind none map ppr:1:node"));
    let two = map(&[app("+e:1"), app("+e")]).unwrap();
    assert_eq!(shown(&nodes, &two), "a c d");
    let error = map(&[app("+e:4")]).unwrap_err().to_string();
    assert_eq!(error, "asked for 4 empty nodes, but there are 3");
}

#[test]
fn node_ranks_are_the_least_numbers_that_are_free() {
    let mut nodes = stated(alike(1, small()), &[6]);
    nodes[0].numbers = [0, 2].into_iter().collect();
    let map = mapped(&nodes, procs(3), "");
    let numbers: Vec<u16> = map.procs.iter().map(|placed| placed.node_rank).collect();
    assert_eq!(numbers, [1, 3, 4]);
}

#[test]
fn ranks_of_other_jobs_are_respected() {
    let mut nodes = stated(alike(2, small()), &[4, 4]);
    nodes[0].numbers = Ranges::first(3);
    nodes[0].busy = "0-5".parse().unwrap();
    let map = mapped(&nodes, procs(3), "map core");
    assert_eq!(shown(&nodes, &map), "a:6-7 b:0-1 b:2-3");
    assert_eq!((map.procs[0].local_rank, map.procs[0].node_rank), (0, 3));
    assert!(refused(&nodes, procs(6), "").contains("(a: 4 less 3 in use, b: 4)"));
    // No slots are stated: a full node still takes part.
    let mut nodes = alike(1, small());
    nodes[0].numbers = Ranges::first(4);
    nodes[0].busy = "0-7".parse().unwrap();
    let map = mapped(&nodes, procs(1), "");
    assert_eq!(map.notes, ["a has 0 free cores for 1 rank: it is not bound"]);
    let map = mapped(&nodes, procs(2), "");
    assert_eq!(shown(&nodes, &map), "a a");
    assert_eq!(map.notes, ["a has 0 free cores for 2 ranks: they are not bound"]);
    assert_eq!(mapped(&nodes, every(), "").procs.len(), 1);
}

#[test]
fn inherited_and_asked_for_sets_of_cpus_hold() {
    // A cgroup that hides most of the first package and the second thread of core 2.
    let nodes = alike(1, small().restrict(&"0,4,6-7".parse().unwrap()));
    assert_eq!(places(&nodes, procs(3), "map core"), "a:0 a:4 a:6-7");
    assert_eq!(places(&nodes, procs(3), "map package bind core"), "a:0 a:4 a:6-7");
    assert_eq!(places(&nodes, procs(3), ""), "a:0 a:4,6-7 a:4,6-7");
    assert_eq!(mapped(&nodes, every(), "").procs.len(), 3);
    let nodes = alike(1, small());
    assert_eq!(places(&nodes, procs(2), "cpus 4-7"), "a:4-5 a:6-7");
    assert_eq!(places(&nodes, procs(2), "cpus 4-7 bind none"), "a:4-7 a:4-7");
    let map = mapped(&nodes, procs(3), "cpus 4-7");
    assert_eq!(shown(&nodes, &map), "a:4-7 a:4-7 a:4-7");
    assert_eq!(map.notes, ["a has 2 cores for 3 ranks: they share these"]);
    assert_eq!(
        refused(&nodes, procs(1), "cpus 99"),
        "--cpu-set 99: none of these may be used on node a, only 0-7 | --cpu-set takes the kernel's numbers, as \
         taskset -c does"
    );
}

#[test]
fn missing_objects_are_named() {
    let flat = alike(1, Topology::synthetic(1, 1, 1, 2, 1).restrict(&"0-1".parse().unwrap()));
    let bare =
        phalanx_topo::Topology::decode(b"topo\x03\x01\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00").unwrap();
    let nodes = alike(1, bare);
    assert_eq!(places(&nodes, procs(2), ""), "a:0 a:1");
    assert_eq!(places(&nodes, procs(3), ""), "a a a");
    assert_eq!(places(&nodes, procs(2), "bind hwthread"), "a:0 a:1");
    assert_eq!(
        refused(&nodes, procs(2), "map l3"),
        "--map-by l3cache: node a has no l3cache | it has node, hwthread"
    );
    assert_eq!(
        refused(&nodes, procs(2), "map slot bind numa"),
        "--bind-to numa: node a has no numa | it has node, hwthread"
    );
    assert_eq!(places(&nodes, procs(2), "map slot bind numa:if-supported"), "a a");
    assert_eq!(places(&flat, procs(2), ""), "a:0 a:1");
}

#[test]
fn several_app_contexts_share_the_nodes() {
    let nodes = stated(alike(2, small()), &[4, 4]);
    let apps = [procs(3), procs(2)];
    let map = map_job(&nodes, &apps, &policy("map core")).unwrap();
    assert_eq!(shown(&nodes, &map), "a:0-1 a:2-3 a:4-5 a:6-7 b:0-1");
    let numbers: Vec<_> =
        map.procs.iter().map(|proc| (proc.rank, proc.app, proc.app_rank, proc.local_rank)).collect();
    assert_eq!(numbers, [(0, 0, 0, 0), (1, 0, 1, 1), (2, 0, 2, 2), (3, 1, 0, 3), (4, 1, 1, 0)]);
    assert_eq!(map.apps[1].first_rank, 3);
    let own = AppRequest { policy: Some(policy("map node bind none")), ..procs(2) };
    let map = map_job(&nodes, &[procs(2), own], &policy("map core")).unwrap();
    assert_eq!(shown(&nodes, &map), "a:0-1 a:2-3 a b");
    let error = map_job(&nodes, &[procs(7), procs(2)], &policy("")).unwrap_err();
    assert!(
        error.to_string().starts_with("asked for 2 ranks, but 1 slot is free on 2 nodes (a: 4 less 4 in use")
    );
}

#[test]
fn not_on_the_launchers_node() {
    let mut nodes = alike(2, small());
    nodes[0].launcher = true;
    assert_eq!(places(&nodes, procs(2), "map :nolocal bind none"), "b b");
    assert_eq!(refused(&nodes[..1], procs(1), "map :nolocal"), "app context 0 may run on none of the nodes");
}

#[test]
fn sequences_go_line_by_line() {
    let nodes = alike(3, small());
    let mut policy = policy("map seq:file=s");
    policy.sequence = Some(parse_sequence("s", "c\na 0-1\nc\nb\n").unwrap());
    let map = map_job(&nodes, &[every()], &policy).unwrap();
    assert_eq!(shown(&nodes, &map), "c:0-3 a:0-3 c:0-3 b:0-3");
    assert_eq!(map.procs[1].rule.to_string(), "line 2 of the file, CPUs as listed");
    let locals: Vec<_> = map.procs.iter().map(|proc| proc.local_rank).collect();
    assert_eq!(locals, [0, 0, 1, 0]);
    let error = map_job(&nodes, &[procs(5)], &policy).unwrap_err();
    assert_eq!(error.to_string(), "asked for 5 ranks, but s has 4");
    policy.sequence = Some(parse_sequence("s", "a\nx\n").unwrap());
    let error = map_job(&nodes, &[every()], &policy).unwrap_err();
    assert_eq!(error.to_string(), "s:2: host x is not among the 3 nodes of the allocation");
    policy.sequence = None;
    assert_eq!(map_job(&nodes, &[every()], &policy).unwrap_err().to_string(), "--map-by seq needs a file");
    assert_eq!(places(&nodes, on("b,a,b", None), "map seq bind none"), "b a b");
    assert_eq!(places(&nodes, every(), "map seq bind none"), "a b c");
}

#[test]
fn rankfiles_are_followed() {
    let nodes = alike(3, small());
    let mut policy = policy("map rankfile:file=r");
    let mut file = |text: &str| policy.rankfile = Some(parse_rankfile("r", text).unwrap());
    file("rank 1=a slot=1:0-1\nrank 0=+n2 slot=0\nrank 2=b slot=0,3\nrank 3=b\n");
    let map = map_job(&nodes, &[every()], &policy).unwrap();
    assert_eq!(shown(&nodes, &map), "c:0-1 a:4-7 b:0-1,6-7 b:0-3");
    let map = map_job(&nodes, &[procs(2), procs(1)], &policy).unwrap();
    assert_eq!(shown(&nodes, &map), "c:0-1 a:4-7 b:0-1,6-7", "a job's file numbers the job's ranks");
    let mut refused = |text: &str| {
        policy.rankfile = Some(parse_rankfile("r", text).unwrap());
        map_job(&nodes, &[every()], &policy).unwrap_err().to_string()
    };
    assert_eq!(refused("rank 1=a slot=0"), "r: no line for rank 0");
    assert_eq!(refused("rank 0=a slot=4"), "r:1: slot=4: node a has no core 4 (it has 4)");
    assert_eq!(refused("rank 0=a slot=2:0"), "r:1: slot=2:0: node a has no package 2 (it has 2)");
    let twice = "rank 0=a slot=0-1\nrank 1=a slot=1-2";
    assert_eq!(refused(twice), "r:2: CPUs 2-3 of node a are given to another rank already");
}

#[test]
fn nothing_to_do_is_an_error() {
    let nodes = alike(1, small());
    assert_eq!(refused(&[], procs(1), ""), "there is no node to run on");
    assert!(refused(&nodes, procs(0), "").starts_with("app context 0 gets no ranks | -n states"));
    assert!(map_job(&nodes, &[], &policy("")).is_err());
    let many = refused(&nodes, procs(70_000), "bind none");
    assert_eq!(many, "asked for 70000 ranks on node a, but no more than 65535 can be numbered");
    let error = refused(&alike(2, small()), procs(0x7fff_ffff), "");
    assert_eq!(error, "asked for 2147483647 ranks on 2 nodes, but no more than 131070 can be numbered");
    let error = map_job(&nodes, &[procs(u32::MAX), procs(u32::MAX)], &policy("")).unwrap_err();
    assert!(error.to_string().starts_with("asked for 8589934590 ranks, but no more"));
}

#[test]
fn a_hundred_thousand_nodes_are_placed() {
    let topology = Arc::new(Topology::synthetic(2, 1, 1, 4, 2));
    let nodes: Vec<_> =
        (0..100_000).map(|n| NodeResources::new(format!("node{n:06}"), topology.clone())).collect();
    for options in ["", "map node", "map package:span", "map ppr:4:package"] {
        let map = mapped(&nodes, every(), options);
        assert_eq!(map.procs.len(), 800_000, "{options}");
        assert!(map.procs.iter().all(|proc| proc.cpus.is_some()), "{options}");
    }
}
