//! Entries that report what happens to a message whose result is kept (docs/format.md §2).
//!
//! Duty: the keys and values of these entries, which expire. The commit that changes the message stores them.
//! Never: an entry about a message without [`KEEP_RESULT`], except for a cancellation, of which its handler has to
//! learn.

use super::effect::NewRow;
use super::transaction::{LockedMessage, Undelivered};
use crate::codec::job_entry::happened;
use crate::codec::{cbor, key, message_context};
use crate::model::{
    CANCELLED_KEPT_MS, EncodedValue, Encoding, JOB_ENTRIES, KEEP_RESULT, Key, KeyPart, Message,
    Node, PROGRESS_KEPT_MS, Reason, Result, Value, queue_of_callers,
};

/// The first entry about a message whose result is kept.
pub(super) struct Tracked {
    queue: String,
    kept_ms: i64,
}

impl Tracked {
    /// `None` if the result of the message is not kept.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let kept_ms =
            kept_ms(&message.value).filter(|_| message.is_named() && message.schedule.is_none())?;
        Some(Self { queue: queue_of_callers(&message.queue).to_owned(), kept_ms })
    }

    /// The entry of the commit that has enqueued it.
    pub(super) fn enqueued(self, id: i64, version: u64, now_ms: i64) -> Result<(Key, NewRow)> {
        let Undelivered { mut keys, value, expire_at_ms } = entry(
            &[&self.queue, &id.to_string(), happened::ENQUEUED],
            self.kept_ms,
            now_ms,
            vec![],
        )?;
        let key = keys.pop().unwrap_or_else(|| Key::from_encoded(Vec::new()));
        Ok((key, NewRow { version, value, expire_at_ms }))
    }
}

/// The entry about a delivery that has failed.
pub(super) fn failed(
    locked: &LockedMessage,
    reason: &Reason,
    is_dead: bool,
    now_ms: i64,
) -> Result<Option<Undelivered>> {
    let Some(Tracked { queue, kept_ms }) = Tracked::of(&locked.message) else { return Ok(None) };
    let what = if is_dead { happened::DEAD } else { happened::FAILED };
    let error = vec![("name", text(reason.name())), ("message", text(reason.message()))];
    let fields = vec![
        ("attempts", Field::Node(Node::Number(f64::from(locked.attempts)))),
        ("error", Field::Object(error)),
    ];
    entry(&[&queue, &locked.id.to_string(), what], kept_ms, now_ms, fields).map(Some)
}

/// The entry about a message that its consumer has acknowledged, with its result.
pub(super) fn completed(
    locked: &LockedMessage,
    value: Option<Vec<u8>>,
    now_ms: i64,
) -> Result<Option<Undelivered>> {
    let Some(Tracked { queue, kept_ms }) = Tracked::of(&locked.message) else { return Ok(None) };
    reported(locked, &queue, happened::COMPLETED, kept_ms, value, now_ms).map(Some)
}

/// The entry about the progress of a message, also of one whose result is not kept.
pub(super) fn progressed(
    locked: &LockedMessage,
    value: Option<Vec<u8>>,
    now_ms: i64,
) -> Result<Option<Undelivered>> {
    let message = &locked.message;
    if !message.is_named() {
        return Ok(None);
    }
    let kept_ms = kept_ms(&message.value).unwrap_or(PROGRESS_KEPT_MS);
    let queue = queue_of_callers(&message.queue);
    reported(locked, queue, happened::PROGRESS, kept_ms, value, now_ms).map(Some)
}

/// The entry with what a consumer has reported.
fn reported(
    locked: &LockedMessage,
    queue: &str,
    what: &'static str,
    kept_ms: i64,
    value: Option<Vec<u8>>,
    now_ms: i64,
) -> Result<Undelivered> {
    let attempts = Field::Node(Node::Number(f64::from(locked.attempts)));
    let mut fields = vec![("attempts", attempts)];
    fields.extend(value.as_ref().map(|_| ("value", Field::Node(Node::Null))));
    let mut entry = entry(&[queue, &locked.id.to_string(), what], kept_ms, now_ms, fields)?;
    if let Some(value) = value {
        // The value is the last item, and is copied as it is.
        entry.value.bytes.pop();
        entry.value.bytes.extend(value);
    }
    Ok(entry)
}

/// The entries about a message that is cancelled, and about the last such message of its queue.
pub(super) fn cancelled(
    queue: &str,
    id: i64,
    message: &[u8],
    now_ms: i64,
) -> Result<[Undelivered; 2]> {
    let kept_ms = kept_ms(message).unwrap_or(CANCELLED_KEPT_MS);
    let id = id.to_string();
    let of_message = entry(&[queue, &id, happened::CANCELLED], kept_ms, now_ms, vec![])?;
    let fields = vec![("id", Field::Node(text(&id)))];
    Ok([of_message, entry(&[queue, happened::CANCELLED], CANCELLED_KEPT_MS, now_ms, fields)?])
}

