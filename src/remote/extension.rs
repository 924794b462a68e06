//! What openkv's own servers answer beyond the protocol: calls, each a verb with a frame.
//!
//! Whether a call may be sent again is the verb's matter. The server cannot tell a repetition, so
//! what would do more the second time is sent once, and its answer may then be that nobody knows.

use hyper::header::HeaderValue;

use super::ask::{Again, Asker, Question, Unfit, lost};
use crate::codec::frame::Verb;
use crate::connect::extension::{CALL, FRAMES, read_answer, write_limits};
use crate::model::{Error, Limits, Result};

/// What an extension's request needs of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// The extension.
    pub(super) extension: &'static str,
    /// What the caller wanted, for the error that the server lacks it.
    pub(super) what: &'static str,
}

/// What a verb is to people.
pub(super) fn name(verb: Verb) -> &'static str {
    match verb {
        Verb::Checkpoint => "checkpoint",
        Verb::Stats => "stats",
        Verb::Vacuum => "vacuum",
        Verb::Metrics => "metrics",
        Verb::Backup | Verb::BackupProgress => "backup",
        Verb::Check => "check",
        Verb::Count => "count",
        Verb::Scan => "lists of a depth, and with where, keysOnly or withExpiry",
        Verb::Ttl => "ttl",
        Verb::DeleteMany => "deleteMany",
        Verb::Entries => "the ends of entries (withExpiry)",
        Verb::Preview => "a transaction's reads of what it has changed itself",
        Verb::Settle | Verb::Extend | Verb::ConsumeEnd => "messages that are received",
        Verb::Held | Verb::Told => "listening to queues",
        Verb::QueueStats => "queues by name",
        Verb::DeadList | Verb::DeadGet | Verb::DeadRequeue | Verb::DeadDelete | Verb::DeadPurge => {
            "dead messages"
        }
        Verb::CreateIndex | Verb::DropIndex | Verb::ListIndexes | Verb::Search => "search",
    }
}

/// Whether it waits for all writes that were called before.
pub(super) fn is_about_all(verb: Verb) -> bool {
    matches!(verb, Verb::DeleteMany)
}

/// What sending a verb again can do, and whether each try may take all of the time.
fn again(verb: Verb) -> (Again, bool) {
    match verb {
        Verb::Ttl
        | Verb::Entries
        | Verb::Scan
        | Verb::Preview
        | Verb::Metrics
        | Verb::QueueStats
        | Verb::DeadList
        | Verb::DeadGet
        | Verb::Search => (Again::Harmless, false),
        // They take as long as the database is large, or change nothing that anybody reads; asking
        // once more while the first is at work would only double the work.
        Verb::Count
        | Verb::Stats
        | Verb::Check
        | Verb::ListIndexes
        | Verb::Checkpoint
        | Verb::Vacuum
        | Verb::Backup
        | Verb::BackupProgress => (Again::Harmless, true),
        // By number and lock, which are never given again: a lock goes on from now, however often.
        Verb::Extend | Verb::Held | Verb::ConsumeEnd | Verb::Told => (Again::Harmless, false),
        // The same, but the second answer does not tell what the first one has done.
        Verb::Settle | Verb::DeadRequeue | Verb::DeadDelete => (Again::Guarded, true),
        // The same index is made once.
        Verb::CreateIndex => (Again::Guarded, true),
        // A second time it would take what others have written in between.
        Verb::DeleteMany | Verb::DropIndex | Verb::DeadPurge => (Again::Harmful, true),
    }
}

/// Whether an answer to a repetition says that nothing was left to do: by the first try, or not.
fn did_nothing(verb: Verb, answer: &[u8]) -> bool {
    matches!(verb, Verb::Settle | Verb::DeadRequeue | Verb::DeadDelete)
        && answer.iter().all(|byte| *byte == 0)
}

/// Asks for what a verb does.
pub(super) async fn call(
    asker: &Asker,
    verb: Verb,
    frame: Vec<u8>,
    limits: Limits,
) -> Result<Vec<u8>> {
    let (again, patient) = again(verb);
    let path = format!("{CALL}/{}", verb.number());
    let needs = Needs { extension: FRAMES, what: name(verb) };
    let limits = limits_header(&limits);
    // The locks of messages run out while others keep the server busy. A listener sends one at a time.
    let waits = verb == Verb::Held;
    let question =
        Question { patient, limits, waits, ..Question::extension(path, again, frame, needs) };
    let (answer, sent_before) = asker.ask(&question, |_, bytes| answer_of(bytes)).await?;
    if sent_before && did_nothing(verb, &answer) {
        return Err(lost(
            "The answer to a request was lost; sent again, it found nothing left to do. Either it \
             has happened the first time, or somebody else was faster: read to find out",
        ));
    }
    Ok(answer)
}

/// The limits of a handle as they are sent; none, if the server's hold.
pub(super) fn limits_header(limits: &Limits) -> Option<HeaderValue> {
    let text = write_limits(limits);
    (!text.is_empty()).then(|| HeaderValue::from_str(&text).ok()).flatten()
}

/// What the body of an answer says.
pub(super) fn answer_of(bytes: &[u8]) -> Result<Vec<u8>, Unfit> {
    match read_answer(bytes) {
        Ok(Ok(answer)) => Ok(answer.to_vec()),
        Ok(Err(error)) => Err(Unfit::Final(error)),
        Err(why) => Err(Unfit::Malformed(why.to_owned())),
    }
}

/// A copy of a file is made where the file is.
pub(super) fn no_backup() -> Error {
    let why = "backup of a database elsewhere: a backup is a file of the machine that has the \
               database, so it is made there; to copy the entries, use openkv copy or export";
    Error::new(crate::model::Kind::Unsupported, why)
}
