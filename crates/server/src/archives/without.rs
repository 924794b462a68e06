//! A build without the cargo feature archive: policies and the option are refused by name.

use std::sync::Arc;

use hyper::StatusCode;

use crate::answer::Refusal;
use crate::archive_policy::ArchivePolicy;
use crate::catalog::Catalog;
use crate::database::Database;
use openkv_core::model::{Error, Result};
use openkv_store::metrics::ArchiveFigures;

/// No archivers.
pub(crate) struct Archives;

impl Archives {
    /// # Errors
    /// `Unsupported` with a default.
    pub(crate) fn start(_catalog: &Arc<Catalog>, default: Option<ArchivePolicy>) -> Result<Self> {
        match default {
            None => Ok(Self),
            Some(_) => Err(Error::unsupported(
                "archive: this build of openkv is without the cargo feature archive",
            )),
        }
    }

    pub(crate) fn look_soon(&self) {}

    pub(crate) fn end(&self, _database: &Database) {}

    pub(crate) fn close(&self) {}

    pub(crate) fn figures(&self, _database: &Database) -> Option<ArchiveFigures> {
        None
    }

    pub(crate) fn allows(
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
pub(crate) fn view(_archives: &Archives, _database: &Database) -> Result<()> {
    Err(Error::unsupported("this build of openkv is without the cargo feature archive"))
}
