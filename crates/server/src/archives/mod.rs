//! The archives of a server's databases.
//!
//! Duty: an archiver for each database that has a policy, or for all by the default of the server.
//! Invariant: an open database has a running archiver. An unused one is opened for a while when its file has
//! changed since it was archived, a few at one time. So the archive gets everything, also commits from before a
//! crash, or of another process.
//! Never: a credential in an answer or the log; the target in anything that clients of a database see.
//!
//! | file | what |
//! |---|---|
//! | `plan` | pure: what to do about one database |
//! | `keeper` | does it, on a thread of its own |
//! | `view` | the state for the admin API |

mod keeper;
mod plan;
mod view;

pub(super) use keeper::Archives;
pub(super) use view::view;
