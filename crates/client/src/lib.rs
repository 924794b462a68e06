//! From a path or URL to a database.
//!
//! Duty: opens a local store, a remote database or a replica, and gives all three one interface.
//! Invariant: a process has one store for each file; a write that could happen twice has one attempt.
//! Never: the meaning of a write; a token in a message.
//!
//! | module | duty |
//! |---|---|
//! | [`remote`] | a remote database, as a KV Connect client |
//! | [`replica`] | a local copy that follows a remote database, and which of the two answers a read |
//! | [`database`] | the closed choice of a store, a remote database or a replica |
//! | [`open`] | from a path or URL and options to a database |

#![forbid(unsafe_code)]

pub mod database;
pub mod open;
pub mod remote;
pub mod replica;
