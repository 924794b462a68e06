//! How long work goes on: as long as its caller waits, the database is open, and its time lasts.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::model::{CLOSE_GRACE_MS, Error, Kind, Result};

/// Whether the caller still waits for an answer.
pub type Wanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// That something has been closed, and when. Work that was under way has [`CLOSE_GRACE_MS`] left.
#[derive(Clone, Default)]
pub struct Closing(Arc<OnceLock<Instant>>);

impl Closing {
    /// It is closed now, if it was not before.
    pub fn begin(&self) {
        let _earlier = self.0.set(Instant::now());
    }

    /// Whether work that was under way may still go on.
    #[must_use]
    pub fn leaves_time(&self) -> bool {
        let grace = Duration::from_millis(CLOSE_GRACE_MS);
        self.0.get().is_none_or(|since| since.elapsed() < grace)
    }
}

/// The bounds of one caller's work, in all its steps. Asked often, by the thread that does it.
pub struct Patience {
    /// The method, for its error.
    what: &'static str,
    wanted: Option<Wanted>,
    closing: Closing,
    most: Duration,
    since: Instant,
}

impl Patience {
    /// Work that begins now.
    pub(super) fn new(
        what: &'static str,
        most: Duration,
        wanted: Option<Wanted>,
        closing: Closing,
    ) -> Arc<Self> {
        Arc::new(Self { what, wanted, closing, most, since: Instant::now() })
    }

    /// Whether to go on.
    #[must_use]
    pub fn lasts(&self) -> bool {
        self.is_wanted() && self.since.elapsed() < self.most
    }

    fn is_wanted(&self) -> bool {
        self.closing.leaves_time() && self.wanted.as_ref().is_none_or(|wanted| wanted())
    }

    /// Why not to go on.
    ///
    /// # Errors
    /// `Closed` when nobody waits any more; `Unavailable` when its time is over.
    pub fn check(&self) -> Result<()> {
        if !self.is_wanted() {
            return Err(Error::closed());
        }
        if self.since.elapsed() < self.most {
            return Ok(());
        }
        let (what, most_ms) = (self.what, self.most.as_millis());
        Err(Error::new(
            Kind::Unavailable,
            format!(
                "{what}: ended after {most_ms} ms, the most that one call may take: ask for less at \
                 a time, with a narrower prefix, fewer terms or fewer conditions"
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn work_ends_with_its_caller_its_database_or_its_time() {
        let hour = Duration::from_secs(3600);
        let here = Arc::new(AtomicBool::new(true));
        let asked = here.clone();
        let wanted: Wanted = Arc::new(move || asked.load(Ordering::Relaxed));
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
        assert!(patience.lasts(), "what is nearly done is completed");
        std::thread::sleep(Duration::from_millis(CLOSE_GRACE_MS));
        assert_eq!(patience.check().unwrap_err().kind(), Kind::Closed);
    }
}
