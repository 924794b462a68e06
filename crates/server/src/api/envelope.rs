//! Entries in the documents of answers, and the answers with them.

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{ETAG, HeaderName, HeaderValue};
use serde::Serialize;
use utoipa::ToSchema;

use super::document_writer::{DocumentWriter, in_cbor};
use super::entries::Entry;
use super::media::Form;
use super::problem::Problem;
use super::schema::EntryBody;
use crate::answer::{Answer, Body, answer, whole};
use crate::memory::Claim;
use openkv_core::model::{Error, FRAMES_APART_BYTES_MIN, Key, Result, Versionstamp};
use openkv_store::Room;
use openkv_wire::connect::time::to_rfc3339;

/// Tells that a value is not the same in this form.
const LOSSY: HeaderName = HeaderName::from_static("openkv-lossy");
/// The expiry of an entry whose body is its value alone.
const EXPIRE_AT: HeaderName = HeaderName::from_static("openkv-expire-at");

/// About the bytes of an entry in JSON beside its key and its value.
const ENVELOPE_BYTES: usize = 100;

/// A page of a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Page)]
pub(super) struct PageBody<E> {
    entries: Vec<E>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    /// Whether there is a next page.
    has_more: bool,
}

/// The entries of keys.
#[derive(Serialize, ToSchema)]
#[schema(as = Batch)]
pub(super) struct BatchAnswer<E> {
    /// In the order of the keys; without an entry, value and versionstamp are `null`.
    entries: Vec<E>,
}

/// The digits of a versionstamp.
pub(crate) fn hex(stamp: Versionstamp) -> String {
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
            // Most values have few more bytes in JSON.
            let bytes = 2 * (entry.key.len() + entry.value.len()) + ENVELOPE_BYTES;
            let mut written = DocumentWriter::of(form, bytes, &entry.body(false))?;
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
    Ok(DocumentWriter::of(Form::Json, 0, &entry.body(false))?.into_text())
}

/// Carries out work for so many bytes, on a thread of its own if they are many.
pub(super) async fn apart<T: Send + 'static>(
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
pub(crate) fn as_document(form: Form, body: Body, lossy: bool) -> Answer {
    let mut answer = answer(StatusCode::OK, form.name(), body);
    if lossy {
        answer.headers_mut().insert(LOSSY, HeaderValue::from_static("true"));
    }
    answer
}

/// The answer with a document within the memory of its client.
pub(crate) fn answered(
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
        let entries = keys.iter().zip(&entries).map(|(key, entry)| match entry {
            Some(entry) => entry.body(false),
            None => EntryBody::absent(key.as_bytes()),
        });
        let batch = BatchAnswer { entries: entries.collect::<Vec<_>>() };
        Ok(DocumentWriter::of(form, 0, &batch)?.finish())
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
        let has_more = cursor.is_some();
        let entries = entries.iter().map(|entry| entry.body(keys_only)).collect();
        Ok(DocumentWriter::of(form, 0, &PageBody { entries, cursor, has_more })?.finish())
    });
    answered(form, body.await?, claim)
}
