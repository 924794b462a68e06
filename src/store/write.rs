//! The writer thread: everything that waits becomes one transaction.
//!
//! Sequencer, evaluator and writer in one: writes get their place by arriving, their outcome from
//! [`crate::commit`] inside the engine, their durability from the engine's commit.

mod sweep;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::MakeReader;
use super::consume::Asked;
use super::feed::Feeds;
use super::group::Group;
use super::health::{Health, Part, Tries};
use super::inbox::{Inbox, Order, Waiting};
use super::outlook::{Done, Outlook};
use super::queue::{Consumers, Dealt};
use super::read::{ReadJob, answer};
use super::reply::{Reply, fail, tell};
use super::watch::Watches;
use crate::engine::{Reader, Report, Work, Writer};
use crate::metrics::{Metrics, Operation};
use crate::model::{
    AtomicWrite, Claim, DEAD_PURGE_ROWS_MAX, Delivery, Error, FRUITLESS_PAUSE_MS,
    INDEX_BUILD_BUSY_MS, Kind, Result, SWEEP_JOINED_ROWS_MAX, Settlement,
};
use sweep::Pace;

pub(super) fn start<W: Writer + 'static>(
    inbox: Arc<Inbox>,
    (watches, feeds, metrics, health): (Arc<Watches>, Arc<Feeds>, Arc<Metrics>, Arc<Health>),
    writer: W,
    make_reader: MakeReader,
) -> Result<JoinHandle<()>> {
    inbox.waiting.lock().refusal = None;
    let mut scribe = Scribe {
        inbox: inbox.clone(),
        watches,
        feeds,
        metrics,
        health,
        writer,
        make_reader,
        reader: None,
        outlook: Outlook::default(),
        pace: Pace::default(),
        build_ms: None,
        owed: Vec::new(),
        asking: Tries::default(),
        retry_ms: 0,
        closing: false,
        settled_alone: false,
        seen_ms: i64::MIN,
        lingers: available_parallelism().is_ok_and(|threads| threads.get() > 1),
        warm: false,
    };
    std::thread::Builder::new()
        .name("openkv-writer".into())
        .spawn(move || {
            // Nothing of the scribe is used after a panic: it is dropped with the thread, and with
            // it the engine's writer, whose transaction ends undone.
            if catch_unwind(AssertUnwindSafe(|| scribe.serve())).is_err() {
                tracing::error!("the writer thread ended by a panic; please report this");
                inbox.fail();
            }
        })
        .map_err(|error| Error::new(Kind::Unavailable, error.to_string()))
}

/// The writer thread's own state: the engine's writer and what time will bring.
struct Scribe<W> {
    inbox: Arc<Inbox>,
    watches: Arc<Watches>,
    feeds: Arc<Feeds>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    writer: W,
    make_reader: MakeReader,
    /// For watches; opened when the first one needs it.
    reader: Option<Box<dyn Reader>>,
    /// What time will bring.
    outlook: Outlook,
    /// How much of the sweep is done at a time.
    pace: Pace,
    /// When to go on building indexes; `None` if there is nothing to build.
    build_ms: Option<i64>,
    /// Ends of deliveries whose transaction failed, and deliveries that found nobody; they go with
    /// the next transaction.
    owed: Vec<Settlement>,
    /// Questions on end for what is due that have failed.
    asking: Tries,
    /// When there is to be one for them alone, or for locks that could not be renewed.
    retry_ms: i64,
    /// The last try for what is owed is under way.
    closing: bool,
    /// The last transaction left out writes that have less patience than what was settled in it.
    settled_alone: bool,
    /// When the clock was last looked at.
    seen_ms: i64,
    /// Whether there is a processor to stay awake on.
    lingers: bool,
    /// Something was just written: whoever waited for it may write again at once.
    warm: bool,
}

/// One drain of the inbox.
struct Drained {
    orders: Vec<Order>,
    questions: Vec<Order>,
    replies: Vec<Reply>,
    asked: Vec<Asked>,
    work: Work,
    busy: Duration,
    nudged: bool,
}

impl<W: Writer> Scribe<W> {
    fn serve(&mut self) {
        while let Some(drained) = self.drain() {
            if drained.nudged {
                self.outlook.ask_anew();
            }
            self.carry_out(drained);
            self.sweep();
            self.purge();
            self.build();
            self.look_ahead();
        }
    }

