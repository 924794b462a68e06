//! The written form of a catalog: its databases, their quotas, policies of archives and the hashes of their tokens, as JSON.
//! A change of it is a line.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::archive_policy::ArchivePolicy;
use super::auth::{AccessToken, Rights, TokenHash};
use super::options::Quotas;
use openkv_core::model::{DATABASE_NAME_CHARS_MAX, Error, Result};

/// The newest format: its changes lie beside it, which earlier versions do not read. They refuse it by its number.
const FORMAT: u32 = 4;
/// The format with tokens for metrics, which the versions before do not know.
const FORMAT_METRICS: u32 = 3;
/// The format without them, but with policies of archives, which the versions before would lose.
const FORMAT_ARCHIVES: u32 = 2;
/// The format without either, which all versions read.
const FORMAT_PLAIN: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordsDocument {
    format: u32,
    /// The number of its changes, which lie beside it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    changes: Option<u64>,
    databases: Vec<DatabaseRecord>,
    /// The tokens of the server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    tokens: Vec<TokenRecord>,
}

/// The number of the format alone, which another version may have written.
#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DatabaseRecord {
    name: String,
    id: String,
    created_ms: i64,
    quotas: Quotas,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    archive: Option<ArchivePolicy>,
    tokens: Vec<TokenRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenRecord {
    id: String,
    rights: Rights,
    sha256: String,
    created_ms: i64,
}

/// A database in a catalog.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) created_ms: i64,
    pub(super) tokens: Vec<AccessToken>,
    pub(super) quotas: Quotas,
    pub(super) archive: Option<ArchivePolicy>,
}

/// The contents of a catalog.
#[derive(Clone, Default)]
pub(super) struct Contents {
    pub(super) databases: Vec<Record>,
    /// The tokens of the server.
    pub(super) tokens: Vec<AccessToken>,
}

/// The oldest format that has all of this.
fn format_of(Contents { databases, tokens }: &Contents) -> u32 {
    let of_metrics = |token: &AccessToken| token.rights == Rights::Metrics;
    if !tokens.is_empty() || databases.iter().any(|record| record.tokens.iter().any(of_metrics)) {
        FORMAT_METRICS
    } else if databases.iter().any(|record| record.archive.is_some()) {
        FORMAT_ARCHIVES
    } else {
        FORMAT_PLAIN
    }
}

/// A change of a catalog.
#[derive(Clone)]
pub(super) enum Change {
    /// The record of a database, which is new or takes the place of that with its UUID.
    Set(Record),
    Drop(Uuid),
    /// All tokens of the server.
    Tokens(Vec<AccessToken>),
}

/// A [`Change`] as a line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ChangeRecord {
    Set(DatabaseRecord),
    Drop(String),
    Tokens(Vec<TokenRecord>),
}

impl Contents {
    /// Makes changes, in their order.
    pub(super) fn apply(&mut self, changes: impl IntoIterator<Item = Change>) {
        let mut changed = HashMap::new();
        for change in changes {
            match change {
                Change::Set(record) => drop(changed.insert(record.id, Some(record))),
                Change::Drop(id) => drop(changed.insert(id, None)),
                Change::Tokens(tokens) => self.tokens = tokens,
            }
        }
        if changed.is_empty() {
            return;
        }
        self.databases.retain_mut(|record| match changed.remove(&record.id) {
            Some(Some(new)) => {
                *record = new;
                true
            }
            Some(None) => false,
            None => true,
        });
        self.databases.extend(changed.into_values().flatten());
    }
}

/// The text of a catalog, in the oldest format that has its contents.
pub(super) fn write_page(contents: Contents) -> Result<Vec<u8>> {
    let page = document(format_of(&contents), None, contents);
    serde_json::to_vec_pretty(&page).map_err(|error| Error::internal(error.to_string()))
}

/// The text of a catalog whose changes, of this number, lie beside it.
pub(super) fn write_changed_page(contents: Contents, changes: u64) -> Result<Vec<u8>> {
    serde_json::to_vec(&document(FORMAT, Some(changes), contents))
        .map_err(|error| Error::internal(error.to_string()))
}

