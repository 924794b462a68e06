//! The number of a file, which shows whether a log belongs to it.
//!
//! Duty: give each file and each copy its own number, and reject a file whose log belongs to a file
//! with another number, or is older than the file.
//! Invariant: the number is on the page of the commit counter, which every commit of an entry
//! writes, so each commit has it in the log.
//! Never: change or delete a log, which may hold the only commits of another file.
//!
//! SQLite applies any log that lies beside a file. If a backup is copied over the file of a process
//! that was killed, that is the log of the earlier file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

use super::errors::failure;
use super::wal_index::read_main_file;
use openkv_core::model::{Error, FILE_LOOK_MS, Kind, Result};

/// Gives a file a number, and its database a name, unless it has them. A backup has the name from the
/// beginning, so that a replica knows the database again after a restore.
pub(super) const ENSURE: &str = "INSERT OR IGNORE INTO data_version (k, version, seq) VALUES (1, 0, random()); \
     INSERT OR IGNORE INTO openkv_meta (name, value) VALUES ('database', randomblob(16));";

/// Gives a copy a new number.
pub(super) const RENEW: &str =
    "INSERT OR REPLACE INTO data_version (k, version, seq) VALUES (1, 0, random())";

/// Size of the header of a log, in bytes.
const LOG_HEAD_BYTES: u64 = 32;

/// A checkpoint may write the page during a read, so a difference counts only after this many
/// reads.
const LOOKS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(10);

/// The commit counter and the file number of one state of a file. Older files have no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    version: i64,
    number: Option<i64>,
}

/// The path with this end of its name.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// The path of a file's log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// Whether the log of a file has any frames.
pub(super) fn has_log(path: &Path) -> bool {
    std::fs::metadata(log_of(path)).is_ok_and(|log| log.len() > LOG_HEAD_BYTES)
}

/// Sets whether closing the connection leaves the log as it is, without a checkpoint.
pub(super) fn keep_log(connection: &Connection, keep: bool) -> Result<()> {
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep);
    set.map(drop).map_err(failure)
}

/// Rejects a file with the log of another file. The connection must be closed without a checkpoint
/// then.
///
/// # Errors
/// `Corrupt`; the message says what to do.
pub(super) fn verify_log(connection: &Connection, path: &Path) -> Result<()> {
    if !has_log(path) {
        return Ok(());
    }
    for look in 1..=LOOKS {
        // The file first: a checkpoint in between can only make it newer than what was read.
        let (file, state) = (of_file(connection)?, of_state(connection)?);
        if file.zip(state).is_none_or(|(file, state)| belongs(file, state)) {
            return Ok(());
        }
        if look < LOOKS {
            std::thread::sleep(PAUSE);
        }
    }
    Err(Error::corrupt(wrong_log(path)))
}

/// Whether the log of a file may be the reason why it could not be opened.
pub(super) fn log_may_be_wrong(error: &Error, path: &Path) -> bool {
    error.kind() == Kind::Corrupt && has_log(path)
}

/// Whether applying the log to this state of the file can have led to the other state.
fn belongs(file: Marks, state: Marks) -> bool {
    let same = file.number.is_none() || file.number == state.number;
    same && file.version <= state.version
}

/// By which a file is known when it is opened again: its place on the disk and its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileIdentity {
    place: Option<(u64, u64)>,
    number: Option<i64>,
    /// A copy of another database takes the commit counter of that one.
    follows: bool,
}

impl FileIdentity {
    /// That of an open file with a number.
    pub(super) fn of(path: &Path, number: Option<i64>, follows: bool) -> Self {
        Self { place: place_of(path), number, follows }
    }

    /// Finds the file at its path.
    ///
    /// # Errors
    /// `Unavailable` for a file that is gone or another one.
    pub(super) fn find(self, path: &Path) -> Result<()> {
        let found = place_of(path);
        if found == self.place {
            return Ok(());
        }
        let what = if found.is_none() { "is gone" } else { "is another file than before" };
        Err(replaced(path, what))
    }

