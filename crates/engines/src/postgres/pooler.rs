//! Refuses a pooler between this process and the server that gives every transaction another
//! connection: it would break the order of commits and lose the settings of the session.

use super::cells::first;
use super::session::Session;
use super::url::Server;
use openkv_core::model::{Error, Kind, Result};

const MARK: &str = "SELECT set_config('openkv.connection', 'marked', false)";
const READ: &str = "SELECT coalesce(current_setting('openkv.connection', true), '')";

/// Marks one connection and looks whether another one, inside a transaction, has the mark, or the
/// first one has lost it. Direct connections have their own settings.
///
/// # Errors
/// `Unsupported` behind such a pooler; what the server answers.
pub(super) fn refuse(server: &Server) -> Result<()> {
    let (mut first, mut second) = (Session::connect(server)?, Session::connect(server)?);
    first.query((MARK, vec![]))?;
    second.execute("BEGIN")?;
    let leaked = read(&mut second)?;
    let own = read(&mut first)?;
    second.execute("ROLLBACK")?;
    if leaked.is_empty() && own == "marked" {
        return Ok(());
    }
    let why = "PostgreSQL is behind a pooler of transactions (such as PgBouncer with pool_mode = \
               transaction), which breaks the order of commits: connect to the server itself, or \
               use pool_mode = session";
    Err(Error::new(Kind::Unsupported, why))
}

fn read(session: &mut Session) -> Result<String> {
    let rows = session.query((READ, vec![]))?;
    Ok(first("settings", &rows)?.unwrap_or_default())
}
