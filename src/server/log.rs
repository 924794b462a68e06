//! Where logs go.

use super::options::LogForm;

/// From the first server that wants a log on, everything that openkv logs goes to standard error.
/// A host that has its own subscriber keeps it.
pub(super) fn start(form: LogForm) {
    // Where standard error is gone, telling of it there would be a panic in the middle of a request.
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
        tracing::debug!(%error, "logs go where they went");
    }
}
