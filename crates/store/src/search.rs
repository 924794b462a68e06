//! The indexes of a store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Caller, Patience, Store};
use openkv_core::model::{
    BUSY_TIMEOUT_MS_DEFAULT, HitVisitor, IndexChoice, IndexInfo, IndexRequest, Result, Search,
    ValueIndexInfo, ValueIndexRequest,
};

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT)
}

impl Store {
    /// Shows the hits of a search to the caller, best first. The result is the index that was used.
    pub fn search<C: Caller<IndexInfo> + HitVisitor>(
        &self,
        search: Search,
        patience: Arc<Patience>,
        caller: C,
    ) {
        self.read(Some(patience), caller, move |snapshot, hits| snapshot.search(&search, hits));
    }

    /// All indexes in the order of their names. With `count` their documents are counted, which
    /// takes long.
    pub fn indexes(&self, count: Option<Arc<Patience>>, caller: impl Caller<Vec<IndexInfo>>) {
        let counts = count.is_some();
        self.read(count, caller, move |snapshot, _| snapshot.indexes(counts));
    }

    /// Makes an index. The result is the index; one that exists with the same description stays.
    /// Another one of the prefix is an error, or with `replace` is removed in the same transaction.
    pub fn create_index(
        &self,
        request: IndexRequest,
        reply: impl FnOnce(Result<IndexInfo>) + Send + 'static,
    ) {
        if let Err(refusal) = self.refuse_in_copy() {
            return reply(Err(refusal));
        }
        self.on_writer(move |writer| writer.create_index(&request, soon()), reply);
    }

    /// The value indexes, in the order of their numbers.
    pub fn value_indexes(&self, caller: impl Caller<Vec<ValueIndexInfo>>) {
        self.read(None, caller, |snapshot, _| {
            Ok(snapshot.value_indexes()?.iter().map(|index| index.info.clone()).collect())
        });
    }

    /// As [`Store::create_index`], for a value index.
    pub fn create_value_index(
        &self,
        request: ValueIndexRequest,
        reply: impl FnOnce(Result<ValueIndexInfo>) + Send + 'static,
    ) {
        if let Err(refusal) = self.refuse_in_copy() {
            return reply(Err(refusal));
        }
        self.on_writer(move |writer| writer.create_value_index(&request, soon()), reply);
    }

    /// Removes an index. The result is whether it existed.
    pub fn drop_index(
        &self,
        choice: IndexChoice,
        reply: impl FnOnce(Result<bool>) + Send + 'static,
    ) {
        if let Err(refusal) = self.refuse_in_copy() {
            return reply(Err(refusal));
        }
        self.on_writer(move |writer| writer.drop_index(&choice, soon()), reply);
    }
}
