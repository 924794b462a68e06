//! Golden vectors in `tests/vectors/`, which the JavaScript codecs read too, so that both stay
//! equal. Every accepted form must be encoded to the same bytes again, and every rejected one must
//! be rejected.

#![expect(clippy::panic, clippy::expect_used, reason = "a test says what is wrong by failing")]

use std::path::Path;

use openkv::codec::{cbor, key, transcode};
use openkv::model::{KeyPart, Limits};
use openkv::protocol::frame::{parse_writes, push_write};
use serde_json::Value as Json;

#[path = "kit/key.rs"]
mod kit;

/// Rejected by JavaScript only, which compiles the expression.
const NEEDS_A_REGEXP_COMPILER: &str = "RegExp with a bad source";

fn vectors(file: &str) -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// The cases of one list, with their names. Fails for an empty list.
fn cases<'a>(file: &'a Json, list: &str) -> impl Iterator<Item = (&'a str, &'a Json)> {
    let cases = file[list].as_array().unwrap_or_else(|| panic!("no list {list}"));
    assert!(!cases.is_empty(), "{list} is empty");
    cases.iter().map(|case| (case["name"].as_str().expect("a name"), case))
}

fn bytes(case: &Json, field: &str) -> Vec<u8> {
    let hex = case[field].as_str().unwrap_or_else(|| panic!("{case} has no {field}"));
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn keys() {
    let file = vectors("keys.json");
    let mut before: Option<(Vec<u8>, Vec<KeyPart>)> = None;
    for (name, case) in cases(&file, "keys") {
        let bytes = bytes(case, "hex");
        key::validate(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let parts = key::decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(kit::encode(&parts).expect(name), bytes, "{name}");
        if let Some((bytes_before, parts_before)) = &before {
            assert_eq!(bytes_before.cmp(&bytes), kit::compare(parts_before, &parts), "{name}");
        }
        before = Some((bytes, parts));
    }
    for (name, case) in cases(&file, "invalid") {
        let bytes = bytes(case, "hex");
        assert!(key::validate(&bytes).is_err(), "{name} is taken");
        assert_eq!(key::validate(&bytes).err(), key::decode(&bytes).err(), "{name}");
    }
}

#[test]
fn records() {
    let file = vectors("records.json");
    for (name, case) in cases(&file, "records") {
        let bytes = bytes(case, "hex");
        let limits = Limits::default();
        let write = parse_writes(&bytes, 1, &limits).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut again = vec![];
        for write in write {
            push_write(&mut again, write.expect(name).into_parts());
        }
        assert_eq!(again.to_ascii_lowercase(), bytes.to_ascii_lowercase(), "{name}");
    }
}

#[test]
fn values() {
    let file = vectors("values.json");
    let comes_back = |name: &str, bytes: &[u8]| {
        let value = cbor::decode(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(cbor::encode(&value).expect(name), bytes, "{name}");
    };
    for (name, case) in cases(&file, "values") {
        let bytes = bytes(case, "hex");
        comes_back(name, &bytes);
        ciborium::from_reader::<ciborium::Value, _>(&bytes[..])
            .unwrap_or_else(|e| panic!("{name} is not standard CBOR: {e}"));
    }
    for (name, case) in cases(&file, "packed") {
        let (packed, plain) = (bytes(case, "hex"), bytes(case, "plain"));
        comes_back(name, &plain);
        let value = cbor::decode(&packed).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(cbor::encode(&value).expect(name), plain, "{name}");
        assert_eq!(transcode::to_v8(&packed), transcode::to_v8(&plain), "{name}");
        assert_eq!(cbor::array_length(&packed), cbor::array_length(&plain), "{name}");
        ciborium::from_reader::<ciborium::Value, _>(&packed[..])
            .unwrap_or_else(|e| panic!("{name} is not standard CBOR: {e}"));
    }
    comes_back("deepest", &bytes(&file["deepest"], "hex"));
    for (name, case) in cases(&file, "invalid").chain(cases(&file, "notShortest")) {
        let taken = cbor::decode(&bytes(case, "hex")).is_ok();
        assert_eq!(taken, name == NEEDS_A_REGEXP_COMPILER, "{name}");
    }
}
