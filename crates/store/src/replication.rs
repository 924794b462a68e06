//! The replication log and the past of a store.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::{Caller, Store};
use openkv_core::model::{EntryVersion, Error, Key, LogSettings, Origin, Result, Setting, When};
use openkv_engines::PastEngine;

impl Store {
    /// Changes the settings of the replication log and of history, for all processes. Waits for the
    /// writer thread, and up to `busy` for other processes.
    ///
    /// # Errors
    /// `Invalid` for a store that refuses writes; `Unsupported` for a database without a replication
    /// log; errors of the engine.
    pub fn set_log(&self, settings: LogSettings, busy: Duration) -> Result<()> {
        if settings == LogSettings::default() {
            return Ok(());
        }
        if self.readonly {
            let why = "the options log and history change the database: leave out readonly";
            return Err(Error::invalid(why));
        }
        if let (Setting::Off, Setting::On(_)) = (settings.log, settings.history_ms) {
            let why = "the option history needs the replication log: leave out log: false";
            return Err(Error::invalid(why));
        }
        let (origin, now_ms) = (self.new_origin(), self.env.now_ms());
        let (done, outcome) = channel();
        self.on_writer(
            move |writer| writer.set_log(&settings, origin, now_ms, Instant::now() + busy),
            // Without a receiver no caller waits any more.
            move |result| drop(done.send(result)),
        );
        outcome.recv().map_err(|_| Error::closed())?.map(drop)
    }

    /// The name for a database that has none, and the number for its copy.
    pub(super) fn new_origin(&self) -> Origin {
        let random = || self.env.random();
        let mut database = [0; 16];
        let (front, back) = database.split_at_mut(8);
        front.copy_from_slice(&random().to_le_bytes());
        back.copy_from_slice(&random().to_le_bytes());
        Origin { database, incarnation: random() }
    }

    /// Visits what commits have made of the entry of a key, the newest first, until `visit` answers
    /// `false`: those before the commit `before`, or all.
    pub fn versions<C: Caller<()>>(
        &self,
        key: Key,
        before: Option<u64>,
        caller: C,
        mut visit: impl FnMut(&mut C, EntryVersion) -> bool + Send + 'static,
    ) {
        self.read(None, caller, move |snapshot, caller| {
            let mut show = |version| visit(caller, version);
            snapshot.log()?.versions(key.as_bytes(), before, &mut show)
        });
    }

    /// A store of a moment of the past, for reading only.
    ///
    /// # Errors
    /// `Unsupported` without a history; `Range` for a moment outside of it; errors of the engine.
    pub fn at(&self, when: When) -> Result<Self> {
        let now_ms = self.env.now_ms();
        let mut moment = Err(Error::closed());
        (self.make_reader)()?.read(now_ms, &mut |snapshot| {
            moment = snapshot.log()?.moment(when, now_ms);
            Ok(())
        })?;
        let (moment, make) = (moment?, self.make_past.clone());
        let engine = PastEngine::new(Arc::new(move || make(moment)), self.capabilities);
        let store = Self::start(engine, self.env.clone(), true)?;
        store.writes.waiting.lock().refusal = Some(Error::denied(
            "a moment of the past is for reading, so it cannot be written; use the database itself",
        ));
        Ok(store)
    }
}
