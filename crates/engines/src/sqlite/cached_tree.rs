//! Reads the tree of a `WITHOUT ROWID` table in the pages that the cache of a connection has, without SQLite.
//!
//! Duty: answer a lookup by key from cached pages. SQLite answers what this does not: a page that is not cached, a row with overflow
//! pages, anything unusual. It then reads the pages into the cache.
//! Invariant: it answers as SQLite would in the read transaction that is open. That transaction has begun with a read by SQLite,
//! which has emptied the cache if anything was committed before; the pages of the cache are those of the transaction until it ends.
//! Never: a page that SQLite has not read, or an answer from bytes that are not as the format of SQLite's files describes them
//! (sections 1.5 and 1.6, "B-tree Pages" and "Record Format").

use std::cmp::Ordering;

use super::page_cache::{CachedPages, LINE_BYTES};
use super::statement::Statement;
use openkv_core::model::Result;

/// The most levels of a tree, which SQLite refuses to exceed too.
const LEVELS_MAX: usize = 20;

/// Kinds of pages.
const INTERIOR: u8 = 2;
const LEAF: u8 = 10;
/// Bytes of the header of a page.
const INTERIOR_HEADER: usize = 12;
const LEAF_HEADER: usize = 8;
/// Bytes of the number of a page before a cell of an interior page.
const CHILD_BYTES: usize = 4;
/// Bytes of an overflow page before its content.
const OVERFLOW_HEADER: usize = 4;

/// Where the first page has the size of pages (65,536 as 1), the bytes that it reserves on each, and the number of the schema.
const PAGE_SIZE_AT: usize = 16;
const RESERVED_AT: usize = 20;
const SCHEMA_AT: usize = 40;

/// The tree of a table in the cache of a connection.
pub(super) struct CachedTree {
    pages: CachedPages,
    find_root: Statement,
    table: &'static str,
    columns: &'static str,
    /// The number of the schema that was read last, and the first page of the tree under it.
    seen: Option<(u32, Option<u32>)>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// Nothing is known to be read in the transaction.
    Begun,
    /// The pages are those of the transaction, and the tree begins with this one.
    Read(u32),
    /// The file has what this does not read.
    Unreadable,
}

/// What the cached pages say of a key.
pub(super) enum Lookup<'p> {
    Cell(Cell<'p>),
    Absent,
    /// SQLite must be asked.
    Unknown,
}

impl CachedTree {
    /// That of a table with these columns, by commas, the first of which is the key; `beside` is a statement of the connection.
    pub(super) fn new(
        pages: CachedPages,
        beside: &Statement,
        table: &'static str,
        columns: &'static str,
    ) -> Result<Self> {
        let find_root = beside.beside(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?1 AND ?2 = \
             (SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info(?1) ORDER BY cid))",
        )?;
        Ok(Self { pages, find_root, table, columns, seen: None, state: State::Begun })
    }

    /// A read transaction has begun.
    pub(super) fn begun(&mut self) {
        self.state = State::Begun;
    }

    /// SQLite has read something in the transaction.
    pub(super) fn read(&mut self) {
        if matches!(self.state, State::Begun) {
            let root = self.schema().and_then(|schema| self.root_under(schema));
            self.state = root.map_or(State::Unreadable, State::Read);
        }
    }

    /// The number of the schema, if the file is one that is read here.
    fn schema(&self) -> Option<u32> {
        // SAFETY: the connection belongs to this thread, and the page is not used when SQLite is called.
        let first = unsafe { self.pages.page(1) }?;
        let page_size = match read_u16(first, PAGE_SIZE_AT)? {
            1 => 65_536,
            size => size,
        };
        let is_read_here = page_size == first.len() && *first.get(RESERVED_AT)? == 0;
        if is_read_here { read_u32(first, SCHEMA_AT) } else { None }
    }

    /// The first page under a schema, if the table has its columns.
    fn root_under(&mut self, schema: u32) -> Option<u32> {
        if let Some((seen, root)) = self.seen
            && seen == schema
        {
            return root;
        }
        let run = self.find_root.run().text(1, self.table).text(2, self.columns);
        let root = run.first_int().ok()?.and_then(|root| u32::try_from(root).ok());
        self.seen = Some((schema, root));
        root
    }

    /// The row with a key, if the cache has every page on the way to it.
    pub(super) fn find(&mut self, key: &[u8]) -> Lookup<'_> {
        match self.state {
            State::Read(root) => self.descend(root, key).unwrap_or(Lookup::Unknown),
            State::Begun | State::Unreadable => Lookup::Unknown,
        }
    }

    fn descend(&mut self, root: u32, key: &[u8]) -> Option<Lookup<'_>> {
        let mut number = root;
        for _ in 0..LEVELS_MAX {
            // SAFETY: the connection belongs to this thread, and the borrow of `self` ends before SQLite is called on it: the reader
            // that owns both is borrowed during each call.
            let node = Node::of(unsafe { self.pages.page(number) }?)?;
            match node.search(key)? {
                Place::Of(cell) => return Some(Lookup::Cell(cell)),
                Place::Before(at) => match node.child(at)? {
                    Some(child) => number = child,
                    None => return Some(Lookup::Absent),
                },
            }
        }
        None
    }
}

