//! Counts and filtered lists of a plain KV Connect server: the client requests page after page, and
//! compares the values itself, because KV Connect has only ranges.

use std::sync::{Arc, Weak};

use crate::remote::{Cancel, Client, Entry, Page};
use openkv_core::filter::Filter;
use openkv_core::model::{Error, Key, REMOTE_PAGE_ROWS_MAX, Range, Request, Result, Row, Seen};
use openkv_store::call::Reply;
use openkv_wire::protocol::frame::{ScanRequest, StepFlags, parse_scan, put_seen, scan_answer};

/// The entries that a command is about.
struct Chosen {
    request: ScanRequest,
    filter: Option<Filter>,
    now_ms: i64,
}

impl Chosen {
    fn of(frame: &[u8], client: &Client) -> Result<Self> {
        let request = parse_scan(frame).map_err(|bug| Error::internal(bug.to_string()))?;
        if let Some(what) = request.beyond_ranges() {
            return Err(client.lacks(what));
        }
        let now_ms = request.now_ms.unwrap_or_else(|| client.now_ms());
        let filter = request.filter.as_deref();
        let filter = filter.map(|bytes| Filter::parse(bytes, now_ms)).transpose()?;
        Ok(Self { request, filter, now_ms })
    }

    fn matches(&self, entry: &Entry) -> Result<bool> {
        let (encoding, bytes) = (entry.value.encoding, entry.value.bytes.as_slice());
        let met = self.filter.as_ref().map_or(Ok(true), |filter| filter.matches(encoding, bytes));
        met.map_err(|error| {
            Error::corrupt(format!("a value could not be compared with where: {error}"))
        })
    }

    /// The next page is behind this key.
    fn go_on(&mut self, last: &Key) {
        if self.request.reverse {
            self.request.end = last.clone();
        } else {
            self.request.start = Key::from_encoded([last.as_bytes(), &[0]].concat());
        }
    }

    fn page(&self, rows: usize) -> Vec<Request> {
        let ScanRequest { start, end, reverse, .. } = &self.request;
        let (start, end) = (start.clone(), end.clone());
        let range = Range::Span { start, end, limit: rows, reverse: *reverse };
        vec![Request { range, eventual: false, together: false }]
    }
}

/// The entries of the one requested page. A plain server answers in no other form.
fn rows(mut found: Vec<Result<Page>>) -> Result<Vec<Entry>> {
    match found.pop().transpose()?.unwrap_or_default() {
        Page::Entries(rows) => Ok(rows),
        Page::Frame(..) => Err(Error::internal("a server without frames answered in frames")),
    }
}

/// Takes the frame of [`Command::Count`](openkv_wire::protocol::Command::Count), and gives its answer. Asks
/// between two pages whether `cancel` is raised.
pub(super) fn count(frame: &[u8], client: &Arc<Client>, cancel: Option<Cancel>, reply: Reply) {
    match Chosen::of(frame, client) {
        Ok(chosen) => count_on(&Arc::downgrade(client), chosen, 0, cancel, reply),
        Err(error) => reply.bad(error),
    }
}

fn count_on(
    client: &Weak<Client>,
    mut chosen: Chosen,
    before: u64,
    cancel: Option<Cancel>,
    reply: Reply,
) {
    let open = client.upgrade().filter(|_| !cancel.as_ref().is_some_and(Cancel::is_raised));
    let Some(open) = open else { return reply.bad(Error::closed()) };
    let later = client.clone();
    open.read(
        chosen.page(REMOTE_PAGE_ROWS_MAX),
        Box::new(move |found| {
            let counted = rows(found).and_then(|found| {
                let mut count = before;
                for entry in &found {
                    count += u64::from(chosen.matches(entry)?);
                }
                Ok((count, found))
            });
            match counted {
                Ok((count, found)) => match found.last() {
                    Some(last) if found.len() == REMOTE_PAGE_ROWS_MAX => {
                        chosen.go_on(&last.key);
                        count_on(&later, chosen, count, cancel, reply);
                    }
                    _ => reply.good((count as f64).to_le_bytes().to_vec()),
                },
                Err(error) => reply.bad(error),
            }
        }),
    );
}

/// Takes the frame of [`Command::Scan`](openkv_wire::protocol::Command::Scan), and gives its answer: one page
/// is one step.
pub(super) fn scan(frame: &[u8], client: &Arc<Client>, reply: Reply) {
    let mut chosen = match Chosen::of(frame, client) {
        Ok(chosen) => chosen,
        Err(error) => return reply.bad(error),
    };
    let limit = match chosen.filter {
        Some(_) => REMOTE_PAGE_ROWS_MAX,
        None => chosen.request.limit.min(REMOTE_PAGE_ROWS_MAX),
    };
    client.read(
        chosen.page(limit),
        Box::new(move |found| {
            reply.tell(rows(found).and_then(|found| step(&mut chosen, limit, &found)));
        }),
    );
}

fn step(chosen: &mut Chosen, limit: usize, found: &[Entry]) -> Result<Vec<u8>> {
    let mut rows = Vec::new();
    let mut count = 0;
    let mut last = None;
    for entry in found {
        if count == chosen.request.limit {
            break;
        }
        last = Some(&entry.key);
        if chosen.matches(entry)? {
            count += 1;
            let bytes = entry.value.bytes.as_slice();
            let row = Row {
                key: entry.key.as_bytes(),
                stamp: entry.stamp,
                encoding: entry.value.encoding,
                value: if chosen.request.keys_only { &[] } else { bytes },
            };
            put_seen(&mut rows, &Seen { row, expire_at_ms: None }, false);
        }
    }
    let done = found.len() < limit && last == found.last().map(|entry| &entry.key);
    if let Some(last) = last {
        chosen.go_on(last);
    }
    let ScanRequest { start, end, reverse, .. } = &chosen.request;
    let bound = if *reverse { end } else { start };
    let flags = StepFlags { done, ..StepFlags::default() };
    Ok(scan_answer(flags, chosen.now_ms, bound.as_bytes(), count as u32, &rows))
}
