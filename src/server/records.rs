//! The written form of a catalog: its databases, their quotas, policies of archives and the hashes of their tokens, as JSON.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::archive_policy::ArchivePolicy;
use super::auth::{AccessToken, Rights, TokenHash};
use super::options::Quotas;
use crate::model::{DATABASE_NAME_CHARS_MAX, Error, Result};

/// The newest format: it has policies of archives, which earlier versions would lose.
const FORMAT: u32 = 2;
/// The format without them, which all versions read.
const FORMAT_PLAIN: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    format: u32,
    databases: Vec<DatabaseRecord>,
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

/// The text of a catalog.
pub(super) fn write_page(records: Vec<Record>) -> Result<Vec<u8>> {
    let with_policies = records.iter().any(|record| record.archive.is_some());
    let format = if with_policies { FORMAT } else { FORMAT_PLAIN };
    let written = |Record { name, id, created_ms, tokens, quotas, archive }| DatabaseRecord {
        name,
        id: id.to_string(),
        created_ms,
        quotas,
        archive,
        tokens: tokens.into_iter().map(token_record).collect(),
    };
    let page = Page { format, databases: records.into_iter().map(written).collect() };
    serde_json::to_vec_pretty(&page).map_err(|error| Error::internal(error.to_string()))
}

/// The databases in the text of a catalog. `source` names it in errors.
pub(super) fn read_page(text: &[u8], source: &str) -> Result<Vec<Record>> {
    let damaged = |why: String| Error::corrupt(format!("{source}: {why}"));
    let page: Page = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
    if !(FORMAT_PLAIN..=FORMAT).contains(&page.format) {
        let format = page.format;
        let why = format!(
            "{source} has format {format}; this openkv knows {FORMAT_PLAIN} to {FORMAT}: update openkv"
        );
        return Err(Error::unsupported(why));
    }
    let read = |record: DatabaseRecord| {
        let DatabaseRecord { name, id, created_ms, quotas, archive, tokens } = record;
        let id = Uuid::try_parse(&id).map_err(|_| damaged(format!("'{id}' is no UUID")))?;
        let token = |TokenRecord { id, rights, sha256, created_ms }| {
            let hash = TokenHash::from_text(&sha256)
                .ok_or_else(|| damaged(format!("token {id} has no hash")))?;
            Ok(AccessToken { id, rights, hash, created_ms })
        };
        let tokens = tokens.into_iter().map(token).collect::<Result<_>>()?;
        Ok(Record { name, id, created_ms, tokens, quotas, archive })
    };
    page.databases.into_iter().map(read).collect()
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
