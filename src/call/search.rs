//! Full-text indexes: made, dropped, listed, searched.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::job::answer_within;
use super::{Call, Fault, Reply, too_large};
use crate::codec::{Malformed, key};
use crate::filter::Filter;
use crate::model::{BUSY_TIMEOUT_MS_DEFAULT, Error, Hit, HitChoice, HitVisitor, Result, Search};
use crate::protocol::frame::{
    Hits, SearchFrame, parse_choice, parse_index, parse_search, push_indexes,
};
use crate::store::Patience;

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT)
}

/// Frame: the description. Answer: the one index.
pub(super) fn create(frame: &[u8], Call { store, reply, .. }: Call) {
    // `listIndexes` shows the prefix to every client.
    let parsed = parse_index(frame);
    let parsed = parsed.and_then(|spec| key::validate(spec.prefix.as_bytes()).map(|()| spec));
    let spec = match parsed {
        Ok(spec) => spec,
        Err(malformed) => return reply.bad(malformed),
    };
    store.run_on_writer(Box::new(move |writer| {
        match writer.and_then(|writer| writer.create_index(&spec, soon())) {
            Ok(info) => {
                let mut out = Vec::new();
                push_indexes(&mut out, &[info]);
                reply.good(out);
            }
            Err(error) => reply.bad(error),
        }
    }));
}

/// Frame: the index. Answer: u8 whether it existed.
pub(super) fn remove(frame: &[u8], Call { store, reply, .. }: Call) {
    let choice = match parse_choice(frame) {
        Ok(choice) => choice,
        Err(malformed) => return reply.bad(malformed),
    };
    store.run_on_writer(Box::new(move |writer| {
        match writer.and_then(|writer| writer.drop_index(&choice, soon())) {
            Ok(found) => reply.good(vec![u8::from(found)]),
            Err(error) => reply.bad(error),
        }
    }));
}

/// Frame: u8 whether to count the documents. Answer: the indexes.
pub(super) fn list(frame: &[u8], call: Call) {
    let patience = call.patience("kv.listIndexes");
    let Call { store, reply, .. } = call;
    let count = frame.first() == Some(&1);
    answer_within(&store, (patience, count), reply, move |snapshot, _| {
        let mut out = Vec::new();
        push_indexes(&mut out, &snapshot.indexes(count)?);
        Ok(out)
    });
}

/// Frame: the search. Answer: the hits.
pub(super) fn search(frame: &[u8], call: Call) {
    let patience = call.patience("kv.search");
    let Call { store, reply, answer_bytes_max, .. } = call;
    let now_ms = store.now_ms();
    let parsed = asked(frame, now_ms, answer_bytes_max, patience.clone());
    let (search, mut page) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return reply.bad(error),
    };
    answer_within(&store, (patience, true), reply, move |snapshot, reply| {
        let mut bounded = Bounded { page: &mut page, reply, lacks: None };
        let used = snapshot.search(&search, &mut bounded)?;
        bounded.lacks.map_or(Ok(()), Err)?;
        page.answer(&search, !used.building, &used.spec.fields)
    });
}

/// The search of a frame, and the page for its hits.
fn asked(
    frame: &[u8],
    now_ms: i64,
    bytes_max: usize,
    patience: Arc<Patience>,
) -> Result<(Search, Page), Fault> {
    let SearchFrame { search, limit, offset, filter } = parse_search(frame)?;
    search.check(limit, offset)?;
    let filter = filter.map(|filter| Filter::parse(&filter, now_ms)).transpose()?;
    let hits = Hits::default();
    let page = Page {
        hits,
        filter,
        limit,
        offset,
        more: false,
        bytes_max,
        full: false,
        fault: None,
        patience,
        ended: false,
    };
    Ok((search, page))
}

/// One page of results.
struct Page {
    hits: Hits,
    filter: Option<Filter>,
    limit: usize,
    /// Hits still to skip.
    offset: usize,
    more: bool,
    /// Most bytes of the answer, and whether more hits follow.
    bytes_max: usize,
    full: bool,
    fault: Option<Malformed>,
    patience: Arc<Patience>,
    /// The filter ended because its caller is gone or its time is over.
    ended: bool,
}

impl Page {
    fn answer(self, search: &Search, complete: bool, fields: &[String]) -> Result<Vec<u8>> {
        if self.ended {
            return Err(self.patience.check().err().unwrap_or_else(Error::closed));
        }
        if let Some(fault) = self.fault {
            return Err(Error::corrupt(format!("kv.search: where: a stored value: {fault}")));
        }
        if self.full {
            return Err(too_large(self.bytes_max));
        }
        let fields = if search.highlight.is_some() { fields } else { &[] };
        Ok(self.hits.finish(self.more, complete, fields))
    }
}

/// A page that claims memory while it grows.
struct Bounded<'p> {
    page: &'p mut Page,
    reply: &'p Reply,
    lacks: Option<Error>,
}

impl HitVisitor for Bounded<'_> {
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice {
        let choice = self.page.hit(hit);
        if let Err(error) = self.reply.holds(self.page.hits.bytes()) {
            self.lacks = Some(error);
            return HitChoice::Stop;
        }
        choice
    }

    fn snippets(&mut self, snippets: Vec<(usize, String)>) {
        self.page.snippets(snippets);
    }
}

impl HitVisitor for Page {
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice {
        let goes_on = |_| self.patience.lasts();
        let met = self.filter.as_ref().map_or(Ok(Some(true)), |filter| {
            filter.matches_while(hit.row.encoding, hit.row.value, &goes_on)
        });
        match met {
            Ok(Some(true)) => {}
            Ok(Some(false)) => return HitChoice::Pass,
            Ok(None) => {
                self.ended = true;
                return HitChoice::Stop;
            }
            Err(fault) => {
                self.fault = Some(fault);
                return HitChoice::Stop;
            }
        }
        if self.offset > 0 {
            self.offset -= 1;
            return HitChoice::Pass;
        }
        if self.hits.count() == self.limit {
            self.more = true;
            return HitChoice::Stop;
        }
        if self.hits.bytes() + hit.row.value.len() > self.bytes_max {
            self.full = true;
            return HitChoice::Stop;
        }
        self.hits.push(hit);
        HitChoice::Take
    }

    fn snippets(&mut self, snippets: Vec<(usize, String)>) {
        self.hits.snippets(&snippets);
    }
}