    /// Waits until there is something to do, and takes it; `None` when closed and empty.
    fn drain(&mut self) -> Option<Drained> {
        let inbox = self.inbox.clone();
        let mut waiting = inbox.waiting.lock();
        loop {
            let now_ms = inbox.env.now_ms();
            self.mind_the_clock(now_ms);
            let due = self.next_ms(&waiting.consumers).is_some_and(|at| at <= now_ms);
            let arrived = !waiting.submissions.is_empty()
                || !waiting.orders.is_empty()
                || !waiting.questions.is_empty()
                || !waiting.settlements.is_empty()
                || !waiting.asked.is_empty()
                || (waiting.consumers.is_asked() && !waiting.closing)
                || waiting.nudged;
            if arrived || (due && !waiting.closing) {
                return Some(self.take(&mut waiting, now_ms));
            }
            if waiting.closing {
                if !self.owed.is_empty() && !std::mem::replace(&mut self.closing, true) {
                    return Some(self.take(&mut waiting, now_ms));
                }
                waiting.refusal = Some(Error::closed());
                // Nothing is claimed any more.
                let receivers = waiting.consumers.cancel_all();
                drop(waiting);
                receivers.into_iter().for_each(|reply| reply(Err(Error::closed())));
                return None;
            }
            if std::mem::take(&mut self.warm) {
                let seen = inbox.arrivals.load(Ordering::Acquire);
                MutexGuard::unlocked(&mut waiting, || inbox.linger(seen));
                continue;
            }
            match self.next_ms(&waiting.consumers) {
                None => inbox.arrived.wait(&mut waiting),
                Some(at) => {
                    let ms = u64::try_from(at - now_ms).unwrap_or(0);
                    inbox.arrived.wait_for(&mut waiting, Duration::from_millis(ms));
                }
            }
        }
    }

    /// A clock that was set back leaves times behind that are far off: what they were for is asked for
    /// again at once.
    fn mind_the_clock(&mut self, now_ms: i64) {
        if now_ms < self.seen_ms {
            self.outlook.ask_anew();
            self.retry_ms = 0;
            self.build_ms = self.build_ms.map(|at| at.min(now_ms));
        }
        self.seen_ms = now_ms;
    }

    /// One step of building indexes, if there is one to be built: between all else, so that nothing
    /// waits for more than a step.
    fn build(&mut self) {
        let now_ms = self.inbox.env.now_ms();
        if self.build_ms.is_none_or(|at| at > now_ms) {
            return;
        }
        let deadline = Instant::now() + Duration::from_millis(INDEX_BUILD_BUSY_MS);
        let built = self.writer.build_indexes(now_ms, deadline);
        self.health.note(Part::Indexes, &built, now_ms);
        self.build_ms = match built {
            Ok(more) => more.then_some(now_ms),
            Err(error) => {
                tracing::warn!(%error, "building an index");
                Some(now_ms + FRUITLESS_PAUSE_MS)
            }
        };
    }

    /// When there will be something to do without anything arriving.
    fn next_ms(&self, consumers: &Consumers) -> Option<i64> {
        let renewal = consumers.renewal_ms().map(|at| at.max(self.retry_ms));
        let retry = Some(self.retry_ms).filter(|_| !self.owed.is_empty());
        let times = [self.outlook.next_ms(consumers), renewal, retry, self.build_ms];
        times.into_iter().flatten().min()
    }

