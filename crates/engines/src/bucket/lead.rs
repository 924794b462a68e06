//! Who leads: the state that the threads of a database in an object store share.
//!
//! Invariant: only the driver's thread changes the role, except that a publication whose lead is lost ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::BucketOptions;
use super::location::{Timing, identity};
use super::objects::{FoundLease, Lease, Objects};
use super::seen_lease::SeenLease;
use crate::{ExternalCommits, ExternalWatch, ExternalWatchGuard, Leadership, TellExternal};
use openkv_core::chain::{Tenure, Window};
use openkv_core::model::{BUCKET_COMMIT_MS_MAX, BUCKET_READ_WAIT_MS, Error, Kind, Result};

/// Whether a process leads a database in an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeadMode {
    /// It leads while no other process does; until then it reads.
    Auto,
    /// Opening waits until it leads.
    Wait,
    /// It only reads.
    Never,
    /// It leads from the first write, watch or consumer on, while no other process does: a server, which sends others
    /// to the leader.
    Served,
}

/// What a process is to the database.
pub(super) enum Role {
    /// It follows the log. The name of the leader, if there is one.
    Reads(Option<String>),
    Leads(Box<Leading>),
    /// It was the last leader, and has released its lease.
    Rests(Box<Leading>),
}

pub(super) struct Leading {
    pub(super) window: Window,
    pub(super) tenure: Tenure,
    pub(super) lease: FoundLease,
    /// Another process has the lease, and a publication is under way, which has to end first.
    pub(super) deposed: bool,
    /// The start of the first attempt of the renewal that is not done, by the clock of [`Lead`]: it may have been the
    /// one that has happened.
    pub(super) renewing_ms: Option<u64>,
}

impl Leading {
    pub(super) fn new(window: Window, tenure: Tenure, lease: FoundLease) -> Self {
        Self { window, tenure, lease, deposed: false, renewing_ms: None }
    }
}

pub(super) struct State {
    pub(super) role: Role,
    /// A publication is under way.
    pub(super) publishing: bool,
    /// A call needs the lead, or a look at the log.
    pub(super) wanted: bool,
    /// Looks at the end of the log: the requested ones, and those that are done.
    pub(super) looks: (u64, u64),
    /// The error of the last look.
    pub(super) look_error: Option<Error>,
    /// The local copy could not be written when it was tried last.
    pub(super) copy_fails: bool,
    /// Calls that need the lead, and how many of them were before a look that has found another leader.
    pub(super) lead_asks: (u64, u64),
    /// The leader has renewed its lease while this process watched.
    pub(super) is_led: bool,
    /// The database cannot be used any more.
    pub(super) failed: Option<Error>,
    pub(super) closing: bool,
    /// The weight of the log behind the last snapshot.
    pub(super) weight: u64,
}

/// Shared by readers, the writer, the publisher and the driver.
pub(super) struct Lead {
    pub(super) objects: Objects,
    pub(super) id: String,
    /// The name of this process for others.
    pub(super) name: String,
    pub(super) mode: LeadMode,
    pub(super) lease_ms: u64,
    /// As in the URL.
    pub(super) linger: Option<Duration>,
    eventual: bool,
    /// The URL of this process for clients, if it is a server.
    url: Option<String>,
    /// What this process has seen of the lease while another process held it.
    pub(super) seen: Arc<SeenLease>,
    started: Instant,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    /// Until when reads need no look, in ms since `started`.
    fresh_until: AtomicU64,
    /// A call has used the database since the driver has looked.
    pub(super) used: AtomicBool,
    /// The time of the last batch of the log that this process knows.
    at_ms: AtomicI64,
    listeners: Arc<Mutex<Listeners>>,
}

#[derive(Default)]
struct Listeners {
    last: u64,
    tells: Vec<(u64, TellExternal)>,
}

struct Listening(Arc<Mutex<Listeners>>, u64);

impl ExternalWatchGuard for Listening {}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut listeners = self.0.lock();
        let gone = listeners.tells.iter().position(|(id, _)| *id == self.1);
        let gone = gone.map(|at| listeners.tells.swap_remove(at));
        drop(listeners);
        drop(gone);
    }
}