/// A page of a tree.
struct Node<'p> {
    page: &'p [u8],
    header_bytes: usize,
    cells: usize,
    /// Bytes of a number of a page before each cell; 0 on a leaf.
    child_bytes: usize,
    /// Bytes of a longer payload that are on the page at least, and of any payload at most.
    least: usize,
    most: usize,
}

/// Where a key is in a page.
enum Place<'p> {
    Of(Cell<'p>),
    /// Not in it; it would be before this cell, or behind the last one.
    Before(usize),
}

impl<'p> Node<'p> {
    fn of(page: &'p [u8]) -> Option<Self> {
        // The header and the numbers of the cells are often on two lines.
        prefetch(page, LINE_BYTES);
        let (header_bytes, child_bytes) = match *page.first()? {
            INTERIOR => (INTERIOR_HEADER, CHILD_BYTES),
            LEAF => (LEAF_HEADER, 0),
            _ => return None,
        };
        let room = page.len().checked_sub(INTERIOR_HEADER)?;
        let (least, most) = (room * 32 / 255 - 23, room * 64 / 255 - 23);
        Some(Self { page, header_bytes, cells: read_u16(page, 3)?, child_bytes, least, most })
    }

    fn search(&self, key: &[u8]) -> Option<Place<'p>> {
        let (mut low, mut high) = (0, self.cells);
        // The cells that the search looks at first.
        for eighth in 1..8 {
            self.prefetch(self.cells * eighth / 8);
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            let eighth = (high - low) / 8;
            self.prefetch(middle - eighth);
            self.prefetch(middle + eighth);
            let cell = self.cell(middle)?;
            match cell.compare(key)? {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(Place::Of(cell)),
                Ordering::Greater => high = middle,
            }
        }
        Some(Place::Before(low))
    }

    /// The page with what is before a cell, or behind the last one; `None` on a leaf.
    fn child(&self, index: usize) -> Option<Option<u32>> {
        if self.child_bytes == 0 {
            return Some(None);
        }
        let at = if index == self.cells { LEAF_HEADER } else { self.cell_at(index)? };
        read_u32(self.page, at).map(Some)
    }

    fn prefetch(&self, index: usize) {
        if let Some(at) = self.cell_at(index) {
            prefetch(self.page, at);
        }
    }

    fn cell_at(&self, index: usize) -> Option<usize> {
        read_u16(self.page, self.header_bytes + index * 2)
    }

    #[inline]
    fn cell(&self, index: usize) -> Option<Cell<'p>> {
        let at = self.cell_at(index)? + self.child_bytes;
        let (payload, at) = read_varint(self.page, at)?;
        let payload = usize::try_from(payload).ok()?;
        let here = self.bytes_here(payload);
        Cell::of(self.page.get(at..at + here)?, here == payload)
    }

    /// How many bytes of a payload are not on overflow pages.
    fn bytes_here(&self, payload: usize) -> usize {
        if payload <= self.most {
            return payload;
        }
        // The last overflow page is full.
        let here = self.least + (payload - self.least) % (self.page.len() - OVERFLOW_HEADER);
        if here <= self.most { here } else { self.least }
    }
}