    fn take(&mut self, waiting: &mut Waiting, now_ms: i64) -> Drained {
        let again = self.retry_ms <= now_ms;
        let settles = !waiting.settlements.is_empty()
            || !waiting.asked.is_empty()
            || (again && !self.owed.is_empty())
            || (again && waiting.consumers.renewal_ms().is_some_and(|at| at <= now_ms));
        let group = Group::next(&waiting.submissions, settles, self.settled_alone);
        self.settled_alone = group.submissions == 0 && !waiting.submissions.is_empty();
        let mut drained = Drained {
            orders: std::mem::take(&mut waiting.orders),
            questions: std::mem::take(&mut waiting.questions),
            replies: Vec::new(),
            asked: Vec::new(),
            work: Work::default(),
            busy: group.busy,
            nudged: std::mem::take(&mut waiting.nudged),
        };
        let Drained { replies, work, asked, .. } = &mut drained;
        for submission in waiting.submissions.drain(..group.submissions) {
            work.durable |= submission.durable;
            let mut places = Vec::with_capacity(submission.writes.len());
            for write in submission.writes {
                places.push(write.map(|write| {
                    let operation = Operation::of(&write);
                    work.writes.push(write);
                    operation
                }));
            }
            replies.push(Reply { places, tell: submission.reply, since: submission.since });
        }
        if work.writes.iter().any(AtomicWrite::has_placeholders) {
            work.seed = self.inbox.env.random();
        }
        if group.settles {
            // What is owed comes first, so that after a failure it is known again.
            work.settlements = std::mem::take(&mut self.owed);
            work.settlements.append(&mut waiting.settlements);
            work.renewals = waiting.consumers.renewals(now_ms);
            *asked = std::mem::take(&mut waiting.asked);
            asked.iter().for_each(|asked| asked.join(work));
            work.durable |= !work.settlements.is_empty();
        }
        // A claim ends lapsed locks: those of this process are renewed before, in the same work.
        if group.settles && !waiting.closing {
            let env = &self.inbox.env;
            let due = |queue: &str| {
                let enqueued =
                    || work.writes.iter().any(|write| write.queues().any(|q| q == queue));
                self.outlook.queue(queue).is_over(now_ms) || enqueued()
            };
            work.claims = waiting.consumers.claims(due);
            for claim in &mut work.claims {
                claim.lock = (env.random() >> 1).cast_signed().max(1);
            }
        }
        // A little of what is to be deleted goes with what there is to do anyway; the many have
        // steps of their own. Entries go only where a removal may be told of: with writes, whose
        // handles have chosen how they are kept, or with what is synced.
        if !work.is_empty() && self.outlook.purge.may_join(now_ms) {
            work.purge_max = DEAD_PURGE_ROWS_MAX;
        }
        if (work.durable || !work.writes.is_empty()) && self.outlook.expiry.may_join(now_ms) {
            work.sweep_max = SWEEP_JOINED_ROWS_MAX;
        }
        drained
    }

    fn carry_out(&mut self, drained: Drained) {
        let Drained { orders, questions, replies, asked, work, busy, .. } = drained;
        for question in questions {
            question(Ok(&mut self.writer));
        }
        for order in orders {
            order(Ok(&mut self.writer));
            // It may have changed what time will bring.
            self.outlook.ask_anew();
        }
        let now_ms = self.inbox.env.now_ms();
        if work.is_empty() {
            tell(replies, Vec::new(), &self.metrics);
            return;
        }
        self.warm = self.lingers && !(replies.is_empty() && asked.is_empty());
        let claims = work.claims.clone();
        let done = Done::of(&work, &claims, now_ms);
        let asked_settlements = asked.iter().filter(|asked| asked.settles()).count();
        let own = work.settlements.len() - asked_settlements;
        let mut settlements = work.settlements.clone();
        settlements.truncate(own);
        let writes = work.writes.len();
        let applied = self.writer.apply(work, now_ms, Instant::now() + busy);
        self.metrics.transaction(writes, applied.is_ok());
        match applied {
            Ok(mut report) => {
                self.metrics.cached(report.cache_looks);
                Asked::tell(asked, &mut report);
                self.announce(&mut report, replies, &done);
                self.deal(&claims, report.deliveries, now_ms);
            }
            Err(error) => {
                tracing::warn!(%error, "a transaction failed");
                self.owed.extend(settlements);
                self.outlook.failed(&done, &error);
                self.back_off(now_ms);
                let lookers = {
                    let consumers = &mut self.inbox.waiting.lock().consumers;
                    consumers.renew_again();
                    if claims.is_empty() { Vec::new() } else { consumers.look_failed() }
                };
                fail(replies, &error, &self.metrics);
                asked.into_iter().for_each(|asked| asked.answer(Err(error.clone())));
                lookers.into_iter().for_each(|reply| reply(Err(error.clone())));
            }
        }
    }

    /// After a failed transaction: what time alone would start waits a little.
    fn back_off(&mut self, now_ms: i64) {
        self.retry_ms = now_ms + FRUITLESS_PAUSE_MS;
        let queues = self.queues();
        self.outlook.back_off(&queues, now_ms);
    }

    /// The queues that somebody is interested in, each once.
    fn queues(&self) -> Vec<String> {
        let mut queues: Vec<String> = Vec::new();
        for queue in self.inbox.waiting.lock().consumers.queues() {
            if !queues.iter().any(|known| known == queue) {
                queues.push(queue.to_owned());
            }
        }
        queues
    }