/// How long what is known of a message is kept.
fn kept_ms(message: &[u8]) -> Option<i64> {
    let (context, _) = message_context::split(message);
    let mut lines = context.split('\n').filter_map(|line| line.split_once(": "));
    let (_, text) = lines.find(|(name, _)| *name == KEEP_RESULT)?;
    text.parse().ok().filter(|ms| *ms > 0)
}

enum Field {
    Node(Node),
    Object(Vec<(&'static str, Node)>),
}

fn text(text: &str) -> Node {
    Node::String(text.into())
}

fn entry(
    parts: &[&str],
    kept_ms: i64,
    now_ms: i64,
    fields: Vec<(&'static str, Field)>,
) -> Result<Undelivered> {
    let parts = [JOB_ENTRIES].iter().chain(parts).map(|part| KeyPart::String((*part).to_owned()));
    let key = key::encode(&parts.collect::<Vec<_>>())?;
    let mut value = Value::new(Node::Null);
    let at = value.push(Node::Date(now_ms as f64));
    let mut properties = vec![("at".into(), at)];
    for (name, field) in fields {
        let node = match field {
            Field::Node(node) => node,
            Field::Object(fields) => Node::Object(
                fields.into_iter().map(|(name, node)| (name.into(), value.push(node))).collect(),
            ),
        };
        properties.push((name.into(), value.push(node)));
    }
    value.set(value.root_id(), Node::Object(properties));
    let value = EncodedValue { encoding: Encoding::Cbor, bytes: cbor::encode(&value)? };
    Ok(Undelivered { keys: vec![key], value, expire_at_ms: Some(now_ms.saturating_add(kept_ms)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::job_entry::JobEntry;

    fn message(queue: &str, context: &str) -> Message {
        let value = message_context::with_context(context, &[1]);
        Message { queue: queue.into(), value, ..Message::default() }
    }

    #[test]
    fn a_message_is_tracked_by_its_context_alone() {
        let kept = |queue, context| Tracked::of(&message(queue, context)).map(|of| of.kept_ms);
        assert_eq!(kept("mail", "openkv-keep-result: 500"), Some(500));
        assert_eq!(kept("mail", "traceparent: 00-1\nopenkv-keep-result: 7"), Some(7));
        assert_eq!(kept("", "openkv-keep-result: 500"), None);
        for context in ["", "openkv-keep-result: x", "openkv-keep-result: 0", "traceparent: 00"] {
            assert_eq!(kept("mail", context), None, "{context}");
        }
    }

    #[test]
    fn what_a_consumer_tells_is_stored_as_it_is() {
        let value = Some(cbor::encode_number(7.0).to_vec());
        let of = |queue, context| {
            let message = message(queue, context);
            LockedMessage { id: 7, attempts: 3, lock_end_ms: 0, message, encoding: Encoding::Cbor }
        };
        let (kept, plain) = (of("mail", "openkv-keep-result: 500"), of("mail", ""));
        let end = completed(&kept, value.clone(), 1000).unwrap().unwrap();
        assert_eq!(key::print(end.keys[0].as_bytes()), r#"["openkv:jobs","mail","7","completed"]"#);
        assert_eq!(end.expire_at_ms, Some(1500));
        let read = JobEntry::read(Encoding::Cbor, &end.value.bytes).unwrap();
        assert_eq!((read.at_ms, read.attempts, read.value), (1000, Some(3), value.as_deref()));
        let end = completed(&kept, None, 1000).unwrap().unwrap();
        assert_eq!(JobEntry::read(Encoding::Cbor, &end.value.bytes).unwrap().value, None);
        assert!(completed(&plain, value.clone(), 1000).unwrap().is_none());
        let step = progressed(&plain, value.clone(), 1000).unwrap().unwrap();
        assert_eq!(step.expire_at_ms, Some(1000 + PROGRESS_KEPT_MS));
        assert!(progressed(&of("", ""), value, 1000).unwrap().is_none());
    }

    #[test]
    fn the_entry_of_a_death_has_the_error_and_expires() {
        let message = message("mail", "openkv-keep-result: 500");
        let locked =
            LockedMessage { id: 7, attempts: 3, lock_end_ms: 0, message, encoding: Encoding::Cbor };
        let reason = Reason::new("Error", "no");
        let entry = failed(&locked, &reason, true, 1000).unwrap().unwrap();
        assert_eq!(key::print(entry.keys[0].as_bytes()), r#"["openkv:jobs","mail","7","dead"]"#);
        assert_eq!(entry.expire_at_ms, Some(1500));
        let value = cbor::decode(&entry.value.bytes).unwrap();
        let has = |node: &Node| value.nodes().any(|of| of == node);
        assert!(has(&text("no")) && has(&Node::Number(3.0)) && has(&Node::Date(1000.0)));
    }
}
