//! The id of a write: its client repeats the write with it when the answer is lost, and the leader
//! answers with what has happened.

/// An attempt of a client to execute a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The id that all attempts of the write have.
    pub id: WriteId,
    /// Whether an earlier attempt may still arrive. The leader stores the refusal of such an attempt,
    /// because the earlier one must not commit after it.
    pub repeated: bool,
}

impl Attempt {
    /// The first attempt of a write.
    #[must_use]
    pub const fn first(id: WriteId) -> Self {
        Self { id, repeated: false }
    }
}

/// The time at which a client has made it, by the clock of the database, in ms since the epoch: six
/// bytes, the high one first. Then ten random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId([u8; Self::BYTES]);

/// Bytes of the time.
const TIME_BYTES: usize = 6;

impl WriteId {
    /// Its size.
    pub const BYTES: usize = 16;

    /// An id that is made at this time. A time that six bytes cannot hold is the nearest one.
    #[must_use]
    pub fn new(at_ms: i64, random: [u64; 2]) -> Self {
        let ms = u64::try_from(at_ms).unwrap_or(0).min((1 << (8 * TIME_BYTES)) - 1);
        let time = u128::from(ms) << (8 * (Self::BYTES - TIME_BYTES));
        let random = u128::from(random[0] & 0xffff) << 64 | u128::from(random[1]);
        Self((time | random).to_be_bytes())
    }

    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// When its client has made it, in ms since the epoch.
    #[must_use]
    pub fn at_ms(self) -> i64 {
        let time = u128::from_be_bytes(self.0) >> (8 * (Self::BYTES - TIME_BYTES));
        i64::try_from(time).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_time_and_its_random_bytes() {
        let id = WriteId::new(0x0192_3456_789a, [0xffff_ffff_ffff_1234, 0x5678_9abc_def0_1234]);
        assert_eq!(id.at_ms(), 0x0192_3456_789a);
        assert_eq!(id.as_bytes()[..8], [0x01, 0x92, 0x34, 0x56, 0x78, 0x9a, 0x12, 0x34]);
        assert_eq!(id.as_bytes()[8..], 0x5678_9abc_def0_1234_u64.to_be_bytes());
        assert_eq!(WriteId::from_bytes(*id.as_bytes()), id);
        assert_eq!(WriteId::new(-1, [0, 0]).at_ms(), 0);
        assert_eq!(WriteId::new(i64::MAX, [0, 0]).at_ms(), (1 << 48) - 1);
    }
}