    /// Rejects another file at the path than the one that was opened. `parked`: the file had no connection before
    /// this one, so the file system may have given its place to another, or an older state may have been copied
    /// over it. `version`: the last commit of this process.
    ///
    /// # Errors
    /// `Unavailable` for a file that is gone or another one; `Corrupt` for the log of another file.
    pub(super) fn verify(
        self,
        path: &Path,
        connection: &Connection,
        parked: bool,
        version: u64,
    ) -> Result<()> {
        self.find(path)?;
        if !parked {
            return Ok(());
        }
        // The connection must be closed without a checkpoint if the log is not the file's.
        keep_log(connection, true)?;
        verify_log(connection, path)?;
        let found = state(connection)?;
        let number = found.and_then(|marks| marks.number);
        if self.number.is_some() && number != self.number {
            return Err(replaced(path, "is another file than before"));
        }
        let is_older = found.is_none_or(|marks| marks.version < version.cast_signed());
        if is_older && !self.follows {
            return Err(replaced(path, "is an older state of the file than before"));
        }
        keep_log(connection, false)
    }
}

/// Whether the file of a writer is still at its path: what is written to another one is lost.
pub(super) struct Presence {
    identity: FileIdentity,
    path: PathBuf,
    /// When it was found last.
    found: Option<Instant>,
}

impl Presence {
    pub(super) fn new(identity: FileIdentity, path: PathBuf) -> Self {
        Self { identity, path, found: None }
    }

    /// Looks, unless it was found a moment ago.
    ///
    /// # Errors
    /// As [`FileIdentity::find`].
    pub(super) fn verify(&mut self, now: Instant) -> Result<()> {
        let pause = Duration::from_millis(FILE_LOOK_MS);
        if self.found.is_none_or(|found| now.duration_since(found) >= pause) {
            self.identity.find(&self.path)?;
            self.found = Some(now);
        }
        Ok(())
    }
}

/// The error of opening a file again that is not the one that was opened.
fn replaced(path: &Path, what: &str) -> Error {
    Error::unavailable(format!(
        "{} {what}: it was deleted or replaced while this process had it open; close its handles and open it again",
        path.display()
    ))
}

#[cfg(unix)]
fn place_of(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Without numbers of files, only whether there is one.
#[cfg(not(unix))]
fn place_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|_| (0, 0))
}

/// The marks of a file that has the table of the commit counter, with its log applied.
fn state(connection: &Connection) -> Result<Option<Marks>> {
    let sql = "SELECT version, (SELECT seq FROM data_version WHERE k = 1) \
               FROM data_version WHERE k = 0";
    let marks = connection
        .query_row(sql, [], |row| Ok(Marks { version: row.get(0)?, number: row.get(1)? }));
    marks.optional().map_err(failure)
}

/// The beginning of these error messages.
const WRONG_LOG: &str = "the log beside the file is not the file's";

/// The message about the log of another file.
fn wrong_log(path: &Path) -> String {
    let log = log_of(path);
    let (file, log) = (path.display(), log.display());
    format!(
        "{WRONG_LOG}: {log} belongs to another state of the database, as when a backup is copied over a file \
         whose process was killed. Nothing was changed. If {file} is the right file, move {log} and \
         {file}-shm to another folder; the log may have commits of the earlier file. \
         \"openkv restore BACKUP FILE\" does all of this"
    )
}

/// Adds the log as a possible reason to the error of opening a file.
pub(super) fn hint(error: Error, path: &Path) -> Error {
    if !log_may_be_wrong(&error, path) || error.message().contains(WRONG_LOG) {
        return error;
    }
    let log = log_of(path);
    let message = format!(
        "{}. If {} is the log of another file, move it and the -shm \
         file to another folder",
        error.message(),
        log.display()
    );
    Error::corrupt(message)
}

/// The marks of the file with its log applied.
fn of_state(connection: &Connection) -> Result<Option<Marks>> {
    if root(connection)?.is_none() {
        return Ok(None);
    }
    state(connection)
}

/// The first page of the commit counter's table, if there is one.
fn root(connection: &Connection) -> Result<Option<i64>> {
    let sql = "SELECT rootpage FROM sqlite_master WHERE name = 'data_version'";
    connection.query_row(sql, [], |row| row.get(0)).optional().map_err(failure)
}

/// The marks of the file without its log; `None` if they cannot be read.
fn of_file(connection: &Connection) -> Result<Option<Marks>> {
    let size: i64 =
        connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(failure)?;
    let (Some(root), Ok(bytes)) = (root(connection)?, usize::try_from(size)) else {
        return Ok(None);
    };
    let mut page = vec![0; bytes];
    Ok(if read_main_file(connection, (root - 1) * size, &mut page) == rusqlite::ffi::SQLITE_OK {
        marks_in(&page)
    } else {
        None
    })
}

