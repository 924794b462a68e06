//! Notices commits of other processes: one poll for all databases of a server, which also reads the
//! keys of the batches from the log.
//!
//! Invariant: keys are reported only for a chain of batches without a gap, from the last commit that this
//! process has seen or made. Otherwise the commits are reported as unknown: a log was trimmed, a batch had
//! too many keys, or there were too many batches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_postgres::Row;

use super::Shared;
use super::cells::Cells;
use super::line::Value;
use super::logged_keys::LoggedKeys;
use crate::{ExternalCommits, ExternalWatch, ExternalWatchGuard, TellExternal};
use openkv_core::model::{
    Error, Key, Kind, POSTGRES_POLL_BATCHES_MAX, POSTGRES_POLL_BUSY_MS,
    POSTGRES_POLL_IDLE_AFTER_MS, POSTGRES_POLL_IDLE_MS, Result,
};

/// Of each database with another version than this process has seen: that version, and the batches
/// after the seen one.
const COMMITS: &str = "\
SELECT u.i, d.version, l.version, l.previous, l.keys \
FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY AS u(id, seen, i) \
CROSS JOIN LATERAL (SELECT version FROM openkv.databases \
WHERE id = u.id AND version <> u.seen LIMIT 1) AS d \
LEFT JOIN LATERAL (SELECT version, previous, keys FROM openkv.log \
WHERE db = u.id AND version > u.seen ORDER BY version LIMIT $3) AS l ON true \
ORDER BY u.i, l.version";

/// The databases that are watched, of all servers.
static WATCHED: LazyLock<Mutex<Polls>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Polls {
    watched: Vec<Weak<Watched>>,
    /// Whether the thread runs.
    runs: bool,
}

struct Watched {
    shared: Arc<Shared>,
    tell: Mutex<TellExternal>,
    ended: AtomicBool,
}

struct Guard(Arc<Watched>);

impl ExternalWatchGuard for Guard {}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
        self.0.shared.polled.store(false, Ordering::Relaxed);
        // Waits for a call that is under way.
        drop(self.0.tell.lock());
    }
}

/// Calls `tell` whenever another process has committed.
pub(super) fn watch(shared: &Arc<Shared>, tell: TellExternal) -> Result<ExternalWatch> {
    let (shared, ended) = (shared.clone(), AtomicBool::new(false));
    let watched = Arc::new(Watched { shared, tell: Mutex::new(tell), ended });
    let mut polls = WATCHED.lock();
    polls.watched.push(Arc::downgrade(&watched));
    if !polls.runs {
        std::thread::Builder::new()
            .name("openkv-postgres".into())
            .spawn(poll)
            .map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        polls.runs = true;
    }
    drop(polls);
    watched.shared.polled.store(true, Ordering::Relaxed);
    Ok(ExternalWatch::new(Guard(watched)))
}

fn poll() {
    let mut busy_until = Instant::now();
    loop {
        let watched: Vec<Arc<Watched>> = {
            let mut polls = WATCHED.lock();
            polls.watched.retain(|watched| watched.strong_count() > 0);
            if polls.watched.is_empty() {
                polls.runs = false;
                return;
            }
            polls.watched.iter().filter_map(Weak::upgrade).collect()
        };
        if look(&watched) {
            busy_until = Instant::now() + Duration::from_millis(POSTGRES_POLL_IDLE_AFTER_MS);
        }
        drop(watched);
        let is_busy = Instant::now() < busy_until;
        let pause = if is_busy { POSTGRES_POLL_BUSY_MS } else { POSTGRES_POLL_IDLE_MS };
        std::thread::sleep(Duration::from_millis(pause));
    }
}

