//! UUIDs in the keys and values of an atomic operation, which its commit fills in.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::key_in;
use super::media::Form;
use super::problem::Problem;
use super::write::value_in;
use crate::auth::random;
use openkv_core::codec::cbor;
use openkv_core::codec::uuid::{NIL_TEXT, TEXT_BYTES};
use openkv_core::interchange::typed_json;
use openkv_core::model::{EncodedValue, Encoding, Error, Key, Patch, Target};

/// Hexadecimal digits of a placeholder's number in its mark.
const NUMBER_CHARS: usize = 12;

/// The placeholders of one operation.
pub(super) struct Uuids {
    /// By name.
    numbers: HashMap<String, u64>,
    count: u64,
    /// What the marks of placeholders in values begin with. It is random, so no other text is a mark.
    secret: String,
}

/// A key with placeholders.
pub(super) struct WrittenKey {
    pub(super) key: Key,
    /// Whether the commit appends its versionstamp.
    pub(super) suffixed: bool,
    pub(super) patches: Vec<Patch>,
}

/// A part that the commit fills in.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
enum Placeholder {
    CommitVersionstamp,
    Uuidv7 { value: Option<String> },
}

impl Uuids {
    pub(super) fn new() -> Result<Self, Problem> {
        let secret: [u8; (TEXT_BYTES - NUMBER_CHARS) / 2] = random()?;
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { numbers: HashMap::new(), count: 0, secret })
    }

    /// The number of a placeholder: without a name a new one.
    fn number(&mut self, name: Option<&str>) -> u64 {
        let next = self.count;
        let number = match name {
            Some(name) => *self.numbers.entry(name.to_owned()).or_insert(next),
            None => next,
        };
        self.count += u64::from(number == next);
        number
    }

    /// The key of a mutation.
    pub(super) fn key(
        &mut self,
        name: &str,
        raw: &RawValue,
        target: Target,
    ) -> Result<WrittenKey, Problem> {
        let parts: Vec<&RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| Problem::bad_request(format!("{name}: must be an array of parts")))?;
        let (mut texts, mut patches, mut suffixed) = (Vec::new(), Vec::new(), false);
        for (at, part) in parts.iter().enumerate() {
            match serde_json::from_str::<Placeholder>(part.get()) {
                Err(_) => texts.push(part.get().to_owned()),
                Ok(Placeholder::CommitVersionstamp) if at + 1 == parts.len() => suffixed = true,
                Ok(Placeholder::CommitVersionstamp) => {
                    let text = format!("{name}: only the last part can be a versionstamp");
                    return Err(Problem::bad_request(text));
                }
                Ok(Placeholder::Uuidv7 { value }) => {
                    let before = array_key(name, &texts)?;
                    // The text begins behind the tag of its part.
                    let offset = before.len() + 1;
                    let placeholder = self.number(value.as_deref());
                    patches.push(Patch { target, offset, placeholder });
                    texts.push(format!("\"{}\"", String::from_utf8_lossy(NIL_TEXT)));
                }
            }
        }
        Ok(WrittenKey { key: array_key(name, &texts)?, suffixed, patches })
    }

    /// The value of a mutation or a message. Only the typed form has placeholders in it.
    pub(super) fn value(
        &mut self,
        form: Form,
        raw: &RawValue,
        target: Target,
    ) -> Result<(EncodedValue, Vec<Patch>), Problem> {
        if form != Form::Typed {
            return Ok((value_in(form, raw)?, Vec::new()));
        }
        let secret = self.secret.clone();
        let mut value = typed_json::parse_with_uuids(raw.get(), &mut |name| {
            format!("{secret}{:0NUMBER_CHARS$x}", self.number(name))
        })?;
        let patches = match value.encoding {
            Encoding::Cbor => marked(&mut value.bytes, &secret, target)?,
            Encoding::V8 | Encoding::Le64 | Encoding::Bytes => Vec::new(),
        };
        Ok((value, patches))
    }
}

/// The placeholders of an encoded value: their marks become nil UUIDs.
fn marked(bytes: &mut [u8], secret: &str, target: Target) -> Result<Vec<Patch>, Problem> {
    let mut patches = Vec::new();
    let mark = |text: &[u8]| {
        let number = std::str::from_utf8(text).ok()?.strip_prefix(secret)?;
        u64::from_str_radix(number, 16).ok()
    };
    let read = cbor::texts(bytes, &mut |place| {
        let offset = place.start;
        if let Some(placeholder) = bytes.get(place).and_then(mark) {
            patches.push(Patch { target, offset, placeholder });
        }
    });
    read.map_err(|why| Error::internal(why.to_string()))?;
    for Patch { offset, .. } in &patches {
        if let Some(room) = bytes.get_mut(*offset..offset + TEXT_BYTES) {
            room.copy_from_slice(NIL_TEXT);
        }
    }
    Ok(patches)
}

fn array_key(name: &str, texts: &[String]) -> Result<Key, Problem> {
    let text = format!("[{}]", texts.join(","));
    let raw = RawValue::from_string(text)
        .map_err(|error| Problem::bad_request(format!("{name}: {error}")))?;
    key_in(name, &raw)
}
