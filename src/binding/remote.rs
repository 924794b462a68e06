//! A database elsewhere: its reads, and what it lacks.

use std::sync::Arc;

use super::pages;
use super::replies::Reply;
use crate::codec::Malformed;
use crate::codec::frame::{Answer, Verb, parse_requests, parse_writes_apart, push_failed};
use crate::model::{self, Error, Limits, Range, Row};
use crate::remote::{Client, Found, Framed, Page};

/// `count` range requests, each with how fresh it must be.
pub(super) fn read(client: &Arc<Client>, frame: &[u8], count: u32, reply: Reply) {
    let requests = match parse_requests(frame, count as usize) {
        Ok(requests) => requests,
        Err(bug) => return reply.bad(&Error::internal(bug.to_string())),
    };
    let is_point = |range: &Range| matches!(range, Range::Point(_));
    let points: Vec<bool> = requests.iter().map(|request| is_point(&request.range)).collect();
    client.read(requests, Box::new(move |found| reply.good(Some(answers(&found, &points)))));
}

fn answers(found: &[model::Result<Page>], points: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    for (found, is_point) in found.iter().zip(points) {
        let Page { rows, more } = match found {
            Ok(page) => page,
            Err(error) => {
                push_failed(&mut out, error);
                continue;
            }
        };
        let mut answer = Answer::new(&mut out);
        for Found { key, stamp, value } in rows {
            let (encoding, value) = (value.encoding, value.bytes.as_slice());
            answer.push(&Row { key: key.as_bytes(), stamp: *stamp, encoding, value }, !is_point);
        }
        answer.end(*more);
    }
    out
}

/// `count` writes, each with its own bytes.
pub(super) fn writes(
    frame: &[u8],
    count: usize,
    limits: &Limits,
) -> Result<Vec<model::Result<Framed>>, Malformed> {
    let writes = parse_writes_apart(frame, count, limits, usize::MAX)?;
    let framed = writes.into_iter().map(|(write, place)| {
        let frame = frame.get(place).unwrap_or_default().to_vec();
        write.map(|write| Framed { write, frame })
    });
    Ok(framed.collect())
}

/// What is neither hot nor a stream: the server's own answer, if it takes frames. The protocol
/// itself has none of it, but for what pages can answer.
pub(super) fn call(client: &Arc<Client>, verb: Verb, frame: &[u8], limits: &Limits, reply: Reply) {
    match verb {
        Verb::Count if !client.takes_frames() => pages::count(frame, client, reply),
        Verb::Scan if !client.takes_frames() => pages::scan(frame, client, reply),
        Verb::Told => client.told(Box::new(move || reply.good(None))),
        _ => client.call(
            verb,
            frame,
            limits,
            Box::new(move |answer| match answer {
                Ok(data) => reply.good(Some(data).filter(|data| !data.is_empty())),
                Err(error) => reply.bad(&error),
            }),
        ),
    }
}
