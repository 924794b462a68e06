//! The routes of the router against those that tests and the documentation know, and what no request of any form may do.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use openkv_core::codec::key;
use openkv_core::interchange::plain_json;
use openkv_core::model::{Encoding, Key, KeyPart};

/// The lists of `__test__/server/keyval/routes/`, from which the tests and docs/keyval.md are made.
fn listed() -> BTreeSet<(String, String)> {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../__test__/server/keyval/routes");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let texts: Vec<_> = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let routes = texts.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let route = line.trim().strip_prefix("route: \"")?.strip_suffix("\",")?;
        let (method, path) = route.split_once(' ')?;
        Some((method.to_owned(), path.to_owned()))
    });
    routes.collect()
}

#[test]
fn the_router_and_the_list_of_routes_have_the_same_routes() {
    let routed = ROUTES.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned()));
    assert_eq!(listed(), routed.collect());
}

fn rules(strings: bool) -> Rules {
    Rules::of(strings, None).unwrap()
}

fn printed(path: &str, strings: bool) -> Option<String> {
    keys::of_path(path, rules(strings)).ok().map(|key| key::print(key.as_bytes()))
}

#[test]
fn a_path_is_a_key_and_whole_numbers_are_numbers() {
    for (path, expected) in [
        ("users/123", Some(r#"["users",123]"#)),
        ("/users//123/", Some(r#"["users",123]"#)),
        ("a%2Fb/%C3%A4", Some(r#"["a/b","ä"]"#)),
        ("-5/007/1.5/+1/1e3", Some(r#"[-5,7,"1.5","+1","1e3"]"#)),
        ("9007199254740991/9007199254740992", Some(r#"[9007199254740991,"9007199254740992"]"#)),
        ("%31", Some("[1]")),
        ("%ff", None),
        ("", None),
        ("//", None),
        ("1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21", None),
    ] {
        assert_eq!(printed(path, false).as_deref(), expected, "{path}");
    }
    assert_eq!(printed("users/123", true).as_deref(), Some(r#"["users","123"]"#));
}

#[test]
fn of_a_number_the_leading_digits_count() {
    for (text, expected) in [
        ("5000", Some(5000)),
        (" 5000ms", Some(5000)),
        ("1e3", Some(1)),
        ("-7.9", Some(-7)),
        ("99999999999999999999", Some(i64::MAX)),
        ("", None),
        ("ms", None),
        ("-", None),
        ("é5", None),
    ] {
        assert_eq!(number::leading(text), expected, "{text}");
    }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// Whether a `where` of KeyVal holds for a value, at the time 1000.
fn holds(condition: &str, value: &str) -> Result<bool, String> {
    let filter = filter::of_json(Some(&raw(condition)), 1000);
    let bytes = filter.map_err(|problem| problem.text().to_owned())?.unwrap();
    let value = plain_json::parse(value).unwrap();
    let filter = openkv_core::filter::Filter::parse(&bytes, 0).unwrap();
    Ok(filter.matches(Encoding::Cbor, &value.bytes).unwrap())
}

#[test]
fn conditions_are_those_of_keyval() {
    let value = r#"{"n":5,"s":"abc","b":true,"z":null,"e":"","l":[],"o":{},"items":[{"price":7}],
        "tags":["x"],"at":900,"$d":1,"deep":{"a.b":1}}"#;
    for (condition, expected) in [
        ("{}", true),
        (r#"{"n":5,"s":"abc"}"#, true),
        (r#"{"items[0].price":7}"#, true),
        (r#"{"items[1].price":{"$null":true}}"#, true),
        (r#"{"$.n":{"$gte":5,"$lt":6}}"#, true),
        // About null and absent values only $null, $empty and $notEmpty say something.
        (r#"{"z":null}"#, false),
        (r#"{"z":{"$ne":null}}"#, false),
        (r#"{"n":{"$ne":null}}"#, false),
        (r#"{"$not":{"n":{"$ne":null}}}"#, false),
        (r#"{"z":{"$ne":1}}"#, false),
        (r#"{"none":{"$ne":1}}"#, false),
        (r#"{"n":{"$ne":1}}"#, true),
        (r#"{"none":{"$nin":[1]}}"#, false),
        (r#"{"n":{"$nin":[1,null]}}"#, false),
        (r#"{"n":{"$in":[5,null]}}"#, true),
        (r#"{"n":{"$in":[]}}"#, false),
        (r#"{"none":{"$nin":[]}}"#, true),
        (r#"{"none":{"$notContains":"x"}}"#, false),
        (r#"{"s":{"$notContains":"x"}}"#, true),
        (r#"{"s":{"$notContainsi":"B"}}"#, false),
        (r#"{"$not":{"none":1}}"#, false),
        (r#"{"$not":{"n":1}}"#, true),
        (r#"{"$not":{"none":{"$gt":1}}}"#, false),
        (r#"{"$not":{"n":{"$gt":7}}}"#, true),
        (r#"{"$not":{"$not":{"n":{"$gt":7}}}}"#, false),
        (r#"{"$not":{"$or":[{"n":1},{"s":"x"}]}}"#, true),
        (r#"{"$not":{"$and":[{"n":5},{"s":"x"}]}}"#, true),
        (r#"{"$not":{"n":5,"s":"x"}}"#, true),
        (r#"{"$not":{"n":{"$gt":1,"$lt":9}}}"#, false),
        (r#"{"$not":{"none":{"$null":true}}}"#, false),
        (r#"{"$not":{}}"#, false),
        // Without filters both say nothing.
        (r#"{"$or":[]}"#, true),
        (r#"{"$and":[]}"#, true),
        (r#"{"$or":[{"n":1},{"s":"abc"}]}"#, true),
        // An empty object is not empty.
        (r#"{"o":{"$empty":true}}"#, false),
        (r#"{"o":{"$notEmpty":true}}"#, true),
        (
            r#"{"l":{"$empty":true},"e":{"$empty":true},"z":{"$empty":true},"none":{"$empty":true}}"#,
            true,
        ),
        (r#"{"n":{"$empty":true}}"#, false),
        (r#"{"$not":{"l":{"$notEmpty":true}}}"#, true),
        (r#"{"at":{"$lt":{"$now":true}}}"#, true),
        (r#"{"at":{"$lt":{"$now":true,"offset":-200}}}"#, false),
        (r#"{"at":{"$between":[{"$now":true,"$offset":-200},{"$now":true}]}}"#, true),
        (r#"{"n":{"__type":"bigint","value":"5"}}"#, true),
        (r#"{"n":{"$lt":{"__type":"bigint","value":"6"}}}"#, true),
        (r#"{"n":{"$between":[1,null]}}"#, false),
    ] {
        assert_eq!(holds(condition, value), Ok(expected), "{condition}");
    }
    for (condition, words) in [
        (r#"{"n":{"$like":1}}"#, "where.n.$like: unknown operator"),
        (r#"{"$nor":[]}"#, "where.$nor: unknown operator"),
        (r#"{"n":{}}"#, "where.n: takes a value"),
        (r#"{"n":[1]}"#, "where.n: takes a value"),
        (r#"{"n":{"$in":1}}"#, "where.n.$in: takes an array"),
        (r#"{"$or":[1]}"#, "where.$or[0]: a filter is an object"),
    ] {
        let refused = holds(condition, "1").unwrap_err();
        assert!(refused.starts_with(words), "{condition}: {refused}");
    }
    let deep = format!("{}{{}}{}", r#"{"$not":"#.repeat(100), "}".repeat(100));
    assert!(holds(&deep, "1").unwrap_err().contains("nested too deeply"));
}

/// Each condition repeats the path of its field, and each word the query before it: a body of 2 MiB had
/// them make terabytes.
#[test]
fn what_grows_with_its_square_has_a_bound() {
    let operators: Vec<_> = (0..20_000).map(|n| format!("\"$ne\":{n}")).collect();
    let long = format!("{{\"{}\":{{{}}}}}", "x".repeat(1 << 20), operators.join(","));
    assert!(holds(&long, "1").unwrap_err().contains("too long"));
    assert!(search::query_of(&"a ".repeat(1 << 20)).is_err());
}

#[test]
fn operators_of_a_search_apply_from_left_to_right() {
    for (text, expected) in [
        ("red bike", r#""red" AND "bike""#),
        ("red and bike", r#""red" AND "bike""#),
        ("a OR b", r#""a" OR "b""#),
        ("a OR b c", r#"("a" OR "b") AND "c""#),
        ("a b OR c", r#""a" AND "b" OR "c""#),
        ("OR a OR", r#""a""#),
        ("C++ \"red bike\"", r#""C++" AND "red" AND "bike""#),
        ("AND \"", r#""""#),
        ("", r#""""#),
    ] {
        assert_eq!(search::query_of(text).ok().as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn operands_are_integers_in_any_form() {
    let operand = |text: &str| bigint::operand("sum value", Some(&raw(text))).ok();
    for (text, expected) in [
        ("5", Some(5)),
        ("-1.9", Some(-1)),
        ("1e3", Some(1000)),
        (r#"" 7 ""#, Some(7)),
        (r#"{"__type":"bigint","value":"-8"}"#, Some(-8)),
        (r#"{"__type":"bigint","value":9}"#, Some(9)),
        (r#""""#, None),
        (r#""1.5""#, None),
        ("null", None),
        ("{}", None),
        ("[1]", None),
    ] {
        assert_eq!(operand(text), expected.map(Into::into), "{text}");
    }
    assert!(operand(&format!("\"{}\"", "9".repeat(1_000_000))).is_none());
}

fn part() -> impl Strategy<Value = KeyPart> {
    prop_oneof![
        ".{0,6}".prop_map(KeyPart::String),
        "[0-9~,:/%-]{1,5}".prop_map(KeyPart::String),
        any::<i32>().prop_map(|n| KeyPart::Number(f64::from(n))),
        any::<f64>().prop_map(KeyPart::Number),
        any::<i64>().prop_map(|n| KeyPart::BigInt(n.into())),
        any::<bool>().prop_map(KeyPart::Bool),
        prop::collection::vec(any::<u8>(), 0..4).prop_map(KeyPart::Bytes),
    ]
}

proptest! {
    #[test]
    fn the_text_of_a_key_is_read_as_the_key(parts in prop::collection::vec(part(), 1..5), strings: bool) {
        let key: Key = key::encode(&parts).unwrap();
        let text = keys::to_text(key.as_bytes(), rules(strings)).unwrap();
        prop_assert!(!text.contains([',', ':']), "{}", text);
        prop_assert_eq!(keys::of_text(&text, rules(strings)), Some(key));
    }

    #[test]
    fn no_text_ends_the_server(text in r#"[\[\]{}:,"\\u$a-f0-9. \-~%/]{0,40}"#) {
        let _ = (printed(&text, false), number::leading(&text), keys::of_text(&text, rules(false)));
        if let Ok(raw) = RawValue::from_string(text) {
            let _ = (filter::of_json(Some(&raw), 0), keys::of_json(&raw), keys::many_of_json(Some(&raw)));
            let _ = bigint::operand("value", Some(&raw));
        }
    }
}
