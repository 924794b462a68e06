//! The project's terms: a term that `docs/glossary.md` lists as replaced occurs in no other file,
//! and each dependency has a page that gives its reason.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{cells, root};

/// The files in which replaced terms must not occur.
const CHECKED_PATHS: [&str; 6] = ["src", "crates", "js", "docs", "index.d.ts", "README.md"];

const GLOSSARY: &str = "docs/glossary.md";

/// Every text file at or below a path.
fn texts(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("readable") {
            texts(&entry.expect("readable").path(), found);
        }
    } else if path.extension().is_some_and(|end| end == "rs" || end == "ts" || end == "md") {
        found.push(path.to_owned());
    }
}

/// The rows of the page's tables, without their headings.
fn rows(page: &str) -> impl Iterator<Item = Vec<String>> {
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| term |"));
    rows.map(cells).inspect(|cells| assert_eq!(cells.len(), 4, "{cells:?}"))
}

/// The terms in the last column of the glossary, which are no longer used.
fn replaced_terms(page: &str) -> BTreeSet<String> {
    let last = rows(page).filter_map(|cells| cells.last().cloned());
    last.flat_map(|cell| cell.split(", ").map(str::to_lowercase).collect::<Vec<_>>())
        .filter(|term| !term.is_empty())
        .collect()
}

/// Whether a text in lower case has the term as words of its own.
fn has_term(text: &str, term: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(term).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + term.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

#[test]
fn replaced_terms_occur_nowhere() {
    let glossary = std::fs::read_to_string(root().join(GLOSSARY)).expect("the page");
    let terms = replaced_terms(&glossary);
    assert!(terms.contains("front door"), "the column is not read: {terms:?}");
    let mut files = Vec::new();
    for path in CHECKED_PATHS {
        texts(&root().join(path), &mut files);
    }
    assert!(files.len() > 300, "only {} files", files.len());
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| **file != root().join(GLOSSARY)) {
        let text = std::fs::read_to_string(file).expect("text").to_lowercase();
        let used = terms.iter().filter(|term| has_term(&text, term));
        faults.extend(used.map(|term| format!("{}: {term}", file.display())));
    }
    assert_eq!(faults, Vec::<String>::new(), "{GLOSSARY} says what to write instead");
}

#[test]
fn a_term_is_found_as_words_of_its_own() {
    assert!(has_term("the front door.", "front door") && has_term("fn retime(", "retime"));
    assert!(!has_term("sometimes", "time") && !has_term("at_home", "home"));
}

#[test]
fn files_that_the_glossary_names_exist() {
    let glossary = std::fs::read_to_string(root().join(GLOSSARY)).expect("the page");
    for cells in rows(&glossary) {
        let places = cells.get(2).map(String::as_str).unwrap_or_default();
        for place in places.split(", ").filter(|place| place.contains('/')) {
            assert!(root().join(place).exists(), "{place}");
        }
    }
}

#[test]
fn each_dependency_has_a_row_of_its_page() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).expect("the page");
    let mut count = 0;
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if let Some((name, rest)) = line.split_once(" = ")
            && section.ends_with("dependencies]")
            && !name.starts_with("openkv-")
        {
            let package =
                rest.split_once("package = \"").and_then(|(_, rest)| rest.split_once('"'));
            let name = package.map_or(name, |(package, _)| package);
            assert!(page.contains(&format!("`{name}`")), "docs/dependencies.md has no {name}");
            count += 1;
        }
    }
    assert!(count > 30, "only {count} dependencies are found");
}
