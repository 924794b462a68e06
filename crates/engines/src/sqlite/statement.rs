//! Prepared statements that are kept as long as their connection.
//!
//! A statement is compiled by its first execution: of the hundred that a connection has, most databases use
//! ten.
//!
//! `rusqlite` looks up cached statements by text at every use, which costs as much as a point read;
//! these are fields, which call SQLite's C interface.
//!
//! Invariant: a [`Run`] resets its statement when dropped, so no parameter or column outlives it.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::ptr;

use rusqlite::{Connection, ffi};

use super::errors::{from_code, from_commit};
use openkv_core::model::{Error, Result};

/// A statement. Must be dropped before its connection.
pub(super) struct Statement {
    db: *mut ffi::sqlite3,
    sql: Cow<'static, str>,
    /// Null until it is compiled.
    raw: *mut ffi::sqlite3_stmt,
    /// Why it could not be compiled for the execution that has begun.
    refusal: Option<Error>,
}

// SAFETY: one thread at a time uses a statement (`&mut self` throughout), as SQLite's multi-thread
// mode requires; it moves together with its connection.
unsafe impl Send for Statement {}

impl Statement {
    /// A statement, which its first execution compiles: an error of its text is one of that execution.
    ///
    /// # Errors
    /// `Internal` for a text that is longer than any of SQLite's.
    pub(super) fn prepare(
        connection: &Connection,
        sql: impl Into<Cow<'static, str>>,
    ) -> Result<Self> {
        // SAFETY: the handle is only used while the connection is open, since statements are dropped before.
        Self::prepare_on(unsafe { connection.handle() }, sql.into())
    }

    fn prepare_on(db: *mut ffi::sqlite3, sql: Cow<'static, str>) -> Result<Self> {
        if c_int::try_from(sql.len()).is_err() {
            return Err(Error::internal("the text of a statement is too long"));
        }
        Ok(Self { db, sql, raw: ptr::null_mut(), refusal: None })
    }

    /// Another statement on the connection of this one.
    pub(super) fn beside(&self, sql: &str) -> Result<Self> {
        Self::prepare_on(self.db, Cow::Owned(sql.to_owned()))
    }

    /// Compiles it, and keeps the error.
    #[cold]
    fn compile(&mut self) {
        let len = c_int::try_from(self.sql.len()).unwrap_or(c_int::MAX);
        let flags = ffi::SQLITE_PREPARE_PERSISTENT;
        let (sql, raw) = (self.sql.as_ptr().cast(), &raw mut self.raw);
        // SAFETY: the connection is open, the text has `len` bytes, and `raw` is a valid pointer to the result.
        let code =
            unsafe { ffi::sqlite3_prepare_v3(self.db, sql, len, flags, raw, ptr::null_mut()) };
        self.refusal = (code != ffi::SQLITE_OK).then(|| error_of(self.db, code));
    }

    /// Gives back its memory; the next execution compiles it again.
    pub(super) fn forget(&mut self) {
        // SAFETY: `raw` came from prepare, or is null, and is finalized once.
        unsafe { ffi::sqlite3_finalize(std::mem::replace(&mut self.raw, ptr::null_mut())) };
    }

    /// Starts an execution.
    pub(super) fn run<'b>(&mut self) -> Run<'_, 'b> {
        if self.raw.is_null() {
            self.compile();
        }
        Run { raw: self.raw, statement: self, bound: PhantomData }
    }

    /// Executes a statement without parameters and rows.
    pub(super) fn execute(&mut self) -> Result<()> {
        self.run().finish()
    }

    /// Executes a COMMIT, whose outcome may be unknown after a failure.
    pub(super) fn commit(&mut self) -> Result<()> {
        let mut run = self.run();
        while run.step_or(from_commit)? {}
        Ok(())
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        self.forget();
    }
}

fn error_of(db: *mut ffi::sqlite3, code: c_int) -> Error {
    refusal_of(db, code, from_code)
}

/// The error that `name` makes from the extended result code and SQLite's text.
fn refusal_of(db: *mut ffi::sqlite3, code: c_int, name: fn(i32, &str) -> Error) -> Error {
    // SAFETY: `db` is open; the text is copied before anything else is called on it.
    let text = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(db)) }.to_string_lossy().into_owned();
    // SAFETY: as above.
    let extended = unsafe { ffi::sqlite3_extended_errcode(db) };
    // The extended code may belong to a later call; it is used only if it matches.
    let extended = if extended & 0xff == code & 0xff { extended } else { code };
    name(extended, &text)
}

/// One execution: bind, step, read columns; reset when dropped. SQLite takes the null pointer of a statement
/// that could not be compiled, and does nothing.
pub(super) struct Run<'s, 'b> {
    raw: *mut ffi::sqlite3_stmt,
    statement: &'s mut Statement,
    bound: PhantomData<&'b [u8]>,
}

