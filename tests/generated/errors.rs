//! The codes of errors: in JavaScript, on the page about errors, and in the contract of the binding.

use std::fmt::Write as _;
use std::fs;

use openkv::model::Kind;

use crate::{path, table};

const HEAD: &str = "\
// Duty: the codes of errors.
// Generated from crates/core/src/model/error.rs by `npm run generate`: do not edit.
";

/// The longest line of code.
const LINE_CHARS_MAX: usize = 100;

/// `js/model/error-codes.ts`.
pub(crate) fn codes() -> String {
    let mut out = HEAD.to_owned();
    let mut union = |what: &str, name: &str, is_in: fn(Kind) -> bool| {
        let codes = Kind::ALL.iter().filter(|kind| is_in(**kind));
        let codes: Vec<_> = codes.map(|kind| format!("\"{}\"", kind.code())).collect();
        let line = format!("export type {name} = {};", codes.join(" | "));
        let line = if line.len() > LINE_CHARS_MAX {
            format!("export type {name} =\n  | {};", codes.join("\n  | "))
        } else {
            line
        };
        write!(out, "\n/** {what} The codes are API, the messages are not. */\n{line}\n")
            .expect("a string");
    };
    union("Codes of errors that a user's input can cause.", "KvInputErrorCode", Kind::is_of_input);
    union("Codes of a KvError.", "KvErrorCode", |kind| !kind.is_of_input());
    out += "\n/** The codes by the number of the kind of an error record. */\n\
        export const CODES: readonly (KvErrorCode | KvInputErrorCode | undefined)[] = [\n  undefined,\n";
    for kind in Kind::ALL {
        writeln!(out, "  \"{}\",", kind.code()).expect("a string");
    }
    out + "];\n"
}

/// A paragraph of the text of a kind.
fn paragraph(kind: Kind, at: usize) -> String {
    let text = kind.text().iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
    let paragraph = text.split("\n\n").nth(at).expect("what happened, and what to do");
    paragraph.replace('\n', " ").trim_end_matches('.').to_owned()
}

/// The table of the page. Codes that a user's input can cause are first.
pub(crate) fn page() -> String {
    let mut kinds = Kind::ALL.to_vec();
    kinds.sort_by_key(|kind| match kind {
        Kind::Invalid => 0,
        Kind::TooLarge => 1,
        Kind::Range => 2,
        _ => 3,
    });
    let rows = kinds.into_iter().map(|kind| {
        vec![
            format!("`{}`", kind.code()),
            format!("`{}`", kind.class()),
            paragraph(kind, 0),
            kind.http_status().to_string(),
            paragraph(kind, 1),
        ]
    });
    table(&["`code`", "class", "what happened", "HTTP", "what to do"], rows)
}

/// The table of the contract.
pub(crate) fn contract() -> String {
    let rows = Kind::ALL.iter().map(|kind| {
        vec![(*kind as u8).to_string(), kind.code().to_owned(), kind.class().to_owned()]
    });
    table(&["kind", "code", "class"], rows)
}

#[test]
fn the_page_about_http_has_each_code_with_its_status() {
    let page = fs::read_to_string(path("docs/http.md")).expect("the page");
    for kind in Kind::ALL {
        let (code, status) = (format!("`{}`", kind.code()), kind.http_status().to_string());
        let mut rows = page.lines().filter_map(|line| line.strip_prefix("| "));
        let found = rows.any(|row| {
            let mut cells = row.split(" | ");
            let (statuses, codes) = (cells.next(), cells.next());
            statuses.is_some_and(|of| of.split(", ").any(|of| of == status))
                && codes.is_some_and(|of| of.contains(&code))
        });
        assert!(found, "{code} with {status}");
    }
}
