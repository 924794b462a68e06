//! The definitions of full-text indexes. PostgreSQL has no such index: replicas build them.
//!
//! A definition changes nothing that a writer decides, so it is stored beside the leader, in a transaction that
//! has the lock of the database's row.

use tokio_postgres::Row;

use super::cells::Cells;
use super::line::Call;
use super::link::Link;
use crate::fulltext::{Creation, decide};
use openkv_core::model::{
    Error, IndexChoice, IndexInfo, IndexRequest, IndexSpec, Key, Result, Tokenizer,
};

const LIST: &str = "\
SELECT name, prefix, fields, tokenizer, prefix_lengths FROM openkv.indexes WHERE db = $1 ORDER BY name";

const INSERT: &str = "\
INSERT INTO openkv.indexes (db, name, prefix, fields, tokenizer, prefix_lengths) \
VALUES ($1, $2, $3, $4, $5, $6)";

const DELETE: &str = "DELETE FROM openkv.indexes WHERE db = $1 AND prefix = $2";

/// All definitions, by name.
///
/// # Errors
/// The error of the server; `Corrupt` for a row of another form.
pub(super) fn list(link: &Link, db: i64) -> Result<Vec<IndexInfo>> {
    let rows = link.query((LIST, vec![&db]))?;
    rows.iter().map(info).collect()
}

fn info(row: &Row) -> Result<IndexInfo> {
    let cells = Cells::of("indexes", row);
    let fields: Vec<&[u8]> = cells.get(2)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let tokenizer = cells.text(3)?;
    let spec = IndexSpec {
        name: cells.text(0)?,
        prefix: Key::from_encoded(cells.get::<&[u8]>(1)?.to_vec()),
        fields: fields.into_iter().map(text).collect(),
        tokenizer: Tokenizer::from_name(&tokenizer).ok_or_else(|| {
            Error::corrupt(format!("openkv.indexes: there is no tokenizer {tokenizer:?}"))
        })?,
        prefix_lengths: cells.get::<&[u8]>(4)?.to_vec(),
    };
    Ok(IndexInfo { spec, building: false, scanned: 0, documents: 0 })
}

/// Stores a definition, or finds the same one.
pub(super) fn create(link: &Link, db: i64, request: &IndexRequest) -> Result<IndexInfo> {
    let listed = list(link, db)?;
    let (spec, creation) = decide(listed.iter().map(|info| &info.spec), request)?;
    let info = IndexInfo { spec: spec.clone(), building: false, scanned: 0, documents: 0 };
    if creation == Creation::Exists {
        return Ok(info);
    }
    let prefix = spec.prefix.as_bytes();
    if creation == Creation::Replaces {
        link.query((DELETE, vec![&db, &prefix]))?;
    }
    let (name, tokenizer) = (spec.name.as_bytes(), spec.tokenizer.name().as_bytes());
    let fields: Vec<&[u8]> = spec.fields.iter().map(String::as_bytes).collect();
    let (lengths, fields) = (&spec.prefix_lengths, &fields);
    let call: Call<'_> = (INSERT, vec![&db, &name, &prefix, fields, &tokenizer, lengths]);
    link.query(call)?;
    Ok(info)
}

/// Removes a definition; `false` if there is none.
pub(super) fn remove(link: &Link, db: i64, choice: &IndexChoice) -> Result<bool> {
    let listed = list(link, db)?.into_iter().map(|info| info.spec);
    let chosen = listed.filter(|spec| choice.is(spec)).map(|spec| spec.prefix).next();
    let Some(prefix) = chosen else { return Ok(false) };
    link.query((DELETE, vec![&db, &prefix.as_bytes()]))?;
    Ok(true)
}
