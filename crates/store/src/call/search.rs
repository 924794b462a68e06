//! Full-text indexes: made, dropped, listed, searched.

use std::sync::Arc;

use super::answering::Answering;
use super::{Call, Fault, too_large};
use crate::Patience;
use crate::metrics::Subject;
use openkv_core::codec::key;
use openkv_core::filter::Filter;
use openkv_core::model::{Error, Hit, HitChoice, HitVisitor, IndexInfo, Result, Search};
use openkv_wire::protocol::frame::{
    Hits, SearchFrame, frame_of, parse_choice, parse_index, parse_search, push_indexes,
};

/// Frame: the description. Answer: the one index.
pub(super) fn create(frame: &[u8], call: Call) {
    let parsed = parse_index(frame);
    // `listIndexes` shows the prefix to every client.
    let parsed =
        parsed.and_then(|request| key::validate(request.spec.prefix.as_bytes()).map(|()| request));
    let Some((request, Call { store, reply, .. })) = call.parsed(parsed) else { return };
    store.create_index(request, move |made| reply.tell(made.map(|index| pushed(&[index]))));
}

fn pushed(indexes: &[IndexInfo]) -> Vec<u8> {
    frame_of(|out| push_indexes(out, indexes))
}

/// Frame: the index. Answer: u8 whether it existed.
pub(super) fn remove(frame: &[u8], call: Call) {
    let choice = parse_choice(frame);
    let Some((choice, Call { store, reply, .. })) = call.parsed(choice) else { return };
    store.drop_index(choice, move |found| reply.tell(found.map(|found| vec![u8::from(found)])));
}

/// Frame: u8 whether to count the documents. Answer: the indexes.
pub(super) fn list(frame: &[u8], call: Call) {
    let patience = call.patience("kv.listIndexes");
    let Call { store, reply, .. } = call;
    let count = frame.first() == Some(&1);
    let finish = |(), indexes: Result<Vec<_>>| Ok(pushed(&indexes?));
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.indexes(count.then_some(patience), answering);
}

/// Frame: the search. Answer: the hits.
pub(super) fn search(frame: &[u8], call: Call) {
    let patience = call.patience("kv.search");
    let parsed = parsed_search(frame, &call, patience.clone());
    let Some(((search, page), Call { store, mut reply, .. })) = call.parsed(parsed) else { return };
    reply.about(Subject::prefix(search.prefix.as_bytes()));
    let highlights = search.highlight.is_some();
    let finish = move |page: ResultsPage, used: Result<IndexInfo>| {
        let used = used?;
        page.answer(!used.building, if highlights { &used.spec.fields } else { &[] })
    };
    let answering = Answering::new(reply, page, finish).within(&patience);
    store.search(search, patience, answering);
}

/// The search of a frame, and the page for its hits.
fn parsed_search(
    frame: &[u8],
    call: &Call,
    patience: Arc<Patience>,
) -> Result<(Search, ResultsPage), Fault> {
    let SearchFrame { search, limit, offset, filter } = parse_search(frame)?;
    search.check(limit, offset)?;
    let now_ms = call.store.now_ms();
    let filter = filter.map(|filter| Filter::parse(&filter, now_ms)).transpose()?;
    let (hits, bytes_max) = (Hits::default(), call.answer_bytes_max);
    let paging = Paging { filter, limit, offset, more: false, taken: 0, failure: None, patience };
    Ok((search, ResultsPage { hits, paging, bytes_max }))
}

/// One page of results.
struct ResultsPage {
    hits: Hits,
    paging: Paging,
    /// Most bytes of the answer.
    bytes_max: usize,
}

impl ResultsPage {
    fn answer(self, complete: bool, fields: &[String]) -> Result<Vec<u8>> {
        self.paging.failure.map_or(Ok(()), Err)?;
        Ok(self.hits.finish(self.paging.more, complete, fields))
    }
}

/// The choice of the hits of one page.
pub struct Paging {
    /// Only hits whose values match.
    pub filter: Option<Filter>,
    /// Most hits.
    pub limit: usize,
    /// Hits still to skip.
    pub offset: usize,
    /// Whether there are hits behind the page.
    pub more: bool,
    /// Hits so far.
    pub taken: usize,
    /// Why the search has stopped.
    pub failure: Option<Error>,
    /// The bounds of the search.
    pub patience: Arc<Patience>,
}

impl Paging {
    /// Whether the page has this hit.
    pub fn choose(&mut self, hit: &Hit<'_>) -> HitChoice {
        let goes_on = |_| self.patience.lasts();
        let met = self.filter.as_ref().map_or(Ok(Some(true)), |filter| {
            filter.matches_while(hit.row.encoding, hit.row.value, &goes_on)
        });
        match met {
            Ok(Some(true)) => {}
            Ok(Some(false)) => return HitChoice::Pass,
            Ok(None) => {
                return self.fails(self.patience.check().err().unwrap_or_else(Error::closed));
            }
            Err(fault) => {
                let why = format!("kv.search: where: a stored value: {fault}");
                return self.fails(Error::corrupt(why));
            }
        }
        if self.offset > 0 {
            self.offset -= 1;
            return HitChoice::Pass;
        }
        if self.taken == self.limit {
            self.more = true;
            return HitChoice::Stop;
        }
        self.taken += 1;
        HitChoice::Take
    }

    /// Ends the search with an error.
    pub fn fails(&mut self, error: Error) -> HitChoice {
        self.failure = Some(error);
        HitChoice::Stop
    }
}

/// Claims memory while the page grows.
impl<F> HitVisitor for Answering<ResultsPage, F> {
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice {
        let choice = self.state.hit(hit);
        match self.reply.holds(self.state.hits.bytes()) {
            Ok(()) => choice,
            Err(error) => self.state.paging.fails(error),
        }
    }

    fn snippets(&mut self, snippets: Vec<(usize, String)>) {
        self.state.hits.snippets(&snippets);
    }
}

impl ResultsPage {
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice {
        let choice = self.paging.choose(hit);
        if choice != HitChoice::Take {
            return choice;
        }
        if self.hits.bytes() + hit.row.value.len() > self.bytes_max {
            return self.paging.fails(too_large(self.bytes_max));
        }
        self.hits.push(hit);
        HitChoice::Take
    }
}
