//! `GET /backup`: a verified copy of the database's file, with its hash. A download that broke off goes
//! on by `Range` and `If-Range`.

use std::sync::atomic::Ordering;

use axum::Extension;
use axum::extract::Request;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_MATCH, IF_RANGE, RANGE,
};
use hyper::{Method, StatusCode};

use super::admit::Admitted;
use super::byte_range::{RequestedRange, requested_range};
use super::envelope::hex;
use super::precondition::entity_tags;
use super::problem::{Answered, Problem};
use super::target::Query;
use crate::answer::{Body, Refusal, answer};
use crate::checked::PieceSender;
use crate::data::{Client, store_of};
use crate::downloads::{Copied, Download};
use openkv_core::model::{ANSWER_PIECE_BYTES, Capability, Error, Result};
use openkv_store::on_thread;
use openkv_wire::protocol::backup::{
    ENTRIES_HEADER, FILE_TYPE, HASH_HEADER, SHA256_HEADER, STAMP_HEADER, hash_of, hex_of,
};

/// Downloads a copy of the database.
#[utoipa::path(get, path = "/backup", tag = "operation", operation_id = "backup",
    params(
        ("range" = Option<String>, Header, description = "`bytes=N-` or `bytes=N-M`, with `if-range`."),
        ("if-range" = Option<String>, Header, description = "The `etag` of the download that broke off. If its copy is no longer there, the answer is another copy."),
        ("if-match" = Option<String>, Header, description = "As `if-range`; without the copy the answer is 412."),
    ),
    responses(
        (status = 200, description = "A database file. `repr-digest` has its SHA-256.",
            content_type = "application/vnd.sqlite3", body = String),
        (status = 206, description = "The rest of a file.",
            content_type = "application/vnd.sqlite3", body = String),
        (status = 412, description = "The copy of `if-match` is no longer there."),
        (status = 416, description = "The range begins behind the end of the copy."),
    ))]
pub(super) async fn backup(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    Query::of(&head.uri, &[])?;
    if head.method != Method::GET {
        let text = "A backup is made for GET alone.";
        return Err(Refusal::not_allowed(&[Method::GET], text).into());
    }
    let downloads = &client.database.downloads;
    let resumed = |name| {
        let lists = head.headers.get_all(name).iter();
        lists.flat_map(hashes).find_map(|hash| downloads.resume(&hash))
    };
    let kept = resumed(IF_MATCH).or_else(|| resumed(IF_RANGE));
    if kept.is_none() && head.headers.contains_key(IF_MATCH) {
        let text = "The copy is no longer there: begin again.";
        return Err(Problem::new(StatusCode::PRECONDITION_FAILED, text));
    }
    let Some(download) = kept else {
        let download = made(&client).await?;
        let bytes = download.copied.backup.bytes;
        return sent(&client, download, StatusCode::OK, (0, bytes)).await;
    };
    let bytes = download.copied.backup.bytes;
    match requested_range(head.headers.get(RANGE), bytes) {
        RequestedRange::All => sent(&client, download, StatusCode::OK, (0, bytes)).await,
        RequestedRange::Part(part) => {
            sent(&client, download, StatusCode::PARTIAL_CONTENT, part).await
        }
        RequestedRange::Nothing => {
            let text = format!("The file has {bytes} bytes.");
            Err(Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, text))
        }
    }
}

/// The hashes in a list of entity tags, which are compared strongly.
fn hashes(list: &HeaderValue) -> Vec<[u8; 32]> {
    let tags = entity_tags(list.as_bytes()).unwrap_or_default();
    let strong = tags.into_iter().filter(|tag| !tag.is_weak);
    strong.filter_map(|tag| hash_of(std::str::from_utf8(tag.opaque).ok()?)).collect()
}

async fn made(client: &Client) -> Result<Download, Problem> {
    let store = store_of(&client.database).await?;
    store.capabilities().require(Capability::Backup)?;
    let Some(path) = client.database.file() else {
        return Err(Error::lacking(
            Capability::Backup,
            "backup: a server offers none of a database in an object store: open the URL of the database in the object \
             store with lead: \"never\" and call backup there, as openkv backup does, or use openkv copy for its entries",
        )
        .into());
    };
    let made = client.database.downloads.make(&store, path).await?;
    // A client reads the error.
    Ok(made.map_err(|error| client.database.without_path(&error))?)
}

/// The answer with the bytes from `start` to `end`.
async fn sent(
    client: &Client,
    download: Download,
    status: StatusCode,
    (start, end): (u64, u64),
) -> Answered {
    let copied = download.copied.clone();
    let (pieces, body) = PieceSender::new(client);
    let work = move |(download, pieces): (Download, PieceSender)| {
        read(download, (start, end), pieces);
    };
    let refuse = |(_, pieces): (Download, PieceSender), error| pieces.fail(error);
    on_thread("openkv-download", (download, pieces), work, refuse);
    let mut answer = answer(status, FILE_TYPE, Body::Checked(Box::new(body.begun().await?)));
    let headers = answer.headers_mut();
    about(headers, &copied)?;
    headers.insert(CONTENT_LENGTH, HeaderValue::from(end - start));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {start}-{}/{}", end.saturating_sub(1), copied.backup.bytes);
        headers.insert(CONTENT_RANGE, value(&range)?);
    }
    Ok(answer)
}

/// Sends the bytes from `start` to `end`, on a thread that may wait.
fn read(mut download: Download, (start, end): (u64, u64), mut pieces: PieceSender) {
    let runtime = pieces.runtime();
    let _inside = runtime.enter();
    let taken = pieces.taken();
    match pieces_of(&download.copied, (start, end), &mut pieces) {
        Ok(true) => pieces.end(),
        Ok(false) => {}
        Err(error) => pieces.fail(error),
    }
    download.part = (start, start + taken.load(Ordering::Relaxed));
}

/// Sends a part of a copy; `false` if its client wants no more.
fn pieces_of(copied: &Copied, (mut at, end): (u64, u64), to: &mut PieceSender) -> Result<bool> {
    while at < end {
        let len = usize::try_from(end - at).unwrap_or(usize::MAX).min(ANSWER_PIECE_BYTES);
        if !to.send(copied.read(at, len)?.into()) {
            return Ok(false);
        }
        at += len as u64;
    }
    Ok(true)
}

/// What all downloads of a copy have in common.
fn about(headers: &mut HeaderMap, copied: &Copied) -> Result<()> {
    let digest = format!("sha-256=:{}:", BASE64_STANDARD.encode(copied.hash));
    headers.insert(ETAG, value(&format!("\"{}\"", hex_of(&copied.hash)))?);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(HeaderName::from_static(HASH_HEADER), value(&digest)?);
    let backup = &copied.backup;
    let own = HeaderName::from_static;
    headers.insert(own(ENTRIES_HEADER), HeaderValue::from(backup.entries));
    headers.insert(own(STAMP_HEADER), value(&hex(backup.stamp))?);
    headers.insert(own(SHA256_HEADER), value(&hex_of(&backup.digest))?);
    Ok(())
}

fn value(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text).map_err(|error| Error::internal(error.to_string()))
}
