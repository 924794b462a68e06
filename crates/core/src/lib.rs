//! The pure parts of openkv: what keys, values and writes are, and what a write does.
//!
//! Duty: the meaning of keys, values, conditions, searches and writes, and their byte formats.
//! Invariant: the same arguments give the same result; time, randomness and ids are arguments.
//! Never: I/O, a thread, a clock.
//!
//! | module | duty |
//! |---|---|
//! | [`model`] | nouns, limits, errors; no byte formats |
//! | [`codec`] | bytes ⇄ model; total: invalid bytes give `Err` |
//! | [`search`] | the text of a value and the meaning of a query |
//! | [`filter`] | the conditions of `where`, decided on encoded values |
//! | [`index`] | the entries of value indexes, and the ranges of them that a list reads |
//! | [`interchange`] | texts of keys, values and filters ⇄ model |
//! | [`commit`] | the decision of a write: checks and mutations in, effects out |
//! | [`layer`] | the order and the speculative decision of batches of a led database |
//! | [`chain`] | the log of a database in an object store: which objects count, who may write |

#![forbid(unsafe_code)]

pub mod chain;
pub mod codec;
pub mod commit;
pub mod filter;
pub mod index;
pub mod interchange;
pub mod layer;
pub mod model;
pub mod search;
