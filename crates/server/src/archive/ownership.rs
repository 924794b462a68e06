//! The ownership of an archive: one archiver writes at a time.
//!
//! Duty: claim the manifest by a conditional write, renew it, and release it.
//! Invariant: nothing is written more than half a lease after the last renewal, by the clock of this process
//! alone. A folder also has a lock of its file system.
//! Never: compare a time with that of another machine.

use std::fs::File;
use std::time::{Duration, Instant};

use super::manifest::{Archived, Manifest, Observed, OwnershipDecision, claim};
use super::names::{MANIFEST, Timeline};
use super::object::FORM;
use super::target::{Target, Version};
use openkv_core::model::{Error, Origin, Result};

/// Why an archiver cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It can try again later.
    Again(Error),
    /// Another archiver has taken over, or the target is not its own: it ends.
    Ends(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Again(error)
    }
}

impl Failure {
    pub(super) fn error(&self) -> &Error {
        match self {
            Self::Again(error) | Self::Ends(error) => error,
        }
    }
}

/// An archiver that claims an archive.
#[derive(Clone, Debug)]
pub(super) struct Claimant {
    /// A random name.
    pub(super) id: String,
    /// The host that it runs on, for messages.
    pub(super) host: String,
    pub(super) lease: Duration,
}

/// An archive that this process owns.
pub(super) struct Ownership {
    target: Target,
    manifest: Manifest,
    version: Version,
    renewed: Instant,
    lease: Duration,
    /// Released when it is dropped.
    _lock: Option<File>,
}

/// Attempts to write the manifest after answers were lost.
const WRITES: usize = 4;

/// Pause between two looks at a manifest that another archiver may renew.
const LOOK: Duration = Duration::from_millis(500);

