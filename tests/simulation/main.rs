//! Simulation of the transaction layer: leaders, clients, a network that cuts and delays, and a model of
//! PostgreSQL that crashes, in one virtual time. `OPENKV_SEED=7 cargo test --features defects --test
//! simulation` runs only seed 7; `OPENKV_SEEDS=100000` runs so many. The
//! model is also compared with a real server, and `OPENKV_SEED` chooses the schedule.

#![cfg(feature = "defects")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where something is not as it should be"
)]

mod bucket;
mod checker;
mod clients;
#[cfg(unix)]
mod compared;
mod indexes;
#[cfg_attr(not(unix), allow(dead_code, reason = "only compared.rs uses all"))]
mod postgres;
#[cfg(unix)]
#[path = "../kit/postgres.rs"]
mod postgres_server;
#[path = "../kit/rng.rs"]
mod rng;
#[cfg_attr(not(unix), allow(dead_code, reason = "only compared.rs uses all"))]
mod tables;
mod world;

use openkv::layer::Defect;
use world::{Setting, run};

/// Seeds of each run; there are four.
const SEEDS: u64 = 2_500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

/// One of the four quarters of the seeds, so that they can run side by side.
fn quarter(at: u64) {
    let count = number("OPENKV_SEEDS").map_or(SEEDS, |all| all.div_ceil(4));
    let seeds = match number("OPENKV_SEED") {
        Some(seed) => seed..seed + 1,
        None => at * count..(at + 1) * count,
    };
    for seed in seeds {
        if let Err(problem) = run(seed, Setting::RIGHT) {
            panic!("{problem}\nto see only this again: OPENKV_SEED={seed}");
        }
    }
}

#[test]
fn no_answer_contradicts_the_history_1() {
    quarter(0);
}

#[test]
fn no_answer_contradicts_the_history_2() {
    quarter(1);
}

#[test]
fn no_answer_contradicts_the_history_3() {
    quarter(2);
}

#[test]
fn no_answer_contradicts_the_history_4() {
    quarter(3);
}

/// A seed that shows what is wrong with a setting: the first one from `start` on, around all seeds.
fn found(setting: Setting, start: u64) -> u64 {
    let (all, fails) = (4 * SEEDS, |seed: &u64| run(*seed, setting).is_err());
    let mut seeds = (0..all).map(|at| (start + at) % all);
    seeds.find(fails).unwrap_or_else(|| panic!("no seed shows {setting:?}"))
}

/// Few seeds show this defect: the search begins at one that does, so that it is short.
const OWN_CLOCK_SEED: u64 = 1853;

#[test]
fn every_planted_defect_is_found() {
    for defect in Defect::ALL {
        let start = if matches!(defect, Defect::OwnClock) { OWN_CLOCK_SEED } else { 0 };
        let seed = found(Setting { defect: Some(defect), ..Setting::RIGHT }, start);
        eprintln!("{defect:?}: seed {seed}");
    }
}

#[test]
fn an_asynchronous_standby_loses_commits_visibly() {
    found(Setting { synchronous: false, ..Setting::RIGHT }, 0);
}

#[test]
fn resolving_without_a_new_epoch_fails_visibly() {
    found(Setting { raises: false, ..Setting::RIGHT }, 0);
}

/// Seeds of the simulation of databases in an object store.
const BUCKET_SEEDS: u64 = 400;

fn bucket_seeds(at: u64) {
    let count = number("OPENKV_SEEDS").unwrap_or(BUCKET_SEEDS) / 2;
    let seeds = match number("OPENKV_SEED") {
        Some(seed) => seed..seed + 1,
        None => at * count..(at + 1) * count,
    };
    for seed in seeds {
        if let Err(problem) = bucket::run(seed, None) {
            panic!("{problem}\nto see only this again: OPENKV_SEED={seed}");
        }
    }
}

#[test]
fn the_invariants_of_a_bucket_hold_1() {
    bucket_seeds(0);
}

#[test]
fn the_invariants_of_a_bucket_hold_2() {
    bucket_seeds(1);
}

#[test]
fn every_planted_defect_of_a_bucket_is_found() {
    for defect in openkv::chain::ChainDefect::ALL {
        let found = (0..BUCKET_SEEDS)
            .find_map(|seed| bucket::run(seed, Some(defect)).err().map(|problem| (seed, problem)));
        let (seed, problem) = found.unwrap_or_else(|| panic!("no seed shows {defect:?}"));
        eprintln!("{defect:?}: seed {seed}: {problem}");
    }
}
