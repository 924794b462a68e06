//! Reads: requests packed into HTTP requests. A server answers each HTTP request from one snapshot, in the
//! protocol's own messages or, if the server takes them, in frames, which hold more.

use std::ops::Range as ByteSpan;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::credentials::Grant;
use super::executor::{AnswerError, HttpRequest, Needs, RequestExecutor};
use super::extension::answer_of;
use openkv_core::model::{
    Error, FRAMES_RANGES_MAX, FRAMES_ROWS_MAX, REMOTE_RANGES_MAX, REMOTE_ROWS_MAX, Range, Request,
    Result,
};
use openkv_wire::connect::wire::Entry;
use openkv_wire::connect::wire::snapshot_read::{ReadAnswer, read_answer, write_request};
use openkv_wire::protocol::RetrySafety;
use openkv_wire::protocol::extension;
use openkv_wire::protocol::frame::{frame_of, parse_answers, push_ranges};

/// Requests that share a HTTP request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pack {
    eventual: bool,
    places: Vec<usize>,
    rows: usize,
}

/// The answer for one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// All entries, in the range's order.
    Entries(Vec<Entry>),
    /// The range answer of an openkv server, as it came and checked. If it says that there is more, it
    /// has at least one row, behind which the next page starts.
    Frame(Arc<Vec<u8>>, ByteSpan<usize>),
}

impl Default for Page {
    fn default() -> Self {
        Self::Entries(Vec::new())
    }
}

/// The message format, and the most keys or ranges, and rows, of one HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dialect {
    frames: bool,
    ranges_max: usize,
    rows_max: usize,
}

const PLAIN: Dialect =
    Dialect { frames: false, ranges_max: REMOTE_RANGES_MAX, rows_max: REMOTE_ROWS_MAX };
const FRAMES: Dialect =
    Dialect { frames: true, ranges_max: FRAMES_RANGES_MAX, rows_max: FRAMES_ROWS_MAX };

/// Executes the requests; their results keep the order. Only requests that share a HTTP request share a
/// failure.
pub(super) async fn carry_out(
    executor: Arc<RequestExecutor>,
    requests: Vec<Request>,
) -> Vec<Result<Page>> {
    let dialect = if executor.credentials.offers(extension::FRAMES) { FRAMES } else { PLAIN };
    let unanswered = |request: &Request| match is_empty(request) {
        true => Ok(Page::default()),
        false => Err(Error::internal("a read ended by a panic")),
    };
    let mut found: Vec<_> = requests.iter().map(unanswered).collect();
    let mut put = |at: usize, page| {
        if let Some(place) = found.get_mut(at) {
            *place = page;
        }
    };
    let Packs { packs, refused } = pack(&requests, dialect);
    for (unit, error) in refused {
        unit.for_each(|at| put(at, Err(error.clone())));
    }
    let requests = Arc::new(requests);
    let mut in_flight = JoinSet::new();
    for pack in packs {
        let (executor, requests) = (executor.clone(), requests.clone());
        in_flight.spawn(async move {
            let answers = ask(&executor, &requests, &pack, dialect).await;
            (pack.places, answers)
        });
    }
    while let Some(answered) = in_flight.join_next().await {
        let Ok((places, answers)) = answered else { continue };
        match answers {
            Ok(pages) => places.into_iter().zip(pages).for_each(|(at, page)| put(at, Ok(page))),
            Err(error) => places.into_iter().for_each(|at| put(at, Err(error.clone()))),
        }
    }
    found
}

fn rows_of(request: &Request) -> usize {
    match &request.range {
        Range::Point(_) => 1,
        Range::Span { limit, .. } => *limit,
    }
}

/// Whether the range is empty.
fn is_empty(request: &Request) -> bool {
    match &request.range {
        Range::Point(_) => false,
        Range::Span { start, end, limit, .. } => *limit == 0 || start >= end,
    }
}

/// The HTTP requests, and the requests that fit none: they need more of one snapshot than a HTTP request
/// holds.
struct Packs {
    packs: Vec<Pack>,
    refused: Vec<(ByteSpan<usize>, Error)>,
}

