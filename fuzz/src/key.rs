//! Keys: no input panics, accepted input is the canonical encoding of its parts, and keys compare
//! as their bytes.

use super::within;
use openkv::codec::key;
use openkv::model::KeyPart;

#[path = "../../tests/kit/key.rs"]
mod kit;

/// One part for each byte, in a vector that doubles.
fn bytes_max(len: usize) -> usize {
    len * 3 * size_of::<KeyPart>() + 1024
}

fn judge(bytes: &[u8]) -> Option<Vec<KeyPart>> {
    let valid = within(0, || key::validate(bytes));
    let parts = within(bytes_max(bytes.len()), || key::decode(bytes));
    assert_eq!(valid.err(), parts.as_ref().err().copied());
    let parts = parts.ok()?;
    assert_eq!(kit::encode(&parts).as_deref(), Some(bytes));
    Some(parts)
}

pub(crate) fn check(data: &[u8]) {
    // The first byte is the position at which the second key starts.
    let Some((&at, bytes)) = data.split_first() else { return };
    let (a, b) = bytes.split_at(usize::from(at).min(bytes.len()));
    if let (Some(parts_a), Some(parts_b)) = (judge(a), judge(b)) {
        assert_eq!(kit::compare(&parts_a, &parts_b), a.cmp(b));
    }
}
