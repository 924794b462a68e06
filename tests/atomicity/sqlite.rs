//! A file as the place of a database, and SQLite's own view of it.

use std::path::PathBuf;
use std::time::Duration;

use openkv::engine::sqlite::SqliteEngine;

use super::differential::Place;

/// A file in a folder of its own.
pub(crate) struct SqliteFile {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place for SqliteFile {
    type Engine = SqliteEngine;

    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { path: directory.path().join("kv.sqlite3"), _directory: directory }
    }

    fn open(&self) -> SqliteEngine {
        SqliteEngine::open(&self.path, false, Duration::from_secs(5)).expect("opened")
    }

    fn inspect(&self) {
        let raw = rusqlite::Connection::open(&self.path).expect("opened raw");
        let text = |sql| raw.query_row(sql, [], |row| row.get::<_, String>(0)).expect(sql);
        let count = |sql| raw.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql);
        assert_eq!(text("PRAGMA integrity_check"), "ok");
        let orphans = "SELECT count(*) FROM openkv_spill \
             WHERE id NOT IN (SELECT v FROM kv WHERE v_encoding >= 256)";
        assert_eq!(count(orphans), 0);
        let missing = "SELECT count(*) FROM kv WHERE v_encoding >= 256 \
             AND v NOT IN (SELECT id FROM openkv_spill)";
        assert_eq!(count(missing), 0);
        let shared = "SELECT count(*) - count(DISTINCT v) FROM kv WHERE v_encoding >= 256";
        assert_eq!(count(shared), 0);
    }
}
