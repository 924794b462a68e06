//! Notices commits of other processes: one poll for all databases of a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Shared;
use super::cells::Cells;
use crate::engine::{ExternalCommits, ExternalWatch, ExternalWatchGuard, TellExternal};
use crate::model::{
    Error, Kind, POSTGRES_POLL_BUSY_MS, POSTGRES_POLL_IDLE_AFTER_MS, POSTGRES_POLL_IDLE_MS, Result,
};

const VERSIONS: &str = "\
SELECT d.id, d.version FROM unnest($1::int8[]) AS u(id) \
CROSS JOIN LATERAL (SELECT id, version FROM openkv.databases WHERE id = u.id LIMIT 1) AS d";

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
        let rows = match first.shared.query((VERSIONS, vec![&ids])) {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "polling PostgreSQL for commits of other processes");
                continue;
            }
        };
        for row in rows {
            let cells = Cells::of("databases", &row);
            let (Ok(db), Ok(version)) = (cells.get::<i64>(0), cells.unsigned(1)) else { continue };
            for watched in here.iter().filter(|watched| watched.shared.db == db) {
                if watched.shared.seen.swap(version, Ordering::Relaxed) == version {
                    continue;
                }
                changed = true;
                let tell = watched.tell.lock();
                if !watched.ended.load(Ordering::Relaxed) {
                    tell(&ExternalCommits::Unknown);
                }
            }
        }
    }
    changed
}