    fn announce(&mut self, report: &mut Report, replies: Vec<Reply>, done: &Done<'_>) {
        tell(replies, std::mem::take(&mut report.decisions), &self.metrics);
        let mut looks = self.watches.announce(&report.touched, report.versions);
        looks.extend(self.feeds.announce(&report.touched, report.versions));
        self.show(looks);
        self.outlook.learn(report, done);
    }

    /// Hands out what was claimed in a transaction that began at `now_ms`: the locks did then, however
    /// long it took.
    fn deal(&mut self, claims: &[Claim], deliveries: Vec<Vec<Delivery>>, now_ms: i64) {
        if claims.is_empty() {
            return;
        }
        let mut dealt = Dealt::default();
        {
            let mut waiting = self.inbox.waiting.lock();
            for (claim, deliveries) in claims.iter().zip(deliveries) {
                waiting.consumers.deal(claim, deliveries, now_ms, &mut dealt);
            }
        }
        for (reply, delivery) in dealt.received {
            reply(Ok(delivery));
        }
        for (listener, deliver, hand) in dealt.hands {
            let refused = deliver(hand);
            if !refused.is_empty() {
                let mut waiting = self.inbox.waiting.lock();
                let consumers = &mut waiting.consumers;
                dealt.left.extend(refused.into_iter().map(|h| consumers.refused(listener, h)));
                let finished = consumers.forget_finished(now_ms);
                drop(waiting);
                drop(finished);
            }
        }
        if !dealt.left.is_empty() {
            self.owed.extend(dealt.left);
            self.retry_ms = 0;
        }
    }

    /// Takes the looks of watches at what was just committed.
    fn show(&mut self, looks: Vec<ReadJob>) {
        if looks.is_empty() {
            return;
        }
        if self.reader.is_none() {
            match (self.make_reader)() {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => {
                    // The reader thread has one; the next commit tries again.
                    tracing::warn!(%error, "opening a reader for watches");
                    return self.watches.send_all(looks);
                }
            }
        }
        let now_ms = self.inbox.env.now_ms();
        for look in looks {
            if let Some(reader) = &mut self.reader {
                answer(reader.as_mut(), now_ms, look);
            }
        }
        // A held snapshot would keep the next checkpoint from finishing.
        if let Some(reader) = &mut self.reader {
            reader.release();
        }
    }

    /// Asks the engine what time will bring, if that may have changed.
    fn look_ahead(&mut self) {
        let now_ms = self.inbox.env.now_ms();
        if !self.outlook.is_stale(now_ms) {
            return;
        }
        let agenda = self.writer.agenda();
        self.health.note(Part::Agenda, &agenda, now_ms);
        match agenda {
            Ok(agenda) => {
                // What there is no more to do of, by other processes perhaps, does not fail.
                let ends = [agenda.expiry_ms, agenda.purge_ms];
                if !ends.into_iter().flatten().any(|at| at <= now_ms) {
                    self.health.works(Part::Sweep);
                }
                if !agenda.building {
                    self.health.works(Part::Indexes);
                }
                self.outlook.set(&agenda, now_ms);
                self.build_ms = agenda.building.then(|| self.build_ms.unwrap_or(now_ms));
                self.look_at_queues(now_ms);
                let _finished = self.inbox.waiting.lock().consumers.forget_finished(now_ms);
            }
            Err(error) => {
                tracing::warn!(%error, "reading the agenda");
                self.back_off(now_ms);
                self.could_not_ask(&error);
            }
        }
    }

    /// What is due is not known. Listeners that would wait for ever are told after a while.
    fn could_not_ask(&mut self, error: &Error) {
        let now = Instant::now();
        self.asking.failed(now);
        if self.asking.is_lost(now) {
            self.asking = Tries::default();
            self.watches.refuse_listeners(&self.inbox, error);
        }
    }

    fn look_at_queues(&mut self, now_ms: i64) {
        let queues = self.queues();
        self.outlook.keep_queues(&queues);
        for queue in &queues {
            match self.writer.message_agenda(queue) {
                Ok(at) => self.outlook.set_queue(queue, at),
                Err(error) => {
                    self.health.failed(Part::Agenda, &error, now_ms);
                    tracing::warn!(%error, "reading the agenda of a queue");
                    self.back_off(now_ms);
                    self.could_not_ask(&error);
                    return;
                }
            }
        }
        self.asking = Tries::default();
    }
}
