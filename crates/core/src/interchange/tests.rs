//! The golden texts, which `__test__/interchange/vectors.test.mjs` compares with the JavaScript
//! side.

use serde_json::Value as Json;

use super::{key_json, key_literal, plain_json, typed_json};
use crate::codec::cbor;
use crate::codec::hex::hex;
use crate::model::{
    BIGINT_TEXT_BITS_MAX, BIGINT_TEXT_DIGITS_MAX, EncodedValue, Encoding, KEY_LITERAL_BYTES_MAX,
    Node, VALUE_DEPTH_MAX, Value,
};

fn file() -> Json {
    serde_json::from_str(include_str!("../../../../tests/vectors/interchange.json")).unwrap()
}

fn list<'f>(file: &'f Json, name: &str) -> &'f Vec<Json> {
    let list = file[name].as_array().unwrap();
    assert!(!list.is_empty(), "{name}");
    list
}

fn text<'f>(row: &'f Json, field: &str) -> &'f str {
    row[field].as_str().unwrap_or_else(|| panic!("{row} has no {field}"))
}

fn stored(row: &Json) -> EncodedValue {
    let encoding = Encoding::from_id(row["encoding"].as_i64().unwrap()).unwrap();
    EncodedValue { encoding, bytes: hex(text(row, "hex")) }
}

#[test]
fn values_are_written_and_read() {
    let file = file();
    for row in list(&file, "values") {
        let (name, value) = (text(row, "name"), stored(row));
        let mut typed = String::new();
        typed_json::push(&mut typed, value.encoding, &value.bytes).unwrap();
        assert_eq!(typed, text(row, "typed"), "{name}");
        assert_eq!(typed_json::parse(&typed).unwrap(), value, "{name}");
        let mut plain = String::new();
        let simplified = plain_json::push(&mut plain, value.encoding, &value.bytes).unwrap();
        assert_eq!(plain, text(row, "plain"), "{name}");
        assert_eq!(simplified, row["simplified"].as_bool().unwrap(), "{name}");
        let again = plain_json::parse(&plain).unwrap();
        assert_eq!(again != value, simplified, "{name}");
    }
}

#[test]
fn values_of_v8_have_the_same_texts() {
    let file: Json =
        serde_json::from_str(include_str!("../../../../tests/vectors/v8.json")).unwrap();
    for row in list(&file, "values") {
        let both =
            [(Encoding::Cbor, "cbor"), (Encoding::V8, "written")].map(|(encoding, field)| {
                let (mut typed, mut plain) = (String::new(), String::new());
                let bytes = hex(text(row, field));
                typed_json::push(&mut typed, encoding, &bytes).unwrap();
                let simplified = plain_json::push(&mut plain, encoding, &bytes).unwrap();
                (typed, plain, simplified)
            });
        assert_eq!(both[0], both[1], "{}", row["name"]);
    }
}

#[test]
fn other_typed_texts_are_read_or_refused() {
    let file = file();
    for row in list(&file, "accepted") {
        let read = typed_json::parse(text(row, "text"));
        assert_eq!(read.unwrap(), stored(row), "{}", text(row, "text"));
    }
    for row in list(&file, "refused") {
        assert!(typed_json::parse(row.as_str().unwrap()).is_err(), "{row}");
    }
    for row in list(&file, "plain") {
        assert_eq!(plain_json::parse(text(row, "text")).unwrap(), stored(row), "{row}");
    }
}

