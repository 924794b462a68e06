//! Writes to a log that are not in its file yet.
//!
//! Duty: what waits, and how long; how far a log grows.
//! Never: a call of the system.

use openkv_core::model::{LOG_GATHERED_BYTES_MAX, LOG_GROWTH_BYTES_MAX, LOG_GROWTH_BYTES_MIN};

/// Bytes of the header of a frame.
const FRAME_HEADER_BYTES: usize = 24;

/// Which writes may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathering {
    /// None: others may see a commit right after its last write.
    Off,
    /// The header of a frame, until its page follows.
    Frames,
    /// All, until SQLite syncs the log.
    Commits,
}

/// Bytes for one place of the log.
pub(super) struct Gathered {
    pub(super) gathering: Gathering,
    at: u64,
    bytes: Vec<u8>,
}

impl Gathered {
    pub(super) const fn new() -> Self {
        Self { gathering: Gathering::Off, at: 0, bytes: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether a write at this place can join what waits.
    pub(super) fn continues_at(&self, at: u64) -> bool {
        self.is_empty() || at == self.end()
    }

    /// Whether a read of this range concerns what waits.
    pub(super) fn overlaps(&self, at: i64, length: i32) -> bool {
        let (from, to) = (i128::from(at), i128::from(at) + i128::from(length));
        !self.is_empty() && from < i128::from(self.end()) && i128::from(self.at) < to
    }

    /// Adds a write that continues what waits; returns whether everything may wait longer, and `None`
    /// without memory for it.
    pub(super) fn add(&mut self, at: u64, bytes: &[u8]) -> Option<bool> {
        self.bytes.try_reserve(bytes.len()).ok()?;
        if self.is_empty() {
            self.at = at;
        }
        self.bytes.extend_from_slice(bytes);
        Some(match self.gathering {
            Gathering::Off => false,
            Gathering::Frames => bytes.len() == FRAME_HEADER_BYTES,
            Gathering::Commits => self.bytes.len() < LOG_GATHERED_BYTES_MAX,
        })
    }

    /// The place of the bytes that wait.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The place behind them.
    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds zeros up to a place, for the time of `job`.
    pub(super) fn with_zeros_to<T>(&mut self, end: u64, job: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let (before, zeros) = (self.bytes.len(), usize::try_from(end - self.end()).ok()?);
        self.bytes.try_reserve(zeros).ok()?;
        self.bytes.resize(before + zeros, 0);
        let done = job(&self.bytes);
        self.bytes.truncate(before);
        Some(done)
    }

    /// Gives back the memory that is not in use.
    pub(super) fn give_back(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Nothing waits any more.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// The new length of a log of `length` bytes when it has to have at least `end`. A log of few commits
/// stays short, and one that gets long grows seldom.
pub(super) fn grown(length: u64, end: u64) -> u64 {
    end + length.clamp(LOG_GROWTH_BYTES_MIN, LOG_GROWTH_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [u8; 4096] = [1; 4096];
    const HEADER: [u8; FRAME_HEADER_BYTES] = [2; FRAME_HEADER_BYTES];

    #[test]
    fn without_a_sync_only_the_header_of_a_frame_waits() {
        let mut gathered = Gathered::new();
        assert_eq!(gathered.add(32, &HEADER), Some(false));
        gathered.clear();
        gathered.gathering = Gathering::Frames;
        assert_eq!(gathered.add(32, &HEADER), Some(true));
        assert_eq!(gathered.add(56, &PAGE), Some(false));
        assert_eq!((gathered.at(), gathered.end()), (32, 32 + 24 + 4096));
    }

    #[test]
    fn frames_of_a_commit_wait_up_to_a_limit() {
        let mut gathered = Gathered::new();
        gathered.gathering = Gathering::Commits;
        let mut end = 32;
        while gathered.add(end, &PAGE) == Some(true) {
            end += 4096;
            assert!(gathered.bytes().len() < LOG_GATHERED_BYTES_MAX);
        }
        assert!(gathered.bytes().len() >= LOG_GATHERED_BYTES_MAX);
    }

    #[test]
    fn only_the_next_place_continues_what_waits() {
        let mut gathered = Gathered::new();
        gathered.gathering = Gathering::Commits;
        assert!(gathered.continues_at(7));
        gathered.add(100, &[1, 2, 3]);
        assert!(gathered.continues_at(103));
        assert!(!gathered.continues_at(100) && !gathered.continues_at(104));
    }

    #[test]
    fn only_reads_of_what_waits_concern_it() {
        let mut gathered = Gathered::new();
        assert!(!gathered.overlaps(0, 1000));
        gathered.add(100, &[1, 2, 3]);
        for (at, length, overlaps) in
            [(0, 100, false), (0, 101, true), (102, 1, true), (103, 9, false), (90, 100, true)]
        {
            assert_eq!(gathered.overlaps(at, length), overlaps, "{at} {length}");
        }
    }

    #[test]
    fn zeros_are_added_for_one_job() {
        let mut gathered = Gathered::new();
        gathered.add(100, &[1, 2]);
        assert_eq!(gathered.with_zeros_to(104, <[u8]>::to_vec), Some(vec![1, 2, 0, 0]));
        assert_eq!((gathered.bytes(), gathered.end()), (&[1, 2][..], 102));
    }

    #[test]
    fn a_log_grows_by_its_own_length_within_bounds() {
        assert_eq!(grown(0, 32), 32 + LOG_GROWTH_BYTES_MIN);
        assert_eq!(grown(100_000, 104_000), 204_000);
        assert_eq!(grown(1 << 30, 1 << 31), (1 << 31) + LOG_GROWTH_BYTES_MAX);
    }
}
