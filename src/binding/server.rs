//! A server that JavaScript has started.

use std::sync::Arc;

use napi::Result;
use napi_derive::napi;
use parking_lot::Mutex;

use super::attachment;
use super::events::{Event, Events, Reply};
use crate::server;
use crate::server::options::ServerOptions;

/// The server, once it has started and until it is closed.
type RunningServer = Arc<Mutex<Option<server::Server>>>;

/// A KV Connect server.
#[napi]
pub struct Server {
    events: Events,
    place: RunningServer,
}

#[napi]
impl Server {
    /// Starts a server with options as JSON; REPLIED with its port and URL, or CALL_FAILED.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "called from JavaScript only")]
    pub fn new(attachment: u32, id: f64, options: String) -> Result<Self> {
        let events = attachment::find(attachment)?.events;
        let place = RunningServer::default();
        let reply = Reply::new(events.clone(), id, Event::Replied, Event::CallFailed);
        let started = place.clone();
        reply.on_thread("openkv-serve", move |reply| {
            let starting = ServerOptions::from_json(&options).and_then(server::Server::start);
            reply.tell(starting.map(|server| {
                let port = server.address().port().to_le_bytes();
                let answer = [&port, server.url().as_bytes()].concat();
                *started.lock() = Some(server);
                Some(answer)
            }));
        });
        Ok(Self { events, place })
    }

    /// Closes the server: running requests are answered, watches end; REPLIED after that.
    #[napi(catch_unwind)]
    pub fn close(&mut self, id: f64) -> Result<()> {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        let place = self.place.clone();
        reply.on_thread("openkv-serve", move |reply| {
            let server = place.lock().take();
            drop(server);
            reply.good(None);
        });
        Ok(())
    }
}

/// Asks for the state of all databases on the PostgreSQL of a URL; REPLIED with JSON, or CALL_FAILED.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value, reason = "JavaScript hands it over")]
pub fn cluster_status(attachment: u32, id: f64, url: String) -> Result<()> {
    let events = attachment::find(attachment)?.events;
    let reply = Reply::new(events, id, Event::Replied, Event::CallFailed);
    reply.on_thread("openkv-cluster", move |reply| {
        reply.tell(server::cluster_status(&url.into()).map(Some));
    });
    Ok(())
}
