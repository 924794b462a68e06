//! Sets up the log.

use super::options::LogForm;

/// The first server with a log option sends all log lines of openkv to stderr. A subscriber of the
/// host process stays in place.
pub(super) fn start(form: LogForm) {
    // If stderr is closed, log lines are dropped. The default would panic in the middle of a
    // request.
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false);
    let started = match form {
        LogForm::None => return,
        LogForm::Text => lines.try_init(),
        LogForm::Json => lines.json().try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "another subscriber is set, and stays");
    }
}