/// A record whose first column is a blob, the key.
pub(super) struct Cell<'p> {
    record: &'p [u8],
    /// Nothing of the record is on overflow pages.
    is_whole: bool,
    /// Where the type of the second column is.
    types_at: usize,
    key_at: usize,
    key_end: usize,
}

impl<'p> Cell<'p> {
    #[inline]
    fn of(record: &'p [u8], is_whole: bool) -> Option<Self> {
        let (header_bytes, at) = read_varint(record, 0)?;
        let (kind, types_at) = read_varint(record, at)?;
        let key_at = usize::try_from(header_bytes).ok()?;
        let key_end = key_at.checked_add(blob_bytes(kind)?)?;
        Some(Self { record, is_whole, types_at, key_at, key_end })
    }

    /// `None` if that depends on overflow pages.
    #[inline]
    fn compare(&self, key: &[u8]) -> Option<Ordering> {
        if let Some(own) = self.key() {
            return Some(own.cmp(key));
        }
        let here = self.record.get(self.key_at..)?;
        let ordering = here.cmp(key.get(..here.len()).unwrap_or(key));
        ordering.is_ne().then_some(ordering)
    }

    /// `None` if it continues on overflow pages.
    fn key(&self) -> Option<&'p [u8]> {
        self.record.get(self.key_at..self.key_end)
    }

    /// The columns behind the key; `None` if there are fewer, or others than integers and blobs, or some on overflow pages.
    pub(super) fn columns<const N: usize>(&self) -> Option<[Column<'p>; N]> {
        if !self.is_whole {
            return None;
        }
        let (mut type_at, mut at) = (self.types_at, self.key_end);
        let mut columns = [const { Column::Integer(0) }; N];
        for column in &mut columns {
            if type_at >= self.key_at {
                return None;
            }
            let (kind, next) = read_varint(self.record, type_at)?;
            let bytes = if kind < 12 { integer_bytes(kind)? } else { blob_bytes(kind)? };
            let content = self.record.get(at..at.checked_add(bytes)?)?;
            *column = match kind {
                0..12 => Column::Integer(integer(kind, content)?),
                _ => Column::Blob(content),
            };
            (type_at, at) = (next, at + bytes);
        }
        Some(columns)
    }
}

/// A column of a record.
#[derive(Clone, Copy)]
pub(super) enum Column<'p> {
    Integer(i64),
    Blob(&'p [u8]),
}

/// The length of a blob by its type; `None` for other types.
fn blob_bytes(kind: u64) -> Option<usize> {
    let bytes = kind.checked_sub(12).filter(|twice| twice.is_multiple_of(2))? / 2;
    usize::try_from(bytes).ok()
}

/// The length of an integer by its type; `None` for NULL and numbers that are none.
fn integer_bytes(kind: u64) -> Option<usize> {
    Some(match kind {
        1 => 1,
        2 => 2,
        3 => 3,
        4 => 4,
        5 => 6,
        6 => 8,
        8 | 9 => 0,
        _ => return None,
    })
}

/// The integer of a column of a type and its bytes.
fn integer(kind: u64, bytes: &[u8]) -> Option<i64> {
    match kind {
        8 => Some(0),
        9 => Some(1),
        1..=6 => {
            let sign = if bytes.first()? & 0x80 == 0 { 0 } else { -1 };
            Some(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
        }
        _ => None,
    }
}

fn read_u16(page: &[u8], at: usize) -> Option<usize> {
    let bytes = page.get(at..)?.first_chunk()?;
    Some(usize::from(u16::from_be_bytes(*bytes)))
}

fn read_u32(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*page.get(at..)?.first_chunk()?))
}

