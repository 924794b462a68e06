//! The thread of a database in an object store: it follows the log, takes the lead, keeps it, and gives it up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::Local;
use super::cache::encode;
use super::lead::{Lead, LeadMode, Leading, Role, State};
use super::objects::{FoundLease, Identity};
use super::publisher::segment_of;
use crate::ExternalCommits;
use openkv_core::chain::{
    Deletion, EndWatch, EntryKind, LeaseState, LeaseWatch, Mark, Position, Standing, Tenure,
    Window, encode as encode_object,
};
use openkv_core::model::{
    BUCKET_FOLLOW_BYTES, BUCKET_IDLE_MS, BUCKET_OBJECT_BYTES_MIN, BUCKET_POLL_BUSY_MS,
    BUCKET_POLL_IDLE_MS, BUCKET_READS_AT_ONCE, BUCKET_RETRY_MS, BUCKET_SNAPSHOT_BYTES_MIN,
    BUSY_TIMEOUT_MS_DEFAULT, Error, Kind, Result,
};

pub(super) struct Driver {
    lead: Arc<Lead>,
    local: Arc<Local>,
    identity: Identity,
    /// The place that the local file has reached, and the fences behind it.
    position: Position,
    watch: LeaseWatch,
    /// The next look at the lease of another process, by the clock of `lead`.
    lease_look_ms: u64,
    end: EndWatch,
    deletion: Deletion,
    used_ms: u64,
    snapshot: Option<JoinHandle<Deleted>>,
    deletion_look_ms: u64,
}

