//! Wakes parts of stores that have no thread while they have no work.
//!
//! Duty: one thread of the process, which waits for the earliest of all set times. While the system starts no
//! other thread, it also does the work of those that it would start.
//! Invariant: once the set time of an alarm is over, its target is woken, unless the alarm was set anew or
//! dropped before. A target may be woken without a reason at the moment at which its alarm is set anew.
//! Never: work of a store for which a thread can be started.

use std::collections::BTreeMap;
use std::sync::{OnceLock, Weak};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::thread::not_started;
use openkv_core::model::Result;

/// What an alarm wakes.
pub(super) trait Wakes: Send + Sync {
    /// The time is over. Called on the thread of all alarms, so it waits for nothing but work that has no other
    /// thread.
    fn wake(&self);
}

/// The time at which a part of a store is woken.
pub(super) struct Alarm {
    number: u64,
    target: Weak<dyn Wakes>,
    at: Mutex<Option<Instant>>,
}

/// The set times of the process, in order.
struct Alarms {
    times: Mutex<Times>,
    sooner: Condvar,
}

#[derive(Default)]
struct Times {
    last_number: u64,
    set: BTreeMap<(Instant, u64), Weak<dyn Wakes>>,
    has_thread: bool,
}

fn alarms() -> &'static Alarms {
    static ALARMS: OnceLock<Alarms> = OnceLock::new();
    ALARMS.get_or_init(|| Alarms { times: Mutex::default(), sooner: Condvar::new() })
}

/// Starts the thread of all alarms, if it does not run.
///
/// # Errors
/// `Unavailable` if the system starts no thread.
pub(super) fn start_thread() -> Result<()> {
    let mut times = alarms().times.lock();
    if !times.has_thread {
        let name = "openkv-alarms";
        let thread = std::thread::Builder::new().name(name.into()).spawn(serve);
        thread.map_err(|error| not_started(name, &error))?;
        times.has_thread = true;
    }
    Ok(())
}

impl Alarm {
    /// An alarm without a time.
    pub(super) fn new(target: Weak<dyn Wakes>) -> Self {
        let mut times = alarms().times.lock();
        times.last_number += 1;
        Self { number: times.last_number, target, at: Mutex::new(None) }
    }

    /// Sets the time, in place of an earlier one.
    pub(super) fn set(&self, at: Option<Instant>) {
        let mut own = self.at.lock();
        let mut times = alarms().times.lock();
        if let Some(earlier) = std::mem::replace(&mut *own, at) {
            times.set.remove(&(earlier, self.number));
        }
        let Some(at) = at else { return };
        times.set.insert((at, self.number), self.target.clone());
        let is_first = times.set.first_key_value().is_some_and(|(first, _)| first.1 == self.number);
        drop(times);
        if is_first {
            alarms().sooner.notify_one();
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.set(None);
    }
}

fn serve() {
    let Alarms { times, sooner } = alarms();
    let mut set = times.lock();
    loop {
        let Some(first) = set.set.first_entry() else {
            sooner.wait(&mut set);
            continue;
        };
        let at = first.key().0;
        if at > Instant::now() {
            sooner.wait_until(&mut set, at);
            continue;
        }
        let target = first.remove();
        drop(set);
        if let Some(target) = target.upgrade() {
            target.wake();
        }
        set = times.lock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;

    struct Target(Mutex<Sender<Instant>>);

    impl Wakes for Target {
        fn wake(&self) {
            self.0.lock().send(Instant::now()).unwrap();
        }
    }

    fn alarm() -> (Arc<Target>, Alarm, std::sync::mpsc::Receiver<Instant>) {
        let (woken, wakes) = channel();
        let target = Arc::new(Target(Mutex::new(woken)));
        let weak = Arc::downgrade(&target);
        start_thread().unwrap();
        let alarm = Alarm::new(weak);
        (target, alarm, wakes)
    }

    #[test]
    fn a_target_is_woken_once_and_not_before_its_time() {
        let (_target, alarm, wakes) = alarm();
        let at = Instant::now() + Duration::from_millis(20);
        alarm.set(Some(at));
        assert!(wakes.recv().unwrap() >= at);
        assert!(wakes.recv_timeout(Duration::from_millis(50)).is_err());
    }

    #[test]
    fn an_alarm_that_is_set_anew_or_dropped_does_not_wake() {
        let (_target, early, wakes) = alarm();
        let (_other, later, later_wakes) = self::alarm();
        early.set(Some(Instant::now() + Duration::from_millis(20)));
        early.set(Some(Instant::now() + Duration::from_secs(3600)));
        later.set(Some(Instant::now() + Duration::from_millis(40)));
        later_wakes.recv().unwrap();
        assert!(wakes.try_recv().is_err());
        early.set(Some(Instant::now() + Duration::from_millis(20)));
        drop(early);
        later.set(Some(Instant::now() + Duration::from_millis(40)));
        later_wakes.recv().unwrap();
        assert!(wakes.try_recv().is_err());
    }
}