/// An integer of up to nine bytes, and where it ends. All but the last have their highest bit set.
#[inline]
fn read_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 { Some((u64::from(first), at + 1)) } else { read_long_varint(bytes, at) }
}

fn read_long_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for at in at..at + 8 {
        let byte = *bytes.get(at)?;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((number, at + 1));
        }
    }
    Some((number << 8 | u64::from(*bytes.get(at + 8)?), at + 9))
}

/// Has the processor fetch a line of memory while it goes on: a search in a page that is not in its caches waits for one line
/// after the other otherwise.
#[inline]
fn prefetch(page: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < page.len() {
        // SAFETY: a prefetch reads nothing.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                page.as_ptr().add(at).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (page, at);
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use rusqlite::Connection;

    use super::super::connection::{Opened, open_to_read};
    use super::super::page_cache::install;
    use super::*;

    type Columns = (Vec<u8>, i64, i64, i64);

    const COLUMNS: &str = "k,v,v_encoding,version,seq,expiration_ms";

    /// Numbers below a bound, the same for a seed.
    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        }
    }

    fn file_with_pages_of(path: &Path, bytes: usize) -> Connection {
        install();
        // A connection from before would have locks of the other kind than its later ones.
        #[cfg(unix)]
        super::super::locks::install();
        let made = Connection::open(path).unwrap();
        made.execute_batch(&format!(
            "PRAGMA page_size = {bytes}; PRAGMA journal_mode = wal; CREATE TABLE before (i); \
             CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL, v_encoding INTEGER NOT NULL, \
             version INTEGER NOT NULL, seq INTEGER NOT NULL DEFAULT 0, \
             expiration_ms INTEGER NOT NULL DEFAULT -1) WITHOUT ROWID"
        ))
        .unwrap();
        made
    }

    /// A key of a few letters, so that many keys begin as others do; some are long.
    fn random_key(random: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
        let length = if random(200) == 0 { random(3000) } else { random(12) };
        (0..length).map(|_| b"\0\x01a\xff"[random(4) as usize]).collect()
    }

    fn random_integer(random: &mut impl FnMut(u64) -> u64) -> i64 {
        let bits = random(64);
        (random(u64::MAX) >> bits).cast_signed() * if random(2) == 0 { 1 } else { -1 }
    }

    fn write_some(file: &Connection, random: &mut impl FnMut(u64) -> u64, rows: usize) {
        let transaction = file.unchecked_transaction().unwrap();
        for _ in 0..rows {
            let key = random_key(random);
            if random(5) == 0 {
                transaction.execute("DELETE FROM kv WHERE k = ?1", [key]).unwrap();
                continue;
            }
            let most = if random(20) == 0 { 5000 } else { 100 };
            let value = vec![7_u8; random(most) as usize];
            let (encoding, end) = (random(4) as i64, random_integer(random));
            let row = rusqlite::params![key, value, encoding, random_integer(random), 3, end];
            transaction.execute("REPLACE INTO kv VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row).unwrap();
        }
        transaction.commit().unwrap();
    }

    /// A connection that reads, with the statements and the trees that do.
    struct Reader {
        get: Statement,
        tree: CachedTree,
        connection: Connection,
    }

    impl Reader {
        fn of(path: &Path) -> Self {
            let Opened { connection, pages, .. } = open_to_read(path, Duration::ZERO).unwrap();
            connection.query_row("SELECT count(*) FROM kv", [], |_| Ok(())).unwrap();
            let sql = "SELECT v, v_encoding, version, expiration_ms FROM kv WHERE k = ?1";
            let get = Statement::prepare(&connection, sql).unwrap();
            let tree = CachedTree::new(pages.expect("a cache"), &get, "kv", COLUMNS).unwrap();
            Self { get, tree, connection }
        }

        fn begin(&mut self) {
            self.connection.execute_batch("BEGIN").unwrap();
            self.tree.begun();
        }

        fn by_sqlite(&mut self, key: &[u8]) -> Option<Columns> {
            let run = self.get.run().blob(1, key);
            let columns = run.first(|run| {
                let value = run.column_blob(0).to_vec();
                (value, run.column_int(1), run.column_int(2), run.column_int(3))
            });
            self.tree.read();
            columns.unwrap()
        }

        /// `None`: SQLite must be asked.
        fn by_pages(&mut self, key: &[u8]) -> Option<Option<Columns>> {
            use Column::{Blob, Integer};
            match self.tree.find(key) {
                Lookup::Cell(cell) => match cell.columns()? {
                    [
                        Blob(value),
                        Integer(encoding),
                        Integer(version),
                        Integer(3),
                        Integer(end),
                    ] => Some(Some((value.to_vec(), encoding, version, end))),
                    _ => panic!("other columns"),
                },
                Lookup::Absent => Some(None),
                Lookup::Unknown => None,
            }
        }

        /// Looks up keys both ways; returns how many the pages answered at the second attempt, behind SQLite.
        fn compare(&mut self, keys: &[Vec<u8>]) -> usize {
            let mut answered = 0;
            for key in keys {
                let first = self.by_pages(key);
                let expected = self.by_sqlite(key);
                let second = self.by_pages(key);
                answered += usize::from(second.is_some());
                for found in [first, second].into_iter().flatten() {
                    assert_eq!(found, expected, "{key:?}");
                }
            }
            answered
        }
    }

    #[test]
    fn the_pages_answer_as_sqlite_does() {
        let folder = tempfile::tempdir().unwrap();
        for (seed, bytes) in [(1, 512), (2, 4096), (3, 65_536), (4, 4096)] {
            let path = folder.path().join(seed.to_string());
            let file = file_with_pages_of(&path, bytes);
            let mut random = numbers(seed);
            let mut reader = Reader::of(&path);
            for round in 0..6 {
                write_some(&file, &mut random, 1500);
                let keys: Vec<_> = (0..1500).map(|_| random_key(&mut random)).collect();
                reader.begin();
                assert!(reader.by_pages(&keys[0]).is_none(), "nothing is read in the transaction");
                let answered = reader.compare(&keys);
                assert!(answered > 700, "{answered} keys of round {round}, pages of {bytes}");
                // The transaction does not see what is committed during it.
                write_some(&file, &mut random, 50);
                reader.compare(&keys);
                reader.connection.execute_batch("COMMIT").unwrap();
            }
        }
    }

    #[test]
    fn a_table_that_moves_is_found_and_one_with_other_columns_is_left_to_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        let file = file_with_pages_of(&path, 4096);
        write_some(&file, &mut numbers(5), 2000);
        file.execute_batch("INSERT INTO kv VALUES (x'62', x'07', 0, 1, 3, -1)").unwrap();
        let keys = [b"b".to_vec(), b"c".to_vec()];
        let mut reader = Reader::of(&path);
        let mut answered = |change: &str| {
            file.execute_batch(change).unwrap();
            reader.begin();
            let answered = reader.compare(&keys);
            reader.connection.execute_batch("COMMIT").unwrap();
            answered
        };
        assert_eq!(answered(""), 2);
        assert_eq!(answered("DROP TABLE before; VACUUM"), 2);
        assert_eq!(
            answered(
                "DROP TABLE kv; CREATE TABLE kv (k BLOB PRIMARY KEY, version, v, v_encoding, seq, \
                 expiration_ms) WITHOUT ROWID"
            ),
            0
        );
    }

    #[test]
    fn damaged_pages_are_left_to_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        let file = file_with_pages_of(&path, 512);
        let mut random = numbers(7);
        write_some(&file, &mut random, 3000);
        file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let whole = std::fs::read(&path).unwrap();
        for page in whole.chunks(512) {
            for _ in 0..200 {
                let mut page = page.to_vec();
                for _ in 0..=random(4) {
                    let at = if random(2) == 0 { random(40) } else { random(512) };
                    page[at as usize] = random(256) as u8;
                }
                let key = random_key(&mut random);
                let Some(node) = Node::of(&page) else { continue };
                if let Some(Place::Of(cell)) = node.search(&key) {
                    let _columns = cell.columns::<5>();
                }
            }
        }
    }
}