impl<'b> Run<'_, 'b> {
    pub(super) fn int(self, at: c_int, value: i64) -> Self {
        // SAFETY: the statement lives as long as this run. An invalid index gives an error code,
        // which is ignored: the statements are constants that the tests execute.
        unsafe { ffi::sqlite3_bind_int64(self.raw, at, value) };
        self
    }

    pub(super) fn null(self, at: c_int) -> Self {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_bind_null(self.raw, at) };
        self
    }

    pub(super) fn blob(self, at: c_int, bytes: &'b [u8]) -> Self {
        // A null pointer would bind NULL; the pointer of an empty slice is dangling but not null.
        // SAFETY: the bytes outlive this run ('b), which resets the statement when dropped.
        unsafe {
            ffi::sqlite3_bind_blob64(
                self.raw,
                at,
                bytes.as_ptr().cast(),
                bytes.len() as u64,
                ffi::SQLITE_STATIC(),
            )
        };
        self
    }

    pub(super) fn text(self, at: c_int, text: &'b str) -> Self {
        // SAFETY: the text outlives this run ('b), which resets the statement when dropped; it is
        // UTF-8 of this length.
        unsafe {
            ffi::sqlite3_bind_text64(
                self.raw,
                at,
                text.as_ptr().cast(),
                text.len() as u64,
                ffi::SQLITE_STATIC(),
                ffi::SQLITE_UTF8 as u8,
            )
        };
        self
    }

    /// Binds NULL for `None`; without it the parameter would keep its last value.
    pub(super) fn int_or_null(self, at: c_int, value: Option<i64>) -> Self {
        match value {
            Some(value) => self.int(at, value),
            None => self.null(at),
        }
    }

    pub(super) fn text_or_null(self, at: c_int, text: Option<&'b str>) -> Self {
        match text {
            Some(text) => self.text(at, text),
            None => self.null(at),
        }
    }

    /// The first row, as `read` makes it; `None` without a row.
    pub(super) fn first<T>(mut self, read: impl FnOnce(&Self) -> T) -> Result<Option<T>> {
        Ok(if self.step()? { Some(read(&self)) } else { None })
    }

    /// The first column of the first row; `None` without a row, or for NULL.
    pub(super) fn first_int(self) -> Result<Option<i64>> {
        Ok(self.first(|run| run.column_int_or_null(0))?.flatten())
    }

    /// All rows, each as `read` makes it.
    pub(super) fn all<T>(mut self, read: impl Fn(&Self) -> T) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        while self.step()? {
            rows.push(read(&self));
        }
        Ok(rows)
    }

    /// Moves to the next row; `false` at the end.
    pub(super) fn step(&mut self) -> Result<bool> {
        self.step_or(from_code)
    }

    /// Steps to a row that every file has; `what` is its name.
    ///
    /// # Errors
    /// `Corrupt` if it is missing.
    pub(super) fn row(&mut self, what: &str) -> Result<()> {
        match self.step()? {
            true => Ok(()),
            false => Err(Error::corrupt(format!("{what} is missing: the file is damaged"))),
        }
    }

    /// As [`Self::step`]; `name` converts errors.
    fn step_or(&mut self, name: fn(i32, &str) -> Error) -> Result<bool> {
        if let Some(error) = self.statement.refusal.take() {
            return Err(error);
        }
        // SAFETY: the statement lives as long as this run.
        match unsafe { ffi::sqlite3_step(self.raw) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            code => Err(refusal_of(self.statement.db, code, name)),
        }
    }

    /// Steps to the end.
    pub(super) fn finish(mut self) -> Result<()> {
        while self.step()? {}
        Ok(())
    }

    /// Steps to the end of a statement that writes; returns the number of changed rows.
    pub(super) fn changes(mut self) -> Result<usize> {
        while self.step()? {}
        // SAFETY: the statement, and so its connection, live as long as this run.
        let changed = unsafe { ffi::sqlite3_changes64(self.statement.db) };
        Ok(usize::try_from(changed).unwrap_or(0))
    }

    /// Steps to the end of an INSERT of one row; returns its id, `None` if nothing was inserted.
    pub(super) fn inserted(mut self) -> Result<Option<i64>> {
        while self.step()? {}
        let db = self.statement.db;
        // SAFETY: the statement, and so its connection, live as long as this run.
        let changed = unsafe { ffi::sqlite3_changes64(db) };
        // SAFETY: as above.
        let id = unsafe { ffi::sqlite3_last_insert_rowid(db) };
        Ok((changed > 0).then_some(id))
    }

    /// An integer column of the current row; `None` for NULL.
    pub(super) fn column_int_or_null(&self, at: c_int) -> Option<i64> {
        (!self.column_is_null(at)).then(|| self.column_int(at))
    }

    /// A text column of the current row. Bytes that are not UTF-8 are replaced.
    pub(super) fn column_text(&self, at: c_int) -> String {
        String::from_utf8_lossy(self.column_blob(at)).into_owned()
    }

    /// An integer column of the current row.
    pub(super) fn column_int(&self, at: c_int) -> i64 {
        // SAFETY: a column that does not exist or has another type reads as 0.
        unsafe { ffi::sqlite3_column_int64(self.raw, at) }
    }

    /// A floating-point column of the current row.
    pub(super) fn column_double(&self, at: c_int) -> f64 {
        // SAFETY: a column that does not exist or has another type reads as 0.
        unsafe { ffi::sqlite3_column_double(self.raw, at) }
    }

    /// Whether a column of the current row is NULL.
    pub(super) fn column_is_null(&self, at: c_int) -> bool {
        // SAFETY: reads the current row of a live statement.
        unsafe { ffi::sqlite3_column_type(self.raw, at) == ffi::SQLITE_NULL }
    }

    /// A blob column of the current row, valid until the next step.
    pub(super) fn column_blob(&self, at: c_int) -> &[u8] {
        // SAFETY: pointer and length belong to one value (the pointer is read first, as SQLite
        // requires), which is valid until the next step, and that needs `&mut self`.
        unsafe {
            let start = ffi::sqlite3_column_blob(self.raw, at);
            let len = ffi::sqlite3_column_bytes(self.raw, at);
            match (start.is_null(), usize::try_from(len)) {
                (false, Ok(len)) => std::slice::from_raw_parts(start.cast(), len),
                _ => &[],
            }
        }
    }
}

impl Drop for Run<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: the statement lives as long as this run. The result repeats the error of the last
        // step.
        unsafe { ffi::sqlite3_reset(self.raw) };
    }
}
