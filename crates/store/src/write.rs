//! The writer thread: everything that waits becomes one transaction.
//!
//! It is sequencer, evaluator and writer in one. Writes are ordered by arrival; [`openkv_core::commit`]
//! decides them inside the engine; the engine's commit makes them durable.
//!
//! An engine may have several batches of writes under way (`under_way.rs`). Everything else needs the
//! writer alone: a batch that settles, renews, claims, sweeps or purges, a task, a step of timed
//! work. It begins only when nothing is under way, and nothing begins behind it until it has ended,
//! so no lock is claimed or renewed twice at once. While such work waits, no further batch begins,
//! so writes do not delay it for longer than the batches under way take.

mod deadlines;
mod inline;
mod recent;
mod shared;
mod spin;
mod sweep;
mod under_way;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::MakeReader;
use super::copy::{Announced, CopyWork};
use super::feed::Feeds;
use super::health::{Health, Part, Tries};
use super::lock_request::LockRequest;
use super::log_tail::LogTails;
use super::queue::{Consumers, Dispatch};
use super::read::{ReadJob, answer};
use super::timers::{Done, Timers};
use super::watch::Watches;
use super::write_queue::{Group, Waiting, WriteQueue, WriterStart, WriterTask};
use crate::metrics::Metrics;
pub(super) use inline::OpenWriter;
use openkv_core::model::{
    AtomicWrite, Claim, DEAD_PURGE_ROWS_MAX, Delivery, Error, Result, SWEEP_JOINED_ROWS_MAX,
    Settlement,
};
use openkv_engines::{ExternalCommits, Reader, Report, Work, Writer};
use recent::RecentCommits;
use shared::{Rest, Round, WriterState};
use spin::Spin;
use sweep::Pace;
use under_way::{Batch, Reply, UnderWay, tell};

pub(super) fn start<W: Writer + 'static>(
    write_queue: Arc<WriteQueue>,
    (watches, feeds, tails): (Arc<Watches>, Arc<Feeds>, Arc<LogTails>),
    (metrics, health): (Arc<Metrics>, Arc<Health>),
    mut writer: W,
    make_reader: Option<MakeReader>,
    follows: bool,
) -> Result<Arc<dyn OpenWriter>> {
    {
        let mut waiting = write_queue.waiting.lock();
        (waiting.refusal, waiting.follows) = (None, follows);
    }
    let woken = Arc::downgrade(&write_queue);
    writer.on_ended(Box::new(move || {
        if let Some(write_queue) = woken.upgrade() {
            write_queue.batch_ended();
        }
    }));
    let state = WriterThread {
        write_queue: write_queue.clone(),
        watches,
        feeds,
        tails,
        follows,
        metrics,
        health,
        writer,
        make_reader,
        reader: None,
        under_way: VecDeque::new(),
        next_step: usize::MAX,
        timers: Timers::default(),
        pace: Pace::default(),
        build_ms: None,
        pending_settlements: Vec::new(),
        asking: Tries::default(),
        applying: Tries::default(),
        building: Tries::default(),
        retry_ms: 0,
        closing: false,
        settled_alone: false,
        seen_ms: i64::MIN,
        bounded: HashSet::new(),
        spin: Spin::of_process(),
        inline: false,
        recent: RecentCommits::default(),
    };
    let reads_at_once = state.make_reader.is_some();
    let shared = WriterState::new(write_queue, state);
    // What is due is found here, or by the first round.
    match reads_at_once {
        true => shared.look()?,
        false => shared.start()?,
    }
    Ok(shared)
}

