//! What the outside world tells: the time, and numbers nobody can guess.

/// Time and randomness as an argument, so that a test can be both clock and dice.
///
/// Wall-clock time is what entries and messages carry, since it must mean the same to every process
/// on the file; waiting inside a process is measured by the monotonic clock where it is waited for.
pub trait Env: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;

    /// A random number.
    fn random(&self) -> u64;
}
