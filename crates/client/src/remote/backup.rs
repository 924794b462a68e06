//! The download of a backup from an openkv server: a copy of its file, by the HTTP API.
//!
//! Invariant: a download that breaks off goes on with the same copy, or begins again with another one.
//! It ends well only if the hash of all bytes is the one that the server has named.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE,
};
use hyper::{StatusCode, Uri};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep, timeout};

use super::backoff;
use super::executor::RequestExecutor;
use super::transport::{Fault, is_failure, refusal, retry_after};
use openkv_core::model::{
    Backup, Error, REMOTE_BACKUP_ANSWER_MS_MAX, REMOTE_BACKUP_COPIES_MAX, REMOTE_BACKUP_LOOK_MS,
    Result, Versionstamp, WATCH_SILENCE_MS_MAX,
};
use openkv_wire::protocol::Command;
use openkv_wire::protocol::backup::{
    ENTRIES_HEADER, HASH_HEADER, PATH, SHA256_HEADER, STAMP_HEADER, hash_of,
};

/// Takes the bytes of a download.
pub trait Destination: Send + 'static {
    /// Drops all bytes: the download begins again.
    fn restart(&mut self) -> Result<()>;

    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Gets the bytes so far and all bytes; `false` ends the download.
    fn step(&self, done: u64, all: u64) -> bool;

    /// Tells, also between two pieces, whether the caller has ended the download.
    fn is_ended(&self) -> Box<dyn Fn() -> bool + Send>;
}

/// The copy of which bytes have arrived.
struct Course {
    etag: HeaderValue,
    hash: [u8; 32],
    backup: Backup,
    at: u64,
    sum: Sha256,
}

