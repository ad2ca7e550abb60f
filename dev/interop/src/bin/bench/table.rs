//! Tables of medians, with the ratios of ours to each peer's.

use std::collections::BTreeMap;

use crate::launcher::Launcher;
use crate::measure::median;

/// Samples of one row, by launcher. An empty list means that every run hung or failed.
pub(crate) type Row = BTreeMap<Launcher, Vec<f64>>;

/// Prints one line per row: medians, then ratios.
pub(crate) fn print(title: &str, unit: &str, rows: &[(String, Row)]) {
    let peers: Vec<Launcher> = Launcher::ALL
        .into_iter()
        .filter(|launcher| rows.iter().any(|(_, row)| row.contains_key(launcher)))
        .collect();
    println!("\n{title}, median {unit}");
    print!("{:<16}", "");
    for peer in &peers {
        print!("{:>12}", peer.name());
    }
    for peer in peers.iter().filter(|peer| **peer != Launcher::Px) {
        print!("{:>16}", format!("px/{}", peer.name().split(' ').next().unwrap_or_default()));
    }
    println!();
    for (name, row) in rows {
        let of = |launcher: &Launcher| row.get(launcher).cloned().and_then(median);
        print!("{name:<16}");
        for peer in &peers {
            print!("{:>12}", of(peer).map_or("-".to_owned(), |median| format!("{median:.1}")));
        }
        for peer in peers.iter().filter(|peer| **peer != Launcher::Px) {
            let ratio = of(&Launcher::Px).zip(of(peer)).map(|(ours, theirs)| ours / theirs);
            print!("{:>16}", ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
        }
        println!();
    }
}
