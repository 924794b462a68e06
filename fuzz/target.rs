//! A target for libFuzzer: the one whose name the binary has.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| openkv_fuzz::check(env!("CARGO_BIN_NAME"), data));