/// Why an attempt ended.
enum End {
    /// A retry may help, after at least this wait.
    Again(String, Duration),
    Final(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// Downloads a copy. It goes on as long as bytes arrive, and gives up after the handle's timeout without
/// any.
pub(super) async fn download<D: Destination>(
    executor: &RequestExecutor,
    destination: &mut D,
) -> Result<Backup> {
    let (mut course, mut copies, mut tries) = (None::<Course>, 0, 0);
    let mut deadline = Instant::now() + executor.timeout;
    loop {
        let before = course.as_ref().map(|course| (course.etag.clone(), course.at));
        let ended = attempt(executor, destination, &mut course).await;
        let after = course.as_ref().map(|course| (course.etag.clone(), course.at));
        let is_other = before.as_ref().map(|(tag, _)| tag) != after.as_ref().map(|(tag, _)| tag);
        copies += u32::from(is_other);
        let (why, least) = match ended {
            Ok(backup) => return Ok(backup),
            Err(End::Final(error)) => return Err(error),
            Err(End::Again(why, least)) => (why, least),
        };
        if after != before {
            tries = 0;
            deadline = Instant::now() + executor.timeout;
        }
        let wait = backoff::delay(tries, executor.env.random()).max(least);
        tries += 1;
        let is_late = wait >= deadline.saturating_duration_since(Instant::now());
        if is_late || copies > REMOTE_BACKUP_COPIES_MAX {
            return Err(Error::unavailable(why));
        }
        sleep(wait).await;
    }
}

/// Asks once, for a copy or the rest of one, and reads it.
async fn attempt<D: Destination>(
    executor: &RequestExecutor,
    destination: &mut D,
    course: &mut Option<Course>,
) -> Result<Backup, End> {
    let (url, authorization) = executor.credentials.access()?;
    let shown = executor.credentials.shown();
    let base = url.path().trim_end_matches('/').to_owned();
    let mut target = url;
    target.set_path(&format!("{base}/{PATH}"));
    target.set_query(None);
    let uri: Uri = target
        .as_str()
        .parse()
        .map_err(|_| Error::invalid(format!("{shown} cannot be requested")))?;
    let mut headers = HeaderMap::new();
    if let Some(authorization) = authorization {
        headers.insert(AUTHORIZATION, authorization);
    }
    if let Some(Course { etag, at, .. }) = course {
        let rest = HeaderValue::from_str(&format!("bytes={at}-"));
        headers.insert(RANGE, rest.map_err(|error| Error::internal(error.to_string()))?);
        headers.insert(IF_RANGE, etag.clone());
    }
    let deadline = Instant::now() + Duration::from_millis(REMOTE_BACKUP_ANSWER_MS_MAX);
    let answer = executor.transport.get(&uri, headers, deadline).await;
    let (head, body) = answer.map_err(|fault: Fault| again(&shown, &fault.why()))?.into_parts();
    match head.status {
        StatusCode::OK => {
            destination.restart()?;
            *course = Some(begun(&shown, &head.headers)?);
        }
        StatusCode::PARTIAL_CONTENT if goes_on(course.as_ref(), &head.headers) => {}
        status => {
            let text = refusal(body, deadline).await;
            return Err(refused(executor, status, &head.headers, &text));
        }
    }
    let course_now = course.as_mut().ok_or_else(|| malformed(&shown, "the rest of no copy"))?;
    read(destination, course_now, body).await.map_err(|end| match end {
        End::Again(why, least) => End::Again(format!("{shown}: {why}"), least),
        end => end,
    })?;
    if course_now.sum.clone().finalize()[..] != course_now.hash {
        *course = None;
        return Err(Error::corrupt(format!(
            "{shown}: the bytes of the backup are not those that the server has sent; try again"
        ))
        .into());
    }
    Ok(course_now.backup.clone())
}

fn again(shown: &str, why: &str) -> End {
    End::Again(format!("{shown}: {why}"), Duration::ZERO)
}

fn malformed(shown: &str, what: &str) -> End {
    End::Final(Error::corrupt(format!("{shown} answered what is no backup: {what}")))
}

/// A copy of which no bytes have arrived.
fn begun(shown: &str, headers: &HeaderMap) -> Result<Course, End> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
    let facts = || {
        let hash = text(HASH_HEADER)?.trim().strip_prefix("sha-256=:")?.strip_suffix(':')?;
        let backup = Backup {
            bytes: number(CONTENT_LENGTH.as_str())?,
            entries: number(ENTRIES_HEADER)?,
            stamp: Versionstamp::parse(text(STAMP_HEADER)?.as_bytes())?,
            digest: hash_of(text(SHA256_HEADER)?)?,
        };
        let hash = BASE64_STANDARD.decode(hash).ok()?.try_into().ok()?;
        let (etag, sum) = (headers.get(ETAG)?.clone(), Sha256::new());
        Some(Course { etag, hash, backup, at: 0, sum })
    };
    facts().ok_or_else(|| malformed(shown, "headers are missing"))
}

/// Whether an answer is the rest of the copy.
fn goes_on(course: Option<&Course>, headers: &HeaderMap) -> bool {
    course.is_some_and(|course| {
        let range = headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let expected = format!("bytes {}-", course.at);
        headers.get(ETAG) == Some(&course.etag)
            && range.is_some_and(|range| range.starts_with(&expected))
    })
}

/// Reads a body to its end.
async fn read<D: Destination>(
    destination: &mut D,
    course: &mut Course,
    mut body: Incoming,
) -> Result<(), End> {
    let all = course.backup.bytes;
    let broken = |why: &str| End::Again(format!("the download broke off: {why}"), Duration::ZERO);
    let silence = Duration::from_millis(WATCH_SILENCE_MS_MAX);
    while course.at < all {
        let frame = timeout(silence, body.frame()).await;
        let frame = frame.map_err(|_| broken("nothing came for a minute"))?;
        let frame = frame.ok_or_else(|| broken("the answer ended"))?;
        let frame = frame.map_err(|error| broken(&error.to_string()))?;
        let Some(bytes) = frame.data_ref() else { continue };
        if bytes.len() as u64 > all - course.at {
            return Err(Error::corrupt("the server sends more than it has announced").into());
        }
        destination.write(bytes)?;
        course.sum.update(bytes);
        course.at += bytes.len() as u64;
        if !destination.step(course.at, all) {
            return Err(ended().into());
        }
    }
    Ok(())
}

/// The error of a download that its caller has ended.
fn ended() -> Error {
    Error::unavailable("the backup was ended before it was done")
}

/// Waits until the caller ends the download.
pub(super) async fn ended_by(is_ended: impl Fn() -> bool) -> Error {
    while !is_ended() {
        sleep(Duration::from_millis(REMOTE_BACKUP_LOOK_MS)).await;
    }
    ended()
}

/// The part of problem details that errors show.
#[derive(Deserialize)]
struct Detail {
    detail: String,
}

fn refused(executor: &RequestExecutor, status: StatusCode, headers: &HeaderMap, text: &str) -> End {
    let detail = serde_json::from_str::<Detail>(text).map(|problem| problem.detail);
    let why = detail.unwrap_or_else(|_| format!("the server answered {status}"));
    let why = format!("{}: {why}", executor.credentials.shown());
    match status {
        status if is_failure(status) || status == StatusCode::TOO_MANY_REQUESTS => {
            End::Again(why, retry_after(headers).unwrap_or_default())
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => End::Final(Error::denied(why)),
        StatusCode::UNPROCESSABLE_ENTITY => End::Final(Error::unsupported(why)),
        _ => End::Final(executor.credentials.lacks(Command::Backup.feature())),
    }
}
