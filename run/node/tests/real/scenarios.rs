//! What is tried.

use phalanx_node::StdinSource;

use crate::launcher::{Script, job, run, shell, with_node};

pub(crate) const ALL: &[(&str, fn())] =
    &[("exit_codes_are_never_lost", exit_codes_are_never_lost), ("bench", bench)];

fn exit_codes_are_never_lost() {
    with_node(Script::default(), async |node, _| {
        for _ in 0..20 {
            let seen = run(node, shell(64, "exit $((RANK % 7))"), StdinSource::Empty).await;
            assert_eq!(seen.len(), 64);
            for (rank, seen) in seen.iter().enumerate() {
                assert_eq!(seen.code(), rank as i32 % 7);
            }
        }
    });
}

fn bench() {
    let n = std::env::var("N").map_or(64, |n| n.parse().unwrap());
    with_node(Script::default(), async |node, _| {
        let mut times: Vec<_> = Vec::new();
        for _ in 0..std::env::var("R").map_or(1, |n| n.parse().unwrap()) {
            let t = std::time::Instant::now();
            run(node, job(n, &["true"]), StdinSource::Empty).await;
            times.push(t.elapsed());
        }
        times.sort();
        eprintln!("n={n} min {:.2?} med {:.2?}", times[0], times[times.len() / 2]);
    });
}
