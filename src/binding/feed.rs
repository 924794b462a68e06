//! The change feeds of a handle. They work like watches, but report every change of a range.

use napi_derive::napi;

use super::events::{Event, Reply};
use super::handle::{Handle, cut, number};
use crate::model::{Batch, Error, FeedReply, Versionstamp};
use crate::protocol::frame::{frame_of, parse_feed, push_changes};

#[napi]
impl Handle {
    /// Opens a feed of a range.
    #[napi(catch_unwind)]
    pub fn feed(&mut self, id: f64, frame: &[u8], len: u32) {
        let database = self.database().cloned();
        let feed = match parse_feed(cut(frame, len)) {
            Ok((range, since)) => {
                database.map(|database| database.feed(range, since, &self.options))
            }
            Err(bug) => Err(Error::internal(bug.to_string())),
        };
        self.feeds.insert(number(id), feed);
    }

    /// Requests the next changes of a feed; WATCH or WATCH_END.
    #[napi(catch_unwind)]
    pub fn feed_next(&mut self, id: f64) {
        let reply = Reply::new(self.events.clone(), id, Event::Watch, Event::WatchEnd);
        let feed = match self.feeds.get(&number(id)) {
            Some(Ok(feed)) => *feed,
            Some(Err(error)) => return reply.bad(error),
            None => return reply.over(),
        };
        let Ok(database) = self.database().cloned() else { return reply.over() };
        let answered: FeedReply = Box::new(move |answer| match answer {
            Ok(Some(Batch { changes, version })) => {
                let position = Versionstamp::new(version);
                reply.good(Some(frame_of(|out| push_changes(out, position, &changes, true))));
            }
            Ok(None) => reply.over(),
            Err(error) => reply.bad(&error),
        });
        database.feed_next(feed, &self.options, answered);
    }

    /// Ends a feed.
    #[napi(catch_unwind)]
    pub fn feed_cancel(&mut self, id: f64) {
        let Some(Ok(feed)) = self.feeds.remove(&number(id)) else { return };
        if let Ok(database) = self.database() {
            database.feed_cancel(feed);
        }
    }
}
