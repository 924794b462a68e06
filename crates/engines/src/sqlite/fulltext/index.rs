//! One index: its two tables, and adding and removing documents.

use rusqlite::Connection;

use super::super::statement::Statement;
use openkv_core::model::{Encoding, IndexSpec, Result, Tokenizer};
use openkv_core::search::Texts;

/// The statements of a writer for an index.
pub(super) struct Index {
    id: i64,
    spec: IndexSpec,
    texts: Texts,
    find: Statement,
    name: Statement,
    forget: Statement,
    stored: Statement,
    insert: Statement,
    inserted: Statement,
    update: Statement,
    delete: Statement,
}

/// The tables of an index. `k` is not indexed; it is the key of the entry of a hit.
pub(super) fn tables(id: i64, spec: &IndexSpec) -> String {
    let tokenize = match spec.tokenizer {
        Tokenizer::Unicode61 => "unicode61",
        Tokenizer::Porter => "porter unicode61",
        Tokenizer::Ascii => "ascii",
        Tokenizer::Trigram => "trigram remove_diacritics 1",
        // Marks are letters: without them the words of Hindi and the syllables of Thai fall apart. The selectors of
        // variants are none.
        Tokenizer::Auto => concat!(
            "unicode61 categories ''L* N* Co Mn Mc'' separators ''",
            "\u{fe00}\u{fe01}\u{fe02}\u{fe03}\u{fe04}\u{fe05}\u{fe06}\u{fe07}",
            "\u{fe08}\u{fe09}\u{fe0a}\u{fe0b}\u{fe0c}\u{fe0d}\u{fe0e}\u{fe0f}''"
        ),
    };
    let lengths: Vec<_> = spec.prefix_lengths.iter().map(u8::to_string).collect();
    let prefix = match lengths.is_empty() {
        true => String::new(),
        false => format!(", prefix = '{}'", lengths.join(" ")),
    };
    let columns = columns(spec, |column| column);
    format!(
        "CREATE TABLE openkv_docs_{id} (k BLOB PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID; \
         CREATE VIRTUAL TABLE openkv_fts_{id} USING \
         fts5(k UNINDEXED, {columns}, tokenize = '{tokenize}'{prefix});"
    )
}

/// A list with one item for each column: `f0`, `f1`, ….
fn columns(spec: &IndexSpec, show: impl Fn(String) -> String) -> String {
    let all: Vec<_> = (0..spec.fields.len()).map(|at| show(format!("f{at}"))).collect();
    all.join(", ")
}

impl Index {
    pub(super) fn open(connection: &Connection, id: i64, spec: IndexSpec) -> Result<Self> {
        let prepare = |sql: String| Statement::prepare(connection, sql);
        let all = columns(&spec, |column| column);
        let places: Vec<_> = (0..spec.fields.len()).map(|at| format!("?{}", at + 2)).collect();
        let places = places.join(", ");
        let sets: Vec<_> =
            (0..spec.fields.len()).map(|at| format!("f{at} = ?{}", at + 2)).collect();
        let sets = sets.join(", ");
        Ok(Self {
            find: prepare(format!("SELECT id FROM openkv_docs_{id} WHERE k = ?1"))?,
            name: prepare(format!("INSERT INTO openkv_docs_{id} (k, id) VALUES (?1, ?2)"))?,
            forget: prepare(format!("DELETE FROM openkv_docs_{id} WHERE k = ?1"))?,
            stored: prepare(format!("SELECT {all} FROM openkv_fts_{id} WHERE rowid = ?1"))?,
            insert: prepare(format!(
                "INSERT INTO openkv_fts_{id} (k, {all}) VALUES (?1, {places})"
            ))?,
            inserted: prepare("SELECT last_insert_rowid()".into())?,
            update: prepare(format!("UPDATE openkv_fts_{id} SET {sets} WHERE rowid = ?1"))?,
            delete: prepare(format!("DELETE FROM openkv_fts_{id} WHERE rowid = ?1"))?,
            texts: Texts::new(&spec.fields, spec.tokenizer),
            id,
            spec,
        })
    }

    pub(super) fn id(&self) -> i64 {
        self.id
    }

    pub(super) fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    /// Replaces the document of a key with that of a value, or removes it.
    pub(super) fn put(&mut self, key: &[u8], value: Option<(Encoding, &[u8])>) -> Result<()> {
        let texts = value.and_then(|(encoding, bytes)| self.texts.of(encoding, bytes));
        match (self.find.run().blob(1, key).first(|run| run.column_int(0))?, texts) {
            (None, None) => Ok(()),
            (None, Some(texts)) => {
                let mut run = self.insert.run().blob(1, key);
                for (at, text) in (2..).zip(&texts) {
                    run = run.text(at, text);
                }
                run.finish()?;
                let id = self.inserted.run().first_int()?.unwrap_or(0);
                self.name.run().blob(1, key).int(2, id).finish()
            }
            (Some(id), None) => {
                self.delete.run().int(1, id).finish()?;
                self.forget.run().blob(1, key).finish()
            }
            (Some(id), Some(texts)) => {
                if self.holds(id, &texts)? {
                    return Ok(());
                }
                let mut run = self.update.run().int(1, id);
                for (at, text) in (2..).zip(&texts) {
                    run = run.text(at, text);
                }
                run.finish()
            }
        }
    }

    /// Whether a document already has these texts: most changes of a value leave the fields
    /// unchanged.
    fn holds(&mut self, id: i64, texts: &[String]) -> Result<bool> {
        let same = self.stored.run().int(1, id).first(|run| {
            (0..).zip(texts).all(|(at, text)| run.column_blob(at) == text.as_bytes())
        })?;
        Ok(same == Some(true))
    }
}
