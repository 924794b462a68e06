//! The files that are generated from declarations: `js/native/contract.ts`, `js/records/layout.ts`,
//! `js/model/error-codes.ts`, `js/model/limits.ts`, and tables of pages between comments. `npm run generate`
//! writes them; a test fails if one is not current.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

mod errors;
mod layout;
mod limits;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use openkv::metrics::{METRICS, MetricGroup, MetricKind};
use openkv::model::{Capability, Versionstamp};
use openkv::protocol::frame::{RECORDS, groups};
use openkv::protocol::numbers::{Group, Number, length};
use openkv::protocol::{Access, Command};

/// Set by `npm run generate`: the files are written.
const WRITES: &str = "OPENKV_GENERATE";

const CONTRACT_HEAD: &str = "\
// Duty: the numbers of js/native/contract.md, by name.
// Generated from crates/wire/src/protocol/numbers.rs, crates/wire/src/protocol/frame/records.rs and crates/wire/src/protocol/command.rs by `npm run generate`: do not edit.
";

/// The longest line of the page, a row of a table.
const LINE_CHARS_MAX: usize = 200;

/// The prefix of commands in JavaScript.
const COMMAND_PREFIX: &str = "CALL_";

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).expect("a file of the repository")
}

/// Writes the file if the environment variable requests it; otherwise compares it.
fn generate(name: &str, text: &str) {
    if std::env::var_os(WRITES).is_some() {
        fs::write(path(name), text).expect("a file of the repository");
    }
    assert!(read(name) == text, "{name} is not current: run `npm run generate`");
}

/// A number as it is written: the records of a write in hexadecimal, as their page names them.
fn shown(group: &Group, value: i64) -> String {
    if group.prefix == "OP_" { format!("0x{value:02x}") } else { value.to_string() }
}

fn constant(out: &mut String, meaning: &str, name: &str, value: &str) {
    let meaning = meaning.trim();
    write!(out, "/** {meaning} */\nexport const {name} = {value};\n").expect("a string");
}

fn section(out: &mut String, what: &str) {
    write!(out, "\n// {}\n\n", what.trim()).expect("a string");
}

fn contract() -> String {
    let mut out = CONTRACT_HEAD.to_owned();
    for group in groups() {
        section(&mut out, group.what);
        for Number { name, value, meaning } in group.numbers {
            let name = format!("{}{name}", group.prefix);
            constant(&mut out, meaning, &name, &shown(group, *value));
        }
    }
    section(&mut out, "Capabilities that OPENED says are missing.");
    let number = Capability::SynchronousReads.number().to_string();
    constant(&mut out, "Synchronous reads.", "SYNCHRONOUS_READS", &number);
    section(&mut out, "Commands of calls.");
    for command in Command::ALL {
        let (name, number) = (command.name(), command.number());
        writeln!(out, "export const {COMMAND_PREFIX}{name} = {number};").expect("a string");
    }
    out
}

/// A table of Markdown.
pub(crate) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rule = vec!["---"; head.len()].join("|");
    let mut out = format!("| {} |\n|{rule}|\n", head.join(" | "));
    for row in rows {
        writeln!(out, "| {} |", row.join(" | ")).expect("a string");
    }
    out
}

fn table_of(group: &Group) -> String {
    let rows = group.numbers.iter().map(|Number { name, value, meaning }| {
        vec![shown(group, *value), (*name).to_owned(), meaning.trim().to_owned()]
    });
    table(&["number", "name", "meaning"], rows)
}

fn table_of_commands() -> String {
    let rows = Command::ALL.iter().map(|command| {
        let access = match command.access() {
            Access::Read => "read",
            Access::Write => "write",
            Access::Local(_) => "local",
        };
        let retry = format!("{:?}", command.retry_safety()).to_lowercase();
        vec![command.number().to_string(), command.name(), access.to_owned(), retry]
    });
    table(&["number", "command", "access", "retry"], rows)
}

