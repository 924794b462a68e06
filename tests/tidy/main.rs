//! Checks the rules of the source: which module of `src/` may use which, where reserved names may
//! occur, and the length of files. Compares the table of modules with `docs/architecture.md`.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

mod cycles;
mod seams;
mod source;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use source::{Source, sources};

/// A module: a directory or file at the top of `src/`, and the modules that it may use.
struct Module {
    name: &'static str,
    uses: &'static [&'static str],
}

const MODULES: [Module; 21] = [
    Module { name: "model", uses: &[] },
    Module { name: "codec", uses: &["model"] },
    Module { name: "search", uses: &["model", "codec"] },
    Module { name: "filter", uses: &["model", "codec"] },
    Module { name: "interchange", uses: &["model", "codec", "filter"] },
    Module { name: "commit", uses: &["model", "codec", "filter"] },
    Module { name: "layer", uses: &["model", "commit"] },
    Module { name: "trust", uses: &[] },
    Module { name: "engine", uses: &["model", "codec", "search", "commit", "layer", "trust"] },
    Module { name: "metrics", uses: &["model"] },
    Module { name: "store", uses: &["model", "codec", "filter", "commit", "engine", "metrics"] },
    Module { name: "protocol", uses: &["model", "codec"] },
    Module { name: "call", uses: &["model", "codec", "filter", "metrics", "store", "protocol"] },
    Module { name: "connect", uses: &["model", "codec"] },
    Module { name: "remote", uses: &["model", "codec", "trust", "connect", "protocol"] },
    Module { name: "replica", uses: &["model", "metrics", "store", "protocol", "remote"] },
    Module {
        name: "database",
        uses: &[
            "model", "codec", "filter", "engine", "metrics", "store", "protocol", "call", "remote",
            "replica",
        ],
    },
    Module {
        name: "open",
        uses: &["model", "commit", "engine", "store", "remote", "replica", "database"],
    },
    Module {
        name: "archive",
        uses: &["model", "codec", "trust", "engine", "metrics", "store", "database", "open"],
    },
    Module {
        name: "server",
        uses: &[
            "model",
            "codec",
            "filter",
            "interchange",
            "trust",
            "engine",
            "metrics",
            "call",
            "connect",
            "store",
            "database",
            "open",
            "archive",
            "protocol",
        ],
    },
    Module {
        name: "binding",
        uses: &[
            "model", "engine", "metrics", "store", "call", "remote", "database", "open", "archive",
            "server", "protocol",
        ],
    },
];

/// The names of the engine that a module may use: the binding reads, and the server asks what other
/// servers share; neither chooses an engine or writes.
const ENGINE_FOR: [(&str, &[&str]); 2] =
    [("binding", &["Reader", "Snapshot"]), ("server", &["cluster"])];

fn engine_for(module: &str) -> Option<&'static [&'static str]> {
    ENGINE_FOR.iter().find(|(name, _)| *name == module).map(|(_, names)| *names)
}

/// Names that only some places may use.
const RESERVED: [(&str, &[&str]); 9] = [
    ("napi", &["src/binding/"]),
    ("napi_derive", &["src/binding/"]),
    ("rusqlite", &["src/engine/sqlite/"]),
    ("tokio_postgres", &["src/engine/postgres/"]),
    ("tokio_postgres_rustls", &["src/engine/postgres/"]),
    ("notify", &["src/engine/sqlite/"]),
    ("axum", &["src/server/"]),
    ("hyper_util", &["src/archive/http.rs", "src/remote/", "src/server/"]),
    ("unsafe", &["src/binding/", "src/engine/sqlite/"]),
];

/// Longest file.
const FILE_LINES_MAX: usize = 600;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn module_of(source: &Source) -> Option<&'static Module> {
    let first = source.modules.first()?;
    MODULES.iter().find(|module| module.name == *first)
}

