//! Versionstamps: each entry carries that of the commit that wrote it.

use std::fmt;

/// The position of a commit in the order of its database: ten bytes, printed as 20 hexadecimal
/// digits.
///
/// The first eight bytes count commits, big-endian. The last two are zero in every entry; a check
/// with others never matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Versionstamp {
    version: u64,
    order: u16,
}

impl Versionstamp {
    /// Length of the textual form, in bytes.
    pub const HEX_BYTES: usize = 20;

    /// The versionstamp of the commit with this counter.
    #[must_use]
    pub const fn new(version: u64) -> Self {
        Self { version, order: 0 }
    }

    /// The commit counter.
    pub const fn version(self) -> u64 {
        self.version
    }

    /// Length of the binary form.
    pub const BYTES: usize = 10;

    /// The versionstamp of ten bytes: the counter, big-endian, and the position within the commit.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        let version = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Self { version, order: u16::from_be_bytes([i, j]) }
    }

    /// The ten bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let both = self.version.to_be_bytes().into_iter().chain(self.order.to_be_bytes());
        for (place, byte) in bytes.iter_mut().zip(both) {
            *place = byte;
        }
        bytes
    }

    /// Parses 20 hexadecimal digits of either case; `None` for anything else.
    pub fn parse(hex: &[u8]) -> Option<Self> {
        if hex.len() != Self::HEX_BYTES {
            return None;
        }
        let mut bits: u128 = 0;
        for &digit in hex {
            bits = bits << 4 | u128::from(char::from(digit).to_digit(16)?);
        }
        Some(Self { version: (bits >> 16) as u64, order: bits as u16 })
    }

    /// The 20 lower-case hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> [u8; Self::HEX_BYTES] {
        let mut digits = [b'0'; Self::HEX_BYTES];
        let (pairs, _) = digits.as_chunks_mut::<2>();
        let bytes = self.version.to_be_bytes().into_iter().chain(self.order.to_be_bytes());
        for (pair, byte) in pairs.iter_mut().zip(bytes) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        digits
    }
}

const fn digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + (nibble - 10) }
}

impl fmt::Display for Versionstamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:04x}", self.version, self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_are_the_same_stamp() {
        let stamp = Versionstamp::new(0xabc);
        assert_eq!(&stamp.hex(), b"0000000000000abc0000");
        assert_eq!(stamp.to_string().as_bytes(), stamp.hex());
        assert_eq!(Versionstamp::parse(b"0000000000000ABC0000"), Some(stamp));
    }

    #[test]
    fn bytes_and_number_are_the_same_stamp() {
        let stamp = Versionstamp::new(0xabc);
        assert_eq!(stamp.to_bytes(), [0, 0, 0, 0, 0, 0, 0x0a, 0xbc, 0, 0]);
        let odd = Versionstamp::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(Versionstamp::from_bytes(odd.to_bytes()), odd);
        assert_eq!(Versionstamp::parse(b"00010203040506070809"), Some(odd));
    }

    #[test]
    fn anything_but_twenty_digits_is_rejected() {
        for bad in
            [&b""[..], b"0000000000000abc000", b"0000000000000abc00000", b"0000000000000abg0000"]
        {
            assert_eq!(Versionstamp::parse(bad), None);
        }
    }
}