impl Lead {
    pub(super) fn new(
        objects: Objects,
        id: String,
        options: &BucketOptions,
        timing: Timing,
    ) -> Self {
        let state = State {
            role: Role::Reads(None),
            publishing: false,
            wanted: false,
            looks: (0, 0),
            look_error: None,
            copy_fails: false,
            lead_asks: (0, 0),
            is_led: false,
            failed: None,
            closing: false,
            weight: 0,
        };
        let host = std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME"));
        let host = host.map(|host| format!(" on {host}")).unwrap_or_default();
        let own = || format!("process {}{host}", std::process::id());
        let place = options.advertise.as_ref().and_then(|_| identity(&options.url).ok());
        Self {
            objects,
            id,
            name: options.advertise.clone().unwrap_or_else(own),
            mode: options.lead,
            lease_ms: timing.lease_ms,
            linger: timing.linger,
            eventual: options.eventual,
            url: options.advertise.clone(),
            seen: place.map_or_else(Arc::default, SeenLease::of),
            started: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            fresh_until: AtomicU64::new(0),
            used: AtomicBool::new(true),
            at_ms: AtomicI64::new(i64::MIN),
            listeners: Arc::default(),
        }
    }

    /// The own monotonic clock, in ms.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The time of a batch that is decided at `now_ms` by the clock of this process: not before that of any batch
    /// before it, also where the clock of another leader was ahead.
    pub(super) fn at_ms(&self, now_ms: i64) -> i64 {
        self.at_ms.fetch_max(now_ms, Ordering::Relaxed).max(now_ms)
    }

    /// The lease of this process with this beat.
    pub(super) fn lease(&self, beat: u64, released: bool) -> Lease {
        let (id, name, url) = (self.id.clone(), self.name.clone(), self.url.clone());
        Lease { id, name, beat, released, url }
    }

    pub(super) fn close(&self) {
        self.objects.target.end();
        self.state.lock().closing = true;
        self.changed.notify_all();
    }

    /// Wakes the driver, unless another caller has.
    pub(super) fn want(&self, state: &mut State) {
        if !std::mem::replace(&mut state.wanted, true) {
            self.changed.notify_all();
        }
    }

    /// The lead is lost, or the file is behind the log: the driver reads the log before it leads again.
    pub(super) fn follows_again(&self, state: &mut State) {
        state.role = Role::Reads(None);
        self.note_tenure(state);
        state.wanted = true;
        self.changed.notify_all();
    }

    /// A commit has not reached the file: the driver reads it from the log. The error of the caller.
    pub(super) fn behind(&self, state: &mut State) -> Error {
        self.follows_again(state);
        Error::unavailable("the local copy is behind the log, and reads it now; try again")
    }

    /// Calls `tell` after each commit of another process, until the result is dropped.
    pub(super) fn listen(&self, tell: TellExternal) -> ExternalWatch {
        // Commits before were not announced.
        tell(&ExternalCommits::Unknown);
        let mut listeners = self.listeners.lock();
        listeners.last += 1;
        let id = listeners.last;
        listeners.tells.push((id, tell));
        drop(listeners);
        let failed = {
            let mut state = self.state.lock();
            // A process that rests follows nothing.
            self.want(&mut state);
            state.failed.clone()
        };
        if let Some(error) = failed {
            self.tell(&ExternalCommits::Lost(error));
        }
        ExternalWatch::new(Listening(self.listeners.clone(), id))
    }

    /// Whether a watch, a feed or a consumer of this process is open.
    pub(super) fn is_listened_to(&self) -> bool {
        !self.listeners.lock().tells.is_empty()
    }

    pub(super) fn tell(&self, commits: &ExternalCommits) {
        self.listeners.lock().tells.iter().for_each(|(_, tell)| tell(commits));
    }