#[test]
fn every_file_is_in_a_module() {
    let files = sources(&root().join("src"));
    let strays: Vec<_> =
        files.iter().filter(|file| module_of(file).is_none()).map(|file| &file.name).collect();
    assert_eq!(strays, ["src/lib.rs"]);
    for module in &MODULES {
        let in_it = |file: &&Source| module_of(file).is_some_and(|of| of.name == module.name);
        assert!(files.iter().any(|file| in_it(&file)), "{} is gone", module.name);
    }
}

#[test]
fn modules_use_only_what_they_may() {
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for file in sources(&root().join("src")) {
        let Some(module) = module_of(&file) else { continue };
        for path in file.crate_paths() {
            let Some((used, rest)) = path.split_first() else { continue };
            if used == module.name {
                continue;
            }
            seen.insert((module.name, used.clone()));
            let item_fits = match (engine_for(module.name), used.as_str(), rest.first()) {
                (Some(names), "engine", Some(item)) => names.contains(&item.as_str()),
                _ => true,
            };
            if !module.uses.contains(&used.as_str()) || !item_fits {
                faults.push(format!("{}: crate::{}", file.name, path.join("::")));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    // If these were not found, the search itself would be broken.
    for (module, used) in [("codec", "model"), ("engine", "commit"), ("binding", "store")] {
        assert!(seen.contains(&(module, used.to_owned())), "{module} no longer uses {used}?");
    }
}

#[test]
fn reserved_names_stay_where_they_belong() {
    let mut faults = Vec::new();
    let mut found = BTreeSet::new();
    for file in sources(&root().join("src")) {
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
    for folder in ["src", "tests"] {
        for file in sources(&root().join(folder)) {
            let lines = file.text.lines().count();
            if lines > FILE_LINES_MAX {
                faults.push(format!("{}: {lines} lines", file.name));
            }
            if !file.text.starts_with("//! ") {
                faults.push(format!("{}: opens without its duty", file.name));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn no_work_is_left_for_later() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    for folder in ["src", "tests"] {
        for file in sources(&root().join(folder)) {
            for word in words {
                assert!(!file.text.contains(word), "{}: {word}", file.name);
            }
        }
    }
}

#[test]
fn no_module_is_named_utils() {
    let drawers = ["util", "utils", "common", "helper", "helpers", "misc"];
    for file in sources(&root().join("src")) {
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
fn the_architecture_page_lists_the_same_modules() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let shown: Vec<(String, String)> = table(&page, "## Modules")
        .into_iter()
        .map(|row| {
            (row.first().cloned().unwrap_or_default(), row.last().cloned().unwrap_or_default())
        })
        .collect();
    let uses = |module: &Module| match (module.name, module.uses) {
        (_, []) => "nothing".to_owned(),
        (module, uses) => match engine_for(module) {
            Some(names) => {
                let shown = format!("engine ({})", names.join(", "));
                uses.join(", ").replace("engine", &shown)
            }
            None => uses.join(", "),
        },
    };
    let table: Vec<_> =
        MODULES.iter().map(|module| (module.name.to_owned(), uses(module))).collect();
    assert_eq!(shown, table);
    let picture = page.split("```").nth(1).expect("the picture");
    let words: Vec<_> = picture.split(|c: char| !c.is_alphanumeric()).collect();
    for module in &MODULES {
        assert!(words.contains(&module.name), "the picture has no {}", module.name);
    }
}

#[test]
fn files_on_the_architecture_page_exist() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let mut named = 0;
    for quoted in page.split('`').skip(1).step_by(2) {
        let is_file = quoted.contains('/') && !quoted.contains(char::is_whitespace);
        let folders = ["src/", "js/", "tests/", "docs/", "__test__/", "scripts/"];
        if is_file && folders.iter().any(|folder| quoted.starts_with(folder)) {
            assert!(Path::new(&root().join(quoted)).exists(), "{quoted}");
            named += 1;
        }
    }
    assert!(named > 10, "only {named} files are named");
}
