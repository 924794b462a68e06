//! Stores the metrics of a store in its database, in intervals and when the store closes.
//!
//! The thread exists only for a database that keeps its metrics. The writer thread carries each flush out,
//! between two transactions. A flush that fails stays to be stored by the next one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Store;
use super::write_queue::WriteQueue;
use crate::metrics::Metrics;
use openkv_core::model::{Error, Kind, METRIC_LAST_FLUSH_MS_MAX, Result};

/// The thread, and how to shorten its interval. Dropping it flushes for the last time.
pub(super) struct MetricsKeeper {
    interval: Option<Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Keeps the metrics in the database: what processes have counted there adds up. Of several intervals
    /// the shortest counts.
    ///
    /// # Errors
    /// `Invalid` for a store that refuses writes, `Unavailable` if no thread can be started.
    pub fn keep_metrics(&self, interval: Duration) -> Result<()> {
        if self.readonly {
            let why = "the option metrics.persistent writes to the file: leave out readonly";
            return Err(Error::invalid(why));
        }
        let mut keeper = self.keeper.lock();
        if let Some(MetricsKeeper { interval: Some(changes), .. }) = &*keeper {
            // A thread that has ended has failed, and says so.
            let _ = changes.send(interval);
            return Ok(());
        }
        self.metrics.keep_as(self.env.random());
        let (changes, changed) = channel();
        let (writes, metrics) = (self.writes.clone(), self.metrics.clone());
        let thread = std::thread::Builder::new()
            .name("openkv-metrics".into())
            .spawn(move || keep(&writes, &metrics, &changed, interval))
            .map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        *keeper = Some(MetricsKeeper { interval: Some(changes), thread: Some(thread) });
        Ok(())
    }

    pub(super) fn is_keeping_metrics(&self) -> bool {
        self.keeper.lock().is_some()
    }
}

impl Drop for MetricsKeeper {
    fn drop(&mut self) {
        self.interval = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps metrics ended by a panic; please report this");
        }
    }
}

fn keep(
    writes: &WriteQueue,
    metrics: &Arc<Metrics>,
    changed: &Receiver<Duration>,
    mut interval: Duration,
) {
    loop {
        match changed.recv_timeout(interval) {
            Ok(other) => interval = interval.min(other),
            Err(RecvTimeoutError::Timeout) => flush(writes, metrics, Duration::ZERO),
            Err(RecvTimeoutError::Disconnected) => {
                return flush(writes, metrics, Duration::from_millis(METRIC_LAST_FLUSH_MS_MAX));
            }
        }
    }
}

/// Submits a flush, if there is anything to store: what an earlier flush could not store, and what was
/// counted since.
fn flush(writes: &WriteQueue, metrics: &Arc<Metrics>, busy: Duration) {
    if !metrics.has_unkept() {
        return;
    }
    let metrics = metrics.clone();
    writes.run(Box::new(move |writer| {
        let stored = writer.and_then(|writer| {
            for _ in 0..2 {
                if metrics.begin_flush() {
                    let merge = &mut |kept: Option<&str>| metrics.flushed(kept);
                    writer.keep_metrics(merge, Instant::now() + busy)?;
                    metrics.end_flush();
                }
            }
            Ok(())
        });
        if let Err(error) = stored {
            tracing::debug!(%error, "storing metrics; the next flush stores them");
        }
    }));
}