/// The state of the writer thread. A caller has it for the time of an inline commit (`inline.rs`).
struct WriterThread<W> {
    write_queue: Arc<WriteQueue>,
    watches: Arc<Watches>,
    feeds: Arc<Feeds>,
    tails: Arc<LogTails>,
    /// Whether the database is a copy: it removes no expired entry itself.
    follows: bool,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    writer: W,
    /// `None` where the reader thread runs the reads of watches.
    make_reader: Option<MakeReader>,
    /// For watches; opened on first use.
    reader: Option<Box<dyn Reader>>,
    /// The batches whose outcome is not known, or not answered yet, in order.
    under_way: VecDeque<UnderWay>,
    /// The next step of timed work in this round.
    next_step: usize,
    /// The due times of timed work.
    timers: Timers,
    /// The size of a sweep's step.
    pace: Pace,
    /// When to continue building indexes; `None` if there is nothing to build.
    build_ms: Option<i64>,
    /// Settlements of a failed transaction, and of messages without a consumer, for the next
    /// transaction.
    pending_settlements: Vec<Settlement>,
    /// Consecutive failed reads of the deadlines.
    asking: Tries,
    /// Consecutive failed transactions.
    applying: Tries,
    /// Consecutive failed steps of building indexes.
    building: Tries,
    /// The time of a transaction for `pending_settlements` alone, or for locks whose renewal failed. The wait does
    /// not grow with each failure, because the locks run out meanwhile.
    retry_ms: i64,
    /// The last attempt for `pending_settlements` is under way.
    closing: bool,
    /// The last transaction left out writes: their bound for waiting is shorter than that of the
    /// settlements in it.
    settled_alone: bool,
    /// The last reading of the clock.
    seen_ms: i64,
    /// Queues whose times are not too far ahead: looked at since the clock was last set back.
    bounded: HashSet<String>,
    /// Whether to spin when a caller has been answered.
    spin: Spin,
    /// The batch that is being executed is one of a caller, on its own thread.
    inline: bool,
    /// How long the last small commits took.
    recent: RecentCommits,
}

/// The work taken from the write queue at one time.
struct RoundWork {
    tasks: Vec<WriterTask>,
    queries: Vec<WriterTask>,
    copies: Vec<CopyWork>,
    replies: Vec<Reply>,
    lock_requests: Vec<LockRequest>,
    work: Work,
    busy: Duration,
    nudged: bool,
}

/// The next work of the writer thread.
enum Next {
    /// It executes work.
    Work(Box<RoundWork>),
    /// It asks the engine for outcomes.
    Outcomes,
    /// It waits.
    Rest(Rest),
    /// It ends: the store is closed, and nothing waits.
    Over,
}

impl<W: Writer> WriterThread<W> {
    /// The steps of timed work, once a round.
    const STEPS: [fn(&mut Self); 5] =
        [Self::fire, Self::sweep, Self::purge, Self::build, Self::look_ahead];

    /// Reads what is due. Returns how long the thread would wait.
    fn first_look(&mut self) -> Rest {
        self.next_step = Self::STEPS.len();
        self.look_ahead();
        let now_ms = self.write_queue.env.now_ms();
        self.seen_ms = now_ms;
        let next_ms = self.next_ms(&self.write_queue.waiting.lock().consumers);
        Rest::until(next_ms, now_ms)
    }

