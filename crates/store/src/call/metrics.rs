//! Metrics, as an object's JSON or as Prometheus' text.

use super::Call;
use crate::metrics::exposition;
use openkv_core::model::Error;

/// Frame: u8, 1 for Prometheus' text. Answer: JSON or text, UTF-8.
pub(super) fn metrics(frame: &[u8], Call { store, reply, .. }: Call) {
    let is_text = frame.first() == Some(&1);
    store.metrics_snapshot(Box::new(move |metrics| {
        let text = metrics.and_then(|metrics| match is_text {
            true => exposition(&metrics),
            false => {
                serde_json::to_string(&metrics).map_err(|error| Error::internal(error.to_string()))
            }
        });
        reply.tell(text.map(String::into_bytes));
    }));
}
