//! The keys of a batch in the log of batches: of each the length, two bytes with the high one first,
//! and the bytes. A batch with too many has none, so that the log stays small.

use openkv_core::model::{Key, POSTGRES_LOG_KEYS_BYTES_MAX};

/// The keys whose entries a batch has changed.
#[derive(Debug, Default)]
pub(super) struct LoggedKeys {
    bytes: Vec<u8>,
    /// There were too many.
    omitted: bool,
}

impl LoggedKeys {
    pub(super) fn add(&mut self, key: &Key) {
        let bytes = key.as_bytes();
        let fits = self.bytes.len() + 2 + bytes.len() <= POSTGRES_LOG_KEYS_BYTES_MAX;
        match u16::try_from(bytes.len()) {
            Ok(length) if fits && !self.omitted => {
                self.bytes.extend_from_slice(&length.to_be_bytes());
                self.bytes.extend_from_slice(bytes);
            }
            _ => self.omitted = true,
        }
    }

    /// The bytes for the log; `None` if there were too many keys.
    pub(super) fn encoded(&self) -> Option<&[u8]> {
        (!self.omitted).then_some(self.bytes.as_slice())
    }

    /// The keys in stored bytes; `None` for bytes that are not from [`LoggedKeys::encoded`].
    pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<Key>> {
        let mut keys = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk()?;
            let (key, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
            keys.push(Key::from_encoded(key.to_vec()));
            bytes = rest;
        }
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(length: usize) -> Key {
        Key::from_encoded(vec![7; length])
    }

    #[test]
    fn keys_are_decoded_as_they_were_added() {
        let mut logged = LoggedKeys::default();
        let keys = [key(1), key(300), key(0)];
        keys.iter().for_each(|key| logged.add(key));
        assert_eq!(LoggedKeys::decode(logged.encoded().unwrap()), Some(keys.to_vec()));
        assert_eq!(LoggedKeys::decode(LoggedKeys::default().encoded().unwrap()), Some(vec![]));
    }

    #[test]
    fn too_many_keys_are_omitted() {
        let mut logged = LoggedKeys::default();
        let length = 1000;
        (0..POSTGRES_LOG_KEYS_BYTES_MAX / (2 + length)).for_each(|_| logged.add(&key(length)));
        assert!(logged.encoded().is_some_and(|bytes| bytes.len() <= POSTGRES_LOG_KEYS_BYTES_MAX));
        logged.add(&key(length));
        assert_eq!(logged.encoded(), None);
        logged.add(&key(1));
        assert_eq!(logged.encoded(), None, "a later key that fits does not stand for all");
    }

    #[test]
    fn bytes_of_another_form_have_no_keys() {
        for bytes in [&[0][..], &[0, 2, 7], &[0, 1, 7, 0]] {
            assert_eq!(LoggedKeys::decode(bytes), None, "{bytes:?}");
        }
    }
}
