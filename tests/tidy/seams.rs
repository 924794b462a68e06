//! A crate shows its own types: it exports nothing of another crate, and no public function of the
//! store takes work over the engine.

use crate::root;
use crate::source::{all_sources, sources};

/// Exports of another crate, with their reasons.
const REEXPORTS: [&str; 2] = [
    // The entry of a KV Connect answer is the entry of a remote read.
    "crates/client/src/remote/mod.rs: pub use openkv_wire::connect::wire::Entry;",
    // The argument and the result of a batch; `commit` evaluates them.
    "crates/engines/src/lib.rs: pub use openkv_core::commit::{Report, Ticket, Work};",
];

/// The names of the whole library, for programs in Rust.
const LIBRARY: &str = "src/lib.rs";

/// Types of the engine that a caller of the store never gets.
const ENGINE_WORK: [&str; 4] = ["dyn Snapshot", "dyn Writer", "ReadJob", "WriterTask"];

#[test]
fn no_crate_exports_another() {
    let mut found = Vec::new();
    for file in all_sources().iter().filter(|file| file.name != LIBRARY) {
        let lines = file.text.lines().map(str::trim);
        let exports = lines.filter(|line| line.starts_with("pub use openkv_"));
        found.extend(exports.map(|line| format!("{}: {line}", file.name)));
    }
    found.sort();
    assert_eq!(found, REEXPORTS);
}

#[test]
fn the_store_takes_no_work_over_the_engine() {
    let (mut faults, mut signatures) = (Vec::new(), 0);
    for file in sources(&root().join("crates/store/src")) {
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
    let files = all_sources();
    let found: Vec<_> = files.iter().filter(|file| names(file)).map(|file| &file.name).collect();
    assert_eq!(found, ["crates/engines/src/sqlite/log_file.rs"]);
}

/// The server awaits the store through one adapter. The slots tell connections to end.
#[test]
fn the_server_makes_its_channels_in_two_files() {
    let makes = concat!("oneshot::", "channel(");
    let files = sources(&root().join("crates/server/src"));
    let made = files.iter().filter(|file| file.text.contains(makes)).map(|file| &file.name);
    assert_eq!(
        made.collect::<Vec<_>>(),
        ["crates/server/src/pending.rs", "crates/server/src/slots.rs"]
    );
}

/// The HTTP API and KV Connect call typed functions of the store. Frames are the bodies of the network
/// extension alone. The HTTP API had encoded commands for its own process.
#[test]
fn only_the_network_extension_has_frames() {
    let files = sources(&root().join("crates/server/src"));
    let frames: Vec<_> = files
        .iter()
        .filter(|file| file.text.contains("protocol::frame") || file.text.contains("carry_out"))
        .map(|file| &file.name)
        .collect();
    assert!(!frames.is_empty());
    let others = frames.iter().filter(|name| !name.starts_with("crates/server/src/extension/"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&&String>::new());
}

/// A method with a default body that the writer of a parked database does not hand on would be lost for every engine.
#[test]
fn a_parkable_writer_hands_on_every_method() {
    let text = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (writer, parkable) =
        (text("crates/engines/src/writer.rs"), text("crates/engines/src/parkable.rs"));
    let methods: Vec<_> = writer
        .lines()
        .filter_map(|line| line.strip_prefix("    fn ")?.split('(').next())
        // It calls others.
        .filter(|name| *name != "apply")
        .collect();
    let lost: Vec<_> =
        methods.iter().filter(|name| !parkable.contains(&format!(" {name}("))).collect();
    assert_eq!(lost, Vec::<&&str>::new());
    assert!(methods.len() > 20, "only {} methods are found", methods.len());
}
