//! Neighbouring files and folders depend on each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::root;
use crate::source::{crates, sources};

type Edges = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The dependencies between files and folders of a crate with the same parent, including all files in
/// them. Cargo itself refuses cycles of crates.
fn edges(folder: &Path) -> Edges {
    let files = sources(folder);
    let known: BTreeSet<_> = files.iter().map(|file| file.modules.clone()).collect();
    let mut edges = Edges::new();
    for file in files.iter().filter(|file| file.modules.last().is_none_or(|last| last != "tests")) {
        for path in file.absolute_paths() {
            let used = (1..=path.len()).rev().find_map(|len| known.get(path.get(..len)?));
            let Some(used) = used else { continue };
            let same = file.modules.iter().zip(used).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (file.modules.get(..=same), used.get(..=same)) {
                edges.entry(from.to_vec()).or_default().insert(to.to_vec());
            }
        }
    }
    edges
}

/// Removes items without dependencies until none is left to remove; the rest are in cycles.
fn in_cycles(mut edges: Edges) -> Edges {
    loop {
        let left: BTreeSet<_> = edges.keys().cloned().collect();
        let before: usize = edges.values().map(BTreeSet::len).sum();
        edges.values_mut().for_each(|used| used.retain(|to| left.contains(to)));
        edges.retain(|_, used| !used.is_empty());
        if edges.values().map(BTreeSet::len).sum::<usize>() == before {
            return edges;
        }
    }
}

#[test]
fn neighbours_have_no_cyclic_dependencies() {
    let has = |edges: &Edges, from: &[&str], to: &[&str]| {
        let path = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        edges.get(&path(from)).is_some_and(|used| used.contains(&path(to)))
    };
    // If these were not found, the search itself would be broken.
    assert!(has(&edges(&root().join("crates/core/src")), &["layer"], &["commit"]));
    assert!(has(&edges(&root().join("crates/store/src")), &["queue"], &["listener"]));
    let mut faults = Vec::new();
    for folder in crates() {
        for (from, used) in in_cycles(edges(&folder)) {
            let from = from.join("::");
            faults.extend(used.iter().map(|to| format!("{from} uses {}", to.join("::"))));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn cycles_and_chains_into_them_are_found() {
    let one = |name: &str| vec![name.to_owned()];
    let edges: Edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")].into_iter().fold(
        Edges::new(),
        |mut edges, (from, to)| {
            edges.entry(one(from)).or_default().insert(one(to));
            edges
        },
    );
    let left: Vec<_> = in_cycles(edges).into_keys().collect();
    assert_eq!(left, [one("a"), one("b"), one("c")]);
}
