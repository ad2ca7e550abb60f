//! Invariants of every job that is placed, whatever was requested.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<NodeResources>,
    apps: Vec<AppRequest>,
    policy: Policy,
}

fn any_topology() -> impl Strategy<Value = Arc<Topology>> {
    let counts = (1u32..3, 1u32..3, 1u32..3, 1u32..4, 1u32..3);
    (counts, proptest::option::of(proptest::collection::vec(any::<bool>(), 72))).prop_map(
        |((a, b, c, d, e), kept)| {
            let whole = Topology::synthetic(a, b, c, d, e);
            let allowed: Option<CpuSet> =
                kept.map(|kept| (0u32..).zip(kept).filter(|(_, keep)| *keep).map(|(cpu, _)| cpu).collect());
            let some = allowed.map(|allowed| whole.restrict(&allowed)).filter(|some| !some.cpus().is_empty());
            Arc::new(some.unwrap_or(whole))
        },
    )
}

fn any_nodes() -> impl Strategy<Value = Vec<NodeResources>> {
    let slots = prop_oneof![
        Just(Slots::Unstated),
        (1u32..3).prop_map(Slots::Mentioned),
        (1u32..12).prop_map(Slots::Stated),
    ];
    let node = (
        slots,
        proptest::option::weighted(0.2, 1u32..12),
        0usize..3,
        prop_oneof![3 => Just(0u32), 1 => 0u32..5],
    );
    (proptest::collection::vec(any_topology(), 3), proptest::collection::vec(node, 1..6)).prop_map(
        |(kinds, nodes)| {
            let numbered = nodes.into_iter().enumerate();
            let node =
                |(number, (slots, max_slots, kind, in_use)): (usize, (Slots, Option<u32>, usize, u32))| {
                    let topology = kinds[kind].clone();
                    let busy = topology.cpus().iter().take(in_use as usize).collect();
                    NodeResources {
                        slots,
                        max_slots,
                        numbers: Ranges::first(in_use),
                        busy,
                        ..NodeResources::new(format!("n{number}"), topology)
                    }
                };
            numbered.map(node).collect()
        },
    )
}

/// One of the words, often none.
fn word(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::option::weighted(0.6, proptest::sample::select(words)).prop_map(Option::unwrap_or_default)
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let map = word(&[
        "slot",
        "node",
        "core",
        "package",
        "numa",
        "l3cache",
        "hwthread",
        "ppr:1:node",
        "ppr:2:package",
        "ppr:1:core",
        "seq",
    ]);
    let qualifier = word(&[":oversubscribe", ":nooversubscribe", ":hwtcpus", ":pe=2", ":pe=3"]);
    let rank = word(&["slot", "node", "fill", "span", "numa"]);
    let bind = word(&[
        "none",
        "core",
        "hwthread",
        "numa",
        "package",
        "core:overload",
        "core:if-supported",
        ":overload",
    ]);
    let cpu_set = proptest::option::weighted(0.1, proptest::collection::vec(0u32..40, 5..30));
    (map, qualifier, any::<bool>(), rank, bind, cpu_set).prop_map(
        |(map, qualifier, span, rank, bind, cpu_set)| {
            let text = format!("{map}{qualifier}");
            let mut policy = Policy::default();
            if !text.is_empty() {
                policy.map = text.parse().unwrap();
            }
            policy.map.span = span && matches!(policy.map.by, Some(MapBy::Object(_)));
            policy.rank = rank.parse().ok();
            if !bind.is_empty() {
                policy.bind = bind.parse().unwrap();
            }
            policy.cpu_set = cpu_set.map(|cpus| cpus.into_iter().collect());
            policy
        },
    )
}

