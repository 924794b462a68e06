//! Keys of KeyVal: paths such as `users/123`, and arrays of JSON. Parameters of queries.

use hyper::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::value::RawValue;
use url::form_urlencoded;

use super::bigint::{SAFE_INTEGER_MAX, typed};
use super::json::Members;
use super::rules::Rules;
use super::{BASE, ENTRY};
use crate::api::problem::{Problem, shown};
use crate::data::Client;
use openkv_core::codec::key;
use openkv_core::interchange::key_json;
use openkv_core::model::{HTTP_BATCH_KEYS_MAX, KEYVAL_KEY_PARTS_MAX, Key, KeyPart};

/// The message for a path without a key.
pub(super) const EMPTY_PATH: &str = "Key path cannot be empty";

/// What `encodeURIComponent` leaves as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The parameters of a query. Of a name that occurs twice the first counts, and unknown ones are ignored.
pub(super) struct Query {
    parameters: Vec<(String, String)>,
    rules: Rules,
}

impl Query {
    pub(super) fn of(client: &Client, uri: &Uri) -> Self {
        let parameters = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Self { parameters: parameters.into_owned().collect(), rules: client.serving.keyval }
    }

    /// A parameter that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The key of a parameter.
    pub(super) fn key(&self, name: &str) -> Result<Option<Key>, Problem> {
        self.get(name).map(|path| of_path(path, self.rules)).transpose()
    }

    /// The keys of a parameter, with commas; `None` without any.
    pub(super) fn keys(&self, name: &str) -> Result<Option<Vec<Key>>, Problem> {
        let paths = self.get(name).map(list);
        let keys = paths.map(|paths| paths.map(|path| of_path(path, self.rules)).collect());
        Ok(keys.transpose()?.filter(|keys: &Vec<Key>| !keys.is_empty()))
    }

    pub(super) fn rules(&self) -> Rules {
        self.rules
    }
}

/// The items of a list with commas.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// The path of a request below the base of its database.
pub(super) fn path_below_base<'r>(client: &Client, uri: &'r Uri) -> &'r str {
    client.path_below(BASE, uri)
}

/// The key in the path of a request.
pub(super) fn in_path(client: &Client, uri: &Uri) -> Result<Key, Problem> {
    let path = path_below_base(client, uri);
    of_path(path.strip_prefix(ENTRY).unwrap_or_default(), client.serving.keyval)
}

/// The key of a path: parts between slashes, each percent-decoded.
pub(super) fn of_path(path: &str, rules: Rules) -> Result<Key, Problem> {
    let mut parts = Vec::new();
    for encoded in path.split('/').filter(|part| !part.is_empty()) {
        let text = percent_decode_str(encoded).decode_utf8().map_err(|_| {
            Problem::bad_request(format!("a part of the key is not UTF-8: {}", shown(encoded)))
        })?;
        parts.push(part_of(&text, rules));
    }
    check_parts(parts.len(), EMPTY_PATH)?;
    Ok(key::encode(&parts)?)
}

/// A whole decimal number that a double holds exactly is a number.
fn part_of(text: &str, rules: Rules) -> KeyPart {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_whole && !rules.strings { text.parse::<i64>().ok() } else { None };
    match number.filter(|n| n.unsigned_abs() <= SAFE_INTEGER_MAX.unsigned_abs()) {
        Some(n) => KeyPart::Number(n as f64),
        None => KeyPart::String(text.to_owned()),
    }
}

fn check_parts(count: usize, empty: &str) -> Result<(), Problem> {
    if count == 0 {
        return Err(Problem::bad_request(empty));
    }
    if count > KEYVAL_KEY_PARTS_MAX {
        let text = format!("Key path too deep (max {KEYVAL_KEY_PARTS_MAX} parts): {count} given");
        return Err(Problem::bad_request(text));
    }
    Ok(())
}

/// A key as an array of JSON.
pub(super) fn of_json(raw: &RawValue) -> Result<Key, Problem> {
    let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| {
        Problem::bad_request(format!(
            "Key must be an array of (string | number | bigint | boolean), received {}",
            shown(raw.get())
        ))
    })?;
    let empty = "Key cannot be empty. Provide at least one key part, e.g. [\"users\", 123]";
    check_parts(parts.len(), empty)?;
    let texts = parts.iter().map(|part| typed(part.get()).unwrap_or_else(|| part.get().to_owned()));
    let array = format!("[{}]", texts.collect::<Vec<_>>().join(","));
    Ok(key_json::parse(&array)?)
}

