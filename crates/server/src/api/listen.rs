//! `GET /queue/listen`: the messages of a queue as server-sent events.
//!
//! Invariant: a message that the connection does not take goes back unused. One that it has taken belongs
//! to the client until it acknowledges it, or until its lock expires.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use hyper::body::Bytes;

use super::admit::Admitted;
use super::document_writer::DocumentWriter;
use super::duration::duration_in;
use super::events::{EVENT_TYPE, as_events, event, form_of, silent_ping};
use super::problem::{Answered, Problem};
use super::queue::{delivered, lock_of, queue_of};
use super::schema::{LockDuration, QueueName};
use super::target::Query;
use crate::answer::{Body, answer};
use crate::data::{Client, store_of};
use crate::database::Database;
use crate::extension::{Writing, consuming};
use openkv_core::model::{
    CONCURRENCY_MAX, ConsumeOptions, Delivery, HTTP_LISTEN_MESSAGES_DEFAULT, Id, Result,
};
use openkv_store::{RemoteConsumer, Store};

/// Delivers the messages of a queue. `POST /queue/ack` ends each, and makes room for another one.
#[utoipa::path(get, path = "/queue/listen", tag = "queues", operation_id = "listen",
    params(
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
        ("lockDuration" = inline(Option<LockDuration>), Query, description = "Ms until another consumer gets a message that is not acknowledged."),
        ("concurrency" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Most messages that are not acknowledged at one time: 1 to 1000, by default 10."),
    ),
    responses((status = 200, description = "Events: message, ping.",
        content_type = "text/event-stream", body = String)))]
pub(super) async fn listen(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue", "lockDuration", "concurrency"])?;
    let concurrency = query.number("concurrency")?.unwrap_or(HTTP_LISTEN_MESSAGES_DEFAULT);
    let most = u64::from(CONCURRENCY_MAX);
    if !(1..=most).contains(&concurrency) {
        return Err(Problem::bad_request(format!(
            "concurrency must be from 1 to {most}: {concurrency} given"
        )));
    }
    let lock_ms = lock_of(duration_in(&query, "lockDuration")?)?;
    let options = ConsumeOptions { queue: queue_of(&query)?, lock_ms };
    let form = form_of(&head);
    let write_event = move |delivery: &Delivery| {
        let written = DocumentWriter::of(form, 0, &delivered(delivery))?;
        Ok(event("message", &written.into_text(), None))
    };
    stream(&client, options, concurrency, Box::new(write_event)).await
}

/// Writes the event of a message.
pub(crate) type EventWriter = Box<dyn Fn(&Delivery) -> Result<String> + Send + Sync>;

/// Delivers up to `concurrency` messages that are not settled, as events.
pub(crate) async fn stream(
    client: &Client,
    options: ConsumeOptions,
    concurrency: u64,
    write_event: EventWriter,
) -> Answered {
    let database = client.database.clone();
    let store = Arc::downgrade(&store_of(&database).await?);
    let lock = Duration::from_millis(options.lock_ms.unsigned_abs());
    let events = Arc::new(Events { write_event, lock, database, store, stream: OnceLock::new() });
    // The first credits come once the stream has its number.
    let consumer = RemoteConsumer { options, credits: 0, most: concurrency };
    let (id, mut stream) = consuming(client, consumer, events.clone()).await?;
    events.begin(id, concurrency);
    stream.opened = Some(silent_ping());
    Ok(as_events(answer(StatusCode::OK, EVENT_TYPE, Body::Drawn(Box::new(stream)))))
}

/// Messages as events.
struct Events {
    write_event: EventWriter,
    lock: Duration,
    database: Arc<Database>,
    store: Weak<Store>,
    stream: OnceLock<Id>,
}

impl Events {
    fn begin(&self, id: Id, credits: u64) {
        self.database.deliveries.begin(id, credits);
        let _first = self.stream.set(id);
        if let Some(store) = self.store.upgrade() {
            store.grant(id, credits);
        }
    }
}

impl Writing for Events {
    fn messages(&self, drawn: &[Delivery]) -> Result<Vec<u8>> {
        let mut text = String::new();
        for delivery in drawn {
            text.push_str(&(self.write_event)(delivery)?);
        }
        if let Some(id) = self.stream.get() {
            self.database.deliveries.add(*id, drawn, self.lock);
        }
        Ok(text.into_bytes())
    }

    fn alive(&self) -> Bytes {
        if let (Some(id), Some(store)) = (self.stream.get(), self.store.upgrade()) {
            self.database.deliveries.expire(&store, *id);
        }
        silent_ping()
    }

    fn over(&self) {
        if let Some(id) = self.stream.get() {
            self.database.deliveries.end(*id);
        }
    }
}
