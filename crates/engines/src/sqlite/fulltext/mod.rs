//! Full-text indexes in a SQLite database: their list, creation and removal.
//!
//! An index is a row of `openkv_index` and two tables: one finds the document of a key, the other
//! is an FTS5 table with the text. Names of fields are data; the columns have numbers.
//!
//! Invariant: a [`Catalog`] changes only inside a transaction of its connection, and is loaded
//! again after a transaction that failed.

mod index;
mod private;
mod search;

use rusqlite::Connection;

use super::errors::failure;
use super::statement::{Run, Statement};
use crate::fulltext::{Creation, decide};
use index::Index;
use openkv_core::model::{
    Encoding, Error, IndexChoice, IndexInfo, IndexRequest, IndexSpec, Key, Result, Tokenizer,
};

pub(crate) use private::PrivateIndexes;
pub(super) use search::search;

/// The list of the indexes.
pub(super) const TABLES: &str = "
CREATE TABLE openkv_index (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  prefix BLOB NOT NULL,
  fields BLOB NOT NULL,
  tokenizer TEXT NOT NULL,
  prefix_lengths BLOB NOT NULL,
  progress BLOB,
  scanned INTEGER NOT NULL DEFAULT 0
);
";

/// The indexes, as the writer uses them.
#[derive(Default)]
pub(super) struct Catalog(Vec<Index>);

/// An index that is being built, and its progress.
pub(super) struct Site {
    id: i64,
    /// The entries between these two keys are still to be indexed.
    pub(super) after: Vec<u8>,
    pub(super) before: Vec<u8>,
}

impl Catalog {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let listed = list(&|sql| Statement::prepare(connection, sql.to_owned()))?;
        let open = |(id, info): (i64, IndexInfo)| Index::open(connection, id, info.spec);
        listed.into_iter().map(open).collect::<Result<_>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Updates the indexes that cover a changed key.
    pub(super) fn changed(&mut self, key: &[u8], value: Option<(Encoding, &[u8])>) -> Result<()> {
        for index in &mut self.0 {
            if index.spec().covers(key) {
                index.put(key, value)?;
            }
        }
        Ok(())
    }

    /// Creates an index, in the transaction of the caller. `any` returns whether there are entries
    /// to index. Returns its definition, and whether it created one.
    pub(super) fn create(
        &mut self,
        connection: &Connection,
        request: &IndexRequest,
        any: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<(IndexSpec, bool)> {
        let (spec, creation) = decide(self.0.iter().map(Index::spec), request)?;
        match creation {
            Creation::Exists => return Ok((spec, false)),
            Creation::Creates => {}
            Creation::Replaces => {
                self.remove(connection, &IndexChoice::Prefix(spec.prefix.clone()))?;
            }
        }
        let progress = any()?.then(|| spec.prefix.as_bytes().to_vec());
        let fields = pack(&spec.fields);
        let row = rusqlite::params![
            spec.name,
            spec.prefix.as_bytes(),
            fields,
            spec.tokenizer.name(),
            spec.prefix_lengths,
            progress
        ];
        connection
            .execute(
                "INSERT INTO openkv_index (name, prefix, fields, tokenizer, prefix_lengths, progress) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                row,
            )
            .map_err(failure)?;
        let id = connection.last_insert_rowid();
        connection.execute_batch(&index::tables(id, &spec)).map_err(failure)?;
        self.0.push(Index::open(connection, id, spec.clone())?);
        Ok((spec, true))
    }

    /// Removes an index, in the transaction of the caller; `false` if there is none.
    pub(super) fn remove(&mut self, connection: &Connection, choice: &IndexChoice) -> Result<bool> {
        let chosen = self.0.iter().position(|index| choice.is(index.spec()));
        let Some(at) = chosen else { return Ok(false) };
        // The statements must be finalized before their tables are dropped.
        let id = self.0.remove(at).id();
        let sql = format!(
            "DROP TABLE openkv_fts_{id}; DROP TABLE openkv_docs_{id}; \
             DELETE FROM openkv_index WHERE id = {id};"
        );
        connection.execute_batch(&sql).map_err(failure)?;
        Ok(true)
    }

    /// Removes all documents, in the transaction of the caller.
    pub(super) fn clear(&self, connection: &Connection) -> Result<()> {
        for id in self.0.iter().map(Index::id) {
            let sql = format!("DELETE FROM openkv_fts_{id}; DELETE FROM openkv_docs_{id};");
            connection.execute_batch(&sql).map_err(failure)?;
        }
        Ok(())
    }

    /// The index whose building continues next.
    pub(super) fn site(&self, connection: &Connection) -> Result<Option<Site>> {
        Statement::prepare(connection, SITE)?.run().first(|run| Site {
            id: run.column_int(0),
            after: run.column_blob(1).to_vec(),
            before: [run.column_blob(2), &[u8::MAX]].concat(),
        })
    }

    /// Indexes entries in the order of their keys, in the transaction of the caller. `after` is the last key that the
    /// index has then, `None` when it is complete.
    pub(super) fn build(
        &mut self,
        connection: &Connection,
        id: i64,
        entries: &[BuiltEntry],
        after: Option<&[u8]>,
    ) -> Result<()> {
        let index = self.0.iter_mut().find(|index| index.id() == id);
        let index = index.ok_or_else(|| Error::internal("an index to build is not there"))?;
        for BuiltEntry { key, value } in entries {
            index
                .put(key, value.as_ref().map(|(encoding, bytes)| (*encoding, bytes.as_slice())))?;
        }
        connection
            .execute(
                "UPDATE openkv_index SET progress = ?2, scanned = scanned + ?3 WHERE id = ?1",
                rusqlite::params![id, after, entries.len() as i64],
            )
            .map_err(failure)?;
        Ok(())
    }
}

/// An entry for an index that is being built.
pub(crate) struct BuiltEntry {
    pub(crate) key: Vec<u8>,
    /// `None` for an expired one.
    pub(crate) value: Option<(Encoding, Vec<u8>)>,
}

impl BuiltEntry {
    /// Bytes of its key and value: about what an index has of it at most.
    pub(crate) fn size_bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |(_, bytes)| bytes.len())
    }
}

