//! `watch`: states of some keys, one message for each.

use prost::Message;

use super::Entry;
use super::bytes::{at_most, decode};
use super::value::{bad_answer, entry_from_wire};
use crate::connect::schema::{
    KvEntry, STATUS_READ_DISABLED, STATUS_SUCCESS, Watch, WatchKey, WatchKeyOutput, WatchOutput,
};
use openkv_core::model::{Error, Key, Limits, Result};

/// One state of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchAnswer {
    /// For each key: `None` if it has not changed since the last state, otherwise its entry, if
    /// there is one.
    State(Vec<Option<Option<Entry>>>),
    /// Reads are disabled at the endpoint; the client must fetch the metadata again.
    Disabled,
}

/// Encodes a request to watch these keys.
pub fn write_request(keys: &[Key]) -> Vec<u8> {
    let keys = keys.iter().map(|key| WatchKey { key: key.as_bytes().to_vec() }).collect();
    Watch { keys }.encode_to_vec()
}

/// Decodes a request.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over the limits.
pub fn read_request(bytes: &[u8], limits: &Limits) -> Result<Vec<Key>> {
    let max = limits.watched_keys_max;
    let refusal = || format!("Too many keys watched in a single watch request (max {max}).");
    at_most(bytes, 1, max, refusal)?;
    let request: Watch = decode(bytes)?;
    let mut keys = Vec::with_capacity(request.keys.len());
    for WatchKey { key } in request.keys {
        if key.len() > limits.key_bytes_max {
            let max = limits.key_bytes_max;
            return Err(Error::invalid(format!(
                "A key exceeds the key size limit (max {max} bytes)."
            )));
        }
        keys.push(Key::from_encoded(key));
    }
    Ok(keys)
}

/// Encodes a state with the entry of every key.
pub fn write_answer(entries: Vec<Option<KvEntry>>) -> Vec<u8> {
    let keys = entries.into_iter();
    let keys = keys.map(|entry| WatchKeyOutput { changed: true, entry_if_changed: entry });
    WatchOutput { status: STATUS_SUCCESS, keys: keys.collect() }.encode_to_vec()
}

/// Decodes a state of a watch of `count` keys.
///
/// # Errors
/// `Unavailable` for a malformed state.
pub fn read_answer(bytes: &[u8], count: usize) -> Result<WatchAnswer> {
    let counted = at_most(bytes, 2, count, || format!("more keys came than the {count} watched"));
    counted.map_err(bad_answer)?;
    let output: WatchOutput = decode(bytes).map_err(bad_answer)?;
    match output.status {
        STATUS_SUCCESS => {}
        STATUS_READ_DISABLED => return Ok(WatchAnswer::Disabled),
        other => return Err(bad_answer(format!("Unspecified read error (code={other})"))),
    }
    if output.keys.len() != count {
        let given = output.keys.len();
        return Err(bad_answer(format!("{given} keys came where {count} are watched")));
    }
    let state = output.keys.into_iter().map(|WatchKeyOutput { changed, entry_if_changed }| {
        changed.then(|| entry_if_changed.map(entry_from_wire).transpose()).transpose()
    });
    Ok(WatchAnswer::State(state.collect::<Result<_>>().map_err(bad_answer)?))
}
