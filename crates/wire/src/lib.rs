//! What openkv exchanges with other programs: frames, messages, trust.
//!
//! Duty: bytes ⇄ requests and answers, for both ends.
//! Invariant: total: bytes of any kind give a message or an error.
//! Never: a socket, a clock, the meaning of a message.
//!
//! | module | duty |
//! |---|---|
//! | [`protocol`] | openkv's own wire format: frames of the binding and of its network extension |
//! | [`connect`] | KV Connect's messages ⇄ model |
//! | [`trust`] | the trusted certificates of servers |

#![forbid(unsafe_code)]

pub mod connect;
pub mod protocol;
pub mod trust;
