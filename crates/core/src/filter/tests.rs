//! Filters over values, in JavaScript's encoding. `__test__/property` compares them with a
//! reference in JavaScript over random filters and values.

use ciborium::Value as Cbor;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use std::cell::Cell;

use super::Filter;
use super::text::Text;
use crate::model::{
    Encoding, FILTER_FOLD_KEPT_BYTES_MIN, FILTER_LOOK_VISITS, FILTER_NODES_MAX, FILTER_VISITS_MAX,
};

fn encoded(value: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

fn filter(filter: &impl serde::Serialize) -> Result<Filter, String> {
    Filter::parse(&encoded(filter), 1_000_000).map_err(|error| error.message().to_owned())
}

fn meets(value: &impl serde::Serialize, by: &impl serde::Serialize) -> bool {
    filter(by).unwrap().matches(Encoding::Cbor, &encoded(value)).unwrap()
}

#[track_caller]
fn check(value: &Json, holding: &[Json], failing: &[Json]) {
    for by in holding {
        assert!(meets(value, by), "{value} {by}");
    }
    for by in failing {
        assert!(!meets(value, by), "{value} {by}");
    }
}

fn text(text: &str) -> Cbor {
    Cbor::Text(text.to_owned())
}

fn tag(tag: u64, inner: Cbor) -> Cbor {
    Cbor::Tag(tag, Box::new(inner))
}

fn map(pairs: Vec<(Cbor, Cbor)>) -> Cbor {
    Cbor::Map(pairs)
}

fn bigint(n: u64) -> Cbor {
    let bytes = n.to_be_bytes();
    tag(2, Cbor::Bytes(bytes[n.leading_zeros() as usize / 8..].to_vec()))
}

/// A `Date`: seconds as a float, which must be written in 64 bits.
fn date_bytes(ms: f64) -> Vec<u8> {
    let mut bytes = vec![0xc1, 0xfb];
    bytes.extend((ms / 1000.0).to_be_bytes());
    bytes
}

#[test]
fn values_are_compared_within_their_type() {
    check(
        &json!({ "n": 5, "s": "b", "t": true, "z": null }),
        &[
            json!({}),
            json!({ "n": 5, "s": "b" }),
            json!({ "n": { "$gt": 4, "$lte": 5 } }),
            json!({ "n": { "$between": [5, 6] } }),
            json!({ "n": { "$in": ["x", 5] } }),
            json!({ "n": { "$ne": "5" } }),
            json!({ "s": { "$gt": "a", "$lt": "c" } }),
            json!({ "t": { "$gt": false } }),
            json!({ "z": null }),
            json!({ "missing": { "$ne": null, "$nin": [1] } }),
        ],
        &[
            json!({ "n": "5" }),
            json!({ "n": { "$gt": "4" } }),
            json!({ "n": { "$lt": true } }),
            json!({ "n": { "$between": [6, 7] } }),
            json!({ "s": { "$gt": 0 } }),
            json!({ "z": { "$in": [0, false, ""] } }),
            json!({ "missing": null }),
            json!({ "n": 5, "s": "c" }),
        ],
    );
}

#[test]
fn absence_and_emptiness_differ() {
    check(
        &json!({ "z": null, "e": "", "a": [], "f": [0], "n": 0 }),
        &[
            json!({ "z": { "$exists": true, "$null": true, "$empty": true } }),
            json!({ "x": { "$exists": false, "$null": true, "$empty": true } }),
            json!({ "e": { "$null": false, "$empty": true, "$notEmpty": false } }),
            json!({ "a": { "$empty": true } }),
            json!({ "f": { "$notEmpty": true, "$empty": false } }),
            json!({ "n": { "$notEmpty": true } }),
        ],
        &[
            json!({ "z": { "$exists": false } }),
            json!({ "x": { "$notEmpty": true } }),
            json!({ "n": { "$empty": true } }),
        ],
    );
}

/// The name `""` and names that JavaScript prints otherwise were taken for indexes.
#[test]
fn only_indexes_of_a_sparse_array_are_elements() {
    let sparse = |name: &str| {
        let entries =
            map(vec![(text("0"), bigint(1)), (text(name), map(vec![(text("a"), 9.into())]))]);
        tag(27, Cbor::Array(vec![text("Array"), 2.into(), entries]))
    };
    assert!(meets(&sparse("1"), &json!({ "a": 9 })));
    for name in ["", "01", "4294967295", "x"] {
        assert!(!meets(&sparse(name), &json!({ "a": 9 })), "{name}");
        let path = format!("{name}.a");
        assert!(meets(&sparse(name), &json!({ path: 9 })), "{name}");
    }
}

#[test]
fn text_and_arrays_are_searched() {
    check(
        &json!({ "s": "Straße 7", "tags": ["Red", "blue"] }),
        &[
            json!({ "s": { "$contains": "aße", "$startsWith": "Str", "$endsWith": "7" } }),
            json!({ "s": { "$containsi": "STRASSE", "$startsWithi": "sT", "$eqi": "STRASSE 7" } }),
            json!({ "s": { "$notContains": "strasse" } }),
            json!({ "tags": { "$contains": "Red", "$containsi": "BLUE" } }),
            json!({ "tags": { "$notContains": "red", "$notContainsi": "green" } }),
        ],
        &[
            json!({ "s": { "$notContainsi": "strasse" } }),
            json!({ "s": { "$nei": "STRASSE 7" } }),
            json!({ "s": { "$startsWith": "str" } }),
            json!({ "tags": { "$contains": "Re" } }),
            json!({ "s": { "$contains": 7 } }),
        ],
    );
}

#[test]
fn paths_step_into_objects_and_arrays() {
    check(
        &json!({
            "a": { "b": [{ "c": 1 }, { "c": 2, "0": "zero" }, [9]] },
            "a.b": "dotted", "$x": 3, "": { "": 4 },
        }),
        &[
            json!({ "a.b.0.c": 1 }),
            json!({ "a.b.1.c": 2 }),
            json!({ "a.b.c": 2 }),
            json!({ "a.b.c": { "$gt": 1, "$lt": 2 } }),
            json!({ "a.b.2.0": 9 }),
            json!({ "a\\.b": "dotted" }),
            json!({ "\\$x": 3 }),
            json!({ ".": 4 }),
            json!({ "a.b.7.c": { "$exists": false } }),
        ],
        &[
            json!({ "a.b.c": 3 }),
            json!({ "a.b.c": { "$ne": 1 } }),
            json!({ "a.b.0": 9 }),
            json!({ "a.c": { "$exists": true } }),
            json!({ "a.b": "dotted" }),
        ],
    );
}

#[test]
fn conditions_are_combined() {
    check(
        &json!({ "n": 5, "m": 1 }),
        &[
            json!({ "$or": [{ "n": 1 }, { "m": 1 }] }),
            json!({ "$and": [{ "n": 5 }, { "$not": { "m": 2 } }] }),
            json!({ "n": { "$not": { "$gt": 5 } } }),
            json!({ "n": { "$or": [{ "$lt": 0 }, { "$gt": 4 }] } }),
            json!({ "$and": [] }),
        ],
        &[json!({ "$or": [] }), json!({ "$not": { "n": 5, "m": 1 } })],
    );
}

proptest! {
    /// The short way to a filter of one text, and the long one.
    #[test]
    fn a_filter_of_one_text_is_one_of_its_equality(
        name in "[a-c.\\\\$\u{0}-\u{1F642}]{0,4}|[a-z]{250,260}",
        text in "\\PC{0,5}|[a-z]{250,260}",
        cut in any::<proptest::sample::Index>(),
    ) {
        let shown = |filter: Result<Filter, String>| filter.map(|filter| format!("{filter:?}"));
        let long = shown(filter(&json!({ name.clone(): { "$eq": text } })));
        let short = encoded(&json!({ name.clone(): text }));
        if name.starts_with('$') {
            prop_assert!(super::parse::of_one_text(&short).is_none());
        } else {
            prop_assert_eq!(shown(filter(&json!({ name: text }))), long);
        }
        let part = &short[..cut.index(short.len())];
        prop_assert!(super::parse::of_one_text(part).is_none());
        prop_assert!(super::parse::of_one_text(&[&short, &[0][..]].concat()).is_none());
    }
}

#[test]
fn numbers_and_bigints_compare_exactly() {
    let value = map(vec![(text("n"), bigint((1 << 53) + 1)), (text("m"), Cbor::from(5))]);
    let with = |path: &str, operator: &str, operand: Cbor| {
        map(vec![(text(path), map(vec![(text(operator), operand)]))])
    };
    let safe = (1_u64 << 53) - 1;
    assert!(meets(&value, &with("n", "$gt", Cbor::from(safe))));
    assert!(meets(&value, &with("n", "$eq", bigint((1 << 53) + 1))));
    assert!(!meets(&value, &with("n", "$eq", bigint(1 << 53))));
    assert!(meets(&value, &with("m", "$eq", bigint(5))));
    assert!(meets(&value, &with("m", "$lt", bigint(6))));
}

#[test]
fn dates_are_compared_and_now_is_the_current_time() {
    let mut value = b"\xa1\x61d".to_vec();
    value.extend(date_bytes(999_000.0));
    let meets = |by: &Json| filter(by).unwrap().matches(Encoding::Cbor, &value).unwrap();
    assert!(meets(&json!({ "d": { "$lt": { "$now": true } } })));
    assert!(meets(&json!({ "d": { "$gt": { "$now": true, "$offset": -2000 } } })));
    assert!(meets(&json!({ "d": { "$now": { "$offset": -1000 } } })));
    assert!(!meets(&json!({ "d": 999_000 })));
}

/// A filter with `$now` on a field of JSON, where times are numbers or texts, matched nothing, and its `$not` everything.
#[test]
fn now_is_compared_with_numbers_and_texts_of_times_too() {
    let past = [
        Cbor::from(999_000),
        Cbor::Float(999_000.1),
        text("1970-01-01T00:16:39.000Z"),
        bigint(999_000),
    ];
    let ahead =
        [Cbor::from(1_001_000), text("1970-01-01T00:16:41Z"), text("2970"), bigint(1_001_000)];
    let meets = |at: &Cbor, by: &Json| {
        let value = encoded(&map(vec![(text("at"), at.clone())]));
        filter(by).unwrap().matches(Encoding::Cbor, &value).unwrap()
    };
    let before = json!({ "at": { "$lt": { "$now": true } } });
    let after = json!({ "at": { "$gte": { "$now": true, "$offset": 500 } } });
    let not_before = json!({ "$not": { "at": { "$lt": { "$now": true } } } });
    for at in &past {
        assert!(meets(at, &before) && !meets(at, &after) && !meets(at, &not_before), "{at:?}");
    }
    for at in &ahead {
        assert!(!meets(at, &before) && meets(at, &after) && meets(at, &not_before), "{at:?}");
    }
    let now = [Cbor::from(1_000_000), text("1970-01-01T00:16:40Z")];
    assert!(now.iter().all(|at| meets(at, &json!({ "at": { "$now": true } }))));
    let between =
        json!({ "at": { "$between": [{ "$now": true, "$offset": -5000 }, { "$now": true }] } });
    assert!(meets(&past[0], &between) && !meets(&ahead[0], &between));
    for other in [text("soon"), text("1970-01-01T00:16:39"), Cbor::Bool(true), Cbor::Null] {
        assert!(!meets(&other, &before) && !meets(&other, &after), "{other:?}");
    }
}

#[test]
fn maps_sets_and_shared_objects_are_stepped_into() {
    let entries = vec![(Cbor::from(1), text("one")), (text("k"), Cbor::from(2))];
    let value = map(vec![
        (text("m"), tag(259, map(entries))),
        (text("s"), tag(258, Cbor::Array(vec![Cbor::from(7)]))),
        (
            text("a"),
            tag(28, map(vec![(text("x"), Cbor::from(1)), (text("self"), tag(29, Cbor::from(0)))])),
        ),
        (text("b"), tag(29, Cbor::from(0))),
    ]);
    for by in [
        json!({ "m.1": "one", "m.k": 2 }),
        json!({ "s": { "$contains": 7 } }),
        json!({ "b.x": 1 }),
        json!({ "a.self.self.self.x": 1 }),
    ] {
        assert!(meets(&value, &by), "{by}");
    }
}

#[test]
fn whole_values_are_compared() {
    let by = |by: Json| filter(&by).unwrap();
    let le64 = 300_u64.to_le_bytes();
    assert_eq!(by(json!({ "$gt": 5 })).matches(Encoding::Le64, &le64), Ok(true));
    assert_eq!(by(json!({ "$eq": 300 })).matches(Encoding::Le64, &le64), Ok(true));
    assert_eq!(by(json!({ "$eq": 0 })).matches(Encoding::Le64, &[0; 8]), Ok(true));
    assert_eq!(by(json!({ "a": 1 })).matches(Encoding::Le64, &le64), Ok(false));
    let bytes = filter(&map(vec![(text("$startsWith"), Cbor::Bytes(vec![1]))])).unwrap();
    assert_eq!(bytes.matches(Encoding::Bytes, &[1, 2]), Ok(true));
    assert_eq!(bytes.matches(Encoding::Bytes, &[2, 1]), Ok(false));
    assert_eq!(by(json!({ "$notEmpty": true })).matches(Encoding::Cbor, &[0x60]), Ok(false));
    assert!(bytes.matches(Encoding::V8, &[]).is_err());
}

#[test]
fn errors_name_their_place() {
    let refused = |by: Json| filter(&by).unwrap_err();
    let begins = |by: Json, words: &str| {
        let message = refused(by);
        assert!(message.starts_with(words), "{message}");
    };
    begins(json!([1]), "where: a filter is an object: received an array");
    begins(json!({ "a": { "$gtt": 1 } }), "where.a.$gtt: unknown operator: known are $eq");
    begins(json!({ "$or": [{}, { "x.y": { "$gte": [] } }] }), "where.$or[1][\"x.y\"].$gte: takes");
    begins(json!({ "a": {} }), "where.a: no operator");
    begins(json!({ "a": { "b": 1 } }), "where.a.b: an operator must be here");
    // The operators of other languages have no dollar.
    begins(
        json!({ "a": { "gt": 1 } }),
        "where.a.gt: an operator must be here, which begins with a dollar: write $gt",
    );
    begins(json!({ "a": [1] }), "where.a: takes null, a boolean");
    begins(
        json!({ "a": { "$in": 1 } }),
        "where.a.$in: takes an array of values: received a number",
    );
    begins(json!({ "a": { "$in": [1, {}] } }), "where.a.$in[1]: takes null");
    begins(json!({ "a": { "$lt": null } }), "where.a.$lt: takes a number");
    begins(json!({ "a": { "$between": [1] } }), "where.a.$between: takes [lowest, highest]");
    begins(json!({ "a": { "$exists": 1 } }), "where.a.$exists: takes true or false");
    begins(json!({ "a": { "$containsi": 1 } }), "where.a.$containsi: takes a string");
    begins(json!({ "$now": true }), "where.$now: $now is an operand");
    begins(json!({ "a": { "$now": false } }), "where.a.$now: takes true");
    begins(json!({ "a": { "$now": true, "x": 1 } }), "where.a.x: unknown");
    begins(json!({ "$and": {} }), "where.$and: takes an array of filters: received an object");
}

#[test]
fn filters_are_bounded() {
    let nested =
        |levels: usize| (0..levels).fold(json!({ "a": 1 }), |inner, _| json!({ "$not": inner }));
    assert!(filter(&nested(31)).is_ok());
    assert!(filter(&nested(32)).unwrap_err().contains("nested too deeply (max 32 levels)"));
    let wide = |count: usize| json!({ "a": { "$in": vec![1; count] } });
    assert!(filter(&wide(FILTER_NODES_MAX - 3)).is_ok());
    assert!(filter(&wide(FILTER_NODES_MAX)).unwrap_err().contains("max 1000"));
    let long = json!({ "a": "x".repeat(300_000) });
    assert!(filter(&long).unwrap_err().starts_with("where: too large (max 262144 bytes)"));
    let deep = json!({ "a.".repeat(100): 1 });
    assert!(filter(&deep).unwrap_err().contains("too many steps (max 100)"));
}

#[test]
fn a_cyclic_array_is_evaluated() {
    // Eight references to one object whose x is the array: every step has eight times the paths.
    let mut value = b"\xd8\x1c\x88\xd8\x1c\xa1\x61x\xd8\x1d\x00".to_vec();
    value.extend([0xd8, 29, 1].repeat(7));
    let by = |steps: usize| filter(&json!({ vec!["x"; steps].join("."): 1 })).unwrap();
    assert_eq!(by(4).matches(Encoding::Cbor, &value), Ok(false));
    let refused = by(20).matches(Encoding::Cbor, &value).unwrap_err();
    assert_eq!(refused.what(), "value too intertwined for a filter");
}

/// An array of one item, repeated.
fn repeated(item: Cbor, times: usize) -> Vec<u8> {
    let others = (1..times).map(|_| tag(29, Cbor::from(0)));
    encoded(&Cbor::Array(std::iter::once(tag(28, item)).chain(others).collect()))
}

/// An object with this number of names.
fn wide(names: usize) -> Cbor {
    map((0..names).map(|n| (text(&n.to_string()), Cbor::from(0))).collect())
}

/// Each condition visited every element twice, with a bound of the value's bytes. So an array of
/// small numbers was refused from some number of conditions on.
#[test]
fn a_value_without_references_is_within_the_bound() {
    let numbers = encoded(&json!({ "n": vec![7; 30_000] }));
    let missing = || (0..60).map(|_| json!({ "n": { "$contains": 8 } }));
    let any = |last: Json| json!({ "$or": missing().chain([last]).collect::<Vec<_>>() });
    let answer = |by: &Json| filter(by).unwrap().matches(Encoding::Cbor, &numbers);
    assert_eq!(answer(&any(json!({ "n": { "$contains": 7 } }))), Ok(true));
    assert_eq!(answer(&any(json!({ "n": { "$contains": 9 } }))), Ok(false));
}

/// The bound is exact: an item behind a reference costs one visit, and so does skipping it.
#[test]
fn items_behind_references_are_counted_up_to_the_bound() {
    let times = 1001;
    // Behind each reference the filter opens an object, compares a name and skips an array.
    let each = FILTER_VISITS_MAX / (times - 1);
    let of = |counted: usize| {
        let passed = Cbor::Array(vec![Cbor::from(0); counted - 3]);
        repeated(map(vec![(text("y"), passed)]), times)
    };
    let by = filter(&json!({ "x": 1 })).unwrap();
    assert_eq!(by.matches(Encoding::Cbor, &of(each)), Ok(false));
    let refused = by.matches(Encoding::Cbor, &of(each + 1)).unwrap_err();
    assert_eq!(refused.what(), "value too intertwined for a filter");
}

/// The callback runs between conditions and inside of one, with the number of visits.
#[test]
fn a_filter_is_ended_between_and_inside_of_conditions() {
    let numbers = encoded(&json!({ "n": vec![7; FILTER_LOOK_VISITS], "t": "x".repeat(400_000) }));
    let many = |one: Json| json!({ "$or": vec![one; 300] });
    for by in
        [many(json!({ "n": { "$contains": 8 } })), many(json!({ "t": { "$containsi": "Y" } }))]
    {
        let by = filter(&by).unwrap();
        let (checks, done) = (Cell::new(0), Cell::new(0));
        let ended = by.matches_while(Encoding::Cbor, &numbers, &|work| {
            checks.set(checks.get() + 1);
            done.set(done.get() + work);
            checks.get() < 3
        });
        assert_eq!((ended, checks.get()), (Ok(None), 3));
        assert!(done.get() >= 3 * FILTER_LOOK_VISITS);
        assert_eq!(by.matches_while(Encoding::Cbor, &numbers, &|_| true), Ok(Some(false)));
    }
    let broken = by_contains().matches_while(Encoding::Cbor, b"\xa1\x61n\x9f", &|_| false);
    assert!(broken.is_err(), "{broken:?}");
}

fn by_contains() -> Filter {
    filter(&json!({ "n": { "$contains": 1 } })).unwrap()
}

/// 330 conditions on one text folded it 330 times.
#[test]
fn a_text_is_folded_once_for_all_conditions_on_it() {
    let long = "Straße ".repeat(FILTER_FOLD_KEPT_BYTES_MIN);
    let value = encoded(&json!({ "a": long, "b": [long, "kurz"], "c": "KURZ" }));
    let by = filter(&json!({ "$and": [
        { "a": { "$containsi": "STRASSE S", "$startsWithi": "sT", "$endsWithi": "E " } },
        { "a": { "$notContainsi": "gasse", "$nei": "strasse" } },
        { "b": { "$containsi": "KURZ" } },
        { "b.0": { "$containsi": "SSE" } },
        { "c": { "$eqi": "kurz" } },
    ] }));
    let before = Text::folded_so_far();
    assert_eq!(by.clone().unwrap().matches(Encoding::Cbor, &value), Ok(true));
    // Parsing the filter folds its operands; the rest are the two long texts and short ones.
    let folded = Text::folded_so_far() - before;
    assert!(folded >= 2 * long.len() && folded < 3 * long.len(), "{folded} of {}", long.len());
}

/// Only opened items counted, and every condition started again. So an array of references to one
/// wide object took seconds for each condition.
#[test]
fn skipped_items_count_and_conditions_share_one_budget() {
    let refused = |value: &[u8], by: &Json| {
        let answer = filter(by).unwrap().matches(Encoding::Cbor, value);
        answer.is_err_and(|error| error.what() == "value too intertwined for a filter")
    };
    let half = repeated(wide(250), 1000);
    assert!(!refused(&half, &json!({ "x": 1 })));
    assert!(refused(&half, &json!({ "$or": [{ "x": 1 }, { "y": 1 }, { "z": 1 }] })));
    assert!(refused(&repeated(wide(250), 3000), &json!({ "x": 1 })));
    assert!(refused(&repeated(map(vec![(text("x"), wide(600))]), 3000), &json!({ "x.y": 1 })));
    assert!(refused(&repeated(text(&"x".repeat(8192)), 3000), &json!({ "$containsi": "y" })));
    // Items that are not shared cost one visit for each condition.
    let zeros = Cbor::Array(vec![Cbor::from(0); FILTER_VISITS_MAX * 3 / 2]);
    let long = encoded(&map(vec![(text("a"), zeros), (text("x"), Cbor::from(1))]));
    assert!(!refused(&long, &json!({ "$or": [{ "x": 2 }, { "y": 2 }, { "a": 1 }] })));
}

proptest! {
    #[test]
    fn hostile_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let by = filter(&json!({ "a.b": 1, "0.1": { "$containsi": "x" } })).unwrap();
        let _ = by.matches(Encoding::Cbor, &bytes);
        let _ = Filter::parse(&bytes, 0);
    }
}
