//! The text form of UUIDs in keys, values and frames: lower case, with hyphens.

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// Characters of a UUID.
pub const TEXT_BYTES: usize = Hyphenated::LENGTH;

/// Placeholder in an encoded key or value until the commit writes a UUID there.
pub const NIL_TEXT: &[u8; TEXT_BYTES] = b"00000000-0000-0000-0000-000000000000";

/// The text of a UUID.
pub fn text(uuid: Uuid) -> [u8; TEXT_BYTES] {
    let mut text = *NIL_TEXT;
    uuid.hyphenated().encode_lower(&mut text);
    text
}

/// The UUID of a text in the form of [`text`]; `None` for any other.
pub fn parse(bytes: &[u8]) -> Option<Uuid> {
    Uuid::try_parse_ascii(bytes).ok().filter(|uuid| text(*uuid) == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_text_is_read() {
        let uuid = Uuid::from_u128(0x017f_22e2_79b0_7cc3_98c4_dc0c_0c07_398f);
        assert_eq!(&text(uuid), b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
        assert_eq!(parse(&text(uuid)), Some(uuid));
        assert_eq!(parse(NIL_TEXT), Some(Uuid::nil()));
        for bad in ["", "017f22e2-79b0-7cc3-98c4-dc0c0c07398F", "017f22e279b07cc398c4dc0c0c07398f"]
        {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