impl Ownership {
    /// Claims an archive, or begins one in an empty target. `wait` pauses and returns `false` to end it.
    ///
    /// # Errors
    /// `Unavailable` if another archiver writes; `Invalid` for a target that is not empty and no archive, and
    /// for the archive of another database; errors of the target.
    pub(super) fn claim(
        target: &Target,
        origin: Origin,
        who: &Claimant,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<Self> {
        let no_archive = || {
            Error::invalid(format!(
                "target: {} is not empty and no archive (it has no {MANIFEST}): name an empty or new folder; nothing \
                 was changed",
                target.name()
            ))
        };
        // Before the lock, which creates a file.
        if target.versioned(MANIFEST)?.is_none() && !target.is_empty()? {
            return Err(no_archive());
        }
        let lock = target.lock()?;
        let begun = Instant::now();
        let mut first: Option<Manifest> = None;
        loop {
            let found = target.versioned(MANIFEST)?;
            let (manifest, version) = match found {
                None if !target.is_empty()? => return Err(no_archive()),
                None => (Manifest::new(origin), None),
                Some((bytes, version)) => (Manifest::parse(&bytes)?, Some(version)),
            };
            manifest.check_database(origin)?;
            let seen = Observed {
                owned: manifest.owner.is_some(),
                locked: lock.is_some(),
                changed: first.as_ref().is_some_and(|first| *first != manifest),
                silent_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            };
            match claim(seen, u64::try_from(who.lease.as_millis()).unwrap_or(u64::MAX)) {
                OwnershipDecision::Refuse => return Err(target.owned()),
                OwnershipDecision::Take => {
                    let manifest = Manifest {
                        // What it writes has this form: older versions refuse the archive as a whole.
                        form: FORM,
                        epoch: manifest.epoch + 1,
                        owner: Some(who.id.clone()),
                        host: who.host.clone(),
                        ..manifest
                    };
                    let put = put(target, &manifest, version.as_ref())?;
                    let version = put.ok_or_else(|| target.owned())?;
                    let (target, renewed) = (target.clone(), Instant::now());
                    let lease = who.lease;
                    return Ok(Self { target, manifest, version, renewed, lease, _lock: lock });
                }
                OwnershipDecision::Wait => {
                    first.get_or_insert(manifest);
                    if !wait(LOOK.min(who.lease / 4)) {
                        return Err(Error::unavailable(
                            "ended while it waited for another archiver",
                        ));
                    }
                }
            }
        }
    }

    /// Counts the owners of the archive.
    pub(super) fn epoch(&self) -> u32 {
        self.manifest.epoch
    }

    pub(super) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Begins a history of the database.
    ///
    /// # Errors
    /// `Ends` if another archiver has taken over; errors of the target.
    pub(super) fn begin_timeline(
        &mut self,
        origin: Origin,
        now_ms: i64,
    ) -> Result<Timeline, Failure> {
        let (manifest, timeline) = self.manifest.clone().with_timeline(origin, now_ms);
        self.write(manifest)?;
        Ok(timeline)
    }

    /// Whether it is time to renew.
    pub(super) fn is_due(&self, every: Duration) -> bool {
        self.renewed.elapsed() >= every
    }

    /// Must be called before a write: renews an ownership that may be over soon.
    pub(super) fn hold(&mut self) -> Result<(), Failure> {
        if self.renewed.elapsed() < self.lease / 2 { Ok(()) } else { self.renew(None) }
    }

    /// Renews it, with how far the archive is complete.
    ///
    /// # Errors
    /// `Ends` if another archiver has taken over; errors of the target.
    pub(super) fn renew(&mut self, archived: Option<Archived>) -> Result<(), Failure> {
        let archived = archived.or(self.manifest.archived);
        let renewals = self.manifest.renewals + 1;
        self.write(Manifest { archived, renewals, ..self.manifest.clone() })
    }

    /// Ends it, so that another archiver need not wait.
    pub(super) fn release(&mut self, archived: Option<Archived>) -> Result<(), Failure> {
        let archived = archived.or(self.manifest.archived);
        self.write(Manifest { owner: None, archived, ..self.manifest.clone() })
    }

    fn write(&mut self, manifest: Manifest) -> Result<(), Failure> {
        let begun = Instant::now();
        for _ in 0..WRITES {
            if let Some(version) =
                self.target.replace(MANIFEST, manifest.to_bytes()?, Some(&self.version))?
            {
                (self.manifest, self.version, self.renewed) = (manifest, version, begun);
                return Ok(());
            }
            // An earlier write, whose answer was lost, may have changed the version.
            match own(&self.target, &manifest)? {
                Some(version) => self.version = version,
                None => break,
            }
        }
        let name = self.target.name();
        Err(Failure::Ends(Error::unavailable(match self.target.versioned(MANIFEST)? {
            Some(_) => format!(
                "another archiver has taken over {name}: this one ends; what it has archived is there"
            ),
            None => format!(
                "{MANIFEST} is gone from {name}: the archive was removed, or its folder is not mounted; this \
                 archiver ends"
            ),
        })))
    }
}

/// The version of the manifest in the target, if it has the same owner in the same epoch.
fn own(target: &Target, manifest: &Manifest) -> Result<Option<Version>> {
    let Some((bytes, version)) = target.versioned(MANIFEST)? else { return Ok(None) };
    let there = Manifest::parse(&bytes)?;
    let is_own = (&there.owner, there.epoch) == (&manifest.owner, manifest.epoch);
    // An owner that has released the manifest has no name in it.
    let released = manifest.owner.is_none() && there.epoch == manifest.epoch;
    Ok((is_own || released).then_some(version))
}

/// Writes the manifest of a new owner. A write whose answer was lost, and that was repeated, has succeeded.
fn put(target: &Target, manifest: &Manifest, version: Option<&Version>) -> Result<Option<Version>> {
    match target.replace(MANIFEST, manifest.to_bytes()?, version)? {
        Some(version) => Ok(Some(version)),
        None => own(target, manifest),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use openkv_core::model::Kind;

    const ORIGIN: Origin = Origin { database: [7; 16], incarnation: 9 };

    fn who(id: &str) -> Claimant {
        Claimant { id: id.into(), host: String::new(), lease: Duration::from_millis(40) }
    }

    fn sleep(pause: Duration) -> bool {
        std::thread::sleep(pause);
        true
    }

    #[test]
    fn a_second_archiver_waits_for_a_silent_owner_and_takes_over() {
        let target = Target::over(Arc::new(InMemory::new()), "test");
        let mut first = Ownership::claim(&target, ORIGIN, &who("a"), &mut sleep).unwrap();
        let mut second = Ownership::claim(&target, ORIGIN, &who("b"), &mut sleep).unwrap();
        assert_eq!((first.epoch(), second.epoch()), (1, 2));
        assert!(matches!(first.renew(None), Err(Failure::Ends(_))));
        assert!(matches!(first.hold(), Err(Failure::Ends(_))));
        second.release(None).unwrap();
        let mut waited = false;
        let third = Ownership::claim(&target, ORIGIN, &who("c"), &mut |_| {
            waited = true;
            true
        });
        assert_eq!((third.unwrap().epoch(), waited), (3, false));
    }

    #[test]
    fn a_second_archiver_is_refused_while_the_owner_renews() {
        let target = Target::over(Arc::new(InMemory::new()), "test");
        let mut first = Ownership::claim(&target, ORIGIN, &who("a"), &mut sleep).unwrap();
        let refused = Ownership::claim(&target, ORIGIN, &who("b"), &mut |_| {
            first.renew(None).unwrap();
            true
        });
        assert_eq!(refused.map(drop).unwrap_err().kind(), Kind::Unavailable);
        first.renew(None).unwrap();
    }

    #[test]
    fn a_folder_is_locked() {
        let folder = tempfile::tempdir().unwrap();
        let target = super::super::target::open(folder.path().to_str().unwrap(), true).unwrap();
        let first = Ownership::claim(&target, ORIGIN, &who("a"), &mut sleep).unwrap();
        let refused = Ownership::claim(&target, ORIGIN, &who("b"), &mut sleep);
        assert_eq!(refused.map(drop).unwrap_err().kind(), Kind::Unavailable);
        drop(first);
        let second = Ownership::claim(&target, ORIGIN, &who("b"), &mut sleep).unwrap();
        assert_eq!(second.epoch(), 2);
    }

    #[test]
    fn other_targets_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let target = super::super::target::open(folder.path().to_str().unwrap(), true).unwrap();
        std::fs::write(folder.path().join("mine"), "x").unwrap();
        let refused = Ownership::claim(&target, ORIGIN, &who("a"), &mut sleep);
        assert_eq!(refused.map(drop).unwrap_err().kind(), Kind::Invalid);
        assert!(!folder.path().join(MANIFEST).exists());
        std::fs::remove_file(folder.path().join("mine")).unwrap();
        drop(Ownership::claim(&target, ORIGIN, &who("a"), &mut sleep).unwrap());
        let other = Origin { database: [8; 16], ..ORIGIN };
        let refused = Ownership::claim(&target, other, &who("a"), &mut sleep);
        assert_eq!(refused.map(drop).unwrap_err().kind(), Kind::Invalid);
    }
}
