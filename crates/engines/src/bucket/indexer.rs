//! The [`Indexer`] of a database in an object store: that of the local file, while this process leads.
//!
//! The leader decides definitions and steps of building, and each is a commit of the log; other processes repeat them.

use std::time::Instant;

use super::writer::BucketWriter;
use crate::{Engine as _, Indexer, Reader as _, Snapshot};
use openkv_core::model::{
    IndexChoice, IndexInfo, IndexRequest, Result, ValueIndexInfo, ValueIndexRequest,
};

impl BucketWriter {
    /// What a process that does not lead finds in its copy, so that it may ask for an index that is there.
    fn found<T>(
        &self,
        mut find: impl FnMut(&mut dyn Snapshot) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if self.leads() {
            return Ok(None);
        }
        let mut found = None;
        // Definitions have no time.
        self.local.engine.reader()?.read(0, &mut |snapshot| {
            found = find(snapshot)?;
            Ok(())
        })?;
        Ok(found)
    }
}

impl Indexer for BucketWriter {
    fn create_index(&mut self, request: &IndexRequest, deadline: Instant) -> Result<IndexInfo> {
        let same = self.found(|snapshot| {
            let listed = snapshot.indexes(false)?;
            Ok(listed.into_iter().find(|info| info.spec == request.spec))
        })?;
        match same {
            Some(info) => Ok(info),
            None => self.leading(deadline)?.create_index(request, deadline),
        }
    }

    fn create_value_index(
        &mut self,
        request: &ValueIndexRequest,
        deadline: Instant,
    ) -> Result<ValueIndexInfo> {
        let same = self.found(|snapshot| {
            let listed = snapshot.value_indexes()?;
            let same = listed.iter().find(|index| *index.spec() == request.spec);
            Ok(same.map(|index| index.info.clone()))
        })?;
        match same {
            Some(info) => Ok(info),
            None => self.leading(deadline)?.create_value_index(request, deadline),
        }
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.leading(deadline)?.drop_index(choice, deadline)
    }

    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        if !self.leads() {
            // The leader builds.
            return Ok(false);
        }
        self.leading(deadline)?.build_indexes(now_ms, deadline)
    }
}
