//! Parking: a store closes its connections until the next call, because the process has too many databases open.
//!
//! Duty: close the connections of the writer, of the threads that read, and of the lanes, if no call uses them.
//! Invariant: it waits for no lock and for no call. A store with work under way or waiting closes none.
//! Never: a decision about which store is parked.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Store;
use super::inline::InlineReads;
use super::read::ReadThreads;
use super::write::OpenWriter;
use openkv_engines::Park;

/// A lane of a handle.
pub trait ParkedLane: Send + Sync {
    /// Closes the reader of the lane, unless a read uses it. Returns whether it is closed.
    fn park(&self) -> bool;
}

/// The lanes of a store.
#[derive(Default)]
pub(super) struct Lanes(Mutex<Vec<Weak<dyn ParkedLane>>>);

impl Lanes {
    fn park(&self) -> bool {
        let lanes = self.0.try_lock();
        lanes.is_some_and(|lanes| lanes.iter().filter_map(Weak::upgrade).all(|lane| lane.park()))
    }
}

impl Store {
    /// Adds the lane of a handle, whose reader [`Store::lane`] has made.
    pub fn add_lane(&self, lane: Weak<dyn ParkedLane>) {
        let mut lanes = self.lanes.0.lock();
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(lane);
    }

    /// Lets the engine park the store from now on.
    pub(super) fn allow_parking(&self) {
        let (writer, lanes, inline) =
            (self.writer.clone(), self.lanes.clone(), self.inline.clone());
        let threads = [self.reads.clone(), self.long.clone(), self.at_hand.clone()];
        self.whole.set_park(Some(park_of(writer, threads, inline, lanes)));
    }
}

fn park_of(
    writer: Option<Arc<dyn OpenWriter>>,
    threads: [Arc<ReadThreads>; 3],
    inline: Arc<InlineReads>,
    lanes: Arc<Lanes>,
) -> Park {
    Box::new(move || {
        // The writer last, because its connection may move the log into the file.
        threads.iter().all(|threads| threads.park())
            && inline.park()
            && lanes.park()
            && writer.as_ref().is_none_or(|writer| writer.park())
    })
}