    /// Lets reads go on for half a lease after the last renewal, or stops them. Those that may miss commits go on
    /// while the driver follows the log.
    pub(super) fn note_tenure(&self, state: &State) {
        let until = match &state.role {
            _ if state.failed.is_some() => 0,
            // Nothing follows the log meanwhile.
            Role::Rests(_) => 0,
            Role::Leads(_) | Role::Reads(_) if self.eventual => u64::MAX,
            Role::Leads(leading) if !leading.deposed => leading.tenure.answers_until_ms(),
            Role::Leads(_) | Role::Reads(_) => 0,
        };
        self.fresh_until.store(until, Ordering::Release);
    }

    /// Waits until a read sees every commit that was answered before; if it may not wait, the read fails.
    ///
    /// # Errors
    /// `Unavailable` if that takes too long, or the read may not wait.
    pub(super) fn fresh(&self, waits: bool) -> Result<()> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        if self.now_ms() < self.fresh_until.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.state.lock();
        if !waits {
            if matches!(state.role, Role::Leads(_) | Role::Rests(_)) {
                // Soon a read like this one is answered.
                self.want(&mut state);
            }
            return Err(Error::unavailable("the read waits for the object store"));
        }
        let deadline = Instant::now() + Duration::from_millis(BUCKET_READ_WAIT_MS);
        let mut look = None;
        loop {
            self.check(&state)?;
            match &state.role {
                Role::Leads(leading)
                    if !leading.deposed && leading.tenure.may_answer(self.now_ms()) =>
                {
                    return Ok(());
                }
                Role::Reads(_) => match look {
                    Some(number) if state.looks.1 >= number => {
                        let Some(error) = state.look_error.clone() else { return Ok(()) };
                        let waits = error.kind() == Kind::Unavailable && !state.copy_fails;
                        if !waits || Instant::now() >= deadline {
                            return Err(error);
                        }
                        look = None;
                    }
                    Some(_) => {}
                    None => {
                        state.looks.0 += 1;
                        look = Some(state.looks.0);
                        self.want(&mut state);
                    }
                },
                Role::Leads(_) | Role::Rests(_) => self.want(&mut state),
            }
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return Err(Error::unavailable(format!(
                    "the object store has not answered for {BUCKET_READ_WAIT_MS} ms, so it is not known whether this \
                     read would be current; try again, or open with consistency: \"eventual\""
                )));
            }
        }
    }

    /// Waits until this process leads.
    ///
    /// # Errors
    /// `Denied` if it never leads; `Unavailable` while another process leads, or at the deadline.
    pub(super) fn lead_by(&self, deadline: Instant, waits: bool) -> Result<()> {
        self.used.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        let mut has_asked = false;
        if waits {
            state.lead_asks.0 += 1;
        }
        let ask = state.lead_asks.0;
        loop {
            self.check(&state)?;
            match &state.role {
                Role::Leads(leading)
                    if !leading.deposed && leading.tenure.may_answer(self.now_ms()) =>
                {
                    return Ok(());
                }
                Role::Reads(_) if self.mode == LeadMode::Never || state.is_led || !waits => {
                    return Err(self.refusal(&state));
                }
                // The caller of a server finds the leader there.
                Role::Reads(_) if self.mode == LeadMode::Served && state.lead_asks.1 >= ask => {
                    return Err(self.refusal(&state));
                }
                // It leads as soon as the lease is silent, however often a caller asks.
                Role::Reads(_) if has_asked => {}
                Role::Leads(_) | Role::Rests(_) | Role::Reads(_) => self.want(&mut state),
            }
            has_asked = true;
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return Err(self.refusal(&state));
            }
        }
    }

    /// Whether this process leads, and knows that no other process does.
    pub(super) fn leads_now(&self) -> bool {
        self.used.store(true, Ordering::Relaxed);
        match &self.state.lock().role {
            Role::Leads(leading) => !leading.deposed && leading.tenure.may_answer(self.now_ms()),
            Role::Reads(_) | Role::Rests(_) => false,
        }
    }

    /// Waits until this process may answer for what it has found in the log from the number `first` on: while its lease
    /// lasts, because without it a number may have been free only because its object was deleted.
    ///
    /// # Errors
    /// `OutcomeUnknown` if it has no lease, and the log from there on is not whole.
    pub(super) fn may_answer(&self, first: u64) -> Result<()> {
        let deadline = Instant::now() + Duration::from_millis(BUCKET_COMMIT_MS_MAX);
        let mut state = self.state.lock();
        while let Role::Leads(leading) = &state.role {
            if !leading.deposed && leading.tenure.may_answer(self.now_ms()) {
                return Ok(());
            }
            if leading.deposed || Instant::now() >= deadline {
                break;
            }
            self.want(&mut state);
            self.changed.wait_until(&mut state, deadline);
        }
        drop(state);
        self.is_whole_from(first)
    }

    /// Passes if no object from this number on was deleted: no snapshot contains it. Otherwise late writes may be at
    /// such numbers, and what this process has found there says nothing.
    fn is_whole_from(&self, number: u64) -> Result<()> {
        match self.objects.snapshots() {
            Ok(marks) if marks.last().is_none_or(|mark| mark.number < number) => Ok(()),
            Ok(_) => Err(unknown(&Error::unavailable("another process leads by now"))),
            Err(error) => Err(unknown(&error)),
        }
    }

    /// The error of a batch that is behind the fence of another leader. `first`: the end of the log before it.
    pub(super) fn lost(&self, first: u64) -> Error {
        let what = "another process has taken the lead, and nothing of this commit has happened: write there";
        self.is_whole_from(first).err().unwrap_or_else(|| Error::unavailable(what))
    }

    /// Ends the publication of what is in the chain, or of what has failed: the role of a process that has lost its
    /// lead meanwhile changes now.
    pub(super) fn published(&self, has_failed: bool) {
        let mut state = self.state.lock();
        state.publishing = false;
        let is_over = !matches!(&state.role, Role::Leads(leading) if !leading.deposed);
        if has_failed || is_over {
            self.follows_again(&mut state);
        }
        self.changed.notify_all();
    }

    /// What this process is to the database, as far as it knows without a request.
    pub(super) fn leadership(&self) -> Leadership {
        let state = self.state.lock();
        match &state.role {
            _ if state.failed.is_some() => Leadership::Ended,
            Role::Leads(leading) if !leading.deposed => Leadership::Leads,
            Role::Leads(_) | Role::Reads(_) | Role::Rests(_) => Leadership::Follows,
        }
    }

    /// Whether this process leads, or would with its next write.
    pub(super) fn leads(&self) -> bool {
        matches!(self.state.lock().role, Role::Leads(_) | Role::Rests(_))
    }

    fn check(&self, state: &MutexGuard<'_, State>) -> Result<()> {
        match &state.failed {
            Some(error) => Err(error.clone()),
            None if state.closing => Err(Error::closed()),
            None => Ok(()),
        }
    }

    /// The error of a write of a process that does not lead.
    pub(super) fn refusal(&self, state: &State) -> Error {
        if self.mode == LeadMode::Never {
            return Error::denied(
                "the database was opened with lead: \"never\", for reading: write where it is led, or open it with \
                 lead: \"auto\"",
            );
        }
        let by = match (&state.role, &state.look_error) {
            (Role::Reads(Some(name)), _) => format!("{name} leads the database"),
            (Role::Reads(None), Some(error)) => {
                format!("this process does not lead the database yet ({})", error.message())
            }
            (Role::Reads(None), None) => "this process does not lead the database yet".to_owned(),
            (Role::Leads(_) | Role::Rests(_), _) => "the object store does not answer".to_owned(),
        };
        Error::unavailable(format!(
            "{by}, and only the leader writes: write there, or try again. This process takes the lead by itself once \
             no other one renews its lease ({} ms)",
            self.lease_ms
        ))
    }
}

/// The error of a commit that may be in the log, or come into it later.
pub(super) fn unknown(error: &Error) -> Error {
    let what = "it is not known whether the commit has reached the object store";
    Error::new(Kind::OutcomeUnknown, format!("{what}: {}", error.message()))
}
