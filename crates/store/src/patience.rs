//! The bounds of a long operation: its caller waits, the database is open, and its time is not
//! over.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::log_bound::{LogBound, LogKeeper};
use openkv_core::model::{CLOSE_GRACE_MS, Error, Result};

/// Answers whether the caller still waits.
pub type CallerLiveness = Arc<dyn Fn() -> bool + Send + Sync>;

/// When a database was closed. Work under way then may run for [`CLOSE_GRACE_MS`] more.
#[derive(Clone, Default)]
pub struct Closing(Arc<OnceLock<Instant>>);

impl Closing {
    /// Marks the database closed, unless it is already.
    pub fn begin(&self) {
        let _earlier = self.0.set(Instant::now());
    }

    /// Whether work under way may continue.
    pub fn leaves_time(&self) -> bool {
        let grace = Duration::from_millis(CLOSE_GRACE_MS);
        self.0.get().is_none_or(|since| since.elapsed() < grace)
    }
}

/// The bounds of one caller's operation, across all its steps. The thread that does the work checks
/// them often.
pub struct Patience {
    /// The method's name, for the error.
    what: &'static str,
    wanted: Option<CallerLiveness>,
    closing: Closing,
    most: Duration,
    since: Instant,
    /// Of an operation whose snapshot waits for a client.
    log: OnceLock<LogBound>,
}

impl Patience {
    /// Starts the bounds of an operation now.
    pub(super) fn new(
        what: &'static str,
        most: Duration,
        wanted: Option<CallerLiveness>,
        closing: Closing,
    ) -> Arc<Self> {
        let (since, log) = (Instant::now(), OnceLock::new());
        Arc::new(Self { what, wanted, closing, most, since, log })
    }

    /// Adds the bound of the log that the operation keeps; it begins to read now.
    pub(super) fn keep_log(&self, keeper: LogKeeper) -> Result<()> {
        if let Some(bound) = keeper.begin(self.what)? {
            let _earlier = self.log.set(bound);
        }
        Ok(())
    }

    /// Whether to continue.
    pub fn lasts(&self) -> bool {
        self.is_wanted() && self.since.elapsed() < self.most && self.is_log_short()
    }

    fn is_log_short(&self) -> bool {
        self.log.get().is_none_or(LogBound::lasts)
    }

    /// Whether its caller still waits, and the database is open.
    pub fn is_wanted(&self) -> bool {
        self.closing.leaves_time() && self.wanted.as_ref().is_none_or(|wanted| wanted())
    }

    /// Fails if the operation must end.
    ///
    /// # Errors
    /// `Closed` if no caller waits any more; `Unavailable` if its time is over, or if the log that it keeps
    /// is too long.
    pub fn check(&self) -> Result<()> {
        if !self.is_wanted() {
            return Err(Error::closed());
        }
        if let Some(log) = self.log.get().filter(|log| !log.lasts()) {
            return Err(log.refusal(self.what));
        }
        if self.since.elapsed() < self.most {
            return Ok(());
        }
        let (what, most_ms) = (self.what, self.most.as_millis());
        Err(Error::unavailable(format!(
            "{what}: ended after {most_ms} ms, the most that one call may take: ask for less at \
             a time, with a narrower prefix, fewer terms or fewer conditions"
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use openkv_core::model::Kind;

    #[test]
    fn work_ends_with_its_caller_its_database_or_its_time() {
        let hour = Duration::from_secs(3600);
        let here = Arc::new(AtomicBool::new(true));
        let flag = here.clone();
        let wanted: CallerLiveness = Arc::new(move || flag.load(Ordering::Relaxed));
        let closing = Closing::default();
        let patience = Patience::new("kv.count", hour, Some(wanted), closing.clone());
        assert!(patience.lasts() && patience.check().is_ok());
        here.store(false, Ordering::Relaxed);
        assert!(!patience.lasts());
        assert_eq!(patience.check().unwrap_err().kind(), Kind::Closed);

        let late = Patience::new("kv.count", Duration::from_millis(1), None, closing.clone());
        std::thread::sleep(Duration::from_millis(2));
        let error = late.check().unwrap_err();
        assert_eq!(error.kind(), Kind::Unavailable);
        assert!(error.message().starts_with("kv.count: ended after 1 ms"), "{error}");

        let patience = Patience::new("kv.count", hour, None, closing.clone());
        closing.begin();
        assert!(patience.lasts(), "work that is nearly done may complete");
        std::thread::sleep(Duration::from_millis(CLOSE_GRACE_MS));
        assert_eq!(patience.check().unwrap_err().kind(), Kind::Closed);
    }
}
