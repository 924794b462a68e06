//! Lists in one column of a queued message: its backoff and its keys if undelivered.

use openkv_core::model::Key;

/// Concatenates intervals as little-endian u32.
pub(super) fn pack_intervals(intervals: &[u32]) -> Vec<u8> {
    intervals.iter().flat_map(|ms| ms.to_le_bytes()).collect()
}

/// The number of intervals in so many bytes.
pub(super) fn packed_intervals(bytes: usize) -> usize {
    bytes / size_of::<u32>()
}

pub(super) fn unpack_intervals(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect()
}

/// Concatenates keys, each after its length as little-endian u32.
pub(super) fn pack_keys(keys: &[Key]) -> Vec<u8> {
    let mut packed = Vec::new();
    for key in keys {
        packed.extend_from_slice(&(key.len() as u32).to_le_bytes());
        packed.extend_from_slice(key.as_bytes());
    }
    packed
}

/// Ends at the first damaged key, so that one damaged message does not block all others.
pub(super) fn unpack_keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        let split = bytes
            .split_first_chunk()
            .and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
        let Some((key, rest)) = split else {
            tracing::error!("a queued message names damaged keys; they are passed over");
            break;
        };
        keys.push(Key::from_encoded(key.to_vec()));
        bytes = rest;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_lists_round_trip() {
        let keys = vec![Key::from_encoded(vec![0x15, 7]), Key::from_encoded(vec![0x26])];
        assert_eq!(unpack_keys(&pack_keys(&keys)), keys);
        assert_eq!(unpack_keys(&[pack_keys(&keys), vec![9, 0, 0, 0, 1]].concat()), keys);
        assert_eq!(unpack_intervals(&pack_intervals(&[1, 70_000])), [1, 70_000]);
    }
}
