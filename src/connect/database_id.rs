//! The UUID that names a database.

use std::fmt;

/// A UUID. Every form that Deno reads is read; the lower-case one with hyphens is written.
///
/// ```
/// use openkv::connect::database_id::DatabaseId;
/// let id = DatabaseId::parse("urn:uuid:0198C0DE-0000-4000-8000-00000000000A").unwrap();
/// assert_eq!(id.to_string(), "0198c0de-0000-4000-8000-00000000000a");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId([u8; 16]);

impl DatabaseId {
    /// A random UUID (version 4) of so many random bytes.
    #[must_use]
    pub fn random(mut bytes: [u8; 16]) -> Self {
        let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
        *version = *version & 0x0f | 0x40;
        *variant = *variant & 0x3f | 0x80;
        Self(bytes)
    }

    /// The UUID of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads a UUID with or without hyphens, braces and `urn:uuid:`, in either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
        let text = match text.strip_prefix('{') {
            Some(inner) => inner.strip_suffix('}')?,
            None => text,
        };
        let hyphenated = text.len() == 36;
        let mut bytes = [0; 16];
        let mut digits = 0;
        for (at, character) in text.chars().enumerate() {
            if hyphenated && matches!(at, 8 | 13 | 18 | 23) {
                if character != '-' {
                    return None;
                }
                continue;
            }
            let place = bytes.get_mut(digits / 2)?;
            *place = *place << 4 | u8::try_from(character.to_digit(16)?).ok()?;
            digits += 1;
        }
        (digits == 32).then_some(Self(bytes))
    }

    /// The sixteen bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_one_is_written() {
        let text = "0198c0de-1234-4abc-8def-0123456789ab";
        let id = DatabaseId::parse(text).unwrap();
        for form in [
            "0198C0DE-1234-4ABC-8DEF-0123456789AB",
            "0198c0de12344abc8def0123456789ab",
            "{0198c0de-1234-4abc-8def-0123456789ab}",
            "urn:uuid:0198c0de-1234-4abc-8def-0123456789ab",
        ] {
            assert_eq!(DatabaseId::parse(form), Some(id), "{form}");
        }
        assert_eq!(id.to_string(), text);
        assert_eq!(
            DatabaseId::default().to_string().as_str(),
            "00000000-0000-0000-0000-000000000000"
        );
    }

    #[test]
    fn anything_else_is_none() {
        for bad in [
            "",
            "0198c0de-1234-4abc-8def-0123456789a",
            "0198c0de-1234-4abc-8def-0123456789abc",
            "0198c0de012344abc-8def-0123456789ab1",
            "0198c0dg-1234-4abc-8def-0123456789ab",
            "{0198c0de-1234-4abc-8def-0123456789ab",
            "é198c0de-1234-4abc-8def-0123456789ab",
        ] {
            assert_eq!(DatabaseId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_random_one_says_so() {
        let id = DatabaseId::random([0xff; 16]);
        assert_eq!(id.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
