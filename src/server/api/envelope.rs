//! Entries in the documents of answers, and the answers with them.

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{ETAG, HeaderName, HeaderValue};

use super::entries::Entry;
use super::media::Form;
use super::problem::Problem;
use super::written::{Written, in_cbor};
use crate::connect::time::to_rfc3339;
use crate::model::{Encoding, Error, FRAMES_APART_BYTES_MIN, Key, Result, Versionstamp};
use crate::server::answer::{Answer, Body, answer, whole};
use crate::server::memory::Claim;
use crate::store::Room;

/// Tells that a value is not the same in this form.
const LOSSY: HeaderName = HeaderName::from_static("openkv-lossy");
/// The expiry of an entry whose body is its value alone.
const EXPIRE_AT: HeaderName = HeaderName::from_static("openkv-expire-at");

/// About the bytes of an entry in JSON beside its key and its value.
const ENVELOPE_BYTES: usize = 100;

/// An entry of a document.
#[derive(Clone, Copy)]
pub(super) struct Shown<'e> {
    pub(super) key: &'e [u8],
    pub(super) stamp: Versionstamp,
    /// `None` in a list of keys.
    pub(super) value: Option<(Encoding, &'e [u8])>,
    pub(super) expire_at_ms: Option<i64>,
}

impl<'e> Shown<'e> {
    pub(super) fn of(entry: &'e Entry, keys_only: bool) -> Self {
        let value = (!keys_only).then_some((entry.encoding, entry.value.as_slice()));
        Self { key: &entry.key, stamp: entry.stamp, value, expire_at_ms: entry.expire_at_ms }
    }

    /// About the bytes of its text. Most values have few more bytes in JSON.
    fn bytes(&self) -> usize {
        2 * (self.key.len() + self.value.map_or(0, |(_, value)| value.len())) + ENVELOPE_BYTES
    }

    /// Appends the entry.
    pub(super) fn write(self, written: &mut Written) -> Result<()> {
        written.object(|written| self.write_members(written))
    }

    /// Appends the members of the entry to an object that has others too.
    pub(super) fn write_members(self, written: &mut Written) -> Result<()> {
        written.member("key").key(self.key)?;
        if let Some((encoding, value)) = self.value {
            written.value_member(encoding, value)?;
        }
        written.member("versionstamp").stamp(self.stamp);
        if let Some(ms) = self.expire_at_ms {
            written.member("expireAt").expiry(ms);
        }
        Ok(())
    }
}

/// Appends that there is no entry of a key.
pub(super) fn write_absent(written: &mut Written, key: &[u8]) -> Result<()> {
    written.object(|written| {
        written.member("key").key(key)?;
        written.member("value").null();
        written.member("versionstamp").null();
        Ok(())
    })
}

/// The digits of a versionstamp.
pub(super) fn hex(stamp: Versionstamp) -> String {
    String::from_utf8_lossy(&stamp.hex()).into_owned()
}

/// The entity tag of an entry.
pub(super) fn etag(stamp: Versionstamp) -> Result<HeaderValue> {
    let digits = stamp.hex();
    let quoted: Vec<u8> = [b"\"".as_slice(), &digits, b"\""].concat();
    HeaderValue::from_maybe_shared(Bytes::from(quoted))
        .map_err(|error| Error::internal(error.to_string()))
}

/// The body of one entry: the entry in JSON; in other forms its value alone. A value that cannot be
/// read is an error.
fn one(entry: &Entry, form: Form) -> Result<(Vec<u8>, bool)> {
    match form {
        Form::Json | Form::Typed => {
            let shown = Shown::of(entry, false);
            let mut written = Written::new(form, shown.bytes());
            shown.write(&mut written)?;
            written.take_unreadable().map_or_else(|| Ok(written.finish()), Err)
        }
        Form::Cbor => {
            let (value, lossy) = in_cbor(entry.encoding, &entry.value)?;
            Ok((value.into_owned(), lossy))
        }
        Form::Bytes => Ok((entry.value.clone(), false)),
    }
}

/// An entry as plain JSON.
pub(super) fn plain(entry: &Entry) -> Result<String> {
    let mut written = Written::new(Form::Json, 0);
    Shown::of(entry, false).write(&mut written)?;
    Ok(written.into_text())
}

/// Carries out work for so many bytes, on a thread of its own if they are many.
async fn apart<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if bytes < FRAMES_APART_BYTES_MIN {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::internal("writing an answer ended by a panic"))?
}

/// The answer with a document, whose body may still be on its way.
pub(super) fn as_document(form: Form, body: Body, lossy: bool) -> Answer {
    let mut answer = answer(StatusCode::OK, form.name(), body);
    if lossy {
        answer.headers_mut().insert(LOSSY, HeaderValue::from_static("true"));
    }
    answer
}

/// The answer with a document within the memory of its client.
pub(super) fn answered(
    form: Form,
    (body, lossy): (Vec<u8>, bool),
    claim: &Claim,
) -> Result<Answer, Problem> {
    claim.holds(body.len())?;
    Ok(as_document(form, whole(claim.bytes(body)), lossy))
}

/// The answer with one entry.
pub(super) async fn entry_answer(
    entry: Entry,
    form: Form,
    claim: &Claim,
) -> Result<Answer, Problem> {
    let (stamp, expire_at_ms) = (entry.stamp, entry.expire_at_ms);
    let body = apart(entry.value.len(), move || one(&entry, form)).await?;
    let mut answer = answered(form, body, claim)?;
    answer.headers_mut().insert(ETAG, etag(stamp)?);
    if let Some(ms) = expire_at_ms
        && let Ok(at) = HeaderValue::from_str(&to_rfc3339(ms))
    {
        answer.headers_mut().insert(EXPIRE_AT, at);
    }
    Ok(answer)
}

/// The answer with entries of keys, in their order.
pub(super) async fn batch_answer(
    (keys, entries): (Vec<Key>, Vec<Option<Entry>>),
    form: Form,
    (claim, bytes): (&Claim, usize),
) -> Result<Answer, Problem> {
    let body = apart(bytes, move || {
        let mut written = Written::new(form, 0);
        let entries = keys.iter().zip(&entries);
        written.object(|written| {
            written.member("entries").array(entries, |written, (key, entry)| match entry {
                Some(entry) => Shown::of(entry, false).write(written),
                None => write_absent(written, key.as_bytes()),
            })
        })?;
        Ok(written.finish())
    });
    answered(form, body.await?, claim)
}

/// The answer with a page of a list.
pub(super) async fn page_answer(
    (entries, keys_only): (Vec<Entry>, bool),
    cursor: Option<String>,
    form: Form,
    (claim, bytes): (&Claim, usize),
) -> Result<Answer, Problem> {
    let body = apart(bytes, move || {
        let mut written = Written::new(form, 0);
        written.object(|written| {
            let each = |written: &mut Written, entry| Shown::of(entry, keys_only).write(written);
            written.member("entries").array(entries.iter(), each)?;
            write_cursor(written, cursor.as_deref());
            Ok(())
        })?;
        Ok(written.finish())
    });
    answered(form, body.await?, claim)
}

/// Appends where a list continues.
pub(super) fn write_cursor(written: &mut Written, cursor: Option<&str>) {
    written.member("cursor").text_or_null(cursor);
    written.member("hasMore").boolean(cursor.is_some());
}
