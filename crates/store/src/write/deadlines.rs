//! The writer thread's timed work: when it is due, by the engine's next deadlines, and the pauses
//! after failures.

use std::time::{Duration, Instant};

use super::{Consumers, Part, Tries, WriterThread};
use openkv_core::model::{Error, FRUITLESS_PAUSE_MS, INDEX_BUILD_BUSY_MS, SCHEDULES_QUEUE};
use openkv_engines::Writer;

impl<W: Writer> WriterThread<W> {
    /// Handles a clock that was set back: due times are too far off, so they are read again at
    /// once, and the locks of running handlers, whose ends are too far off too, are renewed.
    pub(super) fn mind_the_clock(&mut self, consumers: &mut Consumers, now_ms: i64) {
        if now_ms < self.seen_ms {
            consumers.renew_again();
            self.bounded.clear();
            self.timers.ask_anew();
            self.retry_ms = 0;
            self.build_ms = self.build_ms.map(|at| at.min(now_ms));
        }
        self.seen_ms = now_ms;
    }

    /// Runs one step of building indexes, if any is to be built. The steps run between other work,
    /// so that nothing waits for more than one step.
    pub(super) fn build(&mut self) {
        let now_ms = self.write_queue.env.now_ms();
        if self.build_ms.is_none_or(|at| at > now_ms) {
            return;
        }
        let deadline = Instant::now() + Duration::from_millis(INDEX_BUILD_BUSY_MS);
        let built = self.writer.build_indexes(now_ms, deadline);
        self.health.note(Part::Indexes, &built, now_ms);
        self.build_ms = match built {
            Ok(more) => {
                self.building = Tries::default();
                more.then_some(now_ms)
            }
            Err(error) => {
                tracing::warn!(%error, "building an index");
                Some(now_ms + self.building.failed_ms())
            }
        };
    }

    /// The earliest time of work without an arrival.
    pub(super) fn next_ms(&self, consumers: &Consumers) -> Option<i64> {
        let renewal = consumers.renewal_ms().map(|at| at.max(self.retry_ms));
        let retry = Some(self.retry_ms).filter(|_| !self.pending_settlements.is_empty());
        let times = [self.timers.next_ms(consumers), renewal, retry, self.build_ms];
        times.into_iter().flatten().min()
    }

    /// Reads the due times from the engine, if they may have changed.
    pub(super) fn look_ahead(&mut self) {
        let now_ms = self.write_queue.env.now_ms();
        if !self.timers.is_stale(now_ms) {
            return;
        }
        let mut deadlines = self.writer.next_deadlines();
        if self.follows
            && let Ok(deadlines) = &mut deadlines
        {
            // The database that it follows removes entries and dead letters.
            (deadlines.expiry_ms, deadlines.purge_ms) = (None, None);
        }
        self.health.note(Part::Agenda, &deadlines, now_ms);
        match deadlines {
            Ok(deadlines) => {
                // If the engine reports no more such work, it does not fail any more.
                let ends = [deadlines.expiry_ms, deadlines.purge_ms];
                if !ends.into_iter().flatten().any(|at| at <= now_ms) {
                    self.health.works(Part::Sweep);
                }
                if !deadlines.building {
                    self.health.works(Part::Indexes);
                }
                self.timers.set(&deadlines, now_ms);
                self.build_ms = deadlines.building.then(|| self.build_ms.unwrap_or(now_ms));
                self.look_at_schedules(now_ms);
                self.look_at_queues(now_ms);
                let _finished = self.write_queue.waiting.lock().consumers.forget_finished(now_ms);
            }
            Err(error) => {
                tracing::warn!(%error, "reading the deadlines");
                self.could_not_ask(&error, now_ms);
            }
        }
    }

    /// The due times are unknown. Waiting consumers get the error after a bounded time.
    fn could_not_ask(&mut self, error: &Error, now_ms: i64) {
        let pause_ms = self.asking.failed_ms();
        self.back_off(now_ms, pause_ms);
        if self.asking.is_lost(Instant::now()) {
            self.watches.refuse_consumers(&self.write_queue, error);
        }
    }

    /// A copy makes no messages: the database that it follows does.
    fn look_at_schedules(&mut self, now_ms: i64) {
        if self.follows || !self.timers.schedules_are_stale(now_ms) {
            return;
        }
        match self.writer.next_message_ms(SCHEDULES_QUEUE) {
            Ok(at) => self.timers.set_schedules(at, now_ms),
            Err(error) => {
                self.health.failed(Part::Agenda, &error, now_ms);
                tracing::warn!(%error, "reading the due time of the schedules");
                self.could_not_ask(&error, now_ms);
            }
        }
    }

    fn look_at_queues(&mut self, now_ms: i64) {
        let queues = self.queues();
        self.timers.keep_queues(&queues);
        self.bounded.retain(|queue| queues.contains(queue));
        for queue in &queues {
            self.bound_times(queue, now_ms);
            match self.writer.next_message_ms(queue) {
                Ok(at) => self.timers.set_queue(queue, at),
                Err(error) => {
                    self.health.failed(Part::Agenda, &error, now_ms);
                    tracing::warn!(%error, "reading the deadlines of a queue");
                    self.could_not_ask(&error, now_ms);
                    return;
                }
            }
        }
        self.asking = Tries::default();
    }

    /// Lets the times of a queue that are too far ahead count by their length, if no look has shown that none is.
    fn bound_times(&mut self, queue: &str, now_ms: i64) {
        if self.follows || self.bounded.contains(queue) {
            return;
        }
        let deadline = Instant::now() + Duration::from_millis(FRUITLESS_PAUSE_MS.unsigned_abs());
        match self.writer.bound_times(queue, now_ms, deadline) {
            Ok(()) => drop(self.bounded.insert(queue.to_owned())),
            // The next look tries again.
            Err(error) => {
                tracing::warn!(%error, "the times of a queue after the clock was set back")
            }
        }
    }

    /// After a failure: timed work waits for a pause.
    pub(super) fn back_off(&mut self, now_ms: i64, pause_ms: i64) {
        self.retry_ms = now_ms + FRUITLESS_PAUSE_MS;
        let queues = self.queues();
        self.timers.back_off(&queues, now_ms + pause_ms);
    }

    /// The queues that have a consumer, each once.
    fn queues(&self) -> Vec<String> {
        let mut queues: Vec<String> = Vec::new();
        for queue in self.write_queue.waiting.lock().consumers.queues() {
            if !queues.iter().any(|known| known == queue) {
                queues.push(queue.to_owned());
            }
        }
        queues
    }
}
