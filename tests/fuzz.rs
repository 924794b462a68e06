//! The fuzz targets without a fuzzer: their seeds, and random changes of these.
//!
//! Duty: keeps every target compiling, and tries it in the build of the other tests, which takes no sanitizer and no
//! second compilation of the crate. `npm run fuzz -- --quick` writes the seeds and runs it; `npm run fuzz` has
//! libFuzzer look for inputs that reach new code.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a target says what is wrong by failing"
)]

use std::fs;
use std::path::Path;

use rng::Rng;

#[path = "kit/rng.rs"]
mod rng;
#[path = "../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the crate of the fuzz targets exports it")]
mod targets;

/// Inputs of each target beside its seeds.
const INPUTS: usize = 200_000;
/// Changes that make an input of a seed.
const CHANGES_MAX: u64 = 4;
/// Bytes that one change takes out, repeats or brings from another seed.
const PIECE_BYTES_MAX: u64 = 32;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).expect("seeds, which `node fuzz/seeds.mjs` writes");
    let mut paths: Vec<_> = files.map(|file| file.expect("a seed").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds in {}", folder.display());
    paths.iter().map(|path| fs::read(path).expect("a seed")).collect()
}

/// Changes an input in one place.
fn change(rng: &mut Rng, input: &mut Vec<u8>, other: &[u8]) {
    let at = rng.below(input.len() as u64 + 1) as usize;
    let piece = |rng: &mut Rng, of: &[u8]| {
        let from = rng.below(of.len() as u64 + 1) as usize;
        let len = rng.below(PIECE_BYTES_MAX) as usize;
        of[from..(from + len).min(of.len())].to_vec()
    };
    match rng.below(6) {
        0 if at < input.len() => input[at] ^= 1 << rng.below(8),
        1 if at < input.len() => input[at] = rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
        2 => input.truncate(at),
        3 => input.insert(at, rng.below(256) as u8),
        4 => {
            let end = (at + rng.below(PIECE_BYTES_MAX) as usize).min(input.len());
            input.drain(at..end);
        }
        _ => {
            let from = if rng.below(2) == 0 { other } else { &input.clone() };
            let piece = piece(rng, from);
            input.splice(at..at, piece);
        }
    }
}

fn try_target(target: &str) {
    let seeds = seeds(target);
    seeds.iter().for_each(|seed| targets::check(target, seed));
    let mut rng = Rng::new(7);
    for _ in 0..INPUTS {
        let [mut input, other] =
            [(); 2].map(|()| seeds[rng.below(seeds.len() as u64) as usize].clone());
        for _ in 0..=rng.below(CHANGES_MAX) {
            change(&mut rng, &mut input, &other);
        }
        targets::check(target, &input);
    }
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn call() {
    try_target("call");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn cbor() {
    try_target("cbor");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn connect() {
    try_target("connect");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn filter() {
    try_target("filter");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn frame() {
    try_target("frame");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn interchange() {
    try_target("interchange");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn key() {
    try_target("key");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn paths() {
    try_target("paths");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn query() {
    try_target("query");
}

#[test]
#[ignore = "its seeds are written by `npm run fuzz -- --quick`"]
fn v8() {
    try_target("v8");
}
