//! The model of an object store, and copies of a database.

use std::collections::BTreeMap;

use openkv::chain::{Digest, Entry, Mark, Merged, Position, Standing, cover, decode, unmerge};

/// A request to the store.
#[derive(Clone)]
pub(super) enum Ask {
    Read(u64),
    Create(u64, Vec<u8>),
    ReadLease,
    /// Replaces the lease if it has this number.
    Lease(u64, LeaseText),
    /// Lists the snapshots and reads the newest one.
    List,
    Snapshot(Mark, Copy),
    /// Reads the objects of the log with these numbers.
    ReadAll(u64, u64),
    Merge(Merged, Vec<u8>),
    /// Lists the merged objects and reads them.
    ListMerged,
    Delete(Option<u64>, Vec<Mark>),
}

/// Its answer.
#[derive(Clone)]
pub(super) enum Response {
    Object(Option<Vec<u8>>),
    Created,
    Taken,
    /// The credentials are refused, and nothing has happened.
    Denied,
    Lease(u64, Option<LeaseText>),
    Replaced(Option<u64>),
    Listed(Vec<Mark>, Option<(Mark, Copy)>),
    Objects(Vec<Option<Vec<u8>>>),
    Merged(Vec<(Merged, Vec<u8>)>),
    Done,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LeaseText {
    pub(super) holder: u64,
    pub(super) beat: u64,
    pub(super) released: bool,
}

/// A copy of a database: its place and its writes.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Copy {
    pub(super) position: Position,
    pub(super) writes: Vec<u64>,
}

impl Copy {
    /// Repeats an object.
    pub(super) fn take(&mut self, entry: &Entry, content: &[u8], digest: Digest) -> Standing {
        let standing = self.position.take(entry, digest);
        if standing == Standing::Batch {
            self.writes.extend(content.iter().map(|write| u64::from(*write)));
        }
        standing
    }

    /// Repeats what merged objects have behind the place. `false` if one of them cannot be read.
    pub(super) fn take_merged(&mut self, listed: &[(Merged, Vec<u8>)]) -> bool {
        let names: Vec<_> = listed.iter().map(|(merged, _)| (*merged, 0)).collect();
        for (merged, _) in cover(self.position.next, &names) {
            let found = listed.iter().find(|(name, _)| *name == merged);
            let Some(Ok(objects)) = found.map(|(name, bytes)| unmerge(name, bytes)) else {
                return false;
            };
            for bytes in objects {
                let Ok((entry, content, digest)) = decode(bytes) else { return false };
                if entry.number == self.position.next {
                    self.take(&entry, content, digest);
                }
            }
        }
        true
    }
}

#[derive(Default)]
pub(super) struct Store {
    pub(super) log: BTreeMap<u64, Vec<u8>>,
    /// The first object with each number, also if it was deleted.
    pub(super) ever: BTreeMap<u64, Vec<u8>>,
    pub(super) lease: Option<LeaseText>,
    pub(super) lease_number: u64,
    /// Snapshots, and since when listings have them.
    pub(super) snapshots: BTreeMap<Mark, (Copy, u64)>,
    /// Merged objects, and since when listings have them.
    pub(super) merged: BTreeMap<Merged, (Vec<u8>, u64)>,
}

impl Store {
    pub(super) fn carry_out(&mut self, ask: Ask, now: u64, lag: u64) -> Response {
        match ask {
            Ask::Read(number) => Response::Object(self.log.get(&number).cloned()),
            Ask::Create(number, _) if self.log.contains_key(&number) => Response::Taken,
            Ask::Create(number, bytes) => {
                self.ever.entry(number).or_insert_with(|| bytes.clone());
                self.log.insert(number, bytes);
                Response::Created
            }
            Ask::ReadLease => Response::Lease(self.lease_number, self.lease.clone()),
            Ask::Lease(number, lease) if number == self.lease_number => {
                self.lease = Some(lease);
                self.lease_number += 1;
                Response::Replaced(Some(self.lease_number))
            }
            Ask::Lease(..) => Response::Replaced(None),
            Ask::List => {
                let mut listed = self.snapshots.iter().filter(|(_, (_, since))| *since <= now);
                let marks: Vec<_> = listed.clone().map(|(mark, _)| *mark).collect();
                let newest = listed.next_back().map(|(mark, (copy, _))| (*mark, copy.clone()));
                Response::Listed(marks, newest)
            }
            Ask::Snapshot(mark, copy) => {
                self.snapshots.entry(mark).or_insert((copy, now + lag));
                Response::Done
            }
            Ask::ReadAll(first, last) => Response::Objects(
                (first..=last).map(|number| self.log.get(&number).cloned()).collect(),
            ),
            Ask::Merge(merged, bytes) => {
                self.merged.entry(merged).or_insert((bytes, now + lag));
                Response::Done
            }
            Ask::ListMerged => {
                let listed = self.merged.iter().filter(|(_, (_, since))| *since <= now);
                Response::Merged(
                    listed.map(|(merged, (bytes, _))| (*merged, bytes.clone())).collect(),
                )
            }
            Ask::Delete(last, marks) => {
                if let Some(last) = last {
                    self.merged.retain(|merged, _| merged.last > last);
                    self.log.retain(|number, _| *number > last);
                }
                self.snapshots.retain(|mark, _| !marks.contains(mark));
                Response::Done
            }
        }
    }
}

impl Copy {
    /// Whether the last valid object before the place has the digest of the copy.
    pub(super) fn is_at(&self, last: Option<Digest>, ever: &BTreeMap<u64, Vec<u8>>) -> bool {
        last == Some(self.position.digest)
            || ever.values().filter_map(|bytes| decode(bytes).ok()).any(|(entry, _, digest)| {
                entry.number < self.position.next && digest == self.position.digest
            })
    }
}
