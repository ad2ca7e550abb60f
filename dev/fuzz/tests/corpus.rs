//! The inputs of the fuzz targets, and simple mutations of them, as an ordinary test.

// Tests read files and may fail.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use phalanx_fuzz::{TARGETS, Target};

#[test]
fn every_input_and_its_mutants_are_stood() {
    for target in TARGETS {
        stand(target);
    }
}

fn stand(target: &Target) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(&dir).unwrap() {
        inputs.push(std::fs::read(entry.unwrap().path()).unwrap());
    }
    assert!(inputs.len() >= 3, "{} holds {} inputs", dir.display(), inputs.len());
    inputs.sort();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for (i, input) in inputs.iter().enumerate() {
        (target.check)(input);
        for _ in 0..MUTATIONS {
            let mut mutant = input.clone();
            for _ in 0..=dice.below(3) {
                mutate(&mut mutant, &inputs[(i + dice.below(inputs.len())) % inputs.len()], &mut dice);
            }
            (target.check)(&mutant);
        }
    }
}

const MUTATIONS: usize = 300;

fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    match dice.below(6) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, dice.below(256) as u8),
        2 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
        3 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 39][dice.below(6)],
        4 if at < bytes.len() => {
            bytes.remove(at);
        }
        _ => {
            let from = dice.below(other.len() + 1);
            let to = from + dice.below(other.len() - from + 1);
            bytes.splice(at..at, other[from..to].iter().copied());
        }
    }
}

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}
