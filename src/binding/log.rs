//! Log lines on standard error, for users who set an environment variable.

use std::sync::Once;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The variable that names what is logged, as targets and levels: `info`, `openkv=debug`,
/// `warn,openkv::engine=trace`.
const VARIABLE: &str = "OPENKV_LOG";

/// Starts logging, once in a process, if the variable is set. Without it there is no subscriber, and
/// a log statement costs a load and a branch. A subscriber that the host has installed stays.
pub(super) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let Ok(filter) = std::env::var(VARIABLE) else { return };
        if filter.is_empty() {
            return;
        }
        let targets: Targets = match filter.parse() {
            Ok(targets) => targets,
            Err(error) => {
                // The log itself is not available yet.
                print(&format!("openkv: {VARIABLE} is no filter, so nothing is logged: {error}"));
                return;
            }
        };
        let lines = tracing_subscriber::fmt::layer()
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            // An error in writing to stderr cannot be reported on stderr.
            .log_internal_errors(false);
        let subscriber = tracing_subscriber::registry().with(targets).with(lines);
        if let Err(error) = subscriber.try_init() {
            tracing::debug!(%error, "another subscriber is installed");
        }
    });
}

fn print(line: &str) {
    use std::io::Write as _;
    // If stderr is closed, the line is dropped.
    let _unread = writeln!(std::io::stderr(), "{line}");
}
