//! Runs SQL that a test asks for: one JSON request a line in, one JSON answer a line out.
//!
//! Request: `{"path": "...", "sql": ["...", ...]}`. Answer: `{"rows": [[...], ...]}` with the rows
//! of the last statement, or `{"error": "..."}`. A blob is `{"hex": "..."}`; an integer is a JSON
//! number. The file is opened, read or written, and closed within one request: nothing is held
//! between two.

use std::io::{BufRead, Write};
use std::time::Duration;

use rusqlite::{Connection, types::ValueRef};
use serde_json::{Value, json};

/// How long a request waits for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = match answer(&line?) {
            Ok(rows) => json!({ "rows": rows }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let request: Value = serde_json::from_str(line)?;
    let path = request["path"].as_str().ok_or("path is missing")?;
    let db = Connection::open(path)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    let mut rows = Vec::new();
    for sql in request["sql"].as_array().ok_or("sql is missing")? {
        rows = run(&db, sql.as_str().ok_or("sql is not text")?)?;
    }
    db.close().map_err(|(_, error)| error)?;
    Ok(rows)
}

fn run(db: &Connection, sql: &str) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut cursor = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = cursor.next()? {
        let mut cells = Vec::with_capacity(columns);
        for column in 0..columns {
            cells.push(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(n) => json!(n),
                ValueRef::Real(n) => json!(n),
                ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
                ValueRef::Blob(bytes) => json!({ "hex": hex(bytes) }),
            });
        }
        rows.push(Value::Array(cells));
    }
    Ok(rows)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
