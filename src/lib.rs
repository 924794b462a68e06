//! openkv: a transactional key-value store with the API of Deno KV.
//!
//! This crate is the native half of the npm package `openkv`. From the bottom up:
//!
//! | module | duty |
//! |---|---|
//! | [`model`] | nouns, limits, errors; no I/O and no byte formats |
//! | [`codec`] | bytes ⇄ model; total: invalid bytes give `Err` |
//! | [`search`] | the text of a value and the meaning of a query; pure |
//! | [`filter`] | the conditions of `where`, decided on encoded values |
//! | [`index`] | the entries of value indexes, and the ranges of them that a list reads; pure |
//! | [`interchange`] | texts of keys, values and filters ⇄ model; pure |
//! | [`commit`] | the pure decision of a write: checks and mutations in, effects out |
//! | [`layer`] | the order and the speculative decision of batches of a led database; no I/O |
//! | [`chain`] | the log of a database in an object store: which objects count, who may write |
//! | [`engine`] | the store of rows: SQLite, PostgreSQL, memory; one trait, one test suite |
//! | [`metrics`] | the counters of a database and their output |
//! | [`store`] | one open local database: its threads, watches, queues |
//! | [`call`] | commands, executed by a store |
//! | [`protocol`] | openkv's own wire format: frames of the binding and of its network extension |
//! | [`trust`] | the trusted certificates of servers |
//! | [`connect`] | KV Connect's messages ⇄ model; total, both ends of the protocol |
//! | [`remote`] | a remote database, as a KV Connect client |
//! | [`replica`] | a local copy that follows a remote database, and which of the two answers a read |
//! | [`database`] | the closed choice of a store, a remote database or a replica |
//! | [`open`] | from a path or URL and options to a database |
//! | `archive` | archives of a database, and restores to a point in time |
//! | [`server`] | KV Connect, its extension and the HTTP API: databases for clients with a token |
//! | `binding` | JavaScript ⇄ Rust, the only module that names `napi` |

// Tests have no Node.js to load the addon, and Node-API's macros register nothing.
#[cfg(all(feature = "napi", not(test)))]
mod binding;

pub use openkv_client::{database, open, remote, replica};
pub use openkv_core::{chain, codec, commit, filter, index, interchange, layer, model, search};
pub use openkv_engines as engine;
#[cfg(feature = "server")]
pub use openkv_server::{self as server, archive};
pub use openkv_store::{self as store, call, metrics};
pub use openkv_wire::{connect, protocol, trust};