    /// Does one piece of work, if there is any.
    fn round<'q>(&mut self, write_queue: &'q WriteQueue) -> Round<'q> {
        self.complete_ended();
        if self.under_way.is_empty()
            && let Some(step) = Self::STEPS.get(self.next_step)
        {
            self.next_step += 1;
            step(self);
            return Round::Worked;
        }
        let mut waiting = write_queue.waiting.lock();
        let acknowledged = self.acknowledged(&mut waiting);
        if !acknowledged.is_empty() {
            drop(waiting);
            acknowledged.into_iter().for_each(|caller| caller());
            return Round::Worked;
        }
        let next = match self.under_way.is_empty() {
            true => self.drain(&mut waiting),
            false => self.drain_behind(&mut waiting),
        };
        let round = match next {
            Next::Work(round) => *round,
            Next::Outcomes => return Round::Worked,
            Next::Rest(rest) => return Round::Rests(waiting, rest),
            Next::Over => {
                waiting.refusal = Some(Error::closed());
                // A closing store claims nothing.
                let receivers = waiting.consumers.cancel_all();
                let acknowledging = waiting.acknowledging.ready(true);
                drop(waiting);
                acknowledging.into_iter().for_each(|caller| caller());
                receivers.into_iter().for_each(|reply| reply(Err(Error::closed())));
                return Round::Over;
            }
        };
        drop(waiting);
        if round.nudged {
            self.timers.ask_anew();
        }
        self.carry_out(round);
        self.next_step = 0;
        Round::Worked
    }

    /// Takes work, while nothing is under way.
    fn drain(&mut self, waiting: &mut Waiting) -> Next {
        let now_ms = self.write_queue.env.now_ms();
        self.mind_the_clock(&mut waiting.consumers, now_ms);
        if let Some(time) = self.lingers(waiting).filter(|_| !self.has_work_alone(waiting, now_ms))
        {
            let due = self.next_ms(&waiting.consumers).map(|at| at.saturating_sub(now_ms));
            let due = due.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
            return Next::Rest(Rest::For(due.map_or(time, |due| time.min(due))));
        }
        if !waiting.submissions.is_empty() || self.has_work_alone(waiting, now_ms) {
            return Next::Work(Box::new(self.take(waiting, now_ms)));
        }
        if waiting.closing {
            if !self.pending_settlements.is_empty() && !std::mem::replace(&mut self.closing, true) {
                return Next::Work(Box::new(self.take(waiting, now_ms)));
            }
            return Next::Over;
        }
        if self.spin.begins() {
            let seen = self.write_queue.arrivals.load(Ordering::Acquire);
            return Next::Rest(Rest::Spin(seen));
        }
        Next::Rest(Rest::until(self.next_ms(&waiting.consumers), now_ms))
    }

    /// Whether work waits that needs the writer alone.
    fn has_work_alone(&self, waiting: &Waiting, now_ms: i64) -> bool {
        let requested = !waiting.tasks.is_empty()
            || !waiting.copies.is_empty()
            || !waiting.queries.is_empty()
            || !waiting.settlements.is_empty()
            || !waiting.lock_requests.is_empty()
            || waiting.nudged;
        let due = || self.next_ms(&waiting.consumers).is_some_and(|at| at <= now_ms);
        requested || (!waiting.closing && (waiting.consumers.is_requested() || due()))
    }

    /// How long the writes that wait let others join them; `None` if they go now, or there are none.
    fn lingers(&self, waiting: &Waiting) -> Option<Duration> {
        let first = waiting.submissions.first().filter(|_| !waiting.closing)?;
        let writes = waiting.submissions.iter().map(|submission| submission.writes.len()).sum();
        Some(self.writer.lingers(first.since, writes)).filter(|time| !time.is_zero())
    }

    fn take(&mut self, waiting: &mut Waiting, now_ms: i64) -> RoundWork {
        let alone = self.under_way.is_empty();
        let again = self.retry_ms <= now_ms;
        let settles = !waiting.settlements.is_empty()
            || !waiting.lock_requests.is_empty()
            || (again && !self.pending_settlements.is_empty())
            || (again && waiting.consumers.renewal_ms().is_some_and(|at| at <= now_ms));
        let mut group = Group::next(&waiting.submissions, alone && settles, self.settled_alone);
        group.settles &= alone;
        self.settled_alone = group.submissions == 0 && !waiting.submissions.is_empty();
        let mut round = RoundWork {
            tasks: std::mem::take(&mut waiting.tasks),
            queries: std::mem::take(&mut waiting.queries),
            copies: std::mem::take(&mut waiting.copies),
            replies: Vec::new(),
            lock_requests: Vec::new(),
            work: Work::default(),
            busy: group.busy,
            nudged: std::mem::take(&mut waiting.nudged),
        };
        let RoundWork { replies, work, lock_requests, .. } = &mut round;
        for submission in waiting.submissions.drain(..group.submissions) {
            replies.push(Reply::of(submission, work));
        }
        self.draw_seed(work);
        if group.settles {
            // Pending settlements come first, so that they are kept after a failure.
            work.settlements = std::mem::take(&mut self.pending_settlements);
            work.settlements.append(&mut waiting.settlements);
            waiting.acknowledging.take();
            work.renewals = waiting.consumers.renewals(now_ms);
            *lock_requests = std::mem::take(&mut waiting.lock_requests);
            lock_requests.iter().for_each(|request| request.join(work));
            work.durable |= !work.settlements.is_empty();
        }
        // A claim ends lapsed locks, so this process renews its own locks before, in the same work.
        if group.settles && !waiting.closing {
            let acks = work.writes.iter().flat_map(AtomicWrite::acks);
            acks.for_each(|ack| waiting.consumers.acknowledging(*ack));
            let env = &self.write_queue.env;
            // Times that may have changed are read first: a claim that fails again and again would put that off.
            let knows_times = !self.timers.is_stale(now_ms);
            let due = |queue: &str| {
                let enqueued =
                    || work.writes.iter().any(|write| write.queues().any(|q| q == queue));
                (knows_times && self.timers.queue(queue).is_over(now_ms)) || enqueued()
            };
            work.claims = waiting.consumers.claims(due);
            for claim in &mut work.claims {
                claim.lock = Claim::lock_of(env.random(), claim.lock_ms);
            }
        }
        // A few deletions share a transaction with other work; many have steps of their own.
        // Expired entries go only with writes, whose callers chose the durability, or with a synced
        // transaction, because a feed may report their removal.
        if alone && !work.is_empty() && self.timers.purge.may_join(now_ms) {
            work.purge_max = DEAD_PURGE_ROWS_MAX;
        }
        let synced = work.durable || !work.writes.is_empty();
        if alone && synced && self.timers.expiry.may_join(now_ms) {
            work.sweep_max = SWEEP_JOINED_ROWS_MAX;
        }
        round
    }

    /// Gives randomness to work that needs any.
    fn draw_seed(&self, work: &mut Work) {
        if work.writes.iter().any(AtomicWrite::has_placeholders) {
            work.seed = self.write_queue.env.random();
        }
    }

    fn carry_out(&mut self, round: RoundWork) {
        let RoundWork { tasks, queries, copies, replies, lock_requests, work, busy, .. } = round;
        for query in queries {
            query(Ok(&mut self.writer));
        }
        for task in tasks {
            task(Ok(&mut self.writer));
            // Tasks may have changed the due times.
            self.timers.ask_anew();
        }
        for copy in copies {
            let announced = copy(Ok(&mut self.writer));
            self.announce_copy(announced);
            self.timers.ask_anew();
        }
        let now_ms = self.write_queue.env.now_ms();
        if work.is_empty() {
            return self.answer_in_order(replies);
        }
        if !(replies.is_empty() && lock_requests.is_empty()) {
            self.spin.answered();
        }
        let batch = Batch::of_callers(&work, replies, lock_requests, now_ms);
        self.begin(work, Instant::now() + busy, batch);
    }

    fn announce_copy(&mut self, announced: Announced) {
        match announced {
            Announced::Nothing => return,
            Announced::Changes(touched, versions) => {
                let mut looks = self.watches.announce(&touched);
                looks.extend(self.feeds.announce(&touched, versions));
                self.show(looks);
            }
            Announced::Everything => {
                self.feeds.announce_external(&ExternalCommits::Unknown);
                self.watches.announce_external(&ExternalCommits::Unknown);
            }
        }
        self.tails.wake();
    }

    fn announce(&mut self, report: &mut Report, replies: Vec<Reply>, done: &Done) {
        tell(replies, std::mem::take(&mut report.decisions), &self.metrics);
        if report.versions.0 != report.versions.1 {
            self.tails.wake();
        }
        let mut looks = self.watches.announce(&report.touched);
        looks.extend(self.feeds.announce(&report.touched, report.versions));
        self.show(looks);
        self.timers.learn(report, done);
    }

    /// Delivers the messages claimed by a transaction that began at `now_ms`. The locks began then,
    /// however long the transaction took.
    fn dispatch(&mut self, claims: &[Claim], deliveries: Vec<Vec<Delivery>>, now_ms: i64) {
        if claims.is_empty() {
            return;
        }
        let mut dispatched = Dispatch::default();
        {
            let mut waiting = self.write_queue.waiting.lock();
            for (claim, deliveries) in claims.iter().zip(deliveries) {
                waiting.consumers.dispatch(claim, deliveries, now_ms, &mut dispatched);
            }
        }
        for (reply, delivery) in dispatched.received {
            reply(Ok(delivery));
        }
        for (listener, deliver, hand) in dispatched.hands {
            let refused = deliver(hand);
            if !refused.is_empty() {
                let mut waiting = self.write_queue.waiting.lock();
                let consumers = &mut waiting.consumers;
                dispatched.left.extend(refused.into_iter().map(|h| consumers.refused(listener, h)));
                let finished = consumers.forget_finished(now_ms);
                drop(waiting);
                drop(finished);
            }
        }
        if !dispatched.left.is_empty() {
            self.pending_settlements.extend(dispatched.left);
            self.retry_ms = 0;
        }
    }

    /// Runs the reads of watches after a commit.
    fn show(&mut self, looks: Vec<ReadJob>) {
        if looks.is_empty() {
            return;
        }
        let make_reader = self.make_reader.as_ref().filter(|_| !self.inline);
        let Some(make_reader) = make_reader else {
            return self.watches.send_all(looks);
        };
        if self.reader.is_none() {
            match make_reader() {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => {
                    // The reader thread has a reader; the next commit tries again.
                    tracing::warn!(%error, "opening a reader for watches");
                    return self.watches.send_all(looks);
                }
            }
        }
        let now_ms = self.write_queue.env.now_ms();
        for look in looks {
            if let Some(reader) = &mut self.reader {
                answer(reader.as_mut(), now_ms, look);
            }
        }
        // An open snapshot would keep the next checkpoint from finishing.
        if let Some(reader) = &mut self.reader {
            reader.release();
        }
    }
}