const SITE: &str = "SELECT id, progress, prefix FROM openkv_index WHERE progress IS NOT NULL AND tokenizer <> 'value' \
     ORDER BY id LIMIT 1";

/// Prepares a statement on the connection of the caller.
pub(super) type Prepare<'a> = &'a dyn Fn(&str) -> Result<Statement>;

/// All indexes with their numbers, ordered by name, without the number of documents.
pub(super) fn list(prepare: Prepare<'_>) -> Result<Vec<(i64, IndexInfo)>> {
    let mut statement = prepare(
        "SELECT id, name, prefix, fields, tokenizer, prefix_lengths, progress, scanned \
         FROM openkv_index WHERE tokenizer <> 'value' ORDER BY name",
    )?;
    let mut run = statement.run();
    let mut listed = Vec::new();
    while run.step()? {
        let text = |at| String::from_utf8_lossy(run.column_blob(at)).into_owned();
        let tokenizer = Tokenizer::from_name(&text(4)).ok_or_else(|| damaged(&run))?;
        let spec = IndexSpec {
            name: text(1),
            prefix: Key::from_encoded(run.column_blob(2).to_vec()),
            fields: unpack(run.column_blob(3)).ok_or_else(|| damaged(&run))?,
            tokenizer,
            prefix_lengths: run.column_blob(5).to_vec(),
        };
        let building = !run.column_is_null(6);
        let scanned = u64::try_from(run.column_int(7)).unwrap_or(0);
        listed.push((run.column_int(0), IndexInfo { spec, building, scanned, documents: 0 }));
    }
    Ok(listed)
}

/// As [`list`], with the number of documents.
pub(super) fn counted(prepare: Prepare<'_>) -> Result<Vec<IndexInfo>> {
    let mut counted = Vec::new();
    for (id, mut info) in list(prepare)? {
        let mut count = prepare(&format!("SELECT count(*) FROM openkv_docs_{id}"))?;
        let documents = count.run().first_int()?.unwrap_or(0);
        info.documents = u64::try_from(documents).unwrap_or(0);
        counted.push(info);
    }
    Ok(counted)
}

pub(super) fn damaged(run: &Run<'_, '_>) -> Error {
    let id = run.column_int(0);
    Error::corrupt(format!("row {id} of openkv_index is damaged"))
}

/// Concatenates texts, each after its length as little-endian u32.
pub(super) fn pack(texts: &[String]) -> Vec<u8> {
    let mut packed = Vec::new();
    for text in texts {
        packed.extend_from_slice(&(text.len() as u32).to_le_bytes());
        packed.extend_from_slice(text.as_bytes());
    }
    packed
}

pub(super) fn unpack(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    while !bytes.is_empty() {
        let (len, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        texts.push(String::from_utf8(text.to_vec()).ok()?);
        bytes = rest;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_texts_round_trip() {
        let texts = vec!["name".to_owned(), String::new(), "é".to_owned()];
        assert_eq!(unpack(&pack(&texts)), Some(texts));
        assert_eq!(unpack(&[9, 0, 0, 0, 1]), None);
    }
}
