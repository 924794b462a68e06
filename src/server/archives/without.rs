//! A build without the cargo feature archive: policies and the option are refused by name.

use std::sync::Arc;

use hyper::StatusCode;

use crate::metrics::ArchiveFigures;
use crate::model::{Error, Result};
use crate::server::answer::Refusal;
use crate::server::archive_policy::ArchivePolicy;
use crate::server::catalog::Catalog;
use crate::server::database::Database;

/// No archivers.
pub(in crate::server) struct Archives;

impl Archives {
    /// # Errors
    /// `Unsupported` with a default.
    pub(in crate::server) fn start(
        _catalog: &Arc<Catalog>,
        default: Option<ArchivePolicy>,
    ) -> Result<Self> {
        match default {
            None => Ok(Self),
            Some(_) => Err(Error::unsupported(
                "archive: this build of openkv is without the cargo feature archive",
            )),
        }
    }

    pub(in crate::server) fn look_soon(&self) {}

    pub(in crate::server) fn end(&self, _database: &Database) {}

    pub(in crate::server) fn close(&self) {}

    pub(in crate::server) fn figures(&self, _database: &Database) -> Option<ArchiveFigures> {
        None
    }

    pub(in crate::server) fn allows(
        &self,
        _database: &Database,
        _policy: &ArchivePolicy,
    ) -> Result<(), Refusal> {
        let text = "This build of openkv is without the cargo feature archive.";
        Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text))
    }
}

/// # Errors
/// Always: there is none.
pub(in crate::server) fn view(_archives: &Archives, _database: &Database) -> Result<()> {
    Err(Error::unsupported("this build of openkv is without the cargo feature archive"))
}
