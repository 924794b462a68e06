//! Decides a batch ahead of its durability: the whole report of the batch follows from the writes and
//! the entries before it, so no transaction has to be open.

use std::collections::HashSet;

use super::batch::{decide, note_delay};
use super::effect::RowEffect;
use super::evaluate::{Effects, Sent};
use super::job::Tracked;
use super::transaction::{Base, Begun};
use super::work::{Report, Work};
use crate::codec::message_context;
use crate::index::{EntryChange, changes};
use crate::model::{AtomicWrite, EncodedValue, Encoding, Enqueued, Key, Result};

/// A batch that is decided, but not durable.
#[derive(Debug)]
pub struct Speculation {
    /// The report for the caller, once the batch is durable.
    pub report: Report,
    /// The effects of the batch. Its messages have the numbers that follow `last_message`, in order.
    pub effects: Effects,
}

/// Whether [`speculate`] can decide the work: it has only writes, and each names all the entries
/// that its decision depends on.
#[must_use]
pub fn can_speculate(work: &Work) -> bool {
    let Work {
        writes,
        settlements,
        renewals,
        claims,
        sweep_max,
        purge_max,
        fires,
        durable: _,
        seed: _,
    } = work;
    let alone = !settlements.is_empty()
        || !renewals.is_empty()
        || !claims.is_empty()
        || *sweep_max > 0
        || *purge_max > 0
        || *fires;
    // A message of a group changes the turns of its queue.
    let is_grouped = |write: &AtomicWrite| {
        write.messages().iter().any(|message| message_context::group_of(&message.value).is_some())
    };
    !alone && writes.iter().all(|write| write.names_all_needs() && !is_grouped(write))
}

/// Decides work for which [`can_speculate`] holds. `last_message`: the number of the last message
/// before it.
pub(crate) fn speculate(
    base: &mut dyn Base,
    begun: &Begun,
    work: &Work,
    last_message: i64,
) -> Result<Speculation> {
    let (decisions, mut effects) =
        decide(base, begun, work.writes.clone(), work.seed, Vec::new(), HashSet::new())?;
    let mut tracked = Vec::new();
    for (Sent { version, message, .. }, id) in effects.messages.iter_mut().zip(last_message + 1..) {
        if let Some(job) = Tracked::of(message) {
            tracked.push(job.enqueued(id, *version, begun.now_ms)?);
        }
        note_delay(message);
    }
    effects.store_too(tracked, begun.logs);
    effects.index_entries = index_entries(base, &effects.rows)?;
    let expiries = effects.rows.iter().filter_map(|(_, effect)| effect.expire_at_ms());
    let mut report = Report {
        decisions,
        versions: (begun.version, effects.version),
        touched: effects.rows.iter().map(|(key, _)| key.clone()).collect(),
        expiry_ms: expiries.min(),
        queued: !effects.messages.is_empty(),
        ..Report::default()
    };
    for (Sent { write, .. }, id) in effects.messages.iter().zip(last_message + 1..) {
        report.enqueued(*write, Enqueued { id: Some(id), deduplicated: false });
    }
    Ok(Speculation { report, effects })
}

/// The changes of value indexes that follow from effects on entries.
fn index_entries(base: &mut dyn Base, rows: &[(Key, RowEffect)]) -> Result<Vec<EntryChange>> {
    let Some(indexes) = base.value_indexes() else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (key, effect) in rows {
        let new = match effect {
            RowEffect::ExpirySet { .. } => continue,
            RowEffect::Removed => None,
            RowEffect::Stored(row) => Some(parts(&row.value)),
        };
        if !indexes.iter().any(|index| index.is_kept_for(key.as_bytes())) {
            continue;
        }
        let old = base.kept_value(key)?;
        let old = old.as_ref().map(parts);
        changes(&indexes, key.as_bytes(), old, new, &mut |index, change| {
            let each = change.each();
            all.extend(each.map(|(entry, added)| EntryChange {
                index,
                entry: entry.to_vec(),
                added,
            }));
            Ok(())
        })?;
    }
    Ok(all)
}

fn parts(value: &EncodedValue) -> (Encoding, &[u8]) {
    (value.encoding, &value.bytes)
}
