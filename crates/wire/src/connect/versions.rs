//! The versions of the protocol, their negotiation, and their headers.

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Version {
    /// Absolute URLs; [`DOMAIN_HEADER`] names the database.
    V1 = 1,
    /// Relative URLs; [`VERSION_HEADER`] and [`DATABASE_HEADER`].
    V2 = 2,
    /// Watches, and the status of reads.
    V3 = 3,
}

/// The header with the version of a request, from version 2 on.
pub const VERSION_HEADER: &str = "x-denokv-version";

/// The header with the database of a request, from version 2 on.
pub const DATABASE_HEADER: &str = "x-denokv-database-id";

/// The header with the database of a request of version 1.
pub const DOMAIN_HEADER: &str = "x-transaction-domain-id";

/// The content type of requests and answers of the data path.
pub const PROTOBUF_TYPE: &str = "application/x-protobuf";

/// The content type of a watch's stream.
pub const STREAM_TYPE: &str = "application/octet-stream";

/// The content type of metadata. It has no parameters, which the npm client does not accept.
pub const JSON_TYPE: &str = "application/json";

impl Version {
    /// Every version, the newest first.
    pub const ALL: [Self; 3] = [Self::V3, Self::V2, Self::V1];

    /// The version with this number.
    ///
    /// ```
    /// use openkv_wire::connect::versions::Version;
    /// assert_eq!(Version::from_number(3), Some(Version::V3));
    /// assert_eq!(Version::from_number(4), None);
    /// ```
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|version| u64::from(version.number()) == number)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The newest version that both sides support.
    pub fn negotiate(offered: &[u64], spoken: &[Self]) -> Option<Self> {
        let both = spoken.iter().filter(|version| offered.contains(&u64::from(version.number())));
        both.max().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_chosen() {
        let all = Version::ALL;
        assert_eq!(Version::negotiate(&[1, 2, 3], &all), Some(Version::V3));
        assert_eq!(Version::negotiate(&[2, 1, 9], &all), Some(Version::V2));
        assert_eq!(Version::negotiate(&[3, 2], &all), Some(Version::V3));
        assert_eq!(Version::negotiate(&[1], &[Version::V2, Version::V3]), None);
        assert_eq!(Version::negotiate(&[], &all), None);
        assert_eq!(Version::negotiate(&[0, 4, u64::MAX], &all), None);
    }
}
