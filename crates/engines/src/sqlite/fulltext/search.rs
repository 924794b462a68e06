//! Searches an index, on any connection.

use std::cmp::Ordering;

use super::super::statement::Statement;
use super::{Prepare, list};
use openkv_core::model::{
    Error, Highlight, Hit, HitChoice, HitVisitor, IndexInfo, IndexSpec, Key, Result, Row, Search,
    Tokenizer,
};
use openkv_core::search::{parse, undivided};

/// Finds the entry of a key in the snapshot that the index is read from.
pub(in crate::sqlite) type Lookup<'a> =
    &'a mut dyn FnMut(&[u8], &mut dyn FnMut(Row<'_>)) -> Result<bool>;

/// FTS5 marks matches with these characters, which no text contains, so that a mark cannot be
/// confused with text.
const BEFORE: char = '\u{fdd0}';
const AFTER: char = '\u{fdd1}';

/// Passes the hits of a search to the visitor, best first; returns the index.
pub(in crate::sqlite) fn search(
    prepare: Prepare<'_>,
    search: &Search,
    lookup: Lookup<'_>,
    visitor: &mut dyn HitVisitor,
) -> Result<IndexInfo> {
    let (id, info) = choose(list(prepare)?, &search.prefix)?;
    let expression = parse(&search.query, &info.spec.fields, info.spec.tokenizer)?;
    let mut ranked = prepare(&format!(
        "SELECT rowid, rank FROM openkv_fts_{id} WHERE openkv_fts_{id} MATCH ?1 \
         ORDER BY rank, rowid"
    ))?;
    let mut key_of = prepare(&format!("SELECT k FROM openkv_fts_{id} WHERE rowid = ?1"))?;
    let mut snippets = match &search.highlight {
        Some(highlight) => Some((highlight, snippet_statement(prepare, id, &info.spec)?)),
        None => None,
    };
    let whole = search.prefix == info.spec.prefix;
    let wanted = IndexSpec { prefix: search.prefix.clone(), ..info.spec.clone() };

    let mut run = ranked.run().text(1, &expression);
    while run.step()? {
        let (number, score) = (run.column_int(0), -run.column_double(1));
        if search.after.is_some_and(|after| !is_behind((score, number), after)) {
            continue;
        }
        let mut found = key_of.run().int(1, number);
        found.step()?;
        let key = found.column_blob(0);
        if !whole && !wanted.covers(key) {
            continue;
        }
        // An expired entry is absent, even before the sweep deletes it.
        let mut choice = HitChoice::Pass;
        lookup(key, &mut |row| choice = visitor.hit(&Hit { row, score, number }))?;
        match (choice, &mut snippets) {
            (HitChoice::Stop, _) => break,
            (HitChoice::Take, Some((highlight, statement))) => {
                visitor.snippets(snippets_of(
                    statement,
                    &expression,
                    number,
                    highlight,
                    &info.spec,
                )?);
            }
            _ => {}
        }
    }
    Ok(info)
}

/// The index with the longest prefix of which the requested one is an extension.
fn choose(listed: Vec<(i64, IndexInfo)>, prefix: &Key) -> Result<(i64, IndexInfo)> {
    let fits =
        |info: &IndexInfo| info.spec.prefix == *prefix || info.spec.covers(prefix.as_bytes());
    let fitting = listed.into_iter().filter(|(_, info)| fits(info));
    fitting.max_by_key(|(_, info)| info.spec.prefix.len()).ok_or_else(|| {
        Error::invalid(
            "kv.search: no index covers this prefix; make one first with \
             kv.createIndex({ prefix, fields })",
        )
    })
}

/// Whether a hit follows another in the order of results.
fn is_behind(hit: (f64, i64), other: (f64, i64)) -> bool {
    match other.0.total_cmp(&hit.0) {
        Ordering::Greater => true,
        Ordering::Equal => hit.1 > other.1,
        Ordering::Less => false,
    }
}

fn snippet_statement(prepare: Prepare<'_>, id: i64, spec: &IndexSpec) -> Result<Statement> {
    // Column 0 is the key.
    let columns: Vec<_> = (1..=spec.fields.len())
        .map(|column| format!("snippet(openkv_fts_{id}, {column}, ?3, ?4, ?5, ?6)"))
        .collect();
    prepare(&format!(
        "SELECT {} FROM openkv_fts_{id} WHERE openkv_fts_{id} MATCH ?1 AND rowid = ?2",
        columns.join(", ")
    ))
}

fn snippets_of(
    statement: &mut Statement,
    expression: &str,
    number: i64,
    highlight: &Highlight,
    spec: &IndexSpec,
) -> Result<Vec<(usize, String)>> {
    let (before, after) = (BEFORE.to_string(), AFTER.to_string());
    let run = statement.run().text(1, expression).int(2, number).text(3, &before);
    let mut run =
        run.text(4, &after).text(5, &highlight.ellipsis).int(6, i64::from(highlight.terms));
    let mut snippets = Vec::new();
    if run.step()? {
        for (at, field) in (0..).zip(0..spec.fields.len()) {
            let text = String::from_utf8_lossy(run.column_blob(at));
            if text.contains(BEFORE) {
                let text = match spec.tokenizer {
                    Tokenizer::Auto => undivided(&text),
                    Tokenizer::Unicode61
                    | Tokenizer::Porter
                    | Tokenizer::Ascii
                    | Tokenizer::Trigram => text.into_owned(),
                };
                let marked = text.replace(BEFORE, &highlight.before);
                snippets.push((field, marked.replace(AFTER, &highlight.after)));
            }
        }
    }
    Ok(snippets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_ordered_by_score_and_then_by_number() {
        assert!(is_behind((1.0, 1), (2.0, 9)));
        assert!(is_behind((1.0, 2), (1.0, 1)));
        assert!(!is_behind((1.0, 1), (1.0, 1)));
        assert!(!is_behind((2.0, 9), (1.0, 1)));
    }
}
