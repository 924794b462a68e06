//! Texts of keys, values and filters: no text panics, and what is read is written and read again as
//! the same. Stored bytes have texts that give the same bytes.

use openkv::filter::Filter;
use openkv::interchange::{
    cbor_document, key_json, key_literal, plain_json, typed_json, where_json,
};
use openkv::model::{EncodedValue, Encoding, Key};

pub(crate) fn check(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match (kind % 9, std::str::from_utf8(rest)) {
        (0, _) => stored(Encoding::Cbor, rest),
        (1, _) => stored(Encoding::V8, rest),
        (2, Ok(text)) => typed_json::parse(text).iter().for_each(value),
        (3, Ok(text)) => plain_json::parse(text).iter().for_each(|found| {
            let mut again = String::new();
            // A JSON text has only what plain JSON expresses, apart from −0.
            let simplified =
                plain_json::push(&mut again, found.encoding, &found.bytes).expect("a value");
            let read = plain_json::parse(&again).expect("what was written");
            assert_eq!(read != *found, simplified);
            value(found);
        }),
        (4, Ok(text)) => {
            key_literal::parse(text).iter().for_each(key);
            key_literal::parse_many(text).iter().flatten().for_each(key);
        }
        (5, Ok(text)) => key_json::parse(text).iter().for_each(key),
        (6, Ok(text)) => where_json::parse(text).iter().for_each(|filter| {
            Filter::parse(filter, 0).expect("a filter");
        }),
        (7, _) => {
            let mut text = String::new();
            if key_json::push(&mut text, rest).is_ok() {
                assert_eq!(key_json::parse(&text).expect("what was written").as_bytes(), rest);
            }
        }
        (8, _) => cbor_document::to_typed_json(rest).iter().for_each(|text| {
            plain_json::parse(text).expect("JSON");
        }),
        _ => {}
    }
}

fn stored(encoding: Encoding, bytes: &[u8]) {
    let (mut typed, mut plain) = (String::new(), String::new());
    let written = typed_json::push(&mut typed, encoding, bytes);
    assert_eq!(written.is_ok(), plain_json::push(&mut plain, encoding, bytes).is_ok());
    if written.is_ok() {
        plain_json::parse(&plain).expect("plain JSON");
        value(&typed_json::parse(&typed).expect("typed JSON"));
    }
}

fn value(found: &EncodedValue) {
    let mut text = String::new();
    typed_json::push(&mut text, found.encoding, &found.bytes).expect("a value");
    assert_eq!(typed_json::parse(&text).as_ref(), Ok(found));
}

fn key(found: &Key) {
    for push in [key_json::push, key_json::push_typed] {
        let mut text = String::new();
        push(&mut text, found.as_bytes()).expect("a key");
        assert_eq!(key_json::parse(&text).as_ref(), Ok(found));
    }
}