/// Packs requests into HTTP requests: those that need one snapshot together, others as room allows.
fn pack(requests: &[Request], dialect: Dialect) -> Packs {
    let (mut full, mut refused) = (Vec::new(), Vec::new());
    let mut open = [Pack::default(), Pack { eventual: true, ..Pack::default() }];
    let mut at = 0;
    while at < requests.len() {
        let len = 1 + requests.iter().skip(at + 1).take_while(|request| request.together).count();
        let unit = at..at + len;
        at += len;
        if let Err(error) = add(requests, unit.clone(), dialect, &mut open, &mut full) {
            refused.push((unit, error));
        }
    }
    full.extend(open.into_iter().filter(|pack| !pack.places.is_empty()));
    Packs { packs: full, refused }
}

fn add(
    requests: &[Request],
    unit: ByteSpan<usize>,
    dialect: Dialect,
    open: &mut [Pack; 2],
    full: &mut Vec<Pack>,
) -> Result<()> {
    let of_it = || unit.clone().filter_map(|at| requests.get(at).map(|request| (at, request)));
    let rows: usize = of_it().map(|(_, request)| rows_of(request)).sum();
    let places: Vec<_> = of_it().filter(|(_, r)| !is_empty(r)).map(|(at, _)| at).collect();
    let Dialect { ranges_max, rows_max, .. } = dialect;
    if places.len() > ranges_max || rows > rows_max {
        return Err(Error::unsupported(format!(
            "This server answers at most {ranges_max} keys and {rows_max} entries \
             from one state: {} keys and {rows} entries requested. Request less at a time",
            places.len()
        )));
    }
    let eventual = of_it().all(|(_, request)| request.eventual);
    let [strong, weak] = open;
    let pack = if eventual { weak } else { strong };
    if pack.places.len() + places.len() > ranges_max || pack.rows + rows > rows_max {
        full.push(std::mem::replace(pack, Pack { eventual, ..Pack::default() }));
    }
    pack.rows += rows;
    pack.places.extend(places);
    Ok(())
}

async fn ask(
    executor: &RequestExecutor,
    requests: &[Request],
    pack: &Pack,
    dialect: Dialect,
) -> Result<Vec<Page>> {
    let packed = pack.places.iter().filter_map(|at| requests.get(*at));
    let ranges: Vec<Range> = packed.map(|request| request.range.clone()).collect();
    if dialect.frames {
        return ask_in_frames(executor, &ranges, pack.eventual).await;
    }
    let body = write_request(&ranges);
    let eventual = pack.eventual;
    let http_request = HttpRequest::plain("snapshot_read", RetrySafety::Idempotent, body);
    let http_request = HttpRequest { eventual, ..http_request };
    let decode = |grant: &Grant, bytes: &[u8]| decode(grant, bytes, &ranges, eventual);
    let (found, _) = executor.execute(&http_request, decode).await?;
    Ok(found.into_iter().map(Page::Entries).collect())
}

async fn ask_in_frames(
    executor: &RequestExecutor,
    ranges: &[Range],
    eventual: bool,
) -> Result<Vec<Page>> {
    let frame = frame_of(|out| push_ranges(out, ranges));
    let needs = Needs { extension: extension::FRAMES, what: "reads of many keys" };
    let body = extension::with_count(ranges.len(), &frame);
    let http_request = HttpRequest {
        eventual,
        ..HttpRequest::extension(extension::READ, RetrySafety::Idempotent, body, needs)
    };
    let decode = |_: &Grant, bytes: &[u8]| pages(answer_of(bytes)?, ranges);
    executor.execute(&http_request, decode).await.map(|(pages, _)| pages)
}

