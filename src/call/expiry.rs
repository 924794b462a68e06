//! When entries expire.

use super::Call;
use super::job::answer;
use crate::model::Key;

const ABSENT: u8 = 0;
const STAYS: u8 = 1;
const ENDS: u8 = 2;

/// Frame: the key. Answer: u8 0 absent, 1 stays, 2 expires; then f64 when, in ms since the epoch.
pub(super) fn ttl(frame: &[u8], Call { store, reply, .. }: Call) {
    let key = Key::from_encoded(frame.to_vec());
    answer(&store, reply, move |snapshot, _| {
        Ok(match snapshot.expiry(key.as_bytes())? {
            None => vec![ABSENT],
            Some(None) => vec![STAYS],
            Some(Some(end)) => [&[ENDS][..], &(end as f64).to_le_bytes()].concat(),
        })
    });
}
