//! Counters, by the names of KeyVal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::Extension;
use hyper::StatusCode;
use serde::Serialize;

use super::answer;
use super::queue::{Stats, counted};
use crate::answer::{answer as answered, whole};
use crate::api::admit::Admitted;
use crate::api::entries::{Selection, count};
use crate::api::metrics::snapshot;
use crate::api::problem::{Answered, Problem};
use crate::api::range::Bounds;
use crate::data::{Client, store_of};
use openkv_store::metrics::{LATENCY_BOUNDS_MS, MetricsSnapshot, Operation, Operations};

const TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The operations of one kind.
#[derive(Default)]
struct Counts {
    count: u64,
    errors: u64,
    samples: u64,
    sum_ms: f64,
    /// Samples of at most so many ms, by [`LATENCY_BOUNDS_MS`].
    within: [u64; LATENCY_BOUNDS_MS.len()],
}

impl Counts {
    fn add(&mut self, of: &Operations) {
        self.count += of.count;
        self.errors += of.errors;
        let Some(latency) = &of.latency else { return };
        self.samples += latency.samples;
        self.sum_ms += latency.sum_ms;
        for (sum, more) in self.within.iter_mut().zip(latency.within) {
            *sum += more;
        }
    }
}

/// KeyVal's name of an operation; openkv's own where KeyVal has no such operation.
fn name_of(operation: &str) -> &str {
    let name = |known: Operation| known.name() == operation;
    if name(Operation::GetWithExpiry) {
        Operation::Get.name()
    } else if name(Operation::DeleteMany) {
        Operation::Delete.name()
    } else if name(Operation::Enqueue) {
        "queue_enqueue"
    } else if name(Operation::Settle) {
        "queue_ack"
    } else if name(Operation::Atomic) {
        "atomic_commit"
    } else {
        operation
    }
}

fn by_name(snapshot: &MetricsSnapshot) -> BTreeMap<&str, Counts> {
    let mut all: BTreeMap<&str, Counts> = BTreeMap::new();
    for (operation, of) in snapshot.operations.iter().filter(|(_, of)| of.count > 0) {
        all.entry(name_of(operation)).or_default().add(of);
    }
    all
}

/// The size of the database.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Storage {
    entries: u64,
    size_bytes: u64,
}

async fn figures(client: &Client) -> Result<(MetricsSnapshot, Stats, Storage), Problem> {
    let found = snapshot(&*store_of(&client.database).await?).await?;
    let selection =
        Selection { keys_only: true, ..Selection::all(Bounds::within(None, None, None)?) };
    let entries = count(client, &selection).await?;
    let storage = Storage { entries, size_bytes: found.sizes.database_bytes };
    Ok((found, counted(client).await?, storage))
}

/// One kind of operations.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationBody {
    count: u64,
    errors: u64,
    avg_latency_ms: f64,
}

/// The metrics as JSON.
pub(super) async fn json(client: Extension<Admitted>) -> Answered {
    let (found, queue, storage) = figures(&client).await?;
    let (mut operations, mut total, mut errors) = (BTreeMap::new(), 0, 0);
    for (name, of) in by_name(&found) {
        total += of.count;
        errors += of.errors;
        let avg_latency_ms = if of.samples > 0 { of.sum_ms / of.samples as f64 } else { 0.0 };
        let body = OperationBody { count: of.count, errors: of.errors, avg_latency_ms };
        operations.insert(name, body);
    }
    Ok(answer::json(&serde_json::json!({
        "operations": {
            "operations": operations,
            "totals": { "errors": errors, "operations": total },
        },
        "queue": queue,
        "storage": storage,
    }))?)
}

/// The metrics as Prometheus' text.
pub(super) async fn prometheus(client: Extension<Admitted>) -> Answered {
    let (found, queue, storage) = figures(&client).await?;
    let text = exposition(&by_name(&found), &queue, &storage);
    Ok(answered(StatusCode::OK, TEXT_TYPE, whole(text)))
}

fn exposition(operations: &BTreeMap<&str, Counts>, queue: &Stats, storage: &Storage) -> String {
    let mut text = String::new();
    let head = |text: &mut String, name: &str, help: &str, kind: &str| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    };
    let name = "keyval_operations_total";
    head(&mut text, name, "Total operations by type", "counter");
    for (operation, of) in operations {
        let _ = writeln!(text, "{name}{{operation=\"{operation}\"}} {}", of.count);
    }
    let name = "keyval_errors_total";
    head(&mut text, name, "Total errors by operation type", "counter");
    for (operation, of) in operations {
        let _ = writeln!(text, "{name}{{operation=\"{operation}\"}} {}", of.errors);
    }
    let name = "keyval_operation_duration_ms";
    head(&mut text, name, "Operation latency in milliseconds", "histogram");
    for (operation, of) in operations {
        for (bound, count) in LATENCY_BOUNDS_MS.iter().zip(of.within) {
            let _ =
                writeln!(text, "{name}_bucket{{operation=\"{operation}\",le=\"{bound}\"}} {count}");
        }
        let (samples, sum) = (of.samples, of.sum_ms);
        let _ = writeln!(
            text,
            "{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {samples}\n\
             {name}_sum{{operation=\"{operation}\"}} {sum}\n\
             {name}_count{{operation=\"{operation}\"}} {samples}"
        );
    }
    for (name, help, value) in [
        ("keyval_queue_pending", "Pending messages in queue", queue.pending),
        ("keyval_queue_processing", "Messages being processed", queue.processing),
        ("keyval_queue_dlq", "Messages in dead letter queue", queue.dlq),
        ("keyval_queue_total", "Total messages in queue", queue.total),
        ("keyval_entries_total", "Total entries in store", storage.entries),
        ("keyval_storage_bytes", "Storage size in bytes", storage.size_bytes),
    ] {
        head(&mut text, name, help, "gauge");
        let _ = writeln!(text, "{name} {value}");
    }
    text
}
