//! Compares `docs/format.md` with the code: its constants, its encoding ids, and the tables of a
//! file that the engine has created.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where something is not as it should be"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use openkv::codec::cbor::PACKED_ITEMS_MIN;
use openkv::codec::key::BIGINT_BYTES_MAX;
use openkv::engine::sqlite::{DENO_MIGRATION_VERSION, FORMAT_VERSION, SPILLED, SqliteEngine};
use openkv::engine::{Engine, Work, Writer};
use openkv::model::{
    AtomicWrite, Claim, DENO_RUNNING_MS, Decision, EncodedValue, Encoding, HISTORY_BLOCK_BYTES,
    HISTORY_BLOCK_RECORDS_MAX, HISTORY_CHAIN_RECORDS_MAX, Key, LOCK_MS, Limits, Message, Mutation,
    SPILL_ROW_BYTES_MIN, Time, VALUE_DEPTH_MAX, VALUE_INDEX_PART_BYTES_MAX, WriteParts,
};
use rusqlite::Connection;
use rusqlite::types::Value;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/format.md");
    std::fs::read_to_string(path).expect("the page")
}

/// The rows of the first table after a line, cell by cell, without code quotes.
fn table_after(page: &str, line: &str) -> Vec<Vec<String>> {
    let after = page.split_once(&format!("\n{line}\n")).unwrap_or_else(|| panic!("no {line}")).1;
    let rows = after.lines().skip_while(|line| !line.starts_with('|')).skip(2);
    let cells = |row: &str| {
        let row = row.trim_start_matches('|').trim_end_matches('|');
        row.split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

struct File {
    _directory: tempfile::TempDir,
    path: PathBuf,
    engine: SqliteEngine,
}

impl File {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kv.sqlite3");
        let engine = SqliteEngine::open(&path, false, Duration::from_secs(5)).expect("opened");
        Self { _directory: directory, path, engine }
    }

    fn raw(&self) -> Connection {
        Connection::open(&self.path).expect("opened raw")
    }

    fn apply(&self, work: Work, now_ms: i64) -> Vec<Decision> {
        let mut writer = self.engine.writer().expect("a writer");
        let deadline = Instant::now() + Duration::from_secs(20);
        writer.apply(work, now_ms, deadline).expect("applied").decisions
    }

    fn write(&self, mutations: Vec<Mutation>, messages: Vec<Message>) {
        let parts = WriteParts { mutations, messages, ..WriteParts::default() };
        let write = AtomicWrite::new(parts, &Limits::default()).expect("within the limits");
        let decisions = self.apply(Work { writes: vec![write], ..Work::default() }, 1000);
        assert!(
            matches!(decisions[..], [Decision::Committed(_) | Decision::CommittedWith(..)]),
            "{decisions:?}"
        );
    }

    fn value(&self, sql: &str) -> Value {
        self.raw().query_row(sql, [], |row| row.get(0)).expect(sql)
    }

    fn values(&self, sql: &str) -> Vec<Vec<Value>> {
        let raw = self.raw();
        let mut statement = raw.prepare(sql).expect(sql);
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect();
        let rows = statement.query_map([], row).expect(sql);
        rows.collect::<Result<_, _>>().expect(sql)
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(n) => n.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
        other @ Value::Real(_) => panic!("{other:?}"),
    }
}

fn key(bytes: &[u8]) -> Key {
    Key::from_encoded([&[1], bytes, &[0]].concat())
}

fn set(key: Key, len: usize) -> Mutation {
    let value = EncodedValue { encoding: Encoding::Bytes, bytes: vec![7; len] };
    Mutation::Set { key, suffixed: false, value, expiry: None }
}

#[test]
fn constants_are_those_of_the_code() {
    let code: BTreeMap<&str, i64> = [
        ("FORMAT_VERSION", FORMAT_VERSION),
        ("DENO_MIGRATION_VERSION", DENO_MIGRATION_VERSION),
        ("SPILLED", SPILLED),
        ("SPILL_ROW_BYTES_MIN", SPILL_ROW_BYTES_MIN as i64),
        ("VALUE_DEPTH_MAX", VALUE_DEPTH_MAX as i64),
        ("BIGINT_BYTES_MAX", BIGINT_BYTES_MAX as i64),
        ("DENO_RUNNING_MS", DENO_RUNNING_MS),
        ("HISTORY_BLOCK_BYTES", HISTORY_BLOCK_BYTES as i64),
        ("HISTORY_BLOCK_RECORDS_MAX", HISTORY_BLOCK_RECORDS_MAX as i64),
        ("HISTORY_CHAIN_RECORDS_MAX", HISTORY_CHAIN_RECORDS_MAX as i64),
        ("PACKED_ITEMS_MIN", PACKED_ITEMS_MIN as i64),
        ("VALUE_INDEX_PART_BYTES_MAX", VALUE_INDEX_PART_BYTES_MAX as i64),
    ]
    .into();
    let page = page();
    let rows = table_after(&page, "## 3. File");
    let shown: BTreeMap<&str, i64> =
        rows.iter().map(|row| (row[0].as_str(), row[1].parse().expect("a number"))).collect();
    assert_eq!(shown, code);
    // Every name in capitals on the page is one of these.
    for name in page.split('`').skip(1).step_by(2) {
        let is_constant = name.len() > 4
            && name.contains('_')
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        assert!(!is_constant || code.contains_key(name), "{name}");
    }
}

#[test]
fn encoding_ids_are_those_of_the_code() {
    let rows = table_after(&page(), "## 2. Values");
    let shown: Vec<(i64, &str)> =
        rows.iter().map(|row| (row[0].parse().expect("a number"), row[1].as_str())).collect();
    let names = [
        (Encoding::V8, "V8"),
        (Encoding::Le64, "LE64"),
        (Encoding::Bytes, "BYTES"),
        (Encoding::Cbor, "CBOR"),
    ];
    assert_eq!(shown, names.map(|(encoding, name)| (i64::from(encoding.id()), name)));
    let known: Vec<i64> = (0..1000).filter(|id| Encoding::from_id(*id).is_some()).collect();
    assert_eq!(known, shown.iter().map(|(id, _)| *id).collect::<Vec<_>>());
}

/// The declaration of a column, as the page writes it.
fn declared(kind: &str, not_null: bool, default: &str, key: i64) -> String {
    let mut parts = Vec::new();
    parts.extend((!kind.is_empty()).then(|| kind.to_owned()));
    parts.extend(not_null.then(|| "not null".to_owned()));
    parts.extend((!default.is_empty()).then(|| format!("default {default}")));
    parts.extend((key > 0).then(|| format!("key {key}")));
    parts.join(", ")
}

/// The name and declaration of each column.
fn columns(file: &File, table: &str) -> Vec<(String, String)> {
    let sql =
        format!("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')");
    let column = |row: Vec<Value>| {
        let cells: Vec<String> = row.iter().map(text).collect();
        let key = cells[4].parse().expect("a number");
        (cells[0].clone(), declared(&cells[1], cells[2] == "1", &cells[3], key))
    };
    file.values(&sql).into_iter().map(column).collect()
}

fn names(file: &File, kind: &str) -> BTreeSet<String> {
    let sql = format!(
        "SELECT name FROM sqlite_master WHERE type = '{kind}' AND name NOT LIKE 'sqlite_%'"
    );
    file.values(&sql).iter().map(|row| text(&row[0])).collect()
}

#[test]
fn tables_are_those_of_a_real_file() {
    let (page, file) = (page(), File::new());
    let tables = names(&file, "table");
    let headings = page.lines().filter_map(|line| line.strip_prefix("#### "));
    let shown: BTreeSet<String> = headings.map(|name| name.replace('`', "")).collect();
    assert_eq!(shown, tables);
    for table in tables {
        let rows = table_after(&page, &format!("#### `{table}`"));
        let shown: Vec<_> = rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        assert_eq!(shown, columns(&file, &table), "{table}");
    }
    assert_eq!(names(&file, "trigger"), BTreeSet::new());
    assert_eq!(names(&file, "view"), BTreeSet::new());
    let indexes = names(&file, "index");
    let queues = ["openkv_queue_dedup", "openkv_queue_locked", "openkv_queue_waiting"];
    let dead = ["openkv_dead_list", "openkv_dead_purge"];
    let expected: BTreeSet<String> = ["openkv_expiry", "openkv_log_time"]
        .iter()
        .chain(&queues)
        .chain(&dead)
        .map(ToString::to_string)
        .collect();
    assert_eq!(indexes, expected);
    for index in indexes {
        assert!(page.contains(&format!("`{index}`")), "{index}");
    }
    let without_rowid = "SELECT name FROM pragma_table_list WHERE wr AND name NOT LIKE 'sqlite_%'";
    let without_rowid: BTreeSet<_> =
        file.values(without_rowid).iter().map(|row| text(&row[0])).collect();
    assert_eq!(
        without_rowid,
        ["kv", "openkv_history_groups", "openkv_meta"].map(str::to_owned).into()
    );
}

/// The columns that Deno's own statements need, as its third migration creates them.
#[test]
fn deno_finds_its_own_columns() {
    let queue = |first| {
        vec![
            (first, "INTEGER, not null, key 1"),
            ("id", "TEXT, not null, key 2"),
            ("data", "BLOB, not null"),
            ("backoff_schedule", "TEXT, not null"),
            ("keys_if_undelivered", "BLOB, not null"),
        ]
    };
    let tables = [
        (
            "migration_state",
            vec![("k", "INTEGER, not null, key 1"), ("version", "INTEGER, not null")],
        ),
        (
            "data_version",
            vec![
                ("k", "INTEGER, key 1"),
                ("version", "INTEGER, not null"),
                ("seq", "INTEGER, not null, default 0"),
            ],
        ),
        (
            "kv",
            vec![
                ("k", "BLOB, not null, key 1"),
                ("v", "BLOB, not null"),
                ("v_encoding", "INTEGER, not null"),
                ("version", "INTEGER, not null"),
                ("seq", "INTEGER, not null, default 0"),
                ("expiration_ms", "INTEGER, not null, default -1"),
            ],
        ),
        ("queue", queue("ts")),
        ("queue_running", queue("deadline")),
    ];
    let file = File::new();
    for (table, expected) in tables {
        let found = columns(&file, table);
        let found: Vec<_> =
            found.iter().map(|(name, declared)| (name.as_str(), declared.as_str())).collect();
        assert_eq!(found, expected, "{table}");
    }
    let row =
        |sql: &str| file.values(sql).iter().map(|row| row.iter().map(text).collect()).collect();
    let rows: Vec<Vec<String>> = row("SELECT k, version FROM migration_state");
    assert_eq!(rows, [["0", &DENO_MIGRATION_VERSION.to_string()]]);
    let rows: Vec<Vec<String>> = row("SELECT k, version, seq FROM data_version");
    let number = rows.get(1).and_then(|row| row.get(2)).cloned().unwrap_or_default();
    assert!(number.parse::<i64>().is_ok_and(|number| number != 0), "{number}");
    assert_eq!(rows, [["0", "0", "0"], ["1", "0", &number]]);
}

#[test]
fn a_new_file_has_the_settings_and_the_meta_rows_of_the_page() {
    let file = File::new();
    let settings = [
        ("encoding", "UTF-8"),
        ("page_size", "4096"),
        ("journal_mode", "wal"),
        ("user_version", "0"),
        ("application_id", "0"),
    ];
    for (name, value) in settings {
        assert_eq!(text(&file.value(&format!("PRAGMA {name}"))), value, "{name}");
    }
    let meta = file.values("SELECT name, value FROM openkv_meta ORDER BY name");
    let meta: Vec<Vec<String>> = meta.iter().map(|row| row.iter().map(text).collect()).collect();
    let format = FORMAT_VERSION.to_string();
    let name = ["database", "16 bytes"];
    assert_eq!(meta, [name, ["encoding", "cbor"], ["features", "0"], ["format", &format]]);
}

#[test]
fn values_are_spilled_from_the_bound_on() {
    let file = File::new();
    let (short, long) = (key(b"s"), key(b"l"));
    let len = SPILL_ROW_BYTES_MIN - short.len();
    file.write(vec![set(short, len - 1), set(long, len)], vec![]);
    let rows = file.values("SELECT v, v_encoding, version, expiration_ms FROM kv ORDER BY k DESC");
    let id = i64::from(Encoding::Bytes.id());
    let inline = [Value::Blob(vec![7; len - 1]), id.into(), 1.into(), (-1).into()];
    let place = file.value("SELECT id FROM openkv_spill");
    assert_eq!(rows, [inline, [place, (id + SPILLED).into(), 1.into(), (-1).into()]]);
    assert_eq!(file.value("SELECT v FROM openkv_spill"), Value::Blob(vec![7; len]));
    assert_eq!(file.value("SELECT version FROM data_version"), Value::Integer(1));
}

#[test]
fn messages_are_packed_as_the_page_says() {
    let file = File::new();
    let message = Message {
        queue: "mail".into(),
        priority: 7,
        due: Time::At(900),
        backoff_ms: vec![100, 70_000],
        keys_if_undelivered: vec![key(b"a"), key(b"bcd")],
        deduplication_key: Some("once".into()),
        dead_retention_ms: Some(60_000),
        value: vec![0xf6],
        ..Message::default()
    };
    file.write(vec![], vec![message]);
    let row = || {
        file.values(
            "SELECT queue, priority, due_ms, lock, lock_end_ms, attempts, enqueued_ms, first_ms, \
             last_ms, dedup, dead_retention_ms, backoff_ms, undelivered, v FROM openkv_queue",
        )
        .remove(0)
    };
    let backoff = [100_u32.to_le_bytes(), 70_000_u32.to_le_bytes()].concat();
    let keys = [&[3, 0, 0, 0, 1, b'a', 0][..], &[5, 0, 0, 0, 1, b'b', b'c', b'd', 0]].concat();
    let packed = [Value::Blob(backoff), Value::Blob(keys), Value::Blob(vec![0xf6])];
    let shown = |row: &[Value]| row.iter().map(text).collect::<Vec<_>>().join(" ");
    assert_eq!(shown(&row()[..11]), "mail 7 900 0 0 0 1000   once 60000");
    assert_eq!(row()[11..], packed);
    let claim = Claim { queue: "mail".into(), max: 1, lock_ms: LOCK_MS, lock: 77 };
    file.apply(Work { claims: vec![claim], ..Work::default() }, 1000);
    let end = 1000 + LOCK_MS;
    assert_eq!(shown(&row()[..11]), format!("mail 7 900 77 {end} 1 1000 1000 1000 once 60000"));
    assert_eq!(row()[11..], packed);
    for table in ["queue", "queue_running"] {
        assert_eq!(file.value(&format!("SELECT count(*) FROM {table}")), Value::Integer(0));
    }
}
