//! Databases in object stores. One opening of each works at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{
    LeaderAccess, PageMemory, STORES, StoreIdentity, opened, start, start_once, system,
    wait_closed_where,
};
use crate::database::{Database, Led};
use crate::remote::{Cancel, Client, Opening, Servers};
use openkv_core::model::{BUCKET_OPENING_LOOK_MS, Encoding, Error, Result};
use openkv_engines::bucket::{BucketEngine, BucketOptions, LeadMode, access_url, identity, timing};
use openkv_store::Store;

/// The databases in object stores that are being opened: a second opening waits for the first, and joins it.
static OPENING: Mutex<Vec<StoreIdentity>> = Mutex::new(Vec::new());

/// Notified whenever one of [`OPENING`] is open, or has failed.
static OPENED: Condvar = Condvar::new();

/// Opens a database in an object store; with the access to the server that leads it, for writes there. A store that this
/// process already has on it is joined.
///
/// # Errors
/// As [`BucketEngine::open`]; `Closed` when cancelled; `Invalid` for a wrong URL.
pub(super) fn open_bucket(
    url: &str,
    how: How<'_>,
    leader: Option<&LeaderAccess>,
    cancel: Cancel,
) -> Result<Database> {
    let store = joined_or_opened(url, how, &cancel)?;
    let Some(LeaderAccess { token, timeout }) = leader else { return Ok(Database::Store(store)) };
    let url = url.to_owned();
    // Whichever it is when a call needs one.
    let servers = Servers::Found(Arc::new(move || access_url(&url)));
    let leader = Client::open((servers, token), (*timeout, Opening::Later), system(), cancel)?;
    Ok(Database::Led(Arc::new(Led { store, leader })))
}

/// The folder of the copy, whether the process leads, whether its reads may miss commits, and its URL as a server.
type How<'a> = (Option<PathBuf>, &'a str, bool, Option<&'a str>);

fn joined_or_opened(
    url: &str,
    (cache, lead, eventual, advertise): How<'_>,
    cancel: &Cancel,
) -> Result<Arc<Store>> {
    let lead = match lead {
        "never" => LeadMode::Never,
        "wait" => LeadMode::Wait,
        "served" => LeadMode::Served,
        _ => LeadMode::Auto,
    };
    let place = identity(url)?;
    let advertise = advertise.map(str::to_owned);
    let of = |timing| StoreIdentity::Bucket {
        url: place.clone(),
        timing,
        cache: cache.clone(),
        lead,
        eventual,
        advertise: advertise.clone(),
    };
    let chosen = timing(url)?;
    let is_it = |known: &StoreIdentity| match known {
        StoreIdentity::Bucket { timing, .. } => *known == of(*timing),
        _ => false,
    };
    // Two copies at once would exclude each other from the cache, or from the lead.
    let _turn = Turn::of(&of(timing(&place)?), cancel)?;
    wait_closed_where(is_it);
    let stores = STORES.lock();
    if let Some((store, _)) = opened(&stores, &of(chosen)) {
        return Ok(store);
    }
    let mut open = stores.opened.iter().filter(|(_, (store, _))| store.strong_count() > 0);
    if open.any(|(known, _)| is_it(known)) {
        return Err(Error::unavailable(
            "another handle of this process has the database with another lease or linger in its URL, which all \
             handles share: use the same URL, or close the other handle",
        ));
    }
    drop(stores);
    let of = of(chosen);
    let options = BucketOptions { url: url.to_owned(), cache, lead, eventual, advertise };
    let engine = BucketEngine::open(&options, &|| !cancel.is_raised())?;
    let agreed = (Encoding::Cbor, PageMemory::default());
    let (store, _) = start_once(|| Ok(of), agreed, || start(engine, false))?;
    if lead == LeadMode::Never {
        store.take_no_consumers();
    }
    Ok(store)
}

/// The right to open a database in an object store, for one opening at a time.
struct Turn(StoreIdentity);

impl Turn {
    /// Waits until nothing else opens it.
    fn of(identity: &StoreIdentity, cancel: &Cancel) -> Result<Self> {
        let look = Duration::from_millis(BUCKET_OPENING_LOOK_MS);
        let mut opening = OPENING.lock();
        while opening.contains(identity) {
            if cancel.is_raised() {
                return Err(Error::closed());
            }
            OPENED.wait_for(&mut opening, look);
        }
        opening.push(identity.clone());
        Ok(Self(identity.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        OPENING.lock().retain(|of| *of != self.0);
        OPENED.notify_all();
    }
}
