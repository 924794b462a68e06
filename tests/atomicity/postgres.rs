//! A database on PostgreSQL as the place of a database, and SQL's view of its tables.

use openkv::engine::postgres::{PostgresEngine, Server};

use super::differential::Place;
use super::postgres_server::{fresh_url, on_server};

/// A database with a name of its own, in the time of the test.
pub(crate) struct PostgresDatabase {
    server: Server,
    name: String,
    url: String,
}

impl PostgresDatabase {
    /// The database of a URL.
    pub(crate) fn at(url: String) -> Self {
        let (server, name) = Server::parse(&url).expect("a URL");
        Self { server, name, url }
    }
}

impl Place for PostgresDatabase {
    type Engine = PostgresEngine;

    fn new() -> Self {
        Self::at(fresh_url())
    }

    fn open(&self) -> PostgresEngine {
        PostgresEngine::open_in_time_of_caller(&self.server, &self.name).expect("opened")
    }

    fn inspect(&self) {
        on_server(&self.url, async |client| {
            for (rule, sql) in RULES {
                let rows = client.query(sql, &[&self.name.as_bytes()]).await.expect(sql);
                assert_eq!(rows.len(), 0, "{rule}: {rows:?}");
            }
        });
    }
}

/// The same, led by this process.
pub(crate) struct LedDatabase(PostgresDatabase);

impl Place for LedDatabase {
    type Engine = PostgresEngine;

    fn new() -> Self {
        Self(PostgresDatabase::at(format!("{}&lead=test", fresh_url())))
    }

    fn open(&self) -> PostgresEngine {
        self.0.open()
    }

    fn inspect(&self) {
        self.0.inspect();
    }
}

/// What must hold, and a query for rows that break it. `$1` is the name of the database.
const RULES: [(&str, &str); 2] = [
    (
        "each expiry is that of an entry, and each entry with an expiry has one",
        "SELECT k FROM openkv.entries e FULL JOIN openkv.expiries x USING (db, k) \
         WHERE db = (SELECT id FROM openkv.databases WHERE name = $1) \
         AND e.expires_ms IS DISTINCT FROM x.at_ms",
    ),
    (
        "no entry is newer than the last commit",
        "SELECT k FROM openkv.entries e JOIN openkv.databases d ON d.id = e.db \
         WHERE d.name = $1 AND e.version > d.version",
    ),
];
