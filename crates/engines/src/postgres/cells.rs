//! Reads the columns of answered rows as the types of the tables of openkv.
//!
//! Invariant: a column of another type is an error that names it, since only a change by hand can have
//! made it. The driver's own accessor would panic.

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, WasNull};

use openkv_core::model::{Error, Result};

/// The columns of a row of one table.
pub(super) struct Cells<'r> {
    table: &'static str,
    row: &'r Row,
}

impl<'r> Cells<'r> {
    /// Of a row that was read from `openkv.<table>`.
    pub(super) fn of(table: &'static str, row: &'r Row) -> Self {
        Self { table, row }
    }

    /// The value of a column, counted from 0.
    ///
    /// # Errors
    /// `Corrupt` for another type, NULL where there is none, and a missing column.
    pub(super) fn get<T: FromSql<'r>>(&self, at: usize) -> Result<T> {
        self.row.try_get(at).map_err(|error| self.damage(at, &error))
    }

    /// The bits of a number that has no sign.
    pub(super) fn unsigned(&self, at: usize) -> Result<u64> {
        self.get::<i64>(at).map(i64::cast_unsigned)
    }

    /// Text of users. What is not UTF-8 is replaced.
    pub(super) fn text(&self, at: usize) -> Result<String> {
        Ok(String::from_utf8_lossy(self.get(at)?).into_owned())
    }

    fn damage(&self, at: usize, error: &tokio_postgres::Error) -> Error {
        let column = self.row.columns().get(at);
        let name = column.map_or("?", |column| column.name());
        let cause = std::error::Error::source(error);
        let why = match column {
            None => "is missing".to_owned(),
            Some(_) if cause.is_some_and(|cause| cause.is::<WasNull>()) => "is NULL".to_owned(),
            Some(column) => format!("has a wrong value or type, {}", column.type_()),
        };
        let table = self.table;
        Error::corrupt(format!(
            "openkv.{table}: the column {name} {why}; the tables were changed by hand"
        ))
    }
}

/// The first column of the first row, if there is one that is not NULL.
pub(super) fn first<'r, T: FromSql<'r>>(table: &'static str, rows: &'r [Row]) -> Result<Option<T>> {
    rows.first().map_or(Ok(None), |row| Cells::of(table, row).get(0))
}
