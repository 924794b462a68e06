//! Checks the rules of the source that the compiler does not know: where reserved names may occur, cycles
//! of modules inside a crate, the length of files, words. Which crate may use which is in the manifests.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

mod cycles;
mod seams;
mod source;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use source::{all_sources, sources};

/// Names that only some places of a crate may use.
const RESERVED: [(&str, &[&str]); 4] = [
    ("rusqlite", &["crates/engines/src/sqlite/"]),
    ("notify", &["crates/engines/src/sqlite/"]),
    ("tokio_postgres", &["crates/engines/src/postgres/"]),
    ("unsafe", &["src/binding/", "crates/engines/src/sqlite/"]),
];

/// Longest file.
const FILE_LINES_MAX: usize = 600;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn reserved_names_stay_where_they_belong() {
    let mut faults = Vec::new();
    let mut found = BTreeSet::new();
    for file in all_sources() {
        for (name, places) in RESERVED {
            if !file.has_word(name) {
                continue;
            }
            found.insert(name);
            if !places.iter().any(|place| file.name.starts_with(place)) {
                faults.push(format!("{} names {name}", file.name));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(found.len(), RESERVED.len(), "{found:?}");
}

#[test]
fn files_are_short_and_begin_with_their_duty() {
    let mut faults = Vec::new();
    for file in all_sources().into_iter().chain(sources(&root().join("tests"))) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            faults.push(format!("{}: {lines} lines", file.name));
        }
        if !file.text.starts_with("//! ") {
            faults.push(format!("{}: opens without its duty", file.name));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn no_work_is_left_for_later() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    for file in all_sources().into_iter().chain(sources(&root().join("tests"))) {
        for word in words {
            assert!(!file.text.contains(word), "{}: {word}", file.name);
        }
    }
}

#[test]
fn no_module_is_named_utils() {
    let drawers = ["util", "utils", "common", "helper", "helpers", "misc"];
    for file in all_sources() {
        let drawer = file.modules.iter().find(|name| drawers.contains(&name.as_str()));
        assert_eq!(drawer, None, "{}", file.name);
    }
}

/// The rows of the first table under a heading, cell by cell, without code quotes.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let rows = page.lines().skip_while(|line| *line != heading).skip(1);
    let rows = rows.skip_while(|line| !line.starts_with('|')).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(cells).collect()
}

/// The cells of one row of a table, without code quotes.
fn cells(row: &str) -> Vec<String> {
    let cells = row.trim_matches('|').split(" | ");
    cells.map(|cell| cell.trim().replace('`', "")).collect()
}

#[test]
fn the_architecture_page_lists_each_module_of_each_crate() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let shown: BTreeSet<_> =
        table(&page, "## Crates").into_iter().filter_map(|row| row.into_iter().next()).collect();
    let mut crates = BTreeSet::new();
    for folder in source::crates() {
        let name = folder.parent().and_then(Path::file_name).expect("the crate's folder");
        let name = name.to_string_lossy().into_owned();
        crates.insert(if folder == root().join("src") { "src".to_owned() } else { name });
    }
    assert_eq!(shown, crates);
    let words: BTreeSet<_> = page.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for name in ["core", "wire", "client"] {
        for file in sources(&root().join("crates").join(name).join("src")) {
            if let Some(module) = file.modules.first() {
                assert!(words.contains(module.as_str()), "the page has no {module}");
            }
        }
    }
}

#[test]
fn files_on_the_architecture_page_exist() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let mut named = 0;
    for quoted in page.split('`').skip(1).step_by(2) {
        let is_file = quoted.contains('/') && !quoted.contains(char::is_whitespace);
        let folders = ["src/", "crates/", "js/", "tests/", "docs/", "__test__/", "scripts/"];
        if is_file && folders.iter().any(|folder| quoted.starts_with(folder)) {
            assert!(Path::new(&root().join(quoted)).exists(), "{quoted}");
            named += 1;
        }
    }
    assert!(named > 10, "only {named} files are named");
}
