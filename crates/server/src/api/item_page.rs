//! A page of messages, dead letters or versions: read within the memory of its client, answered as a document.

use std::sync::Arc;

use serde::Serialize;

use super::document_writer::DocumentWriter;
use super::envelope::answered;
use super::media::Form;
use super::problem::{Answered, Problem};
use crate::data::{Client, store_of};
use crate::memory::Claim;
use crate::pending::Reading;
use openkv_core::model::{Error, FRAMES_ANSWER_BYTES_MAX, FRAMES_PAGE_BYTES, Result};
use openkv_store::{Room, Store};

/// The items of a page, while they are read.
pub(crate) struct Page<T> {
    items: Vec<T>,
    bytes: usize,
    limit: usize,
    more: bool,
    fault: Option<Error>,
    claim: Arc<Claim>,
}

/// The caller of the read of a page.
pub(crate) type PageReading<T> = Reading<Page<T>, (), (Vec<T>, bool)>;

/// The items of a page, and whether there are more.
pub(crate) struct Items<T> {
    items: Vec<T>,
    more: bool,
    claim: Arc<Claim>,
}

impl<T: Send + 'static> Page<T> {
    /// Reads a page of at most `limit` items: `read` has the store pass them to [`Page::take`].
    pub(crate) async fn read(
        client: &Client,
        limit: usize,
        read: impl FnOnce(&Store, PageReading<T>),
    ) -> Result<Items<T>, Problem> {
        let claim = client.database.memory.claim(FRAMES_ANSWER_BYTES_MAX);
        let (items, fault) = (Vec::new(), None);
        let page = Self { items, bytes: 0, limit, more: false, fault, claim: claim.clone() };
        let (reading, page) = Reading::new(page, Self::end);
        read(&*store_of(&client.database).await?, reading);
        let (items, more) = page.await?;
        Ok(Items { items, more, claim })
    }

    /// Takes an item with so long a value; `false` at the end of the page.
    pub(crate) fn take(&mut self, item: T, value_len: usize) -> bool {
        let bytes = self.bytes + value_len;
        let is_full = !self.items.is_empty() && bytes > FRAMES_PAGE_BYTES;
        self.more = self.items.len() == self.limit || is_full;
        if self.more {
            return false;
        }
        self.bytes = bytes;
        self.fault = self.claim.holds(bytes).err();
        self.items.push(item);
        self.fault.is_none()
    }

    fn end(self, read: Result<()>) -> Result<(Vec<T>, bool)> {
        self.fault.map_or(read, Err).map(|()| (self.items, self.more))
    }
}

impl<T> Items<T> {
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Whether the read ended at a bound of the page.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The answer with the document that `page` makes of the items and of the cursor of the page behind
    /// them, which is that of the last item.
    pub(super) fn answer<'p, D: Serialize>(
        &'p self,
        form: Form,
        cursor: impl Fn(&T) -> String,
        page: impl FnOnce(&'p [T], Option<String>) -> D,
    ) -> Answered {
        let last = self.items.last().filter(|_| self.more);
        let document = page(&self.items, last.map(cursor));
        answered(form, DocumentWriter::of(form, 0, &document)?.finish(), &self.claim)
    }
}