/// The pages of an answer in frames: its bytes, checked as [`fits`] checks entries.
fn pages(frame: Vec<u8>, ranges: &[Range]) -> Result<Vec<Page>, AnswerError> {
    let mut fit = true;
    let mut last: Option<(usize, &[u8])> = None;
    let places = parse_answers(&frame, ranges.len(), &mut |at, row| {
        if let Some(Range::Span { start, end, reverse, .. }) = ranges.get(at) {
            fit &= start.as_bytes() <= row.key && row.key < end.as_bytes();
            if let Some((_, before)) = last.filter(|(of, _)| *of == at) {
                fit &= if *reverse { before > row.key } else { before < row.key };
            }
            last = Some((at, row.key));
        }
    });
    let places = places.map_err(|malformed| AnswerError::Malformed(malformed.what().to_owned()))?;
    for (range, place) in ranges.iter().zip(&places) {
        let (most, is_point) = match range {
            Range::Point(_) => (1, true),
            Range::Span { limit, .. } => (*limit, false),
        };
        // A page without rows that claims more would make a list loop.
        fit &= place.rows <= most && (!place.more || (place.rows > 0 && !is_point));
    }
    if !fit {
        return Err(AnswerError::Malformed(WRONG_ENTRIES.to_owned()));
    }
    let frame = Arc::new(frame);
    Ok(places.into_iter().map(|place| Page::Frame(frame.clone(), place.bytes)).collect())
}

const WRONG_ENTRIES: &str = "more entries than requested, out of order, or of other keys";

fn decode(
    grant: &Grant,
    bytes: &[u8],
    ranges: &[Range],
    eventual: bool,
) -> Result<Vec<Vec<Entry>>, AnswerError> {
    let unavailable = |why: &str| Error::unavailable(why);
    let answer = read_answer(bytes, ranges, grant.version)
        .map_err(|error| AnswerError::Malformed(error.message().to_owned()))?;
    match answer {
        ReadAnswer::Disabled => {
            Err(AnswerError::Disabled(unavailable("Reads are disabled for this database")))
        }
        ReadAnswer::Entries { strong: false, .. } if !eventual => Err(AnswerError::Final(
            unavailable("Strong consistency reads are not available for this database"),
        )),
        ReadAnswer::Entries { ranges: entries, .. } => {
            let fit = ranges.iter().zip(&entries).all(|(range, entries)| fits(range, entries));
            if fit {
                return Ok(entries);
            }
            Err(AnswerError::Malformed(WRONG_ENTRIES.to_owned()))
        }
    }
}

