//! A page of messages, dead letters or versions: read within the memory of its client, answered as a document.

use std::sync::Arc;

use super::envelope::{answered, write_cursor};
use super::media::Form;
use super::problem::{Answered, Problem};
use super::written::Written;
use crate::model::{Error, FRAMES_ANSWER_BYTES_MAX, FRAMES_PAGE_BYTES, Result};
use crate::server::data::{Client, store_of};
use crate::server::memory::Claim;
use crate::server::pending::Reading;
use crate::store::{Room, Store};

/// The items of a page, while they are read.
pub(super) struct Page<T> {
    items: Vec<T>,
    bytes: usize,
    limit: usize,
    more: bool,
    fault: Option<Error>,
    claim: Arc<Claim>,
}

/// The caller of the read of a page.
pub(super) type PageReading<T> = Reading<Page<T>, (), (Vec<T>, bool)>;

/// The items of a page, and whether there are more.
pub(super) struct Items<T> {
    items: Vec<T>,
    more: bool,
    claim: Arc<Claim>,
}

impl<T: Send + 'static> Page<T> {
    /// Reads a page of at most `limit` items: `read` has the store pass them to [`Page::take`].
    pub(super) async fn read(
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
    pub(super) fn take(&mut self, item: T, value_len: usize) -> bool {
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
    /// The document of the page, with the items in the member `name`: `write` appends an item, `cursor` is
    /// that of the page after an item.
    pub(super) fn answer(
        self,
        name: &str,
        form: Form,
        write: impl Fn(&mut Written, &T) -> Result<()>,
        cursor: impl Fn(&T) -> String,
    ) -> Answered {
        let mut written = Written::new(form, 0);
        written.object(|written| {
            written.member(name).array(self.items.iter(), write)?;
            let last = self.items.last().filter(|_| self.more);
            write_cursor(written, last.map(cursor).as_deref());
            Ok(())
        })?;
        answered(form, written.finish(), &self.claim)
    }
}