/// The key of a new entry, and whether its last part is `{"__type":"uuidv7"}`, which stands for the versionstamp of the commit, as
/// in KeyVal.
pub(super) fn new_key_of_json(raw: &RawValue) -> Result<(Key, bool), Problem> {
    let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let is_placeholder = |part: &&RawValue| {
        Members::of_item("key", part)
            .is_ok_and(|part| part.text("__type").as_deref() == Some("uuidv7"))
    };
    match parts.split_last() {
        Some((last, before)) if is_placeholder(last) && !before.is_empty() => {
            let texts: Vec<_> = before.iter().map(|part| part.get()).collect();
            let array = RawValue::from_string(format!("[{}]", texts.join(",")));
            let array = array.map_err(|error| Problem::bad_request(error.to_string()))?;
            Ok((of_json(&array)?, true))
        }
        _ => Ok((of_json(raw)?, false)),
    }
}

/// A prefix as an array of JSON, which may be empty.
pub(super) fn prefix_of_json(raw: &RawValue) -> Result<Option<Key>, Problem> {
    let parts: Option<Vec<&RawValue>> = serde_json::from_str(raw.get()).ok();
    match parts.is_some_and(|parts| parts.is_empty()) {
        true => Ok(None),
        false => of_json(raw).map(Some),
    }
}

/// Keys as an array of arrays.
pub(super) fn many_of_json(raw: Option<&RawValue>) -> Result<Vec<Key>, Problem> {
    let items: Option<Vec<&RawValue>> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let Some(items) = items else {
        let text = format!(
            "Keys must be an array of key arrays, received {}",
            shown(raw.map_or("undefined", RawValue::get))
        );
        return Err(Problem::bad_request(text));
    };
    if items.is_empty() {
        let text = "Keys array cannot be empty. Provide at least one key, e.g. [[\"users\", 123]]";
        return Err(Problem::bad_request(text));
    }
    let count = items.len();
    if count > HTTP_BATCH_KEYS_MAX {
        let text = format!(
            "Too many keys: {count} (max {HTTP_BATCH_KEYS_MAX}). Split into smaller batches."
        );
        return Err(Problem::bad_request(text));
    }
    let one = |(at, raw): (usize, &&RawValue)| {
        of_json(raw).map_err(|problem| {
            Problem::bad_request(format!("Invalid key at index {at}: {}", problem.text()))
        })
    };
    items.iter().enumerate().map(one).collect()
}

/// A key as one text, from which [`of_text`] makes it again. Only texts that are no numbers, and whole numbers, have the form
/// of a path; other keys are their bytes.
pub(super) fn to_text(bytes: &[u8], rules: Rules) -> Result<String, Problem> {
    let parts =
        key::decode(bytes).map_err(|why| openkv_core::model::Error::corrupt(why.to_string()))?;
    let texts: Option<Vec<String>> = parts.iter().map(|part| path_part(part, rules)).collect();
    Ok(match texts {
        Some(texts) => texts.join("/"),
        None => {
            format!("{BYTES}{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    })
}

/// What begins the text of a key that has no path. In a path it is escaped.
const BYTES: char = '~';

fn path_part(part: &KeyPart, rules: Rules) -> Option<String> {
    let text = match part {
        KeyPart::String(text) if !text.is_empty() => text.clone(),
        KeyPart::Number(n) if n.fract() == 0.0 => format!("{n}"),
        _ => return None,
    };
    let same = match (part_of(&text, rules), part) {
        (KeyPart::String(a), KeyPart::String(b)) => a == *b,
        (KeyPart::Number(a), KeyPart::Number(b)) => a.to_bits() == b.to_bits(),
        _ => false,
    };
    same.then(|| utf8_percent_encode(&text, PLAIN).to_string())
}

/// The key of a text; `None` for one that is none.
pub(super) fn of_text(text: &str, rules: Rules) -> Option<Key> {
    let Some(digits) = text.strip_prefix(BYTES) else { return of_path(text, rules).ok() };
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    let bytes = bytes.filter(|bytes| rest.is_empty() && key::decode(bytes).is_ok())?;
    Some(Key::from_encoded(bytes))
}