/// Whether these entries can be the answer for the range. A list continues after the last entry, so
/// a wrong answer could make it loop or return too much.
fn fits(range: &Range, entries: &[Entry]) -> bool {
    match range {
        Range::Point(key) => entries.len() <= 1 && entries.iter().all(|entry| entry.key == *key),
        Range::Span { start, end, limit, reverse } => {
            let within = |entry: &Entry| *start <= entry.key && entry.key < *end;
            entries.len() <= *limit
                && entries.iter().all(within)
                && entries.is_sorted_by(|a, b| if *reverse { a.key > b.key } else { a.key < b.key })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{EncodedValue, Encoding, Key, Kind, Row, Versionstamp};
    use openkv_wire::protocol::frame::Answer;

    fn key(name: u8) -> Key {
        Key::from_encoded(vec![2, name, 0])
    }

    fn point(name: u8, eventual: bool, together: bool) -> Request {
        Request { range: Range::Point(key(name)), eventual, together }
    }

    fn span(limit: usize, reverse: bool) -> Request {
        let range = Range::Span { start: key(b'a'), end: key(b'z'), limit, reverse };
        Request { range, eventual: false, together: false }
    }

    fn places(requests: &[Request]) -> Vec<Vec<usize>> {
        pack(requests, PLAIN).packs.into_iter().map(|pack| pack.places).collect()
    }

    #[test]
    fn http_requests_are_filled_up_to_the_server_s_bounds() {
        let points: Vec<_> = (0..25).map(|_| point(b'a', false, false)).collect();
        let sizes: Vec<_> = places(&points).iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 5]);
        let spans = [span(500, false), span(500, false), span(500, true), span(0, false)];
        assert_eq!(places(&spans), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn requests_of_one_snapshot_share_a_http_request() {
        let mut requests: Vec<_> = (0..7).map(|_| point(b'a', false, false)).collect();
        requests.push(point(b'b', false, false));
        requests.extend((0..4).map(|_| point(b'b', false, true)));
        assert_eq!(places(&requests), [(0..7).collect::<Vec<_>>(), (7..12).collect()]);
    }

    #[test]
    fn requests_over_one_snapshot_are_rejected_alone() {
        let mut requests: Vec<_> = (0..11).map(|at| point(b'a', false, at > 0)).collect();
        requests.insert(0, point(b'b', false, false));
        requests.push(span(9, false));
        let Packs { packs, refused } = pack(&requests, PLAIN);
        assert_eq!(packs.into_iter().map(|pack| pack.places).collect::<Vec<_>>(), [[0, 12]]);
        let [(unit, error)] = refused.as_slice() else { panic!("{refused:?}") };
        assert_eq!((unit, error.kind()), (&(1..12), Kind::Unsupported));
        assert_eq!(pack(&requests, FRAMES).packs.len(), 1);
    }

    #[test]
    fn strong_and_eventual_do_not_mix() {
        let requests = [point(b'a', false, false), point(b'b', true, false), span(1, false)];
        assert_eq!(places(&requests), [vec![0, 2], vec![1]]);
    }

    fn framed(answers: &[(&[u8], bool)], is_point: bool) -> Vec<u8> {
        let mut frame = Vec::new();
        for (names, more) in answers {
            let mut answer = Answer::new(&mut frame);
            for name in *names {
                let (key, stamp) = (key(*name), Versionstamp::new(1));
                let row =
                    Row { key: key.as_bytes(), stamp, encoding: Encoding::Bytes, value: b"v" };
                answer.push(&row, !is_point);
            }
            answer.end(*more);
        }
        frame
    }

    #[test]
    fn answers_in_frames_are_passed_on_unchanged() {
        let ranges = [span(9, false).range, span(9, true).range];
        let frame = framed(&[(b"bc", true), (b"ed", false)], false);
        let pages = pages(frame.clone(), &ranges).ok().unwrap();
        let handed_on: Vec<u8> = pages
            .iter()
            .flat_map(|page| match page {
                Page::Frame(frame, place) => frame[place.clone()].to_vec(),
                Page::Entries(_) => panic!("{page:?}"),
            })
            .collect();
        assert_eq!(handed_on, frame);
    }

    #[test]
    fn inconsistent_answers_in_frames_are_rejected() {
        let is_refused = |frame, range: &Range| pages(frame, std::slice::from_ref(range)).is_err();
        let (forward, backward) = (span(2, false).range, span(2, true).range);
        for bad in [&b"cb"[..], b"bb", b"bcd", b"yz", b"z"] {
            assert!(is_refused(framed(&[(bad, false)], false), &forward), "{bad:?}");
        }
        assert!(is_refused(framed(&[(b"bc", false)], false), &backward));
        assert!(is_refused(framed(&[(b"", true)], false), &forward), "more of nothing");
        let one = Range::Point(key(b'a'));
        assert!(!is_refused(framed(&[(b"a", false)], true), &one));
        assert!(is_refused(framed(&[(b"aa", false)], true), &one));
        assert!(is_refused(framed(&[(b"a", true)], true), &one));
    }

    #[test]
    fn an_answer_cannot_have_too_many_entries_or_make_a_list_loop() {
        let value = EncodedValue::le64(1);
        let entry = |name: &u8| Entry {
            key: key(*name),
            stamp: Versionstamp::new(1),
            value: value.clone(),
        };
        let (forward, backward) = (|most| span(most, false).range, span(9, true).range);
        let of_a = || point(b'a', false, false).range;
        for (range, names, good) in [
            (forward(9), &b"ab"[..], true),
            (forward(9), b"ba", false),
            (forward(9), b"bb", false),
            (forward(9), b"yz", false),
            (forward(2), b"ab", true),
            (forward(1), b"ab", false),
            (backward, b"ba", true),
            (of_a(), b"b", false),
            (of_a(), b"aa", false),
        ] {
            let entries: Vec<_> = names.iter().map(entry).collect();
            assert_eq!(fits(&range, &entries), good, "{range:?} {names:?}");
        }
    }
}
