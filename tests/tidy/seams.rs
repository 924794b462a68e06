//! A module shows its own types: it exports nothing of another module, and no public function of the
//! store takes work over the engine.

use crate::source::sources;
use crate::{module_of, root};

/// Exports of another module, with their reasons.
const REEXPORTS: [&str; 2] = [
    // The argument and the result of a batch; `commit` evaluates them.
    "engine: pub use crate::commit::{Report, Ticket, Work};",
    // The entry of a KV Connect answer is the entry of a remote read.
    "remote: pub use crate::connect::wire::Entry;",
];

/// Types of the engine that a caller of the store never gets.
const ENGINE_WORK: [&str; 4] = ["dyn Snapshot", "dyn Writer", "ReadJob", "WriterTask"];

#[test]
fn no_module_exports_another() {
    let mut found = Vec::new();
    for file in sources(&root().join("src")) {
        let Some(module) = module_of(&file) else { continue };
        let own = format!("pub use crate::{}::", module.name);
        let exports = file
            .text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("pub use crate::") && !line.starts_with(&own));
        found.extend(exports.map(|line| format!("{}: {line}", module.name)));
    }
    assert_eq!(found, REEXPORTS);
}

#[test]
fn the_store_takes_no_work_over_the_engine() {
    let (mut faults, mut signatures) = (Vec::new(), 0);
    for file in sources(&root().join("src/store")) {
        for rest in file.text.split("    pub fn ").skip(1) {
            let signature = rest.split(" {\n").next().unwrap_or_default();
            signatures += 1;
            let leaks = ENGINE_WORK.iter().any(|name| signature.contains(name));
            if leaks {
                faults.push(format!("{}: {signature}", file.name));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(signatures > 30, "only {signatures} public functions are found");
}

/// Frames of the log wait for a sync where SQLite syncs commits, so one function sets both.
#[test]
fn one_function_sets_what_sqlite_syncs() {
    let setting = concat!("\"synchr", "onous\"");
    let names = |file: &crate::source::Source| file.text.contains(setting);
    let files = sources(&root().join("src"));
    let found: Vec<_> = files.iter().filter(|file| names(file)).map(|file| &file.name).collect();
    assert_eq!(found, ["src/engine/sqlite/log_file.rs"]);
}

/// The server awaits the store through one adapter. The slots tell connections to end.
#[test]
fn the_server_makes_its_channels_in_two_files() {
    let makes = concat!("oneshot::", "channel(");
    let files = sources(&root().join("src/server"));
    let made = files.iter().filter(|file| file.text.contains(makes)).map(|file| &file.name);
    assert_eq!(made.collect::<Vec<_>>(), ["server/pending.rs", "server/slots.rs"]);
}

/// The HTTP API and KV Connect call typed functions of the store. Frames are the bodies of the network
/// extension alone. The HTTP API had encoded commands for its own process.
#[test]
fn only_the_network_extension_has_frames() {
    let files = sources(&root().join("src/server"));
    let frames: Vec<_> = files
        .iter()
        .filter(|file| file.text.contains("protocol::frame") || file.text.contains("carry_out"))
        .map(|file| &file.name)
        .collect();
    assert!(!frames.is_empty());
    let others = frames.iter().filter(|name| !name.starts_with("server/extension/"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&&String>::new());
}
