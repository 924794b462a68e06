//! Merged objects: whole copies of consecutive objects of the log, so that a reader far behind makes few requests.
//!
//! A merged object has the bytes of the objects that it copies, void ones too, each behind its length. Each keeps its
//! number, epoch and digest, so a reader judges them as it judges those of the log, and it does not matter which
//! process has made the copy. The log keeps the objects until a snapshot contains them.

use std::ops::Range;

use super::object::{Digest, Entry, decode};
use crate::codec::Malformed;
use crate::model::{BUCKET_MERGED_BYTES_MAX, BUCKET_MERGED_FAN};

/// The first bytes of a merged object, and the number of its format.
const MAGIC: &[u8; 8] = b"openkvM1";

/// What the name of a merged object says: the numbers that it has, and the digest of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Merged {
    /// Its first number.
    pub first: u64,
    /// Its last number.
    pub last: u64,
    /// The digest of the object with the last number.
    pub digest: Digest,
}

impl Merged {
    /// 0 for a few objects, and one more for each [`BUCKET_MERGED_FAN`] times as many.
    fn level(&self) -> u32 {
        (self.last - self.first).saturating_add(1).ilog(BUCKET_MERGED_FAN as u64)
    }
}

/// The bytes of a merged object that is being made.
#[derive(Debug, Default)]
pub struct Merging {
    bytes: Vec<u8>,
    merged: Option<Merged>,
}

impl Merging {
    /// Adds the bytes of the next object of the log.
    ///
    /// # Errors
    /// For bytes that are not those of the next object; they are not added.
    pub fn add(&mut self, object: &[u8]) -> Result<(), Malformed> {
        let (Entry { number, .. }, _, digest) = decode(object)?;
        let length = u32::try_from(object.len());
        let length = length.map_err(|_| Malformed::new("an object that is too large", 0))?;
        let first = match self.merged {
            None => number,
            Some(Merged { first, last, .. }) if number == last + 1 => first,
            Some(_) => return Err(Malformed::new("an object with another number", 0)),
        };
        if self.merged.is_none() {
            self.bytes.extend_from_slice(MAGIC);
        }
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(object);
        self.merged = Some(Merged { first, last: number, digest });
        Ok(())
    }

    /// The bytes so far.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The merged object, and what its name says; `None` without an object.
    #[must_use]
    pub fn finish(self) -> Option<(Merged, Vec<u8>)> {
        self.merged.map(|merged| (merged, self.bytes))
    }
}

/// The bytes of the objects in a merged object.
///
/// # Errors
/// For bytes that are not those of objects with these numbers, or are not whole.
pub fn unmerge<'b>(merged: &Merged, bytes: &'b [u8]) -> Result<Vec<&'b [u8]>, Malformed> {
    let fault = |what| Malformed::new(what, 0);
    let mut rest = bytes.strip_prefix(MAGIC).ok_or(fault("not a merged object of openkv"))?;
    let mut objects = Vec::new();
    let (mut next, mut last) = (merged.first, Digest::default());
    while !rest.is_empty() {
        let cut = || fault("a merged object that ends too early");
        let (length, behind) = rest.split_first_chunk().ok_or_else(cut)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| cut())?;
        let (object, behind) = behind.split_at_checked(length).ok_or_else(cut)?;
        let (entry, _, digest) = decode(object)?;
        if entry.number != next {
            return Err(fault("a merged object with other numbers"));
        }
        (next, last, rest) = (next + 1, digest, behind);
        objects.push(object);
    }
    if next.checked_sub(1) != Some(merged.last) || last != merged.digest {
        return Err(fault("a merged object that its name does not fit"));
    }
    Ok(objects)
}

/// The merged objects that lead from a number on as far as possible, in order. `listed`: with their bytes.
#[must_use]
pub fn cover(mut next: u64, listed: &[(Merged, u64)]) -> Vec<(Merged, u64)> {
    let mut listed = listed.to_vec();
    listed.sort_unstable();
    let (mut cover, mut best) = (Vec::new(), None);
    let mut left = listed.into_iter().peekable();
    loop {
        while let Some(one) = left.next_if(|(merged, _)| merged.first <= next) {
            if best.is_none_or(|(merged, _): (Merged, u64)| merged.last < one.0.last) {
                best = Some(one);
            }
        }
        match best.take_if(|(merged, _)| merged.last >= next) {
            Some(one) => {
                next = one.0.last + 1;
                cover.push(one);
            }
            None => return cover,
        }
    }
}

/// As [`cover`], and goes on behind numbers that no merged object has.
#[must_use]
pub fn covers(mut next: u64, listed: &[(Merged, u64)]) -> Vec<(Merged, u64)> {
    let mut all = Vec::new();
    loop {
        all.extend(cover(next, listed));
        next = all.last().map_or(next, |(merged, _)| merged.last + 1);
        let behind = listed.iter().map(|(merged, _)| merged.first).filter(|first| *first > next);
        match behind.min() {
            Some(first) => next = first,
            None => return all,
        }
    }
}

