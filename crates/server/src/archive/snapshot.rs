//! Snapshots: verified backups, without the log and the history, compressed.
//!
//! Duty: hash the entries of a copy of a database in use, and upload it; download one into a file.
//! Invariant: memory is bounded; a file that was downloaded has the hash that the head names.
//! Never: a snapshot whose copy was not verified.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::names::{SnapshotName, Timeline};
use super::object::{Commit, Content, FORM, Hash, Head, Source, Stored, ZSTD_LEVEL, encode_head};
use super::target::{READS, Target};
use super::{content, snapshot_file};
use openkv_client::open::cannot;
use openkv_core::model::{ARCHIVE_PART_BYTES, Error, Result};
use openkv_engines::sqlite::{Rebuild, Unfinished};
use openkv_store::Store;

/// A snapshot in an archive.
#[derive(Clone)]
pub(super) struct Taken {
    pub(super) name: SnapshotName,
    pub(super) digest: Hash,
    pub(super) taken_ms: i64,
    pub(super) compressed: u64,
}

/// The inputs of a snapshot.
#[derive(Clone)]
pub(super) struct Take {
    pub(super) target: Target,
    /// Files are written beside this path.
    pub(super) beside: PathBuf,
    pub(super) source: Source,
    pub(super) now_ms: i64,
}

