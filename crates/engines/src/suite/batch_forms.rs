//! The two forms of a leader's batch, one statement and a transaction of several, leave the same rows.

use super::rows::with_placeholders;
use super::*;
use crate::postgres::{PostgresEngine, Server};
use openkv_core::model::{Attempt, WriteId};

/// The tables that a batch of entries changes, and their columns with the number of the database.
const TABLES: [(&str, &str); 4] =
    [("databases", "id"), ("entries", "db"), ("expiries", "db"), ("log", "db")];

/// All rows of a database, without what is the database's or the process's own.
fn rows(url: &str, name: &str) -> Vec<String> {
    let mut rows = Vec::new();
    server::on_server(url, async |client| {
        for (table, number) in TABLES {
            let sql = format!(
                "SELECT (to_jsonb(t) - '{{id,db,name,leader,batch}}'::text[])::text \
                 FROM openkv.{table} AS t WHERE {number} = \
                 (SELECT id FROM openkv.databases WHERE name = $1) ORDER BY 1"
            );
            let found = client.query(&sql, &[&name.as_bytes()]).await.unwrap();
            rows.extend(found.iter().map(|row| format!("{table}: {}", row.get::<_, &str>(0))));
        }
    });
    rows
}

/// Batches that set, calculate and delete, with expiries and UUIDs, and one without a commit.
fn batches() -> Vec<Vec<AtomicWrite>> {
    let one = |mutation| write(vec![], vec![mutation]);
    vec![
        vec![one(set("a", b"1")), one(set_until("b", b"2", Some(NOW + 50)))],
        vec![with_placeholders(), with_placeholders()],
        vec![one(sum("n", 1)), one(delete("a"))],
        vec![one(set("b", b"lasts")), one(set_until("c", b"3", Some(NOW + 60)))],
        vec![write(vec![absent("b")], vec![set("b", b"refused")])],
        vec![one(set_until("d", b"4", Some(NOW + 70))), one(set_until("d", b"5", Some(NOW + 80)))],
        vec![one(delete("c")), one(delete("none")), one(sum("n", 2))],
        vec![with_id(1), with_id(2)],
    ]
}

/// Deletes a key without an entry, with an id.
fn with_id(number: u64) -> AtomicWrite {
    let attempt = Some(Attempt::first(WriteId::new(NOW, [0, number])));
    atomic(WriteParts { mutations: vec![delete("none")], attempt, ..WriteParts::default() })
}

/// Executes the batches in one form, and returns the decisions and the rows.
fn executed(durable: bool) -> (Vec<Decision>, Vec<String>) {
    let url = format!("{}&lead=test", server::fresh_url());
    let (server, name) = Server::parse(&url).unwrap();
    let engine = PostgresEngine::open_in_time_of_caller(&server, &name).unwrap();
    let mut writer = engine.writer().unwrap();
    let mut decisions = Vec::new();
    for (at, writes) in (0..).zip(batches()) {
        // Only a durable batch has the form of one statement.
        let work = Work { writes, durable, seed: 9, ..Work::default() };
        decisions.extend(apply_at(&mut writer, work, NOW + at).decisions);
    }
    (decisions, rows(&url, &name))
}

#[test]
fn both_forms_of_a_batch_leave_the_same_rows() {
    let (single, several) = (executed(true), executed(false));
    assert_eq!(single, several);
    let has = |text: &str| single.1.iter().any(|row| row.contains(text));
    assert!(has("\"last_uuid\": \"") && has(&format!("\"clock_ms\": {}", NOW + 7)), "{single:?}");
    assert!(has("\"writes\": \""), "the ids of writes");
    assert_eq!(single.1.iter().filter(|row| row.starts_with("expiries")).count(), 1, "{single:?}");
}
