//! The thread of a database in an object store: it follows the log, takes the lead, keeps it, and gives it up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::Local;
use super::cache::{Prepared, encode};
use super::lead::{Lead, LeadMode, Leading, Role, State};
use super::objects::{FoundLease, Identity, Object, next_count};
use super::publisher::segment_of;
use super::seen_lease::state_of;
use super::snapshots::Snapshots;
use crate::ExternalCommits;
use crate::objects::Created;
use openkv_core::chain::{
    EndWatch, EntryKind, Position, Standing, Tenure, Window, cover, encode as encode_object,
};
use openkv_core::model::{
    BUCKET_FOLLOW_BYTES, BUCKET_IDLE_MS, BUCKET_OBJECT_BYTES_MIN, BUCKET_OPENING_LOOK_MS,
    BUCKET_POLL_BUSY_MS, BUCKET_POLL_IDLE_MS, BUCKET_READS_AT_ONCE, BUCKET_RETRY_MS,
    BUSY_TIMEOUT_MS_DEFAULT, Error, Kind, Result,
};

pub(super) struct Driver {
    lead: Arc<Lead>,
    local: Arc<Local>,
    identity: Identity,
    /// The place that the local file has reached, and the fences behind it.
    position: Position,
    /// The next look at the lease of another process, by the clock of `lead`.
    lease_look_ms: u64,
    end: EndWatch,
    /// The log behind the place may be long.
    is_far: bool,
    used_ms: u64,
    /// The store was found to have conditional writes.
    is_probed: bool,
    snapshots: Snapshots,
}

/// A process that rests waits for a call; it looks around after so long all the same.
const REST: Duration = Duration::from_secs(3600);

/// The rest after a piece of work.
struct Pause {
    longest: Duration,
    /// No call shortens it: the store has failed.
    is_whole: bool,
}

/// Whether a driver goes on after an error.
fn may_pass(error: &Error) -> bool {
    matches!(error.kind(), Kind::Unavailable | Kind::OutcomeUnknown | Kind::Denied)
}

/// The progress of one look at the log.
enum Look {
    /// There were new objects.
    Changes,
    /// The log ended where it did before.
    End,
}

impl Driver {
    pub(super) fn new(
        lead: Arc<Lead>,
        local: Arc<Local>,
        identity: Identity,
        place: Prepared,
    ) -> Self {
        let mut end = EndWatch::default();
        end.found(place.listed_ms);
        Self {
            lead,
            local,
            identity,
            position: place.position,
            lease_look_ms: 0,
            end,
            is_far: place.is_fresh,
            used_ms: 0,
            is_probed: false,
            snapshots: Snapshots::default(),
        }
    }