/// Which of these merged objects become one: of those that follow each other at least [`BUCKET_MERGED_FAN`] of about the same
/// number of objects, so that there are few at each size and each object is copied once for each size.
#[must_use]
pub fn next_merge(pieces: &[(Merged, u64)]) -> Option<Range<usize>> {
    let mut begin = 0;
    while let Some((first, _)) = pieces.get(begin) {
        let (level, mut next, mut bytes) = (first.level(), first.first, 0);
        let run = pieces.iter().skip(begin).take_while(|(merged, size)| {
            let follows = merged.first == next;
            (next, bytes) = (merged.last + 1, bytes + size);
            follows && merged.level() == level && bytes <= BUCKET_MERGED_BYTES_MAX as u64
        });
        let count = run.count();
        if count >= BUCKET_MERGED_FAN {
            return Some(begin..begin + count);
        }
        begin += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::object::{EntryKind, encode};
    use super::*;

    fn object(number: u64) -> Vec<u8> {
        let kind = EntryKind::Batch { before: number, after: number + 1 };
        encode(&Entry { number, epoch: 1, previous: [3; 32], kind }, b"content").0
    }

    fn merged(numbers: Range<u64>) -> (Merged, Vec<u8>) {
        let mut merging = Merging::default();
        for number in numbers {
            merging.add(&object(number)).unwrap();
        }
        merging.finish().unwrap()
    }

    fn piece(first: u64, last: u64) -> (Merged, u64) {
        (Merged { first, last, digest: [0; 32] }, 100)
    }

    #[test]
    fn a_merged_object_has_what_the_log_has_and_damage_is_found() {
        let (name, bytes) = merged(5..8);
        assert_eq!((name.first, name.last), (5, 7));
        assert_eq!(unmerge(&name, &bytes).unwrap(), [object(5), object(6), object(7)]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(unmerge(&name, &damaged).is_err(), "{at}");
            assert!(unmerge(&name, &bytes[..at]).is_err(), "{at}");
        }
        for other in [
            Merged { first: 4, ..name },
            Merged { last: 8, ..name },
            Merged { digest: [0; 32], ..name },
        ] {
            assert!(unmerge(&other, &bytes).is_err(), "{other:?}");
        }
    }

    #[test]
    fn only_the_next_object_is_merged() {
        let mut merging = Merging::default();
        merging.add(&object(5)).unwrap();
        let size = merging.size_bytes();
        assert!(merging.add(&object(5)).is_err() && merging.add(&object(7)).is_err());
        assert!(merging.add(b"other").is_err());
        assert_eq!(merging.size_bytes(), size);
        assert!(Merging::default().finish().is_none());
    }

    #[test]
    fn a_cover_leads_as_far_as_possible() {
        let all = [piece(10, 19), piece(0, 9), piece(0, 29), piece(25, 40), piece(50, 60)];
        let numbers = |next| {
            let cover = cover(next, &all);
            cover.iter().map(|(one, _)| (one.first, one.last)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(0), [(0, 29), (25, 40)]);
        assert_eq!(numbers(12), [(0, 29), (25, 40)]);
        assert_eq!(numbers(30), [(25, 40)]);
        assert_eq!(numbers(41), []);
        assert_eq!(numbers(61), []);
        let jumping = covers(41, &all).iter().map(|(one, _)| one.first).collect::<Vec<_>>();
        assert_eq!(jumping, [50]);
        assert_eq!(covers(0, &all).len(), 3);
    }

    /// The pieces that are there after so many objects, each made of objects and pieces as a leader makes them.
    fn pieces_after(objects: u64) -> usize {
        let fan = BUCKET_MERGED_FAN as u64;
        let mut pieces = Vec::new();
        for first in (0..objects - objects % fan).step_by(BUCKET_MERGED_FAN) {
            pieces.push(piece(first, first + fan - 1));
            while let Some(range) = next_merge(&pieces) {
                let (first, last) = (pieces[range.start].0.first, pieces[range.end - 1].0.last);
                pieces.splice(range, [piece(first, last)]);
            }
        }
        let covered: u64 = pieces.iter().map(|(one, _)| one.last - one.first + 1).sum();
        assert_eq!(covered, objects - objects % fan);
        pieces.len() + usize::try_from(objects % fan).unwrap()
    }

    #[test]
    fn few_objects_are_left_of_many() {
        for objects in [1, 31, 32, 1_023, 20_000, 999_999] {
            assert!(pieces_after(objects) < 4 * BUCKET_MERGED_FAN, "{objects}");
        }
    }

    #[test]
    fn large_pieces_stay_apart() {
        let size = BUCKET_MERGED_BYTES_MAX as u64 / BUCKET_MERGED_FAN as u64;
        let pieces = |size| (0..40).map(|at| (piece(at, at).0, size)).collect::<Vec<_>>();
        assert_eq!(next_merge(&pieces(size)), Some(0..BUCKET_MERGED_FAN));
        assert_eq!(next_merge(&pieces(size + 1)), None);
        let mut apart = pieces(1);
        apart.remove(20);
        assert_eq!(next_merge(&apart), None, "a number is missing");
    }
}
