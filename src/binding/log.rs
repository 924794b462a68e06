//! What happens inside, told on standard error to those who ask for it.

use std::sync::Once;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// The variable that says what is told, in the syntax of `tracing`'s filters: `info`,
/// `openkv=debug`, `openkv::engine=trace`.
const VARIABLE: &str = "OPENKV_LOG";

/// Starts telling, once in a process, if the variable is set. Without it there is no subscriber, and
/// nothing of this costs anything. A host that has its own subscriber keeps it.
pub(super) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let Ok(asked) = std::env::var(VARIABLE) else { return };
        if asked.is_empty() {
            return;
        }
        let filter = match EnvFilter::try_new(&asked) {
            Ok(filter) => filter,
            Err(error) => {
                // There is nobody else to be told.
                tell(&format!("openkv: {VARIABLE} is no filter, so nothing is logged: {error}"));
                return;
            }
        };
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            // As `tell`: there is nobody who could be told that nobody is told.
            .log_internal_errors(false);
        if let Err(error) = subscriber.try_init() {
            tracing::debug!(%error, "logs go where they went");
        }
    });
}

fn tell(line: &str) {
    use std::io::Write as _;
    // Where standard error is gone, so is whoever might have read it.
    let _unread = writeln!(std::io::stderr(), "{line}");
}