/// A change as a line, with its end.
pub(super) fn write_change(change: &Change) -> Result<Vec<u8>> {
    let change = match change.clone() {
        Change::Set(record) => ChangeRecord::Set(database_record(record)),
        Change::Drop(id) => ChangeRecord::Drop(id.to_string()),
        Change::Tokens(tokens) => ChangeRecord::Tokens(token_records(tokens)),
    };
    let mut line =
        serde_json::to_vec(&change).map_err(|error| Error::internal(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// The changes of a text, and the length of its whole lines. A last line that was not written to its end belongs to a
/// change that was not answered. `source` names the text in errors.
pub(super) fn read_changes(text: &[u8], source: &str) -> Result<(Vec<Change>, usize)> {
    let (mut changes, mut end) = (Vec::new(), 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let is_last = end + line.len() == text.len();
        match line.strip_suffix(b"\n").map(|line| read_change(line, source)) {
            Some(Ok(change)) => changes.push(change),
            Some(Err(error)) if !is_last => return Err(error),
            Some(Err(_)) | None => break,
        }
        end += line.len();
    }
    Ok((changes, end))
}

fn read_change(line: &[u8], source: &str) -> Result<Change> {
    let damaged = |why: String| Error::corrupt(format!("{source}: {why}"));
    Ok(match serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))? {
        ChangeRecord::Set(record) => Change::Set(read_record(record, source)?),
        ChangeRecord::Drop(id) => Change::Drop(read_id(&id, source)?),
        ChangeRecord::Tokens(tokens) => Change::Tokens(read_tokens(tokens, source)?),
    })
}

fn document(format: u32, changes: Option<u64>, of: Contents) -> RecordsDocument {
    let Contents { databases, tokens } = of;
    let databases = databases.into_iter().map(database_record).collect();
    RecordsDocument { format, changes, databases, tokens: token_records(tokens) }
}

fn database_record(record: Record) -> DatabaseRecord {
    let Record { name, id, created_ms, tokens, quotas, archive } = record;
    let (id, tokens) = (id.to_string(), token_records(tokens));
    DatabaseRecord { name, id, created_ms, quotas, archive, tokens }
}

fn token_records(tokens: Vec<AccessToken>) -> Vec<TokenRecord> {
    tokens.into_iter().map(token_record).collect()
}

fn read_id(id: &str, source: &str) -> Result<Uuid> {
    Uuid::try_parse(id).map_err(|_| Error::corrupt(format!("{source}: '{id}' is no UUID")))
}

fn read_tokens(tokens: Vec<TokenRecord>, source: &str) -> Result<Vec<AccessToken>> {
    let read = |TokenRecord { id, rights, sha256, created_ms }| {
        let hash = TokenHash::from_text(&sha256)
            .ok_or_else(|| Error::corrupt(format!("{source}: token {id} has no hash")))?;
        Ok(AccessToken { id, rights, hash, created_ms })
    };
    tokens.into_iter().map(read).collect()
}

fn read_record(record: DatabaseRecord, source: &str) -> Result<Record> {
    let DatabaseRecord { name, id, created_ms, quotas, archive, tokens } = record;
    let (id, tokens) = (read_id(&id, source)?, read_tokens(tokens, source)?);
    Ok(Record { name, id, created_ms, tokens, quotas, archive })
}

/// The contents of a catalog. `source` names it in errors.
pub(super) fn read_page(text: &[u8], source: &str) -> Result<Contents> {
    read_changed_page(text, source).map(|(contents, _)| contents)
}

/// As [`read_page`], and the number of the changes beside the text.
pub(super) fn read_changed_page(text: &[u8], source: &str) -> Result<(Contents, Option<u64>)> {
    let page = serde_json::from_slice::<RecordsDocument>(text);
    let numbered = match &page {
        Ok(RecordsDocument { format, .. }) => Ok(*format),
        // Another version may have written what this one cannot read.
        Err(_) => serde_json::from_slice(text).map(|Numbered { format }| format),
    };
    if let Ok(format) = numbered
        && !(FORMAT_PLAIN..=FORMAT).contains(&format)
    {
        let why = format!(
            "{source} has format {format}; this openkv knows {FORMAT_PLAIN} to {FORMAT}: update openkv"
        );
        return Err(Error::unsupported(why));
    }
    let RecordsDocument { changes, databases, tokens, .. } =
        page.map_err(|error| Error::corrupt(format!("{source}: {error}")))?;
    let read = |record| read_record(record, source);
    let databases = databases.into_iter().map(read).collect::<Result<_>>()?;
    let contents = Contents { databases, tokens: read_tokens(tokens, source)? };
    Ok((contents, changes))
}

fn token_record(token: AccessToken) -> TokenRecord {
    let AccessToken { id, rights, hash, created_ms } = token;
    TokenRecord { id, rights, sha256: hash.to_text(), created_ms }
}

/// Whether a database can have this name: an unescaped part of URLs that differs from the server's own paths.
pub(super) fn is_name(name: &str) -> bool {
    let chars = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let reserved = ["v1", "v2", "healthz", "readyz"].contains(&name);
    first && name.len() <= DATABASE_NAME_CHARS_MAX && name.chars().all(chars) && !reserved
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Kind;

    fn record(rights: Rights) -> Record {
        let token =
            AccessToken { id: "a1".into(), rights, hash: TokenHash::of("x"), created_ms: 1 };
        let (id, quotas, archive) = (Uuid::from_u128(7), Quotas::default(), None);
        Record { name: "shop".into(), id, created_ms: 2, tokens: vec![token], quotas, archive }
    }

    fn format_in(contents: &Contents) -> u32 {
        let text = write_page(contents.clone()).unwrap();
        let read = read_page(&text, "it").unwrap();
        assert_eq!(read.databases.len(), contents.databases.len());
        assert_eq!(read.tokens.len(), contents.tokens.len());
        serde_json::from_slice::<Numbered>(&text).unwrap().format
    }

    #[test]
    fn a_catalog_has_the_oldest_format_that_has_its_contents() {
        let of = |rights| Contents { databases: vec![record(rights)], tokens: Vec::new() };
        assert_eq!(format_in(&of(Rights::Admin)), FORMAT_PLAIN);
        assert_eq!(format_in(&of(Rights::Metrics)), FORMAT_METRICS);
        let of_server = Contents { tokens: record(Rights::Metrics).tokens, ..of(Rights::Read) };
        assert_eq!(format_in(&of_server), FORMAT_METRICS);
    }

    /// The rights of a later format were read before its number, and the catalog counted as damaged.
    #[test]
    fn a_later_format_is_recognized_by_its_number() {
        let text = r#"{ "format": 5, "databases": [{ "tokens": [{ "rights": "other" }] }] }"#;
        let error = read_page(text.as_bytes(), "it").err().unwrap();
        assert!(error.message().contains("update openkv"), "{error}");
    }

    fn named(contents: &Contents) -> Vec<(u128, &str)> {
        contents
            .databases
            .iter()
            .map(|record| (record.id.as_u128(), record.name.as_str()))
            .collect()
    }

    #[test]
    fn changes_are_made_in_their_order() {
        let of = |id, name: &str| {
            let (id, name) = (Uuid::from_u128(id), name.to_owned());
            Change::Set(Record { id, name, ..record(Rights::Admin) })
        };
        let changes = [of(1, "a"), of(2, "b"), Change::Drop(Uuid::from_u128(1)), of(2, "c")];
        let lines: Vec<u8> = changes.iter().flat_map(|it| write_change(it).unwrap()).collect();
        let mut contents = Contents { databases: vec![record(Rights::Read)], tokens: Vec::new() };
        for _ in 0..2 {
            let (read, end) = read_changes(&lines, "it").unwrap();
            assert_eq!((read.len(), end), (changes.len(), lines.len()));
            contents.apply(read);
            assert_eq!(named(&contents), [(7, "shop"), (2, "c")]);
        }
        let tokens = record(Rights::Metrics).tokens;
        let line = write_change(&Change::Tokens(tokens)).unwrap();
        contents.apply(read_changes(&line, "it").unwrap().0);
        assert_eq!(contents.tokens.len(), 1);
    }

    #[test]
    fn a_last_line_without_its_end_is_left_out_and_an_earlier_one_is_damage() {
        let line = write_change(&Change::Drop(Uuid::from_u128(1))).unwrap();
        for cut in 0..line.len() {
            let text = [line.as_slice(), line.get(..cut).unwrap()].concat();
            let (read, end) = read_changes(&text, "it").unwrap();
            assert_eq!((read.len(), end), (1, line.len()));
        }
        let damaged = [b"{\n", line.as_slice()].concat();
        assert_eq!(read_changes(&damaged, "it").err().unwrap().kind(), Kind::Corrupt);
    }
}
