//! The clock of a database, by which the ids of writes are made.

use tokio::time::Instant;

/// The clock of a database, as of a metadata exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatabaseClock {
    /// The time at the server before the answer arrived, in ms since the epoch.
    pub(super) at_ms: i64,
    /// When the answer had arrived.
    pub(super) heard: Instant,
}

impl DatabaseClock {
    /// The time now; never ahead of the server's.
    pub(super) fn now_ms(self) -> i64 {
        let passed = i64::try_from(self.heard.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.at_ms.saturating_add(passed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_passes_since_the_answer_arrived() {
        let clock = DatabaseClock { at_ms: 1_000_000, heard: Instant::now() };
        assert_eq!(clock.now_ms(), 1_000_000);
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(clock.now_ms(), 1_001_500);
    }
}
