//! openkv: a transactional key-value store with the API of Deno KV.
//!
//! This crate is the native half of the npm package `openkv`. From the bottom up:
//!
//! | room | duty |
//! |---|---|
//! | [`model`] | nouns, limits, errors; no I/O and no byte formats |
//! | [`codec`] | bytes ⇄ model; total, hostile bytes give `Err` |
//! | [`search`] | which text a value has, and what a query means; pure |
//! | [`filter`] | which values a read is about, decided on their bytes |
//! | [`commit`] | the pure decision of a write: checks and mutations in, effects out |
//! | [`engine`] | where rows live: SQLite, memory; one trait, one suite of laws |
//! | [`metrics`] | what a database counts about itself, and how that is shown |
//! | [`store`] | one database as a process has it: its threads, watches, queue |
//! | [`call`] | requests that are neither hot nor a stream, over a store |
//! | [`connect`] | KV Connect's messages ⇄ model; total, both ends of the protocol |
//! | [`remote`] | a database elsewhere, as a KV Connect client has it |
//! | [`backend`] | the closed choice of a store here and a database elsewhere |
//! | [`open`] | from a path or URL and options to a database |
//! | [`server`] | the KV Connect server: databases of this machine for whoever has a token |
//! | `binding` | JavaScript ⇄ Rust, the only room that names `napi` |

// Not in tests: there Node-API's macros register nothing, and no Node is there to call.
pub mod backend;
#[cfg(all(feature = "napi", not(test)))]
mod binding;
pub mod call;
pub mod codec;
pub mod commit;
pub mod connect;
pub mod engine;
pub mod filter;
pub mod metrics;
pub mod model;
pub mod open;
pub mod remote;
pub mod search;
pub mod server;
pub mod store;
