//! Every bound of the project, its unit last in its name. Those of some modules
//! have files of their own below this one.
//!
//! [`Limits`] are the bounds of a handle. The default is Deno KV's, so that the same code runs on
//! Deno; the other set is "wide". JavaScript reads these numbers from the binding.

mod archive;
mod bucket;
mod feed;
mod file;
mod filter;
mod frames;
mod http;
mod inline;
mod interchange;
mod lanes;
mod layer;
mod lease;
mod limiter;
mod long;
mod metrics;
mod postgres;
mod queue;
mod remote;
mod replication;
mod search;
mod server;
mod value_index;
mod writer;

pub use archive::*;
pub use bucket::*;
pub use feed::*;
pub use file::*;
pub use filter::*;
pub use frames::*;
pub use http::*;
pub use inline::*;
pub use interchange::*;
pub use lanes::*;
pub use layer::*;
pub use lease::*;
pub use limiter::*;
pub use long::*;
pub use metrics::*;
pub use postgres::*;
pub use queue::*;
pub use remote::*;
pub use replication::*;
pub use search::*;
pub use server::*;
pub use value_index::*;
pub use writer::*;

/// Declares the bounds of a handle. `npm run generate` writes each row to index.d.ts and docs/limits.md.
macro_rules! limits {
    ($(#[doc = $doc:literal] $field:ident $name:literal = $value:expr, wide $wide:expr;)*) => {
        /// The bounds on the calls of a handle. The default is Deno KV's.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits { $(#[doc = $doc] pub $field: usize,)* }

        impl Default for Limits {
            fn default() -> Self { Self { $($field: $value,)* } }
        }

        impl Limits {
            /// The set "wide", for databases that do not move to Deno.
            #[must_use]
            pub fn wide() -> Self { Self { $($field: $wide,)* } }

            /// Every bound with its name in JavaScript.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$(($name, self.$field),)*].into_iter()
            }

            /// What the bound with this name bounds.
            pub fn meaning(name: &str) -> Option<&'static str> {
                match name {
                    $($name => Some($doc),)*
                    _ => None,
                }
            }

            /// Sets the bound with this name; `false` if there is none.
            pub fn set(&mut self, name: &str, value: usize) -> bool {
                match name {
                    $($name => self.$field = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

const MIB: usize = 1024 * 1024;

limits! {
    /// A key of a check, a change or an undelivered message.
    key_bytes_max "keyBytesMax" = 2048, wide 2048;
    /// A bound of a read; one more than a key.
    // A point read ends at `key 00`.
    range_key_bytes_max "rangeKeyBytesMax" = 2049, wide 2049;
    /// A value, also one that `append` or `sum` makes.
    // A `KvU64` counts as 8.
    value_bytes_max "valueBytesMax" = 65_536, wide 16 * MIB;
    /// A queue message.
    message_bytes_max "messageBytesMax" = 65_536, wide 16 * MIB;
    /// Keys of one `getMany`.
    // And ranges of one read.
    ranges_max "rangesMax" = 10, wide 1000;
    /// `batchSize` of a list.
    // And the sum of the limits of the ranges of one read.
    rows_max "rowsMax" = 1000, wide 1000;
    /// Checks of one commit.
    checks_max "checksMax" = 100, wide 1000;
    /// Entries that the lists of one transaction saw.
    checked_rows_max "checkedRowsMax" = 1000, wide 100_000;
    /// Changes and messages of one commit.
    mutations_max "mutationsMax" = 1000, wide 10_000;
    /// Keys of one watch.
    watched_keys_max "watchedKeysMax" = 10, wide 1000;
    /// Keys, values and messages of one commit together.
    // Counted as Deno counts them.
    commit_bytes_max "commitBytesMax" = 819_200, wide 64 * MIB;
    /// Keys of the changes with a value of one commit together.
    commit_key_bytes_max "commitKeyBytesMax" = 81_920, wide 10_000 * 2048;
    /// Keys in `keysIfUndelivered`.
    undelivered_keys_max "undeliveredKeysMax" = 10, wide 10;
    /// The delay of a message, in milliseconds.
    delay_ms_max "delayMsMax" = 2_592_000_000, wide 2_592_000_000;
    /// Intervals in a `backoffSchedule`.
    backoff_intervals_max "backoffIntervalsMax" = 5, wide 5;
    /// One interval of a `backoffSchedule`, in milliseconds.
    backoff_interval_ms_max "backoffIntervalMsMax" = 3_600_000, wide 3_600_000;
}

/// Characters of a key in a message of an error or log.
pub const KEY_PRINT_CHARS_MAX: usize = 100;

/// Nesting of a stored value, in containers. Writes over it are rejected. Deno stops between 2000 and 4000; this
/// leaves both directions a wide margin on the default stacks of Node, Bun and Deno, interpreted code included.
pub const VALUE_DEPTH_MAX: usize = 1000;

/// The last time of a `Date` of JavaScript, in ms since the epoch.
pub const TIME_MS_MAX: i64 = 8_640_000_000_000_000;
