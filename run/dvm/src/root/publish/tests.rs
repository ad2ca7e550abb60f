use super::*;

fn proc(nspace: &str, rank: u32) -> ProcId {
    ProcId::new(&Nspace::new(nspace).unwrap(), phalanx_spec::Rank(rank))
}

fn entry(range: Range) -> Entry {
    Entry {
        from: proc("job", 0),
        node: NodeId(1),
        uid: 7,
        key: Key::of("port"),
        value: Value::Bool(true),
        range,
        readers: vec![proc("job", 1), proc("other", 1)],
        uids: Vec::new(),
        persistence: Persistence::SESSION,
        bytes: 1,
    }
}

fn lookup(from: ProcId, range: Range) -> Lookup {
    let keys = vec![Key::of("port")];
    Lookup { from, uid: 7, keys, range, wanted: 0 }
}

/// The processes that find a publication (`docs/guide/publish.md`): (p) the publisher itself, (n) its neighbour in the same
/// job, (j) a process of the job elsewhere, (o) one of another job on the same node, (e) one elsewhere.
#[test]
fn each_pair_of_ranges_finds_what_both_allow() {
    let askers = [
        ('p', proc("job", 0), NodeId(1)),
        ('n', proc("job", 1), NodeId(1)),
        ('j', proc("job", 2), NodeId(2)),
        ('o', proc("other", 0), NodeId(1)),
        ('e', proc("other", 1), NodeId(2)),
    ];
    let ranges = [
        Range::PROC_LOCAL,
        Range::LOCAL,
        Range::NAMESPACE,
        Range::SESSION,
        Range::GLOBAL,
        Range::UNDEF,
        Range::CUSTOM,
        Range::RM,
    ];
    let table = [
        // Looked up with PROC_LOCAL, LOCAL, NAMESPACE, SESSION, GLOBAL, UNDEF, CUSTOM, RM.
        (Range::PROC_LOCAL, ["p", "p", "p", "p", "p", "p", "", ""]),
        (Range::LOCAL, ["p", "pno", "pn", "pno", "pno", "pno", "", ""]),
        (Range::NAMESPACE, ["p", "pn", "pnj", "pnj", "pnj", "pnj", "", ""]),
        (Range::SESSION, ["p", "pno", "pnj", "pnjoe", "pnjoe", "pnjoe", "", ""]),
        (Range::GLOBAL, ["p", "pno", "pnj", "pnjoe", "pnjoe", "pnjoe", "", ""]),
        (Range::CUSTOM, ["p", "pn", "pn", "pne", "pne", "pne", "pne", ""]),
        (Range::RM, ["", "", "", "", "", "", "", ""]),
    ];
    for (published, row) in table {
        for (looked_up, expected) in ranges.into_iter().zip(row) {
            let finds = |(name, proc, node): &(char, ProcId, NodeId)| {
                entry(published).answers(&lookup(proc.clone(), looked_up), *node).then_some(*name)
            };
            let found: String = askers.iter().filter_map(finds).collect();
            assert_eq!(found, expected, "published with {published:?}, looked up with {looked_up:?}");
        }
    }
}

#[test]
fn a_publication_of_just_that_range_goes_first() {
    let mut store = Store::default();
    for (range, value) in [(Range::GLOBAL, 1_u32), (Range::SESSION, 2), (Range::NAMESPACE, 3)] {
        store.insert(Entry { value: value.into(), ..entry(range) });
    }
    let found = |store: &Store, range| {
        let id = store.find(&Key::of("port"), &lookup(proc("job", 2), range), NodeId(2))?;
        store.entries[&id].value.as_u32()
    };
    let of = [Range::GLOBAL, Range::SESSION, Range::NAMESPACE, Range::UNDEF, Range::RM];
    assert_eq!(of.map(|range| found(&store, range)), [Some(1), Some(2), Some(3), Some(1), None]);
    store.remove(|entry| entry.range != Range::GLOBAL);
    assert_eq!(found(&store, Range::SESSION), Some(1), "the default finds what is meant for all");
    store.remove(|_| true);
    assert!(store.by_key.is_empty() && store.bytes == 0);
}
