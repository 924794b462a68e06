//! A database elsewhere: its reads, and what it lacks.

use std::sync::Arc;

use super::pages;
use super::replies::Reply;
use crate::codec::frame::{Answer, parse_requests};
use crate::model::{Error, Range, Row};
use crate::remote::{Client, Found};

/// `count` range requests, each with how fresh it must be.
pub(super) fn read(client: &Arc<Client>, frame: &[u8], count: u32, reply: Reply) {
    let requests = match parse_requests(frame, count as usize) {
        Ok(requests) => requests,
        Err(bug) => return reply.bad(&Error::internal(bug.to_string())),
    };
    let is_point = |range: &Range| matches!(range, Range::Point(_));
    let points: Vec<bool> = requests.iter().map(|request| is_point(&request.range)).collect();
    client.read(
        requests,
        Box::new(move |found| match found {
            Ok(found) => reply.good(Some(answers(&found, &points))),
            Err(error) => reply.bad(&error),
        }),
    );
}

fn answers(found: &[Vec<Found>], points: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    for (rows, is_point) in found.iter().zip(points) {
        let mut answer = Answer::new(&mut out);
        for Found { key, stamp, value } in rows {
            let (encoding, value) = (value.encoding, value.bytes.as_slice());
            answer.push(&Row { key: key.as_bytes(), stamp: *stamp, encoding, value }, !is_point);
        }
        answer.finish();
    }
    out
}

/// What is neither hot nor a stream. The protocol has none of it, but for what pages can answer.
pub(super) fn call(client: &Arc<Client>, verb: u32, frame: &[u8], reply: Reply) {
    let what = match verb {
        10 => return pages::count(frame, client, reply),
        11 => return pages::scan(frame, client, reply),
        1..=9 => "looking after the file (checkpoint, backup, check)",
        12 => "ttl",
        13 => "deleteMany",
        14 => "the ends of entries (withExpiry)",
        15..=19 => "reads beyond Deno KV's",
        20..=29 => "change feeds",
        30..=49 => "queues by name, and their care",
        50..=59 => "search",
        _ => "this call",
    };
    reply.bad(&client.lacks(what));
}
