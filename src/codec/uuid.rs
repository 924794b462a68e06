//! UUIDs of version 7 (RFC 9562 §5.7): a time and randomness, so that they sort by when they were
//! made.

/// Characters of a UUID.
pub const TEXT_BYTES: usize = 36;

/// What stands in an encoded key or value where a UUID will be.
pub const NIL_TEXT: &[u8; TEXT_BYTES] = b"00000000-0000-0000-0000-000000000000";

/// Bits that are not version and variant, from the time downwards.
const RANDOM_BITS: u32 = 74;
const LOW_BITS: u32 = 62;
const MIDDLE_BITS: u32 = 12;
const TIME_BITS: u32 = 48;
const VERSION: u128 = 7;
const VARIANT: u128 = 0b10;

const fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}

/// The UUID of these 122 bits: 48 of time in ms, 74 of randomness. Its order is theirs.
#[must_use]
pub fn from_payload(payload: u128) -> u128 {
    let time = (payload >> RANDOM_BITS) & mask(TIME_BITS);
    let middle = (payload >> LOW_BITS) & mask(MIDDLE_BITS);
    let low = payload & mask(LOW_BITS);
    time << 80 | VERSION << 76 | middle << 64 | VARIANT << 62 | low
}

/// The 122 bits of a UUID that are its own.
#[must_use]
pub fn payload(uuid: u128) -> u128 {
    let middle = (uuid >> 64) & mask(MIDDLE_BITS);
    (uuid >> 80) << RANDOM_BITS | middle << LOW_BITS | uuid & mask(LOW_BITS)
}

/// A UUID's payload for a time in ms and randomness.
#[must_use]
pub fn payload_of(now_ms: i64, random: u128) -> u128 {
    let time = u128::try_from(now_ms).unwrap_or(0).min(mask(TIME_BITS));
    time << RANDOM_BITS | random & mask(RANDOM_BITS)
}

/// The text of a UUID, in lower case.
#[must_use]
pub fn text(uuid: u128) -> [u8; TEXT_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = *NIL_TEXT;
    let mut rest = uuid;
    for place in text.iter_mut().rev().filter(|place| **place != b'-') {
        *place = DIGITS.get((rest & 0xf) as usize).copied().unwrap_or_default();
        rest >>= 4;
    }
    text
}

/// The UUID of a text as [`text`] writes it; `None` for any other.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<u128> {
    let digits: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'-').collect();
    let uuid = u128::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
    (text(uuid) == bytes).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 9562, appendix A.6.
        let random = 0xCC3 << LOW_BITS | 0x18C4_DC0C_0C07_398F;
        let uuid = from_payload(payload_of(0x017F_22E2_79B0, random));
        assert_eq!(&text(uuid), b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
        assert_eq!(from_payload(payload(uuid)), uuid);
        assert_eq!(parse(&text(uuid)), Some(uuid));
        for bad in ["", "017f22e2-79b0-7cc3-98c4-dc0c0c07398F", "017f22e279b07cc398c4dc0c0c07398f"]
        {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn order_survives_carries() {
        let before = payload_of(5, mask(RANDOM_BITS));
        assert!(from_payload(before + 1) > from_payload(before));
        assert_eq!(from_payload(before + 1), from_payload(payload_of(6, 0)));
        assert_eq!(payload_of(-1, 0), 0);
    }
}
