//! Decides whether the answers that clients got are possible: the memory engine executes the history of the
//! database, batch by batch, and must come to the same answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use openkv::commit::Ticket;
use openkv::engine::memory::MemoryEngine;
use openkv::engine::{Engine, Reader, Report, Work, Writer};
use openkv::model::{AtomicWrite, Attempt, Decision, Error, Kind, WriteId};

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
    /// What was executed, for the copy.
    done: Vec<(Vec<AtomicWrite>, i64)>,
    engine: MemoryEngine,
    /// An engine that has executed the first so many of `done`, and nothing else.
    copy: Option<(MemoryEngine, usize)>,
    clock_ms: i64,
    version: u64,
    /// The outcomes of the writes with ids that are never decided again.
    outcomes: BTreeMap<WriteId, Decision>,
}

impl Replay {
    fn new() -> Self {
        let (done, outcomes) = (Vec::new(), BTreeMap::new());
        let (engine, copy) = (MemoryEngine::new(), None);
        Self { done, engine, copy, clock_ms: 0, version: 0, outcomes }
    }

    /// What the decided writes of a batch would do now.
    fn peek(&mut self, split: &Split, now_ms: i64) -> Report {
        let (engine, known) = self.copy.take().unwrap_or_else(|| (MemoryEngine::new(), 0));
        for (writes, now_ms) in &self.done[known..] {
            apply(&engine, writes, *now_ms);
        }
        let report = split.report(apply(&engine, &split.decided, now_ms));
        if report.versions.0 == report.versions.1 {
            self.copy = Some((engine, self.done.len()));
        }
        report
    }

    /// The report of a batch of which these writes are decided.
    fn carry_out(&mut self, split: &Split, now_ms: i64) -> Report {
        split.report(apply(&self.engine, &split.decided, now_ms))
    }

    /// Notes the writes with ids of a batch that has happened. `stored`: those that the database has.
    fn note(&mut self, split: &Split, report: &Report, stored: &Stored) -> Result<(), String> {
        let places = split.places.iter().zip(&report.decisions);
        let decided = places.filter(|(place, _)| **place == Place::Decided);
        for ((_, decision), write) in decided.zip(&split.decided) {
            let is_final = |attempt: &Attempt| attempt.repeated || !decision.is_refused();
            let Some(Attempt { id, .. }) = write.attempt().filter(is_final) else { continue };
            let Some(stored) = stored.get(&id) else {
                return Err(format!("{id:?} was decided for good without a record"));
            };
            self.outcomes.insert(id, (*stored).clone());
        }
        Ok(())
    }
}

fn apply(engine: &MemoryEngine, writes: &[AtomicWrite], now_ms: i64) -> Report {
    let work = Work { writes: writes.to_vec(), ..Work::default() };
    let deadline = Instant::now() + Duration::from_secs(20);
    engine.writer().expect("a writer").apply(work, now_ms, deadline).expect("applied")
}

/// What clients believe of their writes with ids is what the database has of them: all that they believe
/// committed is there, and nothing that they believe refused.
///
/// # Errors
/// The first contradiction.
pub(crate) fn believed_outcomes(
    believed: &[(WriteId, Decision)],
    tables: &Tables,
) -> Result<(), String> {
    let stored: Stored =
        tables.records.iter().map(|(_, record)| (record.id, &record.decision)).collect();
    for (id, decision) in believed {
        match stored.get(id) {
            Some(stored) if *stored == decision => {}
            None if decision.is_refused() => {}
            stored => return Err(format!("a client has {decision:?} for {id:?}, not {stored:?}")),
        }
    }
    Ok(())
}

/// The ids that the database has of a batch, with the outcomes.
type Stored<'t> = BTreeMap<WriteId, &'t Decision>;

#[derive(PartialEq)]
enum Place {
    Decided,
    /// It has this outcome, or an answer that nobody has got.
    Known(Option<Decision>),
    /// As an earlier write of the batch.
    Same(usize),
}

/// Which writes of a batch are decided: an id with an outcome is not decided again.
struct Split {
    places: Vec<Place>,
    decided: Vec<AtomicWrite>,
}

impl Split {
    fn of(replay: &Replay, batch: &Batch, stored: &Stored) -> Self {
        let answered = |at: usize| match &batch.answer {
            Some(Answer { result: Ok(report), .. }) => report.decisions.get(at),
            Some(_) | None => None,
        };
        let mut first = BTreeMap::new();
        let place = |(at, write): (usize, &AtomicWrite)| {
            let Some(id) = write.id() else { return Place::Decided };
            match (answered(at), replay.outcomes.get(&id)) {
                (Some(answer), _) if is_unknown(answer) => Place::Known(Some(answer.clone())),
                (_, Some(outcome)) => Place::Known(Some(outcome.clone())),
                (None, None) if !stored.contains_key(&id) => Place::Known(None),
                (_, None) => match *first.entry(id).or_insert(at) {
                    first if first == at => Place::Decided,
                    first => Place::Same(first),
                },
            }
        };
        let places: Vec<Place> = batch.writes.iter().enumerate().map(place).collect();
        let is_repeated = |write: &AtomicWrite| write.attempt().is_some_and(|of| of.repeated);
        let repeated: BTreeSet<_> =
            batch.writes.iter().filter(|write| is_repeated(write)).map(AtomicWrite::id).collect();
        let both = batch.writes.iter().zip(&places);
        let decided = both.filter(|(_, place)| **place == Place::Decided);
        let decided = decided.map(|(write, _)| match repeated.contains(&write.id()) {
            true => write.clone().repeated(),
            false => write.clone(),
        });
        Self { decided: decided.collect(), places }
    }

