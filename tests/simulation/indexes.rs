//! Value indexes of random entries: several processes write batches, build, drop and create indexes and sweep,
//! end and start again, in one virtual time. A model that knows no bytes of an index decides what each write
//! answers, and which entries each index and list has.

mod model;
mod world;

use std::time::Duration;

use openkv::engine::memory::MemoryEngine;
use openkv::engine::sqlite::SqliteEngine;
use openkv::index::IndexDefect;

use crate::number;
use world::run;

/// Seeds in memory, and on a file, where each costs more.
const SEEDS: u64 = 1_000;
const FILE_SEEDS: u64 = 25;
/// How long a process waits for another one. Here none has the file for long.
const BUSY: Duration = Duration::from_secs(20);

fn all(count: u64, run: impl Fn(u64) -> Result<(), String>) {
    let seeds = match number("OPENKV_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("OPENKV_SEEDS").unwrap_or(count),
    };
    for seed in seeds {
        if let Err(problem) = run(seed) {
            panic!("{problem}\nto see only this again: OPENKV_SEED={seed}");
        }
    }
}

fn in_memory(engine: &MemoryEngine, seed: u64) -> Result<(), String> {
    run(seed, &|| engine.clone())
}

#[test]
fn indexes_in_memory_are_what_the_model_has() {
    all(SEEDS, |seed| in_memory(&MemoryEngine::new(), seed));
}

#[test]
fn indexes_of_a_file_are_what_the_model_has() {
    all(FILE_SEEDS, |seed| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kv.sqlite3");
        run(seed, &|| SqliteEngine::open(&path, false, BUSY).expect("a file"))
    });
}

#[test]
fn every_planted_defect_of_an_index_is_found() {
    for defect in IndexDefect::ALL {
        let problem = |seed| in_memory(&MemoryEngine::with_defect(defect), seed).err();
        let found = (0..SEEDS).find_map(|seed| Some((seed, problem(seed)?)));
        let Some((seed, problem)) = found else { panic!("no seed shows {defect:?}") };
        eprintln!("{defect:?}: seed {seed}: {problem}");
    }
}
