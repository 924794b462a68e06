//! The manifest of an archive: whose it is, who writes it, and how far it is complete. Decides who may write.

use serde::{Deserialize, Serialize};

use super::names::{MANIFEST, Timeline};
use super::object::{Commit, FORM, Source, check_form};
use openkv_core::model::{Error, Origin, Result};

/// The manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub(super) form: u32,
    /// The name of the database, in hexadecimal.
    pub(super) database: String,
    /// Counts the owners.
    pub(super) epoch: u32,
    /// The random name of the archiver that writes; none after it has ended.
    pub(super) owner: Option<String>,
    /// The host of the owner, for messages.
    pub(super) host: String,
    /// Counts the renewals, so that each one changes the manifest.
    pub(super) renewals: u64,
    /// The histories of the database, the first one first.
    pub(super) timelines: Vec<TimelineEntry>,
    /// How far the newest history is archived.
    pub(super) archived: Option<Archived>,
}

/// A history of the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TimelineEntry {
    pub(super) number: u32,
    /// The copy of the database, in hexadecimal.
    pub(super) incarnation: String,
    /// When it was begun, in ms since the epoch.
    pub(super) begun_ms: i64,
}

/// How far a history is archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Archived {
    /// The last archived commit.
    pub(super) version: Commit,
    /// The database had no later commit at this time, in ms since the epoch.
    pub(super) complete_ms: i64,
}

impl Manifest {
    /// That of a new archive.
    pub(super) fn new(origin: Origin) -> Self {
        let Source { database, .. } = Source::new(origin, 0, 0);
        Self {
            form: FORM,
            database,
            epoch: 0,
            owner: None,
            host: String::new(),
            renewals: 0,
            timelines: Vec::new(),
            archived: None,
        }
    }

    /// # Errors
    /// `Corrupt` for other bytes; `Unsupported` for a newer form.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|error| {
            Error::corrupt(format!(
                "{MANIFEST} of the target cannot be read ({error}): the target is damaged, or is no archive of \
                 openkv; name another target"
            ))
        })?;
        check_form("the archive", manifest.form)?;
        Ok(manifest)
    }

    /// # Errors
    /// None that is not a bug.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(|error| Error::internal(error.to_string()))
    }

    /// The newest history, if it is that of this copy of the database.
    pub(super) fn timeline_of(&self, origin: Origin) -> Option<Timeline> {
        let Source { incarnation, .. } = Source::new(origin, 0, 0);
        let newest = self.timelines.last()?;
        (newest.incarnation == incarnation).then_some(Timeline(newest.number))
    }

    /// Refuses the archive of another database.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn check_database(&self, origin: Origin) -> Result<()> {
        let Source { database, .. } = Source::new(origin, 0, 0);
        if self.database == database {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the target is the archive of another database ({}; this one is {database}): name a target of its \
             own for each database",
            self.database
        )))
    }

    /// With a new history at the end.
    pub(super) fn with_timeline(mut self, origin: Origin, now_ms: i64) -> (Self, Timeline) {
        let Source { incarnation, .. } = Source::new(origin, 0, 0);
        let number = self.timelines.last().map_or(1, |last| last.number + 1);
        self.timelines.push(TimelineEntry { number, incarnation, begun_ms: now_ms });
        self.archived = None;
        (self, Timeline(number))
    }
}

/// The decision of an archiver that begins, about the owner of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnershipDecision {
    /// It becomes the owner.
    Take,
    /// It waits, and looks again.
    Wait,
    /// Another one writes.
    Refuse,
}

/// The observations of an archiver about the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    /// Whether the manifest names an owner.
    pub(super) owned: bool,
    /// Whether this archiver holds a lock that every owner holds while it runs.
    pub(super) locked: bool,
    /// Whether the manifest has changed since the first look.
    pub(super) changed: bool,
    /// How long it has not changed, by the clock of this archiver alone, in ms.
    pub(super) silent_ms: u64,
}

/// Decides about the ownership, without trust in any clock of another machine.
pub(super) fn claim(seen: Observed, lease_ms: u64) -> OwnershipDecision {
    match seen {
        Observed { owned: false, .. } | Observed { locked: true, .. } => OwnershipDecision::Take,
        Observed { changed: true, .. } => OwnershipDecision::Refuse,
        Observed { silent_ms, .. } if silent_ms >= lease_ms => OwnershipDecision::Take,
        Observed { .. } => OwnershipDecision::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Kind;

    const ORIGIN: Origin = Origin { database: [7; 16], incarnation: 9 };

    #[test]
    fn an_owner_keeps_its_archive_while_it_renews() {
        let seen = |owned, changed, silent_ms| {
            claim(Observed { owned, locked: false, changed, silent_ms }, 100)
        };
        assert_eq!(seen(false, false, 0), OwnershipDecision::Take);
        assert_eq!(seen(true, false, 99), OwnershipDecision::Wait);
        assert_eq!(seen(true, false, 100), OwnershipDecision::Take);
        assert_eq!(seen(true, true, 0), OwnershipDecision::Refuse);
        assert_eq!(seen(true, true, 1000), OwnershipDecision::Refuse);
        let locked = Observed { owned: true, locked: true, changed: false, silent_ms: 0 };
        assert_eq!(claim(locked, 100), OwnershipDecision::Take);
    }

    #[test]
    fn a_copy_of_the_database_begins_a_timeline() {
        let (manifest, timeline) = Manifest::new(ORIGIN).with_timeline(ORIGIN, 5);
        assert_eq!((timeline, manifest.timeline_of(ORIGIN)), (Timeline(1), Some(Timeline(1))));
        let restored = Origin { incarnation: 10, ..ORIGIN };
        manifest.check_database(restored).unwrap();
        assert_eq!(manifest.timeline_of(restored), None);
        let (manifest, timeline) = manifest.with_timeline(restored, 6);
        assert_eq!((timeline, manifest.timeline_of(ORIGIN)), (Timeline(2), None));
        let other = manifest.check_database(Origin { database: [8; 16], incarnation: 9 });
        assert_eq!(other.unwrap_err().kind(), Kind::Invalid);
    }

    #[test]
    fn a_manifest_survives_the_round_trip_and_other_bytes_are_refused() {
        let (manifest, _) = Manifest::new(ORIGIN).with_timeline(ORIGIN, 5);
        assert_eq!(Manifest::parse(&manifest.to_bytes().unwrap()), Ok(manifest.clone()));
        assert_eq!(Manifest::parse(b"{}").unwrap_err().kind(), Kind::Corrupt);
        let older = Manifest { form: 1, ..manifest.clone() };
        assert_eq!(Manifest::parse(&older.to_bytes().unwrap()), Ok(older));
        let newer = Manifest { form: FORM + 1, ..manifest }.to_bytes().unwrap();
        assert_eq!(Manifest::parse(&newer).unwrap_err().kind(), Kind::Unsupported);
    }
}
