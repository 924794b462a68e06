//! Durations in bodies and parameters: ms, or a text like `5m`, as options of JavaScript have them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};

use super::problem::{Problem, shown};
use super::target::Query;
use openkv_core::model::parse_duration;

/// Ms. Whoever takes it checks its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ms(pub(super) u64);

const EXPECTED: &str =
    "a duration: ms as an integer, or a text with units (ms, s, m, h, d) like \"5m\"";

impl<'de> Deserialize<'de> for Ms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Ms;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_u64<E>(self, ms: u64) -> Result<Ms, E> {
                Ok(Ms(ms))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Ms, E> {
                let refused = || E::custom(format!("{} is not {EXPECTED}", shown(text)));
                let ms = parse_duration(text).ok_or_else(refused)?;
                u64::try_from(ms).map(Ms).map_err(|_| refused())
            }
        }

        let either = deserializer.deserialize_any(Either);
        either.map_err(|error| D::Error::custom(error.to_string()))
    }
}

/// A duration in a parameter.
pub(super) fn duration_in(query: &Query, name: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let with_units = || parse_duration(text).and_then(|ms| u64::try_from(ms).ok());
    text.parse().ok().or_else(with_units).map(Some).ok_or_else(|| {
        Problem::bad_request(format!("{name} must be {EXPECTED}: received {}", shown(text)))
    })
}

/// A duration that a frame has as 32 bits.
pub(super) fn small(name: &str, Ms(ms): Ms) -> Result<u32, String> {
    u32::try_from(ms).map_err(|_| format!("{name}: too large: {ms} ms given"))
}
