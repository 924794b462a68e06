//! What a handle with a replica says about it: its status, and metrics.

use super::Replica;
use openkv_core::model::{Error, Result, Versionstamp};
use openkv_store::call::Reply;
use openkv_store::metrics::{Holders, ReplicaFigures, exposition_with_replica};

impl Replica {
    /// A reply for the metrics of the server that adds those of the replica, with the watches and
    /// feeds that it serves.
    pub(super) fn adding_figures(&self, frame: &[u8], reply: Reply) -> Reply {
        let (copy, is_text) = (self.copy.clone(), frame.first() == Some(&1));
        Reply::new(move |answer| match answer {
            Ok(metrics) => {
                let of_replica = (&copy.figures(), copy.store().holders());
                reply.tell(with_figures(metrics, is_text, of_replica));
            }
            Err(fault) => reply.bad(fault),
        })
    }

    /// The status, as JSON.
    pub(super) fn status(&self) -> String {
        let progress = self.copy.progress();
        let error = progress.error.as_ref().map(
            |error| serde_json::json!({ "kind": error.kind() as u8, "message": error.message() }),
        );
        let lag = progress.lag().map(|lag| lag.as_secs_f64() * 1000.0);
        serde_json::json!({
            "state": progress.state.name(),
            "version": (progress.ready || progress.held).then(|| Versionstamp::new(progress.version).to_string()),
            "lag": lag,
            "ready": progress.ready,
            "copies": progress.copies,
            "copiedBecause": progress.copied_because,
            "error": error,
        })
        .to_string()
    }
}

/// The metrics of a server, as JSON or text, with those of a replica and of what it serves.
fn with_figures(
    metrics: Vec<u8>,
    is_text: bool,
    (of, served): (&ReplicaFigures, Holders),
) -> Result<Vec<u8>> {
    let failed = |error: serde_json::Error| Error::internal(error.to_string());
    if is_text {
        let text = String::from_utf8(metrics);
        let text = text.map_err(|error| Error::internal(error.to_string()))?;
        return exposition_with_replica(&text, of, served).map(String::into_bytes);
    }
    let mut all: serde_json::Map<_, _> = serde_json::from_slice(&metrics).map_err(failed)?;
    let Holders { watches, feeds, listeners } = served;
    for (name, more) in [("watches", watches), ("feeds", feeds), ("listeners", listeners)] {
        let own = all.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
        all.insert(name.to_owned(), own.saturating_add(more as u64).into());
    }
    all.insert("replica".to_owned(), serde_json::to_value(of).map_err(failed)?);
    serde_json::to_vec(&all).map_err(failed)
}
