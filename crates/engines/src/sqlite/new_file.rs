//! A new file with all of its tables, under its name at once.
//!
//! Duty: write a file that has no name yet, sync it, and give it its name.
//! Invariant: a file of that name is complete and durable, so a crash leaves the whole file or none. Of several
//! processes that create it, one gives the name; the others find it.
//! Never: replace a file; leave one behind that has another name.
//!
//! SQLite needs five syncs for an empty file in WAL mode and two more for its tables. This needs one. The name
//! needs one of the folder, which SQLite does with the first commit: it syncs the folder of a log with the log.
//! Where the system has no files without a name (`O_TMPFILE`, of Linux), and for a name beside which a log lies,
//! SQLite creates the file.

#[cfg(target_os = "linux")]
pub(super) use linux::create;

/// No file is created here.
#[cfg(not(target_os = "linux"))]
pub(super) fn create(_path: &std::path::Path, _encoding: openkv_core::model::Encoding) -> bool {
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::fs::{File, OpenOptions};
    use std::io::{Error as IoError, ErrorKind, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::path::Path;
    use std::sync::OnceLock;

    use rusqlite::Connection;

    use super::super::connection::ENABLE_VACUUM_STEPS;
    use super::super::errors::failure;
    use super::super::identity::beside;
    use super::super::layout;
    use openkv_core::model::{Encoding, Error, Result};

    /// The permissions of SQLite's new files, before the umask.
    const MODE: u32 = 0o644;

    /// Where the header of a file has the versions of its journal for writing and for reading, and the one of a
    /// file in WAL mode.
    const JOURNAL_AT: std::ops::Range<usize> = 18..20;
    const WAL: u8 = 2;

    /// What an image has in place of the number of a file, as eight bytes, and of the name of its database.
    const NUMBER: i64 = i64::from_be_bytes(*b"openkv-n");
    const DATABASE: [u8; 16] = *b"openkv's-databas";

    /// Creates the file, unless one of its name or of its log's exists, or the system cannot. Returns whether it
    /// has; SQLite can create it otherwise.
    pub(in super::super) fn create(path: &Path, encoding: Encoding) -> bool {
        if !["", "-journal", "-wal", "-shm"].iter().all(|end| is_free(&beside(path, end))) {
            return false;
        }
        let Some(image) = image(encoding) else { return false };
        match image.content().and_then(|content| publish(path, &content)) {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, "SQLite creates the file");
                false
            }
        }
    }

    fn is_free(path: &Path) -> bool {
        path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    fn publish(path: &Path, content: &[u8]) -> std::io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut unnamed = OpenOptions::new();
        unnamed.write(true).custom_flags(libc::O_TMPFILE).mode(MODE);
        let mut file = unnamed.open(folder.unwrap_or(Path::new(".")))?;
        file.write_all(content)?;
        file.sync_data()?;
        name(&file, path)
    }

    /// Gives a file without a name its name.
    ///
    /// # Errors
    /// `AlreadyExists` if another file has it.
    fn name(file: &File, path: &Path) -> std::io::Result<()> {
        let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let to = CString::new(path.as_os_str().as_bytes())?;
        let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
        // SAFETY: both are C strings, and outlive the call.
        match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) } {
            0 => Ok(()),
            _ => Err(IoError::last_os_error()),
        }
    }

    /// The bytes of a new file, but for what is random.
    struct Image {
        bytes: Vec<u8>,
        number_at: usize,
        database_at: usize,
    }

    /// The image for a format of values; `None` if SQLite cannot make it.
    fn image(encoding: Encoding) -> Option<&'static Image> {
        static CBOR: OnceLock<Option<Image>> = OnceLock::new();
        static V8: OnceLock<Option<Image>> = OnceLock::new();
        let place = if encoding == Encoding::V8 { &V8 } else { &CBOR };
        let made = place.get_or_init(|| {
            let made = Image::new(encoding);
            made.inspect_err(|error| tracing::warn!(%error, "SQLite creates new files")).ok()
        });
        made.as_ref()
    }

    impl Image {
        fn new(encoding: Encoding) -> Result<Self> {
            super::super::page_cache::install();
            let mut memory = Connection::open_in_memory().map_err(failure)?;
            memory.execute_batch(ENABLE_VACUUM_STEPS).map_err(failure)?;
            layout::prepare(&mut memory, false, Some(encoding))?;
            let set_number = "UPDATE data_version SET seq = ?1 WHERE k = 1";
            memory.execute(set_number, [NUMBER]).map_err(failure)?;
            let set_database = "UPDATE openkv_meta SET value = ?1 WHERE name = 'database'";
            memory.execute(set_database, [DATABASE]).map_err(failure)?;
            // Without the pages of the tables that the migrations have dropped.
            memory.execute_batch("VACUUM").map_err(failure)?;
            let mut bytes = memory.serialize("main").map_err(failure)?.to_vec();
            let in_image = |what: &[u8]| {
                let mut found = bytes.windows(what.len()).enumerate().filter(|(_, it)| *it == what);
                match (found.next(), found.next()) {
                    (Some((at, _)), None) => Ok(at),
                    _ => Err(Error::internal("a new file has its random parts once")),
                }
            };
            let (number_at, database_at) = (in_image(&NUMBER.to_be_bytes())?, in_image(&DATABASE)?);
            bytes.get_mut(JOURNAL_AT).into_iter().for_each(|versions| versions.fill(WAL));
            Ok(Self { bytes, number_at, database_at })
        }

        /// The bytes of one more file.
        fn content(&self) -> std::io::Result<Vec<u8>> {
            let mut content = self.bytes.clone();
            for (at, bytes) in [(self.number_at, 8), (self.database_at, DATABASE.len())] {
                if let Some(place) = content.get_mut(at..at + bytes) {
                    getrandom::fill(place).map_err(IoError::other)?;
                }
            }
            Ok(content)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;
    use std::time::Duration;

    use rusqlite::Connection;

    use super::super::SqliteEngine;
    use super::create;
    use crate::{Engine, Writer};
    use openkv_core::model::Encoding;

    const BUSY: Duration = Duration::from_secs(60);

    /// The tables of a file, without the numbers of their pages.
    fn tables(path: &Path) -> Vec<(String, String)> {
        let file = Connection::open(path).unwrap();
        let mut tables =
            file.prepare("SELECT name, ifnull(sql, '') FROM sqlite_master ORDER BY 1").unwrap();
        let rows = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    fn text(path: &Path, sql: &str) -> String {
        Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn name(path: &Path) -> String {
        let sql = "SELECT hex(value) || ' ' || seq FROM openkv_meta, data_version \
                   WHERE name = 'database' AND k = 1";
        text(path, sql)
    }

    /// Whether files are created here, or by SQLite.
    const HERE: bool = cfg!(target_os = "linux");

    #[test]
    fn a_new_file_is_as_sqlite_creates_it_and_has_names_of_its_own() {
        for encoding in [Encoding::Cbor, Encoding::V8] {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            assert_eq!(create(&at("first"), encoding), HERE);
            assert_eq!(create(&at("second"), encoding), HERE);
            // SQLite creates the tables in an empty file.
            std::fs::write(at("third"), "").unwrap();
            let names: HashSet<_> = ["third", "first", "second"]
                .map(|file| {
                    let engine =
                        SqliteEngine::open_as(&at(file), false, BUSY, Some(encoding)).unwrap();
                    assert_eq!(engine.encoding(), encoding);
                    drop(engine);
                    assert_eq!(text(&at(file), "PRAGMA journal_mode"), "wal");
                    assert_eq!(
                        text(&at(file), "SELECT auto_vacuum || '' FROM pragma_auto_vacuum"),
                        "2"
                    );
                    assert_eq!(text(&at(file), "PRAGMA integrity_check"), "ok");
                    assert_eq!(tables(&at(file)), tables(&at("third")));
                    name(&at(file))
                })
                .into_iter()
                .collect();
            assert_eq!(names.len(), 3);
        }
    }

    #[test]
    fn a_file_is_not_created_over_another_nor_beside_a_log() {
        let folder = tempfile::tempdir().unwrap();
        for end in ["", "-journal", "-wal", "-shm"] {
            let other = folder.path().join(format!("kv{end}"));
            std::fs::write(&other, "another").unwrap();
            assert!(!create(&folder.path().join("kv"), Encoding::Cbor), "{end}");
            assert_eq!(std::fs::read(&other).unwrap(), b"another");
            std::fs::remove_file(&other).unwrap();
        }
        assert!(!create(&folder.path().join("missing/kv"), Encoding::Cbor));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn of_threads_that_create_a_file_at_once_one_does() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..10 {
            let path = folder.path().join(format!("{round}"));
            let names: HashSet<_> = std::thread::scope(|scope| {
                let opens = (0..4).map(|_| {
                    scope.spawn(|| {
                        let engine = SqliteEngine::open(&path, false, BUSY).unwrap();
                        engine.writer().unwrap().checkpoint().unwrap();
                        name(&path)
                    })
                });
                let opens: Vec<_> = opens.collect();
                opens.into_iter().map(|opens| opens.join().unwrap()).collect()
            });
            assert_eq!(names.len(), 1);
        }
    }
}