fn table_of_records() -> String {
    let rows = RECORDS.iter().map(|record| {
        let number = format!("{:02x}", record.number);
        let timed = if record.is_timed() { " ⏱" } else { "" };
        let fields = record.fields.iter().map(layout::shown).collect::<Vec<_>>();
        vec![format!("`{number}`"), format!("{}{timed}", record.name), fields.join("; ")]
    });
    table(&["number", "record", "fields"], rows)
}

/// The page with the table between `<!-- generated: NAME -->` and `<!-- end -->` replaced.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = page.split_once(&begin).expect("the beginning of a table");
    let (_, after) = rest.split_once("<!-- end -->\n").expect("the end of a table");
    format!("{before}{begin}\n{table}\n<!-- end -->\n{after}")
}

#[test]
fn contract_ts_is_current() {
    generate("js/native/contract.ts", &contract());
}

#[test]
fn layout_ts_is_current() {
    generate("js/records/layout.ts", &layout::layout());
}

#[test]
fn error_codes_ts_is_current() {
    generate("js/model/error-codes.ts", &errors::codes());
}

#[test]
fn limits_ts_is_current() {
    generate("js/model/limits.ts", &limits::shared());
}

#[test]
fn the_limits_of_index_d_ts_are_current() {
    let page = "index.d.ts";
    let text = read(page);
    let begin = "  // Generated from crates/core/src/model/limits.rs by `npm run generate`.\n";
    let end = "  // End of the generated limits.\n";
    let (before, rest) = text.split_once(begin).expect("the beginning of the limits");
    let (_, after) = rest.split_once(end).expect("the end of the limits");
    generate(page, &format!("{before}{begin}{}{end}{after}", limits::declared()));
}

#[test]
fn the_tables_of_contract_md_are_current() {
    let page = "js/native/contract.md";
    let mut text = read(page);
    for group in groups() {
        let name = group.what.trim().trim_end_matches('.');
        if text.contains(&format!("<!-- generated: {name} -->")) {
            text = with_table(&text, name, &table_of(group));
        }
    }
    text = with_table(&text, "Fields of the records", &table_of_records());
    text = with_table(&text, "Kinds of errors", &errors::contract());
    text = with_table(&text, "Commands", &table_of_commands());
    generate(page, &text);
}

#[test]
fn the_tables_of_the_page_about_limits_are_current() {
    let page = "docs/limits.md";
    let text = with_table(&read(page), "Limits of a handle", &limits::of_a_handle());
    let text = with_table(&text, "Codes of errors", &errors::page());
    generate(page, &with_table(&text, "Fixed bounds", &limits::fixed()));
}

#[test]
fn the_tables_of_the_page_about_metrics_are_current() {
    let page = "docs/metrics.md";
    let mut text = read(page);
    for (group, name) in [
        (MetricGroup::Every, "Metrics of every database"),
        (MetricGroup::Postgres, "Metrics on PostgreSQL"),
        (MetricGroup::Bucket, "Metrics in an object store"),
        (MetricGroup::Replica, "Metrics of a replica"),
        (MetricGroup::Archive, "Metrics of an archive"),
    ] {
        let rows = METRICS.iter().filter(|of| of.group == group).map(|of| {
            let labels =
                if of.labels.is_empty() { "".into() } else { format!("{{{}}}", of.labels) };
            let is_summary = of.kind == MetricKind::Summary;
            let summary = if is_summary { " (summary)" } else { "" };
            let name = format!("`openkv_{}{labels}`{summary}", of.name);
            vec![of.object.to_owned(), name, of.meaning.to_owned()]
        });
        let head = ["in the object", "in the text", "what it is"];
        text = with_table(&text, name, &table(&head, rows));
    }
    generate(page, &text);
}

#[test]
fn the_lines_of_contract_md_can_be_read() {
    let page = read("js/native/contract.md");
    let long = page.lines().find(|line| line.chars().count() > LINE_CHARS_MAX);
    assert_eq!(long, None);
}

#[test]
fn a_versionstamp_has_the_length_of_the_model() {
    assert_eq!(length::STAMP_BYTES, Versionstamp::HEX_BYTES);
}
