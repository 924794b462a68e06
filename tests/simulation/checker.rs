//! Decides whether what clients were told can have happened: the memory engine carries out the history
//! of the database, batch by batch, and must come to the same answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use openkv::commit::Ticket;
use openkv::engine::memory::MemoryEngine;
use openkv::engine::{Engine, Reader, Report, Work, Writer};
use openkv::model::{AtomicWrite, Decision, Error, Kind};

use crate::tables::{Happened, ServerId, Tables};

/// A batch as it was submitted, and what its server has answered.
pub(crate) struct Batch {
    pub(crate) writes: Vec<AtomicWrite>,
    /// The last commit that any caller had heard of when the batch's first call was made.
    pub(crate) heard: u64,
    /// The times at which it may last have been decided.
    pub(crate) times_ms: Vec<i64>,
    pub(crate) answer: Option<Answer>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) result: Result<Report, Error>,
    /// The last commit of the database when it left.
    pub(crate) version: u64,
}

pub(crate) type Batches = BTreeMap<(ServerId, Ticket), Batch>;

struct Replay {
    /// What was carried out, for copies.
    done: Vec<(Vec<AtomicWrite>, i64)>,
    engine: MemoryEngine,
    clock_ms: i64,
    version: u64,
}

impl Replay {
    fn new() -> Self {
        Self { done: Vec::new(), engine: MemoryEngine::new(), clock_ms: 0, version: 0 }
    }

    /// What these writes would do now.
    fn peek(&self, writes: &[AtomicWrite], now_ms: i64) -> Report {
        let mut copy = Self::new();
        for (writes, now_ms) in &self.done {
            copy.carry_out(writes, *now_ms);
        }
        copy.carry_out(writes, now_ms)
    }

    fn carry_out(&mut self, writes: &[AtomicWrite], now_ms: i64) -> Report {
        let work = Work { writes: writes.to_vec(), ..Work::default() };
        let deadline = Instant::now() + Duration::from_secs(20);
        self.engine.writer().expect("a writer").apply(work, now_ms, deadline).expect("applied")
    }
}

/// Checks everything that was answered against the history.
///
/// # Errors
/// The first contradiction.
pub(crate) fn check(batches: &Batches, tables: &Tables) -> Result<(), String> {
    let stored: BTreeSet<_> = tables.history.iter().map(|h| (h.server, h.ticket)).collect();
    let mut refusals: BTreeMap<u64, Vec<&Batch>> = BTreeMap::new();
    for (name, batch) in batches {
        let Some(Answer { result: Ok(report), version }) = &batch.answer else { continue };
        let (before, after) = report.versions;
        if before < batch.heard {
            return Err(format!(
                "{name:?} was decided at {before}, after {} was heard",
                batch.heard
            ));
        }
        if after > *version {
            return Err(format!("{name:?} was answered at {after}, the database is at {version}"));
        }
        if before == after && !stored.contains(name) {
            refusals.entry(before).or_default().push(batch);
        }
    }
    let mut replay = Replay::new();
    let mut done = BTreeMap::new();
    refused(&mut replay, &refusals)?;
    for happened in &tables.history {
        let Happened { server, ticket, prev, next, now_ms, .. } = happened;
        let name = (*server, *ticket);
        let batch = batches.get(&name).ok_or("a batch of nobody")?;
        if *now_ms < replay.clock_ms {
            return Err(format!("time goes back at {next}: {now_ms} after {}", replay.clock_ms));
        }
        replay.clock_ms = *now_ms;
        let report = replay.carry_out(&batch.writes, *now_ms);
        replay.done.push((batch.writes.clone(), *now_ms));
        if report.versions != (*prev, *next) {
            let versions = report.versions;
            return Err(format!("{name:?} is {prev} to {next} and should be {versions:?}"));
        }
        if done.insert(name, *next).is_some() {
            return Err(format!("{name:?} has happened twice"));
        }
        match &batch.answer {
            Some(Answer { result: Ok(answered), .. }) => same(answered, &report)?,
            Some(Answer { result: Err(error), .. }) if error.kind() != Kind::OutcomeUnknown => {
                return Err(format!("{name:?} has happened, and was answered with {error}"));
            }
            Some(_) | None => {}
        }
        if *next != *prev {
            replay.version = *next;
            refused(&mut replay, &refusals)?;
        }
    }
    for (name, batch) in batches {
        if let Some(Answer { result: Ok(report), .. }) = &batch.answer
            && report.versions.0 != report.versions.1
            && !done.contains_key(name)
        {
            return Err(format!("{name:?} was acknowledged, and is lost"));
        }
    }
    contents(&replay, tables)
}

/// Carries out the batches without a commit that were decided at the present version.
fn refused(replay: &mut Replay, refusals: &BTreeMap<u64, Vec<&Batch>>) -> Result<(), String> {
    for batch in refusals.get(&replay.version).into_iter().flatten() {
        let Some(Answer { result: Ok(answered), .. }) = &batch.answer else { continue };
        let mut times: Vec<i64> = batch.times_ms.clone();
        times.dedup();
        let mut outcome = Err("a refusal that was never decided".to_owned());
        match times[..] {
            // A refusal changes nothing, and a wrong one ends the check.
            [now_ms] => outcome = same(answered, &replay.carry_out(&batch.writes, now_ms)),
            _ => {
                for now_ms in times {
                    outcome = same(answered, &replay.peek(&batch.writes, now_ms));
                    if outcome.is_ok() {
                        break;
                    }
                }
            }
        }
        outcome?;
    }
    Ok(())
}

fn same(answered: &Report, right: &Report) -> Result<(), String> {
    let (answered, right) = (plain(answered), plain(right));
    match answered == right {
        true => Ok(()),
        false => Err(format!("answered {answered:?}, and right is {right:?}")),
    }
}

fn contents(replay: &Replay, tables: &Tables) -> Result<(), String> {
    let mut reader = replay.engine.reader().expect("a reader");
    let mut rows = Vec::new();
    let read = reader.read(tables.clock_ms, &mut |snapshot| {
        snapshot.scan(&[], &[0xff], false, &mut |row| {
            rows.push((row.key.to_vec(), row.stamp.version(), row.value.to_vec()));
            true
        })
    });
    read.expect("a read");
    let alive = tables
        .entries
        .iter()
        .filter(|(_, row)| row.expire_at_ms.is_none_or(|end| end > tables.clock_ms))
        .map(|(key, row)| (key.as_bytes().to_vec(), row.version, row.value.bytes.clone()));
    match rows.into_iter().eq(alive) {
        true => Ok(()),
        false => Err("the contents differ at the end".to_owned()),
    }
}

/// What a report says that the model of PostgreSQL has, which has no numbers of messages.
pub(crate) fn plain(report: &Report) -> (Vec<Decision>, (u64, u64), usize) {
    let mut decisions = report.decisions.clone();
    for decision in &mut decisions {
        if let Decision::CommittedWith(stamp, results) = decision {
            results.enqueued.clear();
            *decision = Decision::committed(*stamp, std::mem::take(results));
        }
    }
    (decisions, report.versions, report.touched.len())
}