/// Looks at all databases, one statement for each server; answers whether any has changed.
fn look(watched: &[Arc<Watched>]) -> bool {
    let mut changed = false;
    let mut left: Vec<&Arc<Watched>> = watched.iter().collect();
    while let Some(first) = left.first().map(|first| (*first).clone()) {
        let (here, others): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|watched| Arc::ptr_eq(&watched.shared.pool, &first.shared.pool));
        left = others;
        let ids: Vec<i64> = here.iter().map(|watched| watched.shared.db).collect();
        let seen = |watched: &&Arc<Watched>| watched.shared.seen.load(Ordering::Relaxed);
        let seen: Vec<u64> = here.iter().map(seen).collect();
        let after: Vec<i64> = seen.iter().map(|version| version.cast_signed()).collect();
        let call = (COMMITS, vec![&ids as &Value<'_>, &after, &POSTGRES_POLL_BATCHES_MAX]);
        let rows = match first.shared.query(call) {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "polling PostgreSQL for commits of other processes");
                continue;
            }
        };
        for rows in rows.chunk_by(|one, next| number(one, 0) == number(next, 0)) {
            let of = |at: usize| rows.first().and_then(|row| number(row, at));
            let (Some(place), Some(version)) = (of(0), of(1)) else { continue };
            let at = usize::try_from(place.saturating_sub(1)).unwrap_or(usize::MAX);
            if let (Some(watched), Some(seen)) = (here.get(at), seen.get(at)) {
                changed |= watched.tell((*seen, version), rows.iter().map(Logged::of));
            }
        }
    }
    changed
}

fn number(row: &Row, at: usize) -> Option<u64> {
    Cells::of("log", row).unsigned(at).ok()
}

impl Watched {
    /// Tells of the commits between two versions. Returns whether they are external.
    fn tell(&self, versions: (u64, u64), logged: impl Iterator<Item = Option<Logged>>) -> bool {
        let (seen, version) = versions;
        let tell = self.tell.lock();
        if self.ended.load(Ordering::Relaxed) {
            return false;
        }
        // If it was changed meanwhile, this process has committed; the next look finds what is left.
        let order = Ordering::Relaxed;
        let is_next = self.shared.seen.compare_exchange(seen, version, order, order).is_ok();
        if is_next {
            tell(&commits(versions, logged));
        }
        is_next
    }
}

/// A batch in the log.
struct Logged {
    version: u64,
    /// The last commit before it.
    previous: u64,
    keys: Vec<Key>,
}

impl Logged {
    /// `None` if the row has no keys.
    fn of(row: &Row) -> Option<Self> {
        let keys = Cells::of("log", row).get::<Option<&[u8]>>(4).ok()??;
        let keys = LoggedKeys::decode(keys)?;
        Some(Self { version: number(row, 2)?, previous: number(row, 3)?, keys })
    }
}

/// The commits after one version up to another, by the log.
fn commits(versions: (u64, u64), logged: impl Iterator<Item = Option<Logged>>) -> ExternalCommits {
    let (mut last, mut all) = (versions.0, Vec::new());
    for batch in logged {
        match batch {
            Some(Logged { version, previous, keys }) if previous == last => {
                last = version;
                all.extend(keys);
            }
            _ => return ExternalCommits::Unknown,
        }
    }
    if last == versions.1 {
        ExternalCommits::Known { versions, keys: all }
    } else {
        ExternalCommits::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch((previous, version): (u64, u64), key: u8) -> Option<Logged> {
        Some(Logged { version, previous, keys: vec![Key::from_encoded(vec![key])] })
    }

    #[test]
    fn keys_are_reported_of_batches_without_a_gap() {
        let of = |versions, batches: Vec<Option<Logged>>| commits(versions, batches.into_iter());
        let keys = [1, 2].map(|key| Key::from_encoded(vec![key])).to_vec();
        let all = of((3, 7), vec![batch((3, 4), 1), batch((4, 7), 2)]);
        assert_eq!(all, ExternalCommits::Known { versions: (3, 7), keys });
        let unknown = [
            of((3, 7), vec![]),
            of((3, 7), vec![batch((4, 7), 2)]),
            of((3, 7), vec![batch((3, 4), 1)]),
            of((3, 7), vec![batch((3, 4), 1), None, batch((4, 7), 2)]),
            of((3, 7), vec![batch((3, 4), 1), batch((5, 7), 2)]),
            // After a failover to a standby that had not got everything.
            of((7, 3), vec![]),
        ];
        assert_eq!(unknown, [(); 6].map(|()| ExternalCommits::Unknown));
    }
}