/// The marks on a page, if it can be the leaf page of the commit counter.
fn marks_in(page: &[u8]) -> Option<Marks> {
    const LEAF: u8 = 0x0d;
    const CELLS_AT: usize = 8;
    let count = usize::from(u16::from_be_bytes(*page.get(3..)?.first_chunk()?));
    if *page.first()? != LEAF || count > 2 {
        return None;
    }
    let mut rows = (0..count).map(|cell| {
        let at = u16::from_be_bytes(*page.get(CELLS_AT + cell * 2..)?.first_chunk()?);
        row_of(page.get(usize::from(at)..)?)
    });
    let (0, version, _) = rows.next()?? else { return None };
    match rows.next() {
        None => Some(Marks { version, number: None }),
        Some(Some((1, _, number))) => Some(Marks { version, number: Some(number) }),
        Some(_) => None,
    }
}

/// A row of three columns, the first of which is the row id; returns the row id and the other two.
fn row_of(mut cell: &[u8]) -> Option<(i64, i64, i64)> {
    let _payload_bytes = varint(&mut cell)?;
    let k = varint(&mut cell)?;
    let body = cell;
    let (head_bytes, null) = (varint(&mut cell)?, varint(&mut cell)?);
    let (version, seq) = (varint(&mut cell)?, varint(&mut cell)?);
    let mut body = body.get(usize::try_from(head_bytes).ok()?..)?;
    (null == 0).then_some(())?;
    Some((k, integer(version, &mut body)?, integer(seq, &mut body)?))
}

/// An integer of a SQLite serial type.
fn integer(serial_type: i64, body: &mut &[u8]) -> Option<i64> {
    let bytes = match serial_type {
        8 => return Some(0),
        9 => return Some(1),
        1..=4 => usize::try_from(serial_type).ok()?,
        5 => 6,
        6 => 8,
        _ => return None,
    };
    let (number, rest) = body.split_at_checked(bytes)?;
    *body = rest;
    let negative = number.first()? & 0x80 != 0;
    Some(number.iter().fold(if negative { -1 } else { 0 }, |all, byte| all << 8 | i64::from(*byte)))
}

/// A SQLite varint. None here has the maximum of nine bytes.
fn varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0;
    for _ in 0..8 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number = number << 7 | i64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::fresh;

    fn marks(number: impl Into<Option<i64>>, version: i64) -> Marks {
        Marks { version, number: number.into() }
    }

    #[test]
    fn a_log_belongs_to_the_file_of_its_number() {
        for (file, state, expected) in [
            (marks(7, 3), marks(7, 9), true),
            (marks(7, 9), marks(7, 9), true),
            (marks(7, 10), marks(7, 9), false),
            (marks(8, 3), marks(7, 9), false),
            // A file of an earlier version, whose number is still only in the log.
            (marks(None, 3), marks(7, 9), true),
            (marks(None, 10), marks(7, 9), false),
            (marks(7, 3), marks(None, 9), false),
        ] {
            assert_eq!(belongs(file, state), expected, "{file:?} {state:?}");
        }
    }

    #[test]
    fn marks_of_a_file_are_read_without_its_log() {
        let (_engine, folder) = fresh();
        let raw = Connection::open(folder.path().join("kv")).unwrap();
        let numbers = [0, 1, -1, 127, -128, 40_000, -8_400_000, 1 << 31, -(1 << 45), 1 << 47];
        for number in numbers.into_iter().chain([i64::MAX, i64::MIN]) {
            let version = number & 0xffff_ffff;
            let sql = "UPDATE data_version SET version = ?1 WHERE k = 0";
            raw.execute(sql, [version]).unwrap();
            raw.execute("UPDATE data_version SET seq = ?1 WHERE k = 1", [number]).unwrap();
            let before = of_file(&raw).unwrap();
            assert_eq!(of_state(&raw).unwrap(), Some(marks(number, version)));
            assert_ne!(before, Some(marks(number, version)));
            raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            assert_eq!(of_file(&raw).unwrap(), Some(marks(number, version)));
        }
        raw.execute("DELETE FROM data_version WHERE k = 1", []).unwrap();
        raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        assert_eq!(of_file(&raw).unwrap().map(|file| file.number), Some(None));
    }

    #[test]
    fn a_page_of_another_table_has_no_marks() {
        assert_eq!(marks_in(&[]), None);
        assert_eq!(marks_in(&[0x0d, 0, 0, 0, 1]), None);
        for byte in 0..=255 {
            let _any_bytes = marks_in(&[byte; 512]);
        }
    }
}
