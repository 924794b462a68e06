//! Inputs from outside: the time, and unpredictable numbers.

/// Time and randomness as an argument, so that tests choose them.
///
/// Entries and messages carry wall-clock time, which means the same to every process on the file.
/// Code that waits inside a process uses the monotonic clock.
pub trait Env: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;

    /// A random number.
    fn random(&self) -> u64;
}