    /// The part of the work that each opening waits for: the whole log, and the lead if no other process has it.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.follow()?;
        self.lead.note_tenure(&self.lead.state.lock());
        match self.lead.mode {
            LeadMode::Never | LeadMode::Served => return Ok(()),
            LeadMode::Auto | LeadMode::Wait => {}
        }
        self.try_to_lead()
    }

    /// Works until this process leads, however long the store fails meanwhile.
    ///
    /// # Errors
    /// Those that no other attempt of this driver ends; `Closed` once `goes_on` says no.
    pub(super) fn wait_for_lead(&mut self, goes_on: &dyn Fn() -> bool) -> Result<()> {
        while !matches!(self.lead.state.lock().role, Role::Leads(_)) {
            let look = self.follow().and_then(|look| self.try_to_lead().map(|()| look));
            let pause = match look {
                Ok(look) => self.pause_after(&look),
                Err(error) if may_pass(&error) => {
                    tracing::warn!(%error, "waiting for the lead of a database in an object store");
                    Duration::from_millis(BUCKET_RETRY_MS)
                }
                Err(error) => return Err(error),
            };
            let until = Instant::now() + pause;
            while Instant::now() < until {
                if !goes_on() {
                    return Err(Error::closed());
                }
                std::thread::sleep(pause.min(Duration::from_millis(BUCKET_OPENING_LOOK_MS)));
            }
        }
        Ok(())
    }

    pub(super) fn run(mut self) {
        loop {
            let pause = self.round();
            let lead = self.lead.clone();
            let mut state = lead.state.lock();
            let until = Instant::now() + pause.longest;
            while !state.closing {
                if state.failed.is_some() {
                    lead.changed.wait(&mut state);
                } else if (state.wanted && !pause.is_whole)
                    || lead.changed.wait_until(&mut state, until).timed_out()
                {
                    break;
                }
            }
            if state.closing {
                drop(state);
                return self.resign();
            }
            state.wanted = false;
        }
    }

    /// One piece of work.
    fn round(&mut self) -> Pause {
        let lead = self.lead.clone();
        let now_ms = lead.now_ms();
        if lead.used.swap(false, Ordering::Relaxed) {
            self.used_ms = now_ms;
        }
        if lead.is_listened_to() {
            // Watches, feeds and consumers wait for commits and times.
            self.used_ms = now_ms;
        }
        let state = lead.state.lock();
        if state.failed.is_some() {
            return Pause { longest: Duration::ZERO, is_whole: false };
        }
        let done = match &state.role {
            Role::Reads(_) => self.read(state),
            Role::Leads(leading) if leading.deposed => {
                drop(state);
                Ok(Duration::from_millis(BUCKET_POLL_BUSY_MS))
            }
            Role::Leads(leading) => {
                let is_due = leading.tenure.is_due(now_ms);
                let idle =
                    !state.publishing && now_ms.saturating_sub(self.used_ms) >= BUCKET_IDLE_MS;
                drop(state);
                match (idle, is_due) {
                    (true, _) => self.release(),
                    (false, true) => self.renew(),
                    (false, false) => Ok(()),
                }
                .map(|()| {
                    self.snapshots.tend(&lead, &self.local);
                    Duration::from_millis((lead.lease_ms / 12).clamp(10, 1000))
                })
            }
            Role::Rests(_) => {
                let wanted = state.wanted || now_ms.saturating_sub(self.used_ms) < BUCKET_IDLE_MS;
                drop(state);
                match wanted {
                    true => self.lead_again().map(|()| Duration::ZERO),
                    false => Ok(REST),
                }
            }
        };
        let paused = |longest| Pause { longest, is_whole: false };
        done.map(paused).unwrap_or_else(|error| {
            tracing::warn!(%error, "a database in an object store");
            let mut state = lead.state.lock();
            state.looks.1 = state.looks.0;
            match may_pass(&error) {
                true => state.look_error = Some(error),
                false => state.failed = Some(error),
            }
            lead.note_tenure(&state);
            let failed = state.failed.clone();
            drop(state);
            lead.changed.notify_all();
            if let Some(error) = failed {
                lead.tell(&ExternalCommits::Lost(error));
            }
            Pause { longest: Duration::from_millis(BUCKET_RETRY_MS), is_whole: true }
        })
    }

    fn read(&mut self, state: MutexGuard<'_, State>) -> Result<Duration> {
        let (requested, publishing) = (state.looks.0, state.publishing);
        drop(state);
        if publishing {
            return Ok(Duration::from_millis(BUCKET_POLL_BUSY_MS));
        }
        let look = self.follow()?;
        {
            let mut state = self.lead.state.lock();
            state.looks.1 = state.looks.1.max(requested);
            state.look_error = None;
            self.lead.note_tenure(&state);
        }
        self.lead.changed.notify_all();
        if self.would_lead() {
            self.try_to_lead()?;
        }
        let idle_ms = self.lead.now_ms().saturating_sub(self.used_ms);
        if self.lead.mode == LeadMode::Served && idle_ms >= BUCKET_IDLE_MS {
            // The next call wakes it.
            return Ok(REST);
        }
        Ok(self.pause_after(&look))
    }

    fn would_lead(&self) -> bool {
        match self.lead.mode {
            LeadMode::Auto | LeadMode::Wait => true,
            LeadMode::Never => false,
            LeadMode::Served => self.is_asked_to_lead() || self.lead.is_listened_to(),
        }
    }

    /// Whether a call waits for the lead, or for the name of another leader.
    fn is_asked_to_lead(&self) -> bool {
        let (asks, answered) = self.lead.state.lock().lead_asks;
        self.lead.mode == LeadMode::Served && asks > answered
    }

    /// Until the next look of a process that reads.
    fn pause_after(&self, look: &Look) -> Duration {
        Duration::from_millis(match look {
            Look::Changes => BUCKET_POLL_BUSY_MS,
            Look::End => BUCKET_POLL_IDLE_MS.min(self.lead.lease_ms / 6).max(10),
        })
    }

    /// Repeats everything that is in the log.
    fn follow(&mut self) -> Result<Look> {
        self.catch_up()?;
        let (mut count, mut changes) = (1, Look::End);
        loop {
            if std::mem::take(&mut self.is_far) && self.follow_merged()? {
                changes = Look::Changes;
            }
            let began_ms = self.lead.now_ms();
            let objects = self.lead.objects.objects(self.position.next, count)?;
            let is_end = objects.len() < count;
            if !objects.is_empty() {
                changes = Look::Changes;
            }
            self.trust_what_was_read()?;
            if objects.is_empty() {
                self.end.found(began_ms);
                return Ok(changes);
            }
            let largest = objects.iter().map(|object| object.bytes).max().unwrap_or(0);
            self.is_far = objects.len() == BUCKET_READS_AT_ONCE;
            self.take_all(objects)?;
            // The end itself is looked at alone, so that its absence is verified.
            count = if is_end { 1 } else { next_count(count, largest) };
        }
    }

    /// Repeats what merged objects have of the log behind the place, in requests for little more than one transaction
    /// repeats. Whether there were any.
    fn follow_merged(&mut self) -> Result<bool> {
        let cover = cover(self.position.next, &self.lead.objects.merged()?);
        let mut left = cover.as_slice();
        while !left.is_empty() {
            let mut bytes = 0;
            let fits = left.iter().take(BUCKET_READS_AT_ONCE).take_while(|(_, size)| {
                bytes += size;
                bytes <= BUCKET_FOLLOW_BYTES as u64
            });
            let (now, later) = left.split_at(fits.count().max(1));
            let last = now.last().map_or(0, |(merged, _)| merged.last);
            let objects = self.lead.objects.unmerged(self.position.next, now)?;
            self.trust_what_was_read()?;
            if !objects.is_empty() {
                self.take_all(objects)?;
            }
            if self.position.next <= last {
                break;
            }
            left = later;
        }
        Ok(!cover.is_empty())
    }

    /// Fails if what was read by now may be the rest of a log that was deleted.
    fn trust_what_was_read(&mut self) -> Result<()> {
        let ended_ms = self.lead.now_ms();
        if !self.end.trusts(ended_ms, self.lead.lease_ms) {
            self.refuse_if_deleted()?;
            self.end.found(ended_ms);
        }
        Ok(())
    }

    /// Judges objects behind the place, and repeats the batches among them, in transactions of bounded size.
    fn take_all(&mut self, objects: Vec<Object>) -> Result<()> {
        let mut after = self.position;
        // What is stored ends with an object of the chain, by which the copy is known again.
        let mut stored = after;
        let (mut batches, mut bytes, mut weight) = (Vec::new(), 0, 0);
        let mut left = objects.len();
        for object in objects {
            left -= 1;
            weight += object.bytes.max(BUCKET_OBJECT_BYTES_MIN);
            let standing = after.take(&object.entry, object.digest);
            if standing != Standing::Void {
                stored = after;
            }
            if standing == Standing::Batch
                && let EntryKind::Batch { before, after } = object.entry.kind
            {
                bytes += object.content.len();
                batches.push(((before, after), object.content));
            }
            if bytes >= BUCKET_FOLLOW_BYTES || left == 0 {
                self.repeat(&batches, &stored)?;
                self.position = after;
                self.lead.state.lock().weight += weight;
                batches.clear();
                (bytes, weight) = (0, 0);
            }
        }
        Ok(())
    }

    /// After a lead the file may be further than this thread knows.
    fn catch_up(&mut self) -> Result<()> {
        let mut writer = self.local.writer.lock();
        if writer.last_commit()? > self.position.version {
            let mark = writer.mark()?.as_deref().and_then(super::cache::decode);
            let (_, position, _) =
                mark.ok_or_else(|| Error::corrupt("cache: the local copy has lost its place"))?;
            self.position = position;
        }
        Ok(())
    }

    fn repeat(&self, batches: &[((u64, u64), Vec<u8>)], after: &Position) -> Result<()> {
        if batches.is_empty() {
            return Ok(());
        }
        let segments = batches.iter().map(|(versions, content)| segment_of(*versions, content));
        let segments = segments.collect::<Result<Vec<_>>>()?;
        let last_ms = segments.iter().map(|segment| segment.at_ms).max();
        let at_ms = self.lead.at_ms(last_ms.unwrap_or(i64::MIN));
        let mark = encode(&self.local.database, after, at_ms);
        let deadline = Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
        let repeated = self.local.writer.lock().repeat_published(&segments, &mark, deadline);
        self.lead.state.lock().copy_fails = repeated.is_err();
        let report = repeated.map_err(|error| match error.kind() {
            // A read has no outcome: the batches are in the log, and are repeated again.
            Kind::Unavailable | Kind::OutcomeUnknown => Error::unavailable(format!(
                "cache: the local copy cannot be written: {}",
                error.message()
            )),
            _ => error,
        })?;
        self.lead.tell(&ExternalCommits::Known { versions: report.versions, keys: report.touched });
        Ok(())
    }

    /// This process has not looked for long: what it finds may be the rest of a log that was deleted.
    fn refuse_if_deleted(&self) -> Result<()> {
        let newest = self.lead.objects.snapshots()?.last().copied();
        if newest.is_none_or(|mark| mark.number < self.position.next) {
            return Ok(());
        }
        Err(Error::new(
            Kind::Closed,
            "this process has not read the log of the database for so long that what it lacks is deleted: close the \
             database and open it again, which reads a snapshot",
        ))
    }

    /// Takes the lead, if no other process has it.
    fn try_to_lead(&mut self) -> Result<()> {
        let (began, began_ms) = (Instant::now(), self.lead.now_ms());
        if began_ms < self.lease_look_ms && !self.is_asked_to_lead() {
            return Ok(());
        }
        let asks = self.lead.state.lock().lead_asks.0;
        let found = self.lead.objects.lease()?;
        let is_own = |id: &str| id == self.lead.id || self.local.cache.was_led_by(id);
        let state = state_of(found.as_ref(), is_own);
        let lease_ms = self.lead.lease_ms;
        if !self.lead.seen.may_claim(&state, (began, Instant::now()), lease_ms) {
            self.lease_look_ms = began_ms + (lease_ms / 6).max(10);
            let mut state = self.lead.state.lock();
            state.is_led = self.lead.seen.is_alive(lease_ms);
            state.lead_asks.1 = asks;
            state.role = Role::Reads(found.map(|found| found.lease.name));
            drop(state);
            self.lead.changed.notify_all();
            return Ok(());
        }
        self.claim(found)
    }

    fn claim(&mut self, before: Option<FoundLease>) -> Result<()> {
        let lead = self.lead.clone();
        if !self.is_probed {
            lead.objects.probe(&self.identity)?;
        }
        self.local.cache.led_by(&lead.id)?;
        let began_ms = lead.now_ms();
        let replaced = |before: Option<&FoundLease>| {
            let beat = before.map_or(0, |before| before.lease.beat) + 1;
            lead.objects.replace_lease(before, &lead.lease(beat, false))
        };
        let Some(mut lease) = replaced(before.as_ref())? else { return Ok(()) };
        if !self.is_probed {
            let stale = match before {
                Some(before) => before,
                None if lead.objects.replaces_by_version() => {
                    // The first lease of a database has replaced nothing.
                    let first = lease;
                    let Some(second) = replaced(Some(&first))? else { return Ok(()) };
                    lease = second;
                    first
                }
                None => lease.clone(),
            };
            lead.objects.probe_lease(&stale, &lease.lease)?;
            self.is_probed = true;
        }
        loop {
            self.follow()?;
            let fence = self.position.fence();
            let (bytes, digest) = encode_object(&fence, &[]);
            let is_own = match lead.objects.create(fence.number, &bytes)? {
                Created::New => true,
                Created::Exists => lead.objects.fill(fence.number, &bytes)?.digest == digest,
            };
            if is_own {
                self.position.take(&fence, digest);
                break;
            }
        }
        let tenure = Tenure::new(lead.lease_ms, began_ms);
        self.lead_with(Leading::new(Window::new(self.position), tenure, lease));
        Ok(())
    }

    fn lead_with(&mut self, leading: Leading) {
        self.used_ms = self.lead.now_ms();
        let mut state = self.lead.state.lock();
        state.lead_asks.1 = state.lead_asks.0;
        state.role = Role::Leads(Box::new(leading));
        state.is_led = false;
        self.lead.note_tenure(&state);
        drop(state);
        self.lead.changed.notify_all();
        // Timed work and deliveries of this process begin.
        self.lead.tell(&ExternalCommits::Unknown);
    }

    /// Renews the lease.
    fn renew(&mut self) -> Result<()> {
        let now_ms = self.lead.now_ms();
        let (before, began_ms) = match &mut self.lead.state.lock().role {
            Role::Leads(leading) => {
                (leading.lease.clone(), *leading.renewing_ms.get_or_insert(now_ms))
            }
            Role::Reads(_) | Role::Rests(_) => return Ok(()),
        };
        let next = self.lead.lease(before.lease.beat + 1, false);
        let renewed = self.lead.objects.replace_lease(Some(&before), &next)?;
        let mut state = self.lead.state.lock();
        let publishing = state.publishing;
        match (&mut state.role, renewed) {
            (Role::Leads(leading), Some(lease)) => {
                leading.tenure.renewed(began_ms, self.lead.now_ms());
                leading.lease = lease;
                leading.renewing_ms = None;
            }
            (Role::Leads(leading), None) if publishing => leading.deposed = true,
            (role @ Role::Leads(_), None) => *role = Role::Reads(None),
            (Role::Reads(_) | Role::Rests(_), _) => {}
        }
        if matches!(state.role, Role::Reads(_)) {
            self.lead.seen.forget();
            self.lease_look_ms = 0;
        }
        self.lead.note_tenure(&state);
        drop(state);
        self.lead.changed.notify_all();
        Ok(())
    }

    /// Lets others lead at once.
    fn release(&mut self) -> Result<()> {
        let mut state = self.lead.state.lock();
        if state.publishing || !matches!(state.role, Role::Leads(_)) {
            return Ok(());
        }
        let Role::Leads(mut leading) = std::mem::replace(&mut state.role, Role::Reads(None)) else {
            return Ok(());
        };
        // From here on nothing is answered.
        self.lead.note_tenure(&state);
        drop(state);
        let released = self.lead.lease(leading.lease.lease.beat + 1, true);
        let Some(lease) = self.lead.objects.replace_lease(Some(&leading.lease), &released)? else {
            return Ok(());
        };
        leading.lease = lease;
        let mut state = self.lead.state.lock();
        if matches!(state.role, Role::Reads(_)) {
            state.role = Role::Rests(leading);
            self.lead.note_tenure(&state);
        }
        Ok(())
    }

    /// Leads after a rest. If nobody else has led meanwhile, the epoch goes on; otherwise this process reads.
    fn lead_again(&mut self) -> Result<()> {
        let mut state = self.lead.state.lock();
        let Role::Rests(leading) = std::mem::replace(&mut state.role, Role::Reads(None)) else {
            return Ok(());
        };
        drop(state);
        let Leading { window, lease, .. } = *leading;
        let began_ms = self.lead.now_ms();
        let next = self.lead.lease(lease.lease.beat + 1, false);
        match self.lead.objects.replace_lease(Some(&lease), &next)? {
            Some(lease) => {
                let tenure = Tenure::new(self.lead.lease_ms, began_ms);
                self.lead_with(Leading::new(window, tenure, lease));
            }
            None => {
                self.lead.seen.forget();
                self.lease_look_ms = 0;
                self.lead.changed.notify_all();
            }
        }
        Ok(())
    }

    fn resign(mut self) {
        // Others lead while a snapshot is uploaded.
        if let Err(error) = self.release() {
            tracing::debug!(%error, "releasing the lease");
        }
        self.snapshots.finish();
    }
}

#[cfg(test)]
mod tests;
