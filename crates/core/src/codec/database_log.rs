//! The changes of a database in a segment of a log (docs/format.md §6).

use super::Malformed;
use super::fields::{Fields, put_bytes, put_number};
use crate::model::{
    BuildFailure, DatabaseChange, IndexSpec, Key, OrderPath, Tokenizer, ValueIndexSpec,
};

const SEARCH_INDEX: u8 = 1;
const VALUE_INDEX: u8 = 2;
const DROPPED: u8 = 3;
const BUILT: u8 = 4;
const METRICS: u8 = 5;

/// Flags of an index that was created.
const BUILDING: u8 = 1;
const UNIQUE: u8 = 2;
const MULTI: u8 = 4;
const SPARSE: u8 = 8;

/// Flags of a step of building.
const THROUGH: u8 = 1;
const FAILED: u8 = 2;
const OTHER: u8 = 4;

/// Appends changes, in their order.
pub(super) fn put(out: &mut Vec<u8>, changes: &[DatabaseChange]) {
    for change in changes {
        match change {
            DatabaseChange::SearchIndex { spec, building } => {
                out.extend_from_slice(&[SEARCH_INDEX, flag(*building, BUILDING)]);
                put_bytes(out, spec.name.as_bytes());
                put_bytes(out, spec.prefix.as_bytes());
                put_bytes(out, spec.tokenizer.name().as_bytes());
                put_bytes(out, &spec.prefix_lengths);
                put_number(out, spec.fields.len() as u64);
                for field in &spec.fields {
                    put_bytes(out, field.as_bytes());
                }
            }
            DatabaseChange::ValueIndex { spec, building } => {
                let flags = flag(*building, BUILDING)
                    | flag(spec.unique, UNIQUE)
                    | flag(spec.multi, MULTI)
                    | flag(spec.sparse, SPARSE);
                out.extend_from_slice(&[VALUE_INDEX, flags]);
                put_bytes(out, spec.name.as_bytes());
                put_bytes(out, spec.prefix.as_bytes());
                put_number(out, spec.on.len() as u64);
                for OrderPath { path, descending } in &spec.on {
                    put_bytes(out, path.as_bytes());
                    out.push((*descending).into());
                }
            }
            DatabaseChange::IndexDropped(name) => {
                out.push(DROPPED);
                put_bytes(out, name.as_bytes());
            }
            DatabaseChange::IndexBuilt { name, through, scanned, failed } => {
                let other = failed.as_ref().and_then(|failed| failed.other.as_ref());
                let flags = flag(through.is_some(), THROUGH)
                    | flag(failed.is_some(), FAILED)
                    | flag(other.is_some(), OTHER);
                out.extend_from_slice(&[BUILT, flags]);
                put_bytes(out, name.as_bytes());
                put_number(out, *scanned);
                let failed = failed.as_ref().map(|failed| &failed.key);
                for key in [through.as_ref(), failed, other].into_iter().flatten() {
                    put_bytes(out, key.as_bytes());
                }
            }
            DatabaseChange::Metrics(text) => {
                out.push(METRICS);
                put_bytes(out, text.as_bytes());
            }
        }
    }
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

/// Reads all changes that are left.
pub(super) fn read_all(rest: &mut Fields<'_>) -> Result<Vec<DatabaseChange>, Malformed> {
    let mut changes = Vec::new();
    while !rest.is_at_end() {
        changes.push(match rest.byte()? {
            SEARCH_INDEX => {
                let flags = flags_in(rest, BUILDING)?;
                let (name, prefix) = (rest.text()?, key(rest)?);
                let Some(tokenizer) = Tokenizer::from_name(&rest.text()?) else {
                    return rest.fault("an unknown tokenizer");
                };
                let prefix_lengths = rest.slice()?.to_vec();
                let mut fields = Vec::new();
                for _ in 0..rest.length()? {
                    fields.push(rest.text()?);
                }
                let spec = IndexSpec { name, prefix, fields, tokenizer, prefix_lengths };
                DatabaseChange::SearchIndex { spec, building: flags & BUILDING != 0 }
            }
            VALUE_INDEX => {
                let flags = flags_in(rest, BUILDING | UNIQUE | MULTI | SPARSE)?;
                let (name, prefix, mut on) = (rest.text()?, key(rest)?, Vec::new());
                for _ in 0..rest.length()? {
                    let path = rest.text()?;
                    on.push(OrderPath { path, descending: flags_in(rest, 1)? != 0 });
                }
                let [unique, multi, sparse] = [UNIQUE, MULTI, SPARSE].map(|bit| flags & bit != 0);
                let spec = ValueIndexSpec { name, prefix, on, unique, multi, sparse };
                DatabaseChange::ValueIndex { spec, building: flags & BUILDING != 0 }
            }
            DROPPED => DatabaseChange::IndexDropped(rest.text()?),
            BUILT => {
                let flags = flags_in(rest, THROUGH | FAILED | OTHER)?;
                let (name, scanned) = (rest.text()?, rest.number()?);
                let mut key_if = |bit| (flags & bit != 0).then(|| key(rest)).transpose();
                let through = key_if(THROUGH)?;
                let (failed, other) = (key_if(FAILED)?, key_if(OTHER)?);
                if failed.is_none() && other.is_some() {
                    return rest.fault("a failure of building without its entry");
                }
                let failed = failed.map(|key| BuildFailure { key, other });
                DatabaseChange::IndexBuilt { name, through, scanned, failed }
            }
            METRICS => DatabaseChange::Metrics(rest.text()?),
            _ => return rest.fault("an unknown change of a database"),
        });
    }
    Ok(changes)
}

fn flags_in(rest: &mut Fields<'_>, known: u8) -> Result<u8, Malformed> {
    let flags = rest.byte()?;
    if flags & !known == 0 { Ok(flags) } else { rest.fault("an unknown flag") }
}

fn key(rest: &mut Fields<'_>) -> Result<Key, Malformed> {
    Ok(Key::from_encoded(rest.slice()?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::super::change_log::{database, decode, encode_database, messages, without_messages};
    use super::*;

    fn all_kinds() -> Vec<DatabaseChange> {
        let of = |text: &str| Key::from_encoded(text.as_bytes().to_vec());
        let search = IndexSpec {
            name: "notes".into(),
            prefix: of("n"),
            fields: vec!["title".into(), String::new()],
            tokenizer: Tokenizer::Trigram,
            prefix_lengths: vec![2, 3],
        };
        let path = |path: &str, descending| OrderPath { path: path.into(), descending };
        let on = vec![path("city", false), path("joined", true)];
        let (prefix, unique, multi, sparse) = (of("u"), true, false, true);
        let value = ValueIndexSpec { name: "é".into(), prefix, on, unique, multi, sparse };
        let built = |through: Option<&str>, failed| DatabaseChange::IndexBuilt {
            name: "notes".into(),
            through: through.map(of),
            scanned: 300,
            failed,
        };
        vec![
            DatabaseChange::SearchIndex { spec: search, building: true },
            DatabaseChange::ValueIndex { spec: value, building: false },
            DatabaseChange::IndexDropped("é".into()),
            built(Some("n/7"), None),
            built(None, None),
            built(None, Some(BuildFailure { key: of("n/1"), other: None })),
            built(None, Some(BuildFailure { key: of("n/1"), other: Some(of("n/2")) })),
            DatabaseChange::Metrics("{}".into()),
        ]
    }

    #[test]
    fn changes_of_a_database_round_trip_and_are_no_changes_of_entries() {
        let bytes = encode_database(&all_kinds());
        assert_eq!(database(&bytes), Ok(all_kinds()));
        decode(1, &bytes, |_| panic!("a change of an entry")).unwrap();
        assert_eq!(messages(1, &bytes), Ok(Vec::new()));
        assert_eq!(without_messages(&bytes).unwrap().as_ref(), [1]);
    }

    #[test]
    fn the_bytes_are_those_of_the_format_page() {
        let path = OrderPath { path: "b".into(), descending: true };
        let spec = ValueIndexSpec {
            name: "a".into(),
            prefix: Key::from_encoded(vec![7]),
            on: vec![path],
            unique: true,
            multi: false,
            sparse: false,
        };
        let bytes = encode_database(&[
            DatabaseChange::ValueIndex { spec, building: true },
            DatabaseChange::IndexDropped("a".into()),
        ]);
        let created = [&[3, 2, 3, 1][..], b"a", &[1, 7, 1, 1], b"b", &[1]].concat();
        assert_eq!(bytes, [&created[..], &[3, 1], b"a"].concat());
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = encode_database(&all_kinds());
        for end in 2..bytes.len() {
            // A part may be the end of a change, but is never another list.
            let read = database(&bytes[..end]).unwrap_or_default();
            assert_eq!(read, all_kinds()[..read.len()]);
            assert!(read.len() < all_kinds().len());
        }
        for wrong in [&[3, 0][..], &[3, 2, 16], &[3, 4, 4, 0, 0, 0], &[3, 3, 1, 0xff]] {
            assert!(database(wrong).is_err(), "{wrong:?}");
        }
    }
}
