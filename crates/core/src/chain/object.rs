//! The bytes of an object of the log (docs/bucket.md, "Objects").
//!
//! A head of fixed length, the content, and the SHA-256 of both, so that a body that is cut or damaged is
//! found, and so that two objects are the same exactly if their digests are.

use sha2::{Digest as _, Sha256};

use crate::codec::Malformed;

/// The SHA-256 of an object without its last 32 bytes, which are the digest itself.
pub type Digest = [u8; 32];

/// The first bytes of an object, and the number of its format.
const MAGIC: &[u8; 8] = b"openkvL1";
const FENCE: u8 = 0;
const BATCH: u8 = 1;
const HEAD_BYTES: usize = 8 + 1 + 4 * 8 + 32;

/// The head of an object of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the log.
    pub number: u64,
    /// The epoch that it begins, or belongs to.
    pub epoch: u64,
    /// The digest of the last valid object before it.
    pub previous: Digest,
    /// What it does.
    pub kind: EntryKind,
}

/// The effect of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// It begins an epoch, and has no content.
    Fence,
    /// It takes the database from one version to another.
    Batch {
        /// The version before it.
        before: u64,
        /// The version after it.
        after: u64,
    },
}

/// The bytes of an object, and its digest.
#[must_use]
pub fn encode(entry: &Entry, content: &[u8]) -> (Vec<u8>, Digest) {
    let mut out = Vec::with_capacity(HEAD_BYTES + content.len() + 32);
    out.extend_from_slice(MAGIC);
    let (kind, before, after) = match entry.kind {
        EntryKind::Fence => (FENCE, 0, 0),
        EntryKind::Batch { before, after } => (BATCH, before, after),
    };
    out.push(kind);
    for number in [entry.number, entry.epoch, before, after] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&entry.previous);
    out.extend_from_slice(content);
    let digest: Digest = Sha256::digest(&out).into();
    out.extend_from_slice(&digest);
    (out, digest)
}

/// The head, the content and the digest of an object.
///
/// # Errors
/// For bytes that are not those of an object, or are not whole.
pub fn decode(bytes: &[u8]) -> Result<(Entry, &[u8], Digest), Malformed> {
    let fault = |what| Malformed::new(what, 0);
    let (body, digest) =
        bytes.split_last_chunk::<32>().ok_or(fault("an object that ends too early"))?;
    let rest = body.strip_prefix(MAGIC).ok_or(fault("not an object of the log of openkv"))?;
    if <[u8; 32]>::from(Sha256::digest(body)) != *digest {
        return Err(fault("an object whose digest is another"));
    }
    let (kind, rest) = rest.split_first().ok_or(fault("an object without a kind"))?;
    let number = |rest: &mut &[u8]| {
        let (number, behind) = rest.split_first_chunk().ok_or(fault("an object without a head"))?;
        *rest = behind;
        Ok(u64::from_le_bytes(*number))
    };
    let mut rest = rest;
    let (place, epoch) = (number(&mut rest)?, number(&mut rest)?);
    let (before, after) = (number(&mut rest)?, number(&mut rest)?);
    let (previous, content) =
        rest.split_first_chunk().ok_or(fault("an object without its predecessor"))?;
    let kind = match *kind {
        FENCE => EntryKind::Fence,
        BATCH => EntryKind::Batch { before, after },
        _ => return Err(fault("an object of an unknown kind")),
    };
    let entry = Entry { number: place, epoch, previous: *previous, kind };
    Ok((entry, content, *digest))
}