#[test]
fn keys_are_written_and_read() {
    let file = file();
    for row in list(&file, "keys") {
        let (name, key) = (text(row, "name"), hex(text(row, "hex")));
        let mut typed = String::new();
        key_json::push_typed(&mut typed, &key).unwrap();
        assert_eq!(typed, text(row, "typed"), "{name}");
        assert_eq!(key_json::parse(&typed).unwrap().as_bytes(), key, "{name}");
        let mut mixed = String::new();
        key_json::push(&mut mixed, &key).unwrap();
        assert!(mixed.len() <= typed.len(), "{name}");
        assert_eq!(key_json::parse(&mixed).unwrap().as_bytes(), key, "{name}");
    }
    for (text, message) in [
        ("{}", "key: must be an array of parts"),
        ("[null]", "key[0]: must be a string, number, boolean or an object with a type"),
        ("[1,[2]]", "key[1]: must be a string, number, boolean or an object with a type"),
        ("[1e400]", "key[0]: a number beyond the range of a double"),
        (r#"[{"type":"Date","value":"2026"}]"#, "key[0]: unknown type of a key part: Date"),
        (r#"[{"type":"bigint","value":5}]"#, "key[0]: value must be a string of decimal digits"),
        ("[1", "not JSON: ',' or ']' was expected at character 3"),
    ] {
        assert_eq!(key_json::parse(text).unwrap_err().message(), message);
    }
    let surrogate = key_json::parse(r#"["a\ud800\udc00\ud800b"]"#).unwrap();
    assert_eq!(surrogate.as_bytes(), "\u{2}a\u{10000}\u{fffd}b\0".as_bytes());
}

#[test]
fn literals_are_read_or_refused() {
    let file = file();
    for row in list(&file, "literals") {
        let key = key_literal::parse(text(row, "text"));
        assert_eq!(key.unwrap().as_bytes(), hex(text(row, "hex")), "{row}");
    }
    for row in list(&file, "badLiterals") {
        let refused = key_literal::parse(text(row, "text")).unwrap_err();
        assert_eq!(refused.message(), text(row, "message"), "{row}");
    }
    for (text, character) in [("[[1]]", 2), ("[{}]", 2), ("null", 1), ("[u64(1)]", 2)] {
        let message = key_literal::parse(text).unwrap_err().message().to_owned();
        assert!(message.contains("a string, number, bigint, boolean or bytes"), "{message}");
        assert!(message.ends_with(&format!("at character {character} of {text}")), "{message}");
    }
    let long = |len: usize| key_literal::parse(&"a".repeat(len));
    assert!(long(KEY_LITERAL_BYTES_MAX).is_ok());
    assert!(long(KEY_LITERAL_BYTES_MAX + 1).is_err());
    assert!(key_literal::parse(&format!("{}n", "9".repeat(700))).is_err());
}

#[test]
fn several_keys_are_one_array() {
    let keys = |text: &str| {
        let keys = key_literal::parse_many(text)?;
        Ok(keys.iter().map(|key| crate::codec::key::print(key.as_bytes())).collect::<Vec<_>>())
    };
    let message = |text: &str| {
        let refused: crate::model::Result<Vec<String>> = keys(text);
        refused.unwrap_err().message().to_owned()
    };
    for (text, expected) in [
        ("[ ['a', 1n], [true] ]", &["[\"a\",1n]", "[true]"][..]),
        ("[[\"a\"],]", &["[\"a\"]"]),
        ("[\"a\",1]", &["[\"a\",1]"]),
        ("a", &["[\"a\"]"]),
    ] {
        let found: crate::model::Result<Vec<String>> = keys(text);
        assert_eq!(found.unwrap(), expected, "{text}");
    }
    assert_eq!(message("[[1],2]"), "'[' was expected at character 6 of [[1],2]");
    assert_eq!(message("[[1] [2]]"), "',' or ']' was expected at character 6 of [[1] [2]]");
    assert_eq!(message("[[1]] 2"), "nothing more was expected at character 7 of [[1]] 2");
}

#[test]
fn faults_of_typed_texts_have_a_place() {
    for (text, message) in [
        ("5", "value: must be an object"),
        (
            r#"{"type":"object","value":{"a":{"type":"Array","value":[{"type":"null"},1]}}}"#,
            "value.a[1]: must be an object",
        ),
        (
            r#"{"type":"Map","value":[[{"type":"null"},{"type":"x"}]]}"#,
            "value[0][1]: unknown type x",
        ),
        (
            r#"{"type":"Error","value":{"cause":{"type":"bigint"}}}"#,
            "value.cause: value must be a string of decimal digits",
        ),
        (
            r#"{"type":"Array","value":[{"type":"KvU64","value":"1"}]}"#,
            "value[0]: a KvU64 is a value of its own, never inside another",
        ),
        (
            r#"{"type":"Date","value":"2026-01-01T00:00"}"#,
            "value: not a time in ISO 8601 with a zone: 2026-01-01T00:00",
        ),
    ] {
        assert_eq!(typed_json::parse(text).unwrap_err().message(), message);
    }
}

#[test]
fn nesting_has_a_bound_in_both_directions() {
    let nested = |depth: usize| {
        let (open, close) = (r#"{"type":"Array","value":["#, "]}");
        format!("{}{}", open.repeat(depth), close.repeat(depth))
    };
    let deepest = typed_json::parse(&nested(VALUE_DEPTH_MAX)).unwrap();
    let mut typed = String::new();
    typed_json::push(&mut typed, deepest.encoding, &deepest.bytes).unwrap();
    assert_eq!(typed, nested(VALUE_DEPTH_MAX));
    assert!(typed_json::parse(&nested(VALUE_DEPTH_MAX + 1)).is_err());
    assert!(typed_json::parse(&nested(100_000)).is_err());
    let plain = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(plain_json::parse(&plain(VALUE_DEPTH_MAX)).unwrap(), deepest);
    assert!(plain_json::parse(&plain(VALUE_DEPTH_MAX + 1)).is_err());
}

#[test]
fn large_bigints_are_cbor() {
    let text = |n: num_bigint::BigInt| {
        let bytes = cbor::encode(&Value::new(Node::BigInt(n))).unwrap();
        let mut out = String::new();
        typed_json::push(&mut out, Encoding::Cbor, &bytes).unwrap();
        assert_eq!(typed_json::parse(&out).unwrap().bytes, bytes);
        out
    };
    let larger: num_bigint::BigInt = num_bigint::BigInt::from(1) << BIGINT_TEXT_BITS_MAX;
    assert!(
        text(&larger - num_bigint::BigInt::from(1)).starts_with(r#"{"type":"bigint","value":"14"#)
    );
    assert!(text(larger).starts_with(r#"{"type":"CBOR","#));
    let digits = |len: usize| format!(r#"{{"type":"bigint","value":"{}"}}"#, "9".repeat(len));
    assert!(typed_json::parse(&digits(BIGINT_TEXT_DIGITS_MAX)).is_ok());
    assert!(typed_json::parse(&digits(BIGINT_TEXT_DIGITS_MAX + 1)).is_err());
}