impl Take {
    /// Takes a snapshot and uploads it, unless the archive has one of the same commit.
    ///
    /// # Errors
    /// Errors of the store, the disk and the target; `Unavailable` if `goes_on` returns `false`.
    pub(super) fn run(&self, store: &Store, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<Taken> {
        let copy = Unfinished::beside(&self.beside);
        snapshot_file::write(store, &self.source, copy.path(), goes_on)?;
        let mut rebuild = Rebuild::open(copy.path())?;
        let version = rebuild.version();
        let name = SnapshotName { timeline: Timeline(self.source.timeline), version };
        if let Ok(found) = super::catalog::head(&self.target, &name.to_string()) {
            return Ok(taken(name, &found));
        }
        let at_ms = time_of(store, version)?.unwrap_or(self.now_ms);
        let (entries, hash) = content::of_reader(&mut rebuild.reader()?, &mut |_| goes_on())?;
        rebuild.finish(true)?;
        let packed = Unfinished::beside(&self.beside);
        let (bytes, compressed, sha256) = compress(copy.path(), packed.path(), goes_on)?;
        drop(copy);
        let content = Content::Snapshot {
            version: Commit(version),
            at_ms,
            taken_ms: self.now_ms,
            entries,
            content: hash,
        };
        let source = self.source.clone();
        let head = Head { form: FORM, source, content, bytes, compressed, sha256 };
        let (encoded, digest) = encode_head(&head)?;
        let content_at = encoded.len() as u64;
        self.upload(&name, encoded, packed.path(), goes_on)?;
        Ok(taken(name, &Stored { head, digest, content_at }))
    }

    fn upload(
        &self,
        name: &SnapshotName,
        head: Vec<u8>,
        packed: &Path,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let mut file =
            File::open(packed).map_err(|error| cannot("read the file", packed, &error))?;
        let mut head = Some(head);
        self.target.upload(&name.to_string(), || {
            if let Some(head) = head.take() {
                return Ok(head);
            }
            if !goes_on() {
                return Err(Error::unavailable("the snapshot was ended before it was uploaded"));
            }
            let mut bytes = Vec::new();
            let part = (&mut file).take(ARCHIVE_PART_BYTES as u64).read_to_end(&mut bytes);
            part.map_err(|error| cannot("read the file", packed, &error))?;
            Ok(bytes)
        })
    }
}

fn taken(name: SnapshotName, stored: &Stored) -> Taken {
    let taken_ms = match stored.head.content {
        Content::Snapshot { taken_ms, .. } => taken_ms,
        Content::Segments { .. } => 0,
    };
    Taken { name, digest: stored.digest, taken_ms, compressed: stored.head.compressed }
}

/// The time of a commit, as far as the log knows it.
fn time_of(store: &Store, version: u64) -> Result<Option<i64>> {
    let mut found = None;
    let mut reader = store.reader()?;
    reader.read(store.now_ms(), &mut |snapshot| {
        found = snapshot.log()?.at_commit(version)?;
        Ok(())
    })?;
    reader.release();
    Ok(found.map(|(_, at_ms)| at_ms))
}

/// A writer that hashes and counts.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Compresses a file; returns its bytes, the compressed bytes and their hash.
fn compress(
    from: &Path,
    to: &Path,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<(u64, u64, Hash)> {
    let failed = |error: std::io::Error| cannot("compress into the file", to, &error);
    let mut file = File::open(from).map_err(failed)?;
    let out = File::create_new(to).map_err(failed)?;
    let out = Hashing { inner: out, hash: Sha256::new(), bytes: 0 };
    let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL).map_err(failed)?;
    let (mut part, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        let read = file.read(&mut part).map_err(failed)?;
        if read == 0 {
            break;
        }
        if !goes_on() {
            return Err(Error::unavailable("the snapshot was ended before it was complete"));
        }
        encoder.write_all(part.get(..read).unwrap_or_default()).map_err(failed)?;
        bytes += read as u64;
    }
    let out = encoder.finish().map_err(failed)?;
    Ok((bytes, out.bytes, Hash(out.hash.finalize().into())))
}

/// Downloads a snapshot into a new file. `step` gets the bytes of each part, and ends it with `false`.
///
/// # Errors
/// `Corrupt` if the object is damaged; `Unavailable` when ended; errors of the target and the disk.
pub(super) fn download(
    target: &Target,
    name: &SnapshotName,
    to: &Path,
    step: &mut dyn FnMut(u64) -> bool,
) -> Result<Stored> {
    let mut fault = None;
    for _ in 0..READS {
        let mut done = 0;
        let attempt = download_once(target, &name.to_string(), to, &mut |bytes| {
            done += bytes;
            step(bytes)
        });
        match attempt {
            Err(error) if error.kind() == openkv_core::model::Kind::Corrupt => fault = Some(error),
            done => return done,
        }
    }
    Err(fault.unwrap_or_else(|| Error::internal("a download without an attempt")))
}

fn download_once(
    target: &Target,
    name: &str,
    to: &Path,
    step: &mut dyn FnMut(u64) -> bool,
) -> Result<Stored> {
    let stored = super::catalog::head(target, name)?;
    let damaged = |why: &str| Error::corrupt(format!("the object {name} is damaged: {why}"));
    let failed = |error: std::io::Error| cannot("write the file", to, &error);
    let file = File::create(to).map_err(failed)?;
    let out = Hashing { inner: file, hash: Sha256::new(), bytes: 0 };
    let mut decoder = zstd::stream::write::Decoder::new(out).map_err(failed)?;
    let (mut hash, mut seen, mut skip) = (Sha256::new(), 0_u64, stored.content_at);
    target.download(name, |part| {
        if !step(part.len() as u64) {
            return Err(Error::unavailable("the restore was ended before it was done"));
        }
        let skipped = usize::try_from(skip).unwrap_or(usize::MAX).min(part.len());
        skip -= skipped as u64;
        let part = part.get(skipped..).unwrap_or_default();
        hash.update(part);
        seen += part.len() as u64;
        let written = decoder.write_all(part);
        if decoder.get_ref().bytes > stored.head.bytes {
            return Err(damaged("it is larger than its head says"));
        }
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::Other | std::io::ErrorKind::InvalidData => {
                damaged(&format!("zstd refuses it: {error}"))
            }
            _ => failed(error),
        })
    })?;
    if seen != stored.head.compressed || Hash(hash.finalize().into()) != stored.head.sha256 {
        return Err(damaged("its checksum is wrong"));
    }
    decoder.flush().map_err(failed)?;
    if decoder.get_ref().bytes != stored.head.bytes {
        return Err(damaged("its length is wrong"));
    }
    Ok(stored)
}