fn any_case() -> impl Strategy<Value = Case> {
    let app = (proptest::option::weighted(0.8, 1u32..30), proptest::option::weighted(0.2, any_policy()));
    (any_nodes(), proptest::collection::vec(app, 1..4), any_policy()).prop_map(|(nodes, apps, policy)| {
        let apps = apps.into_iter().map(|(procs, policy)| AppRequest { procs, hosts: Vec::new(), policy });
        Case { nodes, apps: apps.collect(), policy }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_map_is_sound(case in any_case()) {
        let Case { nodes, apps, policy } = &case;
        let Ok(map) = map_job(nodes, apps, policy) else { return Ok(()) };
        prop_assert_eq!(&map_job(nodes, apps, policy), &Ok(map.clone()));

        let mut locals: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        let mut app_ranks = vec![0; apps.len()];
        for (rank, proc) in map.procs.iter().enumerate() {
            prop_assert_eq!(proc.rank as usize, rank);
            prop_assert_eq!(proc.app_rank, app_ranks[proc.app as usize]);
            app_ranks[proc.app as usize] += 1;
            let node = &nodes[proc.node as usize];
            let local = locals.entry(proc.node).or_default();
            prop_assert_eq!(proc.local_rank as usize, local.len());
            prop_assert_eq!(u32::from(proc.node_rank), node.in_use() + local.len() as u32);
            local.push(proc.local_rank);
            if let Some(cpus) = &proc.cpus {
                prop_assert!(!cpus.is_empty());
                prop_assert!(cpus.is_subset(node.topology.cpus()), "beyond the allowed CPUs");
                let own = apps[proc.app as usize].policy.as_ref().unwrap_or(policy);
                prop_assert!(own.cpu_set.as_ref().is_none_or(|set| cpus.is_subset(set)), "beyond --cpu-set");
            }
        }
        for (app, (request, settled)) in apps.iter().zip(&map.apps).enumerate() {
            prop_assert_eq!(settled.procs, app_ranks[app]);
            if let Some(asked) = request.procs {
                prop_assert_eq!(settled.procs, asked);
            }
        }
        let totals: BTreeMap<u32, u32> = map.nodes.iter().map(|load| (load.node, load.procs)).collect();
        prop_assert_eq!(&totals, &locals.iter().map(|(node, local)| (*node, local.len() as u32)).collect());
        check_slots(&case, &totals)?;
        check_cpus(&case, &map)?;
    }
}

/// Stated slots hold unless a policy allows more, and bounds always.
fn check_slots(case: &Case, totals: &BTreeMap<u32, u32>) -> Result<(), TestCaseError> {
    let policies = case.apps.iter().map(|app| app.policy.as_ref().unwrap_or(&case.policy));
    let policies: Vec<&Policy> = policies.collect();
    let listed = policies.iter().any(|policy| policy.map.by == Some(MapBy::Sequence));
    let may_exceed = policies.iter().any(|policy| policy.map.oversubscribe == Some(true));
    for (node, procs) in totals {
        let node = &case.nodes[*node as usize];
        if let Some(most) = node.max_slots.filter(|_| !listed) {
            prop_assert!(procs + node.in_use() <= most, "max_slots");
        }
        if let Slots::Stated(slots) = node.slots
            && !may_exceed
            && !listed
        {
            prop_assert!(procs + node.in_use() <= slots, "slots");
        }
    }
    Ok(())
}

/// No CPU is given twice: the CPUs that a rank has to itself are neither busy nor given to another rank, unless sharing is
/// allowed.
fn check_cpus(case: &Case, map: &JobMap) -> Result<(), TestCaseError> {
    let mut given: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for proc in &map.procs {
        let Some(cpus) = &proc.cpus else { continue };
        let app = &map.apps[proc.app as usize];
        let policy = case.apps[proc.app as usize].policy.as_ref().unwrap_or(&case.policy);
        let unit = if app.hwthreads { Level::Pu } else { Level::Core };
        let owned = match proc.rule.cpus {
            CpuRule::Free(level) => level >= unit,
            CpuRule::Cpus(_) => matches!(app.bind, BindTo::Object(level) if level >= unit),
            _ => false,
        };
        if !owned || policy.bind.overload {
            continue;
        }
        prop_assert!(!cpus.intersects(&case.nodes[proc.node as usize].busy), "busy CPUs given away");
        let given = given.entry(proc.node).or_default();
        prop_assert!(!cpus.intersects(given), "CPUs given twice: {} and {}", cpus, given);
        given.add(cpus);
    }
    Ok(())
}
