//! The options of opening about the replication log.

use napi_derive::napi;

use crate::model::{LogBounds, LogSettings, Setting};

/// How a replication log is to be kept.
#[napi(object)]
pub struct NativeLog {
    /// Whether it is kept at all.
    pub on: bool,
    /// How long a change is kept, in ms.
    pub retention_ms: f64,
    /// Bytes of all segments.
    pub bytes_max: f64,
    /// Whether it has messages of queues.
    pub messages: bool,
}

/// The settings of the replication log that the options of opening name.
pub(super) fn log_settings(log: Option<NativeLog>, history_ms: Option<f64>) -> LogSettings {
    LogSettings {
        messages: log.as_ref().filter(|log| log.on).map(|log| log.messages),
        log: match log {
            None => Setting::Keep,
            Some(NativeLog { on: false, .. }) => Setting::Off,
            Some(NativeLog { retention_ms, bytes_max, .. }) => Setting::On(LogBounds {
                retention_ms: retention_ms as i64,
                bytes_max: bytes_max as u64,
            }),
        },
        history_ms: match history_ms {
            None => Setting::Keep,
            Some(0.0) => Setting::Off,
            Some(ms) => Setting::On(ms as i64),
        },
    }
}
