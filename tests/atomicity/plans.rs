//! The plans of the statements of the PostgreSQL engine: the server logs each with its plan, in a
//! database without statistics.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use openkv::engine::postgres::PostgresEngine;
use openkv::engine::{Engine, Work, Writer};
use openkv::model::{AtomicWrite, EncodedValue, Key, Limits, Mutation, Time, WriteParts};

use super::differential::Place;
use super::postgres::PostgresDatabase;
use super::postgres_server::on_server;
use super::postgres_server::{fresh_url, log};

/// The tables that grow. A statement that scans one of them whole has no index; one that visits all
/// rows of a database has a LIMIT.
const TABLES: [&str; 6] = ["entries", "expiries", "log", "segments", "messages", "dead"];

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
        Self::with_parameters("")
    }

    fn open(&self) -> PostgresEngine {
        self.inner.open()
    }

    fn inspect(&self) {
        let Plans { statements, faults } = self.plans();
        assert!(statements.len() >= STATEMENTS_MIN, "{statements:#?}");
        assert_eq!(faults, BTreeSet::new());
    }
}

/// What the server has logged of one PostgreSQL database.
struct Plans {
    statements: BTreeSet<String>,
    /// The plans that scan a table or all rows of a database, or that miss the index of locked messages.
    faults: BTreeSet<String>,
}

impl ExplainedDatabase {
    /// A new one, with more parameters in its URL.
    fn with_parameters(more: &str) -> Self {
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
        Self { inner: PostgresDatabase::at(url + more), name }
    }

    fn plans(&self) -> Plans {
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
            let is_fault = TABLES.iter().any(|table| scans(table))
                || reads_a_whole_database(plan)
                || misses_the_index_of_locked_messages(plan);
            if is_fault {
                faults.insert(plan.to_owned());
            }
        }
        Plans { statements, faults }
    }
}

#[test]
fn a_leaders_batch_of_one_statement_uses_an_index_without_statistics() {
    let place = ExplainedDatabase::with_parameters("&lead=plans");
    let mut writer = place.open().writer().expect("a writer");
    let key = |number: u8| Key::from_encoded(vec![2, number, 0]);
    for number in 1..5 {
        let set = |expiry| {
            let (key, value) = (key(number), EncodedValue::le64(1));
            Mutation::Set { key, suffixed: false, value, expiry }
        };
        for mutation in [set(None), set(Some(Time::At(9))), Mutation::Delete { key: key(number) }] {
            let parts = WriteParts { mutations: vec![mutation], ..WriteParts::default() };
            let write = AtomicWrite::new(parts, &Limits::default()).expect("within the limits");
            let work = Work { writes: vec![write], durable: true, ..Work::default() };
            let deadline = Instant::now() + Duration::from_secs(10);
            writer.apply(work, 1, deadline).expect("applied");
        }
    }
    let Plans { statements, faults } = place.plans();
    assert!(statements.iter().any(|text| text.starts_with("WITH fence AS")), "{statements:#?}");
    assert_eq!(faults, BTreeSet::new());
}

/// Whether a plan visits all rows of a database: its index has no other condition, and no LIMIT ends
/// the scan.
fn reads_a_whole_database(plan: &str) -> bool {
    let lines: Vec<&str> = plan.lines().collect();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    lines.iter().enumerate().any(|(at, line)| {
        let condition = line.trim();
        if !condition.starts_with("Index Cond: (db = ") || condition.contains(" AND ") {
            return false;
        }
        let above = |of: usize| {
            let is_parent = |at: &usize| indentation(lines[*at]) < indentation(lines[of]);
            (0..of).rev().find(is_parent)
        };
        let Some(scan) = above(at) else { return false };
        let node = lines[scan].replace("openkv.", "");
        let is_large = TABLES.iter().any(|table| node.contains(&format!(" on {table} ")));
        let is_bounded = above(scan).is_some_and(|parent| lines[parent].contains("Limit"));
        is_large && !is_bounded
    })
}

/// Whether a plan visits messages that wait to find those that are locked, or all locked ones to find a number. The claims
/// of a queue once visited all messages of its groups.
fn misses_the_index_of_locked_messages(plan: &str) -> bool {
    let lines: Vec<&str> = plan.lines().map(str::trim).collect();
    let waits = lines.iter().any(|line| match line.split_once(": ") {
        Some(("Filter", "locked")) => true,
        Some((name, condition)) => name.ends_with("Cond") && condition.contains("(locked = true)"),
        None => false,
    });
    let of_locked = |line: &str| line.contains("Scan using messages_locked ");
    let by_number = |line: &str| line.starts_with("Index Cond: ") && line.contains("(id = ");
    waits || lines.windows(2).any(|pair| of_locked(pair[0]) && by_number(pair[1]))
}

#[test]
fn a_plan_that_misses_the_index_of_locked_messages_is_seen() {
    let by = |index: &str, condition: &str| {
        let scan = format!("->  Index Scan using {index} on openkv.messages  (cost=0.1..8.1)");
        misses_the_index_of_locked_messages(&format!("q locked\n  {scan}\n        {condition}\n"))
    };
    assert!(by("messages_waiting", "Index Cond: ((db = $1) AND (locked = true))"));
    assert!(by("messages_waiting", "Filter: locked"));
    assert!(by("messages_locked", "Index Cond: ((db = $1) AND (id = u.id))"));
    assert!(!by("messages_locked", "Index Cond: ((db = $1) AND (queue = $2))"));
    assert!(!by("messages_waiting", "Index Cond: ((db = $1) AND (locked = false))"));
    assert!(!by("messages_pkey", "Index Cond: ((db = $1) AND (id = u.id))"));
    assert!(!by("messages_pkey", "Filter: (locked AND (lock = u.lock))"));
}

#[test]
fn a_scan_of_a_database_is_seen() {
    let scan = "Index Scan using entries_pkey on openkv.entries e  (cost=0.1..8.1 rows=1 width=8)";
    let plan = |above: &str, condition: &str| {
        format!(
            "q\n{above}\n  ->  {scan}\n        Index Cond: {condition}\n        Filter: (k > $2)"
        )
    };
    assert!(reads_a_whole_database(&plan("Sort  (cost=1)", "(db = $1)")));
    assert!(reads_a_whole_database(&format!("q\n{scan}\n  Index Cond: (db = '7'::bigint)")));
    assert!(!reads_a_whole_database(&plan("Limit  (cost=1)", "(db = $1)")));
    assert!(!reads_a_whole_database(&plan("Sort  (cost=1)", "((db = $1) AND (k = $2))")));
    assert!(!reads_a_whole_database(&plan("Sort", "(db = $1)").replace("entries", "format")));
}
