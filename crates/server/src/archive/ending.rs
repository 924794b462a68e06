//! The end of the archive of a history: its last object with commits that is sound.
//!
//! Duty: read the last object, remove it if it is damaged, and look at the one before it.
//! Never: trust in a name, or in an object that was not read completely.

use super::catalog;
use super::names::{SegmentsName, Timeline, segments_folder};
use super::object::{Content, Hash};
use super::plan::{Last, chain};
use super::target::Target;
use openkv_core::model::{Error, Kind, Result};

/// The last object.
pub(super) struct Ending {
    pub(super) last: Last,
    /// Its digest, which the next object names.
    pub(super) digest: Hash,
}

/// Finds the last sound object with commits after `oldest`, the oldest snapshot. `removed` gets each
/// damaged one behind it, which is removed: objects that are written again would overlap with it.
pub(super) fn last(
    target: &Target,
    timeline: Timeline,
    oldest: u64,
    removed: &mut dyn FnMut(&str, &Error),
) -> Result<Option<Ending>> {
    let listed = target.list(&segments_folder(timeline))?;
    let mut names: Vec<SegmentsName> =
        listed.iter().filter_map(|(name, _)| SegmentsName::parse(name)).collect();
    loop {
        let mut found = chain(names.clone(), oldest);
        let Some(name) = found.pop() else { return Ok(None) };
        match catalog::segments(target, &name) {
            Ok((stored, _)) => {
                let Content::Segments { after, last_ms, previous, .. } = stored.head.content else {
                    return Err(Error::corrupt(format!(
                        "the object {name} has no segments: it was exchanged"
                    )));
                };
                let before = found.pop().map(|name| before(target, &name)).transpose()?;
                let follows = before.flatten().is_some_and(|before| before == previous);
                let last = Last { version: name.last, at_ms: last_ms, after: after.0, follows };
                return Ok(Some(Ending { last, digest: stored.digest }));
            }
            Err(error) if error.kind() == Kind::Corrupt => {
                let text = name.to_string();
                removed(&text, &error);
                target.remove(&[text])?;
                names.retain(|one| *one != name);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The digest of an object, which the object after it names; none if it cannot be read.
fn before(target: &Target, name: &SegmentsName) -> Result<Option<Hash>> {
    match catalog::head(target, &name.to_string()) {
        Ok(stored) => Ok(Some(stored.digest)),
        Err(error) if error.kind() == Kind::Corrupt => Ok(None),
        Err(error) => Err(error),
    }
}
