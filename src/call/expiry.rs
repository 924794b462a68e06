//! When entries end.

use super::Call;
use crate::model::Key;

const ABSENT: u8 = 0;
const STAYS: u8 = 1;
const ENDS: u8 = 2;

/// Frame: the key. Answer: u8 0 absent, 1 stays, 2 ends; then f64 its end in ms since the epoch.
pub(super) fn ttl(frame: &[u8], Call { store, reply, .. }: Call) {
    let key = Key::from_encoded(frame.to_vec());
    store.read(Box::new(move |snapshot| {
        match snapshot.and_then(|snapshot| snapshot.expiry(key.as_bytes())) {
            Ok(None) => reply.good(vec![ABSENT]),
            Ok(Some(None)) => reply.good(vec![STAYS]),
            Ok(Some(Some(end))) => {
                reply.good([&[ENDS][..], &(end as f64).to_le_bytes()].concat());
            }
            Err(error) => reply.bad(error),
        }
    }));
}
