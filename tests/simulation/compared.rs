//! The model of PostgreSQL does what a real server does: random schedules of the statements of leaders and
//! direct writers give the same answers and the same tables on both.
//!
//! A schedule has two or three processes. Each has at most one open transaction, which may hold the lock
//! of the database's row while another process waits for it.

mod real;
mod schedule;

use schedule::run;

use crate::number;
use crate::postgres::Deviation;

/// Schedules of each test; there are two.
const SCHEDULES: u64 = 100;

/// One half of the schedules, so that both can run side by side.
fn half(at: u64) {
    let seeds = match number("OPENKV_SEED") {
        Some(seed) => seed..seed + 1,
        None => at * SCHEDULES..(at + 1) * SCHEDULES,
    };
    for seed in seeds {
        if let Err(problem) = run(seed, None) {
            panic!("schedule {seed}: {problem}\nto see only this again: OPENKV_SEED={seed}");
        }
    }
}

#[test]
fn the_model_does_what_postgres_does_1() {
    half(0);
}

#[test]
fn the_model_does_what_postgres_does_2() {
    half(1);
}

#[test]
fn every_planted_deviation_of_the_model_is_found() {
    for deviation in Deviation::ALL {
        let problem = |seed| run(seed, Some(deviation)).err().map(|problem| (seed, problem));
        let Some((seed, problem)) = (0..2 * SCHEDULES).find_map(problem) else {
            panic!("no schedule shows {deviation:?}");
        };
        eprintln!("{deviation:?}: schedule {seed}: {problem}\n");
    }
}
