//! The plans of the statements of the PostgreSQL engine: the server logs each with its plan, in a
//! database without statistics.

use std::collections::BTreeSet;

use openkv::engine::postgres::PostgresEngine;

use super::differential::Place;
use super::postgres::{PostgresDatabase, on_server};
use super::postgres_server::{fresh_url, log};

/// The tables that grow. A statement that scans one of them whole has no index.
const TABLES: [&str; 6] = ["entries", "expiries", "log", "changes", "messages", "dead"];

/// Fewest statements that the random work executes: with fewer the log was not read.
const STATEMENTS_MIN: usize = 25;

/// Logs every statement with its plan.
const SETTINGS: [&str; 4] = [
    "session_preload_libraries = 'auto_explain'",
    "auto_explain.log_min_duration = 0",
    "auto_explain.log_nested_statements = on",
    "auto_explain.log_level = log",
];

/// A database in a PostgreSQL database of its own.
pub(crate) struct ExplainedDatabase {
    inner: PostgresDatabase,
    /// The name of the PostgreSQL database, which begins each line of the log.
    name: String,
}

impl Place for ExplainedDatabase {
    type Engine = PostgresEngine;

    fn new() -> Self {
        let url = fresh_url();
        let name = format!("plans{:x}", getrandom::u64().expect("random"));
        on_server(&url, async |client| {
            client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("created");
            for setting in SETTINGS {
                let sql = format!("ALTER DATABASE {name} SET {setting}");
                client.batch_execute(&sql).await.expect("set");
            }
        });
        let url = url.replace("/postgres?", &format!("/{name}?"));
        Self { inner: PostgresDatabase::at(url), name }
    }

    fn open(&self) -> PostgresEngine {
        self.inner.open()
    }

    fn inspect(&self) {
        let log = log();
        let prefix = format!("{} ", self.name);
        // Further lines of an entry begin with a tab.
        let entries = log.split("\n").fold(Vec::<String>::new(), |mut entries, line| {
            match entries.last_mut() {
                Some(last) if line.starts_with('\t') => last.extend(["\n", line]),
                _ => entries.push(line.to_owned()),
            }
            entries
        });
        let mut statements = BTreeSet::new();
        let mut faults = BTreeSet::new();
        for entry in entries.iter().filter(|entry| entry.starts_with(&prefix)) {
            let Some((_, plan)) = entry.split_once("Query Text: ") else { continue };
            let text = plan.lines().next().unwrap_or_default();
            statements.insert(text.to_owned());
            let scans = |table: &str| {
                plan.contains(&format!("Seq Scan on {table} "))
                    || plan.contains(&format!("Seq Scan on openkv.{table} "))
            };
            if TABLES.iter().any(|table| scans(table)) {
                faults.insert(plan.to_owned());
            }
        }
        assert!(statements.len() >= STATEMENTS_MIN, "{statements:#?}");
        assert_eq!(faults, BTreeSet::new());
    }
}
