//! The fixed bounds that `docs/limits.md` lists have the values of `src/model/limits.rs`.

use std::collections::BTreeMap;

use super::source::sources;
use super::{root, table};

/// The value of an expression of integers, constants and `*`.
fn evaluate(expression: &str, known: &BTreeMap<String, u64>) -> Option<u64> {
    expression
        .split('*')
        .try_fold(1_u64, |product, factor| {
            let factor = factor.trim().replace('_', "");
            let number = factor.parse().ok();
            number.map(|number: u64| product * number)
        })
        .or_else(|| known.get(expression.trim()).copied())
}

/// Every integer constant of `src/model/limits.rs` and the files below it.
fn constants() -> BTreeMap<String, u64> {
    let mut known = BTreeMap::new();
    for file in sources(&root().join("src")) {
        if !file.name.starts_with("src/model/limits") {
            continue;
        }
        for line in file.text.lines().filter_map(|line| line.strip_prefix("pub const ")) {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let Some((_, expression)) = rest.split_once(" = ") else { continue };
            if let Some(value) = evaluate(expression.trim_end_matches(';'), &known) {
                known.insert(name.to_owned(), value);
            }
        }
    }
    known
}

#[test]
fn the_page_shows_the_fixed_bounds() {
    let page = std::fs::read_to_string(root().join("docs/limits.md")).expect("the page");
    let known = constants();
    let rows = table(&page, "## Fixed bounds");
    assert!(rows.len() > 40, "only {} rows", rows.len());
    for row in rows {
        let [_, name, value, _] = row.as_slice() else { panic!("{row:?}") };
        assert_eq!(known.get(name), value.parse().ok().as_ref(), "{name}");
    }
}
