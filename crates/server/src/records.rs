//! The written form of a catalog: its databases, their quotas, policies of archives and the hashes of their tokens, as JSON.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::archive_policy::ArchivePolicy;
use super::auth::{AccessToken, Rights, TokenHash};
use super::options::Quotas;
use openkv_core::model::{DATABASE_NAME_CHARS_MAX, Error, Result};

/// The newest format: it has tokens for metrics, which earlier versions do not know. They refuse it by its
/// number.
const FORMAT: u32 = 3;
/// The format without them, but with policies of archives, which the versions before would lose.
const FORMAT_ARCHIVES: u32 = 2;
/// The format without either, which all versions read.
const FORMAT_PLAIN: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordsDocument {
    format: u32,
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
        FORMAT
    } else if databases.iter().any(|record| record.archive.is_some()) {
        FORMAT_ARCHIVES
    } else {
        FORMAT_PLAIN
    }
}

/// The text of a catalog.
pub(super) fn write_page(contents: Contents) -> Result<Vec<u8>> {
    let format = format_of(&contents);
    let written = |Record { name, id, created_ms, tokens, quotas, archive }| DatabaseRecord {
        name,
        id: id.to_string(),
        created_ms,
        quotas,
        archive,
        tokens: tokens.into_iter().map(token_record).collect(),
    };
    let Contents { databases, tokens } = contents;
    let databases = databases.into_iter().map(written).collect();
    let page = RecordsDocument {
        format,
        databases,
        tokens: tokens.into_iter().map(token_record).collect(),
    };
    serde_json::to_vec_pretty(&page).map_err(|error| Error::internal(error.to_string()))
}

/// The contents of a catalog. `source` names it in errors.
pub(super) fn read_page(text: &[u8], source: &str) -> Result<Contents> {
    let damaged = |why: String| Error::corrupt(format!("{source}: {why}"));
    let unreadable = |error: serde_json::Error| damaged(error.to_string());
    let Numbered { format } = serde_json::from_slice(text).map_err(unreadable)?;
    if !(FORMAT_PLAIN..=FORMAT).contains(&format) {
        let why = format!(
            "{source} has format {format}; this openkv knows {FORMAT_PLAIN} to {FORMAT}: update openkv"
        );
        return Err(Error::unsupported(why));
    }
    let page: RecordsDocument = serde_json::from_slice(text).map_err(unreadable)?;
    let token = |TokenRecord { id, rights, sha256, created_ms }| {
        let hash = TokenHash::from_text(&sha256)
            .ok_or_else(|| damaged(format!("token {id} has no hash")))?;
        Ok(AccessToken { id, rights, hash, created_ms })
    };
    let read = |record: DatabaseRecord| {
        let DatabaseRecord { name, id, created_ms, quotas, archive, tokens } = record;
        let id = Uuid::try_parse(&id).map_err(|_| damaged(format!("'{id}' is no UUID")))?;
        let tokens = tokens.into_iter().map(token).collect::<Result<_>>()?;
        Ok(Record { name, id, created_ms, tokens, quotas, archive })
    };
    let databases = page.databases.into_iter().map(read).collect::<Result<_>>()?;
    let tokens = page.tokens.into_iter().map(token).collect::<Result<_>>()?;
    Ok(Contents { databases, tokens })
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
        assert_eq!(format_in(&of(Rights::Metrics)), FORMAT);
        let of_server = Contents { tokens: record(Rights::Metrics).tokens, ..of(Rights::Read) };
        assert_eq!(format_in(&of_server), FORMAT);
    }

    /// The rights of a later format were read before its number, and the catalog counted as damaged.
    #[test]
    fn a_later_format_is_recognized_by_its_number() {
        let text = r#"{ "format": 4, "databases": [{ "tokens": [{ "rights": "other" }] }] }"#;
        let error = read_page(text.as_bytes(), "it").err().unwrap();
        assert!(error.message().contains("update openkv"), "{error}");
    }
}