/// The rules of deletion come back from the thread that has used them.
type Deleted = (Deletion, Option<Mark>);

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
        position: Position,
    ) -> Self {
        Self {
            lead,
            local,
            identity,
            position,
            watch: LeaseWatch::default(),
            lease_look_ms: 0,
            end: EndWatch::default(),
            deletion: Deletion::default(),
            used_ms: 0,
            snapshot: None,
            deletion_look_ms: 0,
        }
    }

    /// The part of the work that opening waits for: the whole log, and the lead if no other process has it.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.follow()?;
        if self.lead.mode == LeadMode::Never {
            return Ok(());
        }
        self.lead.objects.probe(&self.identity)?;
        loop {
            self.lease_look_ms = 0;
            self.follow()?;
            self.try_to_lead()?;
            let leads = matches!(self.lead.state.lock().role, Role::Leads(_));
            if leads || self.lead.mode != LeadMode::Wait {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(BUCKET_POLL_BUSY_MS));
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let pause = self.round();
            let lead = self.lead.clone();
            let mut state = lead.state.lock();
            if state.closing {
                drop(state);
                return self.resign();
            }
            if state.failed.is_some() {
                lead.changed.wait(&mut state);
            } else if !state.wanted {
                lead.changed.wait_for(&mut state, pause);
            }
            state.wanted = false;
        }
    }

    /// One piece of work; returns the longest pause after it.
    fn round(&mut self) -> Duration {
        let lead = self.lead.clone();
        let now_ms = lead.now_ms();
        if lead.used.swap(false, Ordering::Relaxed) {
            self.used_ms = now_ms;
        }
        let state = lead.state.lock();
        if state.failed.is_some() {
            return Duration::ZERO;
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
                    self.tend_snapshots();
                    Duration::from_millis((lead.lease_ms / 12).clamp(10, 1000))
                })
            }
            Role::Rests(_) => {
                let wanted = state.wanted || now_ms.saturating_sub(self.used_ms) < BUCKET_IDLE_MS;
                drop(state);
                let done = if wanted { self.lead_again() } else { Ok(()) };
                done.map(|()| Duration::from_secs(3600))
            }
        };
        done.unwrap_or_else(|error| {
            tracing::warn!(%error, "a database in an object store");
            let mut state = lead.state.lock();
            state.looks.1 = state.looks.0;
            match error.kind() {
                Kind::Unavailable | Kind::OutcomeUnknown | Kind::Denied => {
                    state.look_error = Some(error);
                }
                _ => state.failed = Some(error),
            }
            drop(state);
            lead.changed.notify_all();
            Duration::from_millis(BUCKET_RETRY_MS)
        })
    }

    fn read(&mut self, state: MutexGuard<'_, State>) -> Result<Duration> {
        let (asked, publishing) = (state.looks.0, state.publishing);
        drop(state);
        if publishing {
            return Ok(Duration::from_millis(BUCKET_POLL_BUSY_MS));
        }
        let look = self.follow()?;
        {
            let mut state = self.lead.state.lock();
            state.looks.1 = state.looks.1.max(asked);
            state.look_error = None;
        }
        self.lead.changed.notify_all();
        if self.lead.mode != LeadMode::Never {
            self.try_to_lead()?;
        }
        Ok(Duration::from_millis(match look {
            Look::Changes => BUCKET_POLL_BUSY_MS,
            Look::End => BUCKET_POLL_IDLE_MS.min(self.lead.lease_ms / 6).max(10),
        }))
    }

    /// Repeats everything that is in the log.
    fn follow(&mut self) -> Result<Look> {
        self.catch_up()?;
        let (mut count, mut changes) = (1, Look::End);
        loop {
            let began_ms = self.lead.now_ms();
            let objects = self.lead.objects.objects(self.position.next, count)?;
            let is_end = objects.len() < count;
            if !objects.is_empty() {
                changes = Look::Changes;
            }
            let ended_ms = self.lead.now_ms();
            if !self.end.trusts(ended_ms, self.lead.lease_ms) {
                self.refuse_if_deleted()?;
                self.end.found(ended_ms);
            }
            let is_verified = objects.is_empty();
            let mut after = self.position;
            let (mut batches, mut bytes, mut weight) = (Vec::new(), 0, 0);
            for object in objects {
                weight += object.bytes.max(BUCKET_OBJECT_BYTES_MIN);
                if after.take(&object.entry, object.digest) == Standing::Batch
                    && let EntryKind::Batch { before, after } = object.entry.kind
                {
                    bytes += object.content.len();
                    batches.push(((before, after), object.content));
                }
                if bytes >= BUCKET_FOLLOW_BYTES {
                    break;
                }
            }
            self.repeat(&batches, &after)?;
            let stopped_early = bytes >= BUCKET_FOLLOW_BYTES;
            self.position = after;
            self.lead.state.lock().weight += weight;
            if is_verified {
                self.end.found(began_ms);
                return Ok(changes);
            }
            if is_end && !stopped_early {
                // The end itself is looked at alone, so that its absence is verified.
                count = 1;
                continue;
            }
            count = (count * 2).min(BUCKET_READS_AT_ONCE);
        }
    }

    /// After a lead the file may be further than this thread knows.
    fn catch_up(&mut self) -> Result<()> {
        let mut writer = self.local.writer.lock();
        if writer.last_commit()? > self.position.version {
            let mark = writer.mark()?.as_deref().and_then(super::cache::decode);
            let (_, position) =
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
        let mark = encode(&self.local.database, after);
        let deadline = Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
        let report = self.local.writer.lock().repeat_published(&segments, &mark, deadline)?;
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
        let began_ms = self.lead.now_ms();
        if began_ms < self.lease_look_ms {
            return Ok(());
        }
        let found = self.lead.objects.lease()?;
        let state = match &found {
            Some(FoundLease { lease, .. })
                if !lease.released
                    && lease.id != self.lead.id
                    && !self.local.cache.was_led_by(&lease.id) =>
            {
                LeaseState::Held(format!("{}/{}", lease.id, lease.beat))
            }
            Some(_) | None => LeaseState::Free,
        };
        let lease_ms = self.lead.lease_ms;
        let ended_ms = self.lead.now_ms();
        if !self.watch.may_claim(&state, (began_ms, ended_ms), lease_ms) {
            self.lease_look_ms = began_ms + (lease_ms / 6).max(10);
            let mut state = self.lead.state.lock();
            state.is_led = self.watch.is_alive(ended_ms, lease_ms);
            state.role = Role::Reads(found.map(|found| found.lease.name));
            drop(state);
            self.lead.changed.notify_all();
            return Ok(());
        }
        self.claim(found)
    }

    fn claim(&mut self, before: Option<FoundLease>) -> Result<()> {
        let lead = self.lead.clone();
        lead.objects.probe(&self.identity)?;
        self.local.cache.led_by(&lead.id)?;
        let began_ms = lead.now_ms();
        let beat = before.as_ref().map_or(0, |before| before.lease.beat) + 1;
        let Some(lease) = lead.objects.replace_lease(before.as_ref(), &lead.lease(beat, false))?
        else {
            return Ok(());
        };
        if let Some(stale) = &before {
            lead.objects.probe_lease(stale, &lease.lease)?;
        }
        loop {
            self.follow()?;
            let fence = self.position.fence();
            let (bytes, digest) = encode_object(&fence, &[]);
            let object = lead.objects.create(fence.number, &bytes)?;
            if object.is_none_or(|object| object.digest == digest) {
                self.position.take(&fence, digest);
                break;
            }
        }
        let tenure = Tenure::new(lead.lease_ms, began_ms);
        let window = Window::new(self.position);
        self.lead_with(Leading { window, tenure, lease, deposed: false });
        Ok(())
    }

    fn lead_with(&mut self, leading: Leading) {
        self.used_ms = self.lead.now_ms();
        let mut state = self.lead.state.lock();
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
        let before = match &self.lead.state.lock().role {
            Role::Leads(leading) => leading.lease.clone(),
            Role::Reads(_) | Role::Rests(_) => return Ok(()),
        };
        let began_ms = self.lead.now_ms();
        let next = self.lead.lease(before.lease.beat + 1, false);
        let renewed = self.lead.objects.replace_lease(Some(&before), &next)?;
        let mut state = self.lead.state.lock();
        let publishing = state.publishing;
        match (&mut state.role, renewed) {
            (Role::Leads(leading), Some(lease)) => {
                leading.tenure.renewed(began_ms, self.lead.now_ms());
                leading.lease = lease;
            }
            (Role::Leads(leading), None) if publishing => leading.deposed = true,
            (role @ Role::Leads(_), None) => *role = Role::Reads(None),
            (Role::Reads(_) | Role::Rests(_), _) => {}
        }
        if matches!(state.role, Role::Reads(_)) {
            self.watch = LeaseWatch::default();
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
        }
        Ok(())
    }

    /// Leads after a rest. If nobody else has led meanwhile, the epoch goes on.
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
                self.lead_with(Leading { window, tenure, lease, deposed: false });
                Ok(())
            }
            None => {
                self.watch = LeaseWatch::default();
                self.lease_look_ms = 0;
                Ok(())
            }
        }
    }

    fn resign(mut self) {
        if let Some(snapshot) = self.snapshot.take() {
            drop(snapshot.join());
        }
        if let Err(error) = self.release() {
            tracing::debug!(%error, "releasing the lease");
        }
    }

    /// Takes a snapshot when the log behind the last one is long, and deletes what is not needed.
    fn tend_snapshots(&mut self) {
        if let Some(running) = self.snapshot.take_if(|running| running.is_finished())
            && let Ok((deletion, taken)) = running.join()
        {
            self.deletion = deletion;
            if taken.is_some() {
                self.deletion_look_ms = 0;
            }
        }
        let now_ms = self.lead.now_ms();
        let file_bytes = self.local.cache.file().metadata().map_or(0, |found| found.len());
        let most = (file_bytes / 2).max(BUCKET_SNAPSHOT_BYTES_MIN);
        let mut state = self.lead.state.lock();
        let (is_due, next) = match &state.role {
            Role::Leads(leading) => (state.weight >= most, leading.window.position().next),
            Role::Reads(_) | Role::Rests(_) => return,
        };
        if self.snapshot.is_some() || !(is_due || now_ms >= self.deletion_look_ms) {
            return;
        }
        if is_due {
            state.weight = 0;
        }
        drop(state);
        self.deletion_look_ms = now_ms + 4 * self.lead.lease_ms;
        let (lead, local) = (self.lead.clone(), self.local.clone());
        let mut deletion = std::mem::take(&mut self.deletion);
        let job = move || {
            let done = (|| {
                let taken = match is_due {
                    true => local.cache.upload(&local.engine, &lead.objects)?,
                    false => None,
                };
                let listed = lead.objects.snapshots()?;
                let (last, old) = deletion.look(&listed, next, lead.now_ms(), lead.lease_ms);
                lead.objects.delete(last, &old)?;
                Ok::<_, Error>(taken)
            })();
            let taken = done.unwrap_or_else(|error| {
                tracing::warn!(%error, "a snapshot of a database in an object store");
                None
            });
            (deletion, taken)
        };
        let thread = std::thread::Builder::new().name("openkv-snapshot".into()).spawn(job);
        match thread {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => tracing::warn!(%error, "starting a thread for a snapshot"),
        }
    }
}
