//! Reads the entries about messages (docs/format.md §2.3). `commit::job` writes those of the store,
//! `js/queue/jobs.ts` those of handlers.

use super::Malformed;
use super::cbor::{Item, ItemRef, LazyReader};
use crate::model::{Encoding, Error, Result};

/// The last parts of the keys of entries about messages, by what happened (docs/format.md §2.3).
pub mod happened {
    /// Its commit is durable.
    pub const ENQUEUED: &str = "enqueued";
    /// A handler has it.
    pub const STARTED: &str = "started";
    /// A handler has reported its progress.
    pub const PROGRESS: &str = "progress";
    /// A delivery has failed, and a retry follows.
    pub const FAILED: &str = "failed";
    /// It is acknowledged.
    pub const COMPLETED: &str = "completed";
    /// It is a dead letter.
    pub const DEAD: &str = "dead";
    /// It is cancelled, or was while a handler had it.
    pub const CANCELLED: &str = "cancelled";
}

/// What happened to a message.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEntry<'v> {
    /// In ms since the epoch.
    pub at_ms: i64,
    /// The number of deliveries so far.
    pub attempts: Option<u32>,
    /// The progress or the result, in CBOR.
    pub value: Option<&'v [u8]>,
    /// The name and the message of the error of a delivery.
    pub error: Option<(String, String)>,
}

impl<'v> JobEntry<'v> {
    /// Reads the value of an entry.
    ///
    /// # Errors
    /// `Corrupt` for a value that no handler and no commit about messages has stored. Any caller that may write can
    /// have stored it.
    pub fn read(encoding: Encoding, bytes: &'v [u8]) -> Result<Self> {
        let other = || Error::corrupt("an entry about a message has another form");
        if encoding != Encoding::Cbor {
            return Err(other());
        }
        // References lead nowhere: only the result and the progress have shared objects, and they are not read here.
        let mut lazy = LazyReader::new(0);
        let (mut at_ms, mut attempts, mut value, mut error) = (None, None, None, None);
        let read = members(ItemRef::of(bytes), &mut lazy, |name, item, lazy| {
            match name {
                b"at" => {
                    if let Item::Date(ms) = item.open(lazy)? {
                        at_ms = Some(ms as i64).filter(|_| ms.is_finite());
                    }
                }
                b"attempts" => {
                    if let Item::Number(count) = item.open(lazy)? {
                        attempts = Some(count as u32);
                    }
                }
                b"value" => value = Some(item.bytes(lazy)?),
                b"error" => error = Some(error_of(item, lazy)?),
                _ => {}
            }
            Ok(())
        });
        read.map_err(|why| Error::corrupt(format!("an entry about a message: {why}")))?;
        Ok(Self { at_ms: at_ms.ok_or_else(other)?, attempts, value, error })
    }
}

fn error_of<'v>(
    object: ItemRef<'v>,
    lazy: &mut LazyReader<'v>,
) -> Result<(String, String), Malformed> {
    let (mut name, mut message) = (String::new(), String::new());
    members(object, lazy, |member, item, lazy| {
        let text = match member {
            b"name" => &mut name,
            b"message" => &mut message,
            _ => return Ok(()),
        };
        if let Item::Text(bytes) = item.open(lazy)? {
            *text = String::from_utf8_lossy(bytes).into_owned();
        }
        Ok(())
    })?;
    Ok((name, message))
}

/// Calls `member` for each member of an object; for none if the item is none.
fn members<'v>(
    object: ItemRef<'v>,
    lazy: &mut LazyReader<'v>,
    mut member: impl FnMut(&[u8], ItemRef<'v>, &mut LazyReader<'v>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let Item::Object(count, mut at) = object.open(lazy)? else { return Ok(()) };
    for _ in 0..count {
        let (name, item) = at.name(lazy)?;
        member(name, item, lazy)?;
        at = item.next(lazy)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::cbor::{decode, encode, encode_number};
    use crate::model::{Node, Value};

    fn encoded(properties: Vec<(&str, Node)>) -> Vec<u8> {
        let mut value = Value::new(Node::Null);
        let properties =
            properties.into_iter().map(|(name, node)| (name.into(), value.push(node))).collect();
        value.set(value.root_id(), Node::Object(properties));
        encode(&value).unwrap()
    }

    #[test]
    fn the_result_is_a_value_of_its_own_with_what_is_shared_in_it() {
        // { at: new Date(1000), attempts: 2, value: [a, a] }, where a is one empty object.
        let result = [0x82, 0xd8, 28, 0xa0, 0xd8, 29, 0];
        let mut bytes = encoded(vec![
            ("at", Node::Date(1000.0)),
            ("attempts", Node::Number(2.0)),
            ("value", Node::Null),
        ]);
        assert_eq!(bytes.pop(), Some(0xf6));
        bytes.extend(result);
        let entry = JobEntry::read(Encoding::Cbor, &bytes).unwrap();
        assert_eq!((entry.at_ms, entry.attempts, &entry.error), (1000, Some(2), &None));
        assert_eq!(entry.value, Some(&result[..]));
        decode(entry.value.unwrap()).unwrap();
    }

    #[test]
    fn a_value_of_another_form_is_an_error() {
        let good = encoded(vec![("at", Node::Date(1.0))]);
        assert!(JobEntry::read(Encoding::Cbor, &good).is_ok());
        assert!(JobEntry::read(Encoding::V8, &good).is_err());
        for bytes in [
            encoded(vec![]),
            encoded(vec![("at", Node::Number(1.0))]),
            encoded(vec![("at", Node::Date(f64::NAN))]),
            encode_number(7.0),
            Vec::new(),
            good[..good.len() - 1].to_vec(),
            // A map that says that it has more members than bytes.
            vec![0xbb, 0, 0, 0, 0, 0, 1, 0, 0],
            // A name that is a reference to nothing.
            vec![0xa1, 0xd8, 29, 0, 0xf6],
        ] {
            assert!(JobEntry::read(Encoding::Cbor, &bytes).is_err(), "{bytes:?}");
        }
    }
}