    /// The report of the batch. `of_decided`: that of the writes that are decided.
    fn report(&self, of_decided: Report) -> Report {
        let decisions = self.decisions(of_decided.decisions);
        Report { decisions, ..of_decided }
    }

    fn decisions(&self, decided: Vec<Decision>) -> Vec<Decision> {
        let mut decided = decided.into_iter();
        let mut all: Vec<Decision> = Vec::new();
        for place in &self.places {
            all.push(match place {
                Place::Decided => decided.next().expect("a decision"),
                Place::Known(Some(outcome)) => outcome.clone(),
                Place::Known(None) => Decision::CheckFailed(Vec::new()),
                Place::Same(at) => all[*at].clone(),
            });
        }
        all
    }
}

fn is_unknown(decision: &Decision) -> bool {
    matches!(decision, Decision::Rejected(error) if error.kind() == Kind::OutcomeUnknown)
}

/// Checks everything that was answered against the history. `forgets`: whether leaders forget ids of
/// writes while clients repeat them.
///
/// # Errors
/// The first contradiction.
pub(crate) fn check(batches: &Batches, tables: &Tables, forgets: bool) -> Result<(), String> {
    let mut records = BTreeMap::new();
    for (place, record) in &tables.records {
        let of_batch: &mut Stored = records.entry(*place).or_default();
        of_batch.insert(record.id, &record.decision);
    }
    answers_of_ids(batches, tables, forgets)?;
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
    for (place, happened) in tables.history.iter().enumerate() {
        let Happened { server, ticket, prev, next, now_ms, .. } = happened;
        let name = (*server, *ticket);
        let batch = batches.get(&name).ok_or("a batch of nobody")?;
        if *now_ms < replay.clock_ms {
            return Err(format!("time goes back at {next}: {now_ms} after {}", replay.clock_ms));
        }
        replay.clock_ms = *now_ms;
        let of_batch = records.remove(&place).unwrap_or_default();
        if let Some(id) = of_batch.keys().find(|id| replay.outcomes.contains_key(id)) {
            return Err(format!("{name:?} executes {id:?}, which has happened before"));
        }
        let split = Split::of(&replay, batch, &of_batch);
        let report = replay.carry_out(&split, *now_ms);
        replay.note(&split, &report, &of_batch)?;
        replay.done.push((split.decided, *now_ms));
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

/// Every answer to a write with an id that has committed is the stored one, also to a repetition.
fn answers_of_ids(batches: &Batches, tables: &Tables, forgets: bool) -> Result<(), String> {
    let outcomes: Stored =
        tables.records.iter().map(|(_, record)| (record.id, &record.decision)).collect();
    for (name, batch) in batches {
        let Some(Answer { result: Ok(report), .. }) = &batch.answer else { continue };
        for (write, answered) in batch.writes.iter().zip(&report.decisions) {
            let unknown = is_unknown(answered);
            if unknown && !forgets {
                return Err(format!("{name:?} does not know {:?}", write.id()));
            }
            let committed =
                matches!(answered, Decision::Committed(_) | Decision::CommittedWith(..));
            let Some(id) = write.id().filter(|_| committed) else { continue };
            if outcomes.get(&id) != Some(&answered) {
                let stored = outcomes.get(&id);
                return Err(format!("{name:?} answers {id:?} with {answered:?}, not {stored:?}"));
            }
        }
    }
    Ok(())
}

/// Carries out the batches without a commit that were decided at the present version.
fn refused(replay: &mut Replay, refusals: &BTreeMap<u64, Vec<&Batch>>) -> Result<(), String> {
    for batch in refusals.get(&replay.version).into_iter().flatten() {
        let Some(Answer { result: Ok(answered), .. }) = &batch.answer else { continue };
        let mut times: Vec<i64> = batch.times_ms.clone();
        times.dedup();
        let mut outcome = Err("a refusal that was never decided".to_owned());
        let split = Split::of(replay, batch, &Stored::new());
        match times[..] {
            // A refusal changes nothing, and a wrong one ends the check.
            [now_ms] => outcome = same(answered, &replay.carry_out(&split, now_ms)),
            _ => {
                for now_ms in times {
                    outcome = same(answered, &replay.peek(&split, now_ms));
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
