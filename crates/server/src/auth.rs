//! Tokens: access tokens, stored as hashes, and signed tokens of the data path.
//!
//! Access tokens that the server creates are 256 random bits, so one round of SHA-256 protects the
//! stored hashes: no dictionary attack is possible.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use hyper::header::{AUTHORIZATION, HeaderMap};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::answer::Refusal;
use openkv_core::model::{Error, Result};

/// The rights of a token; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Rights {
    /// Read the metrics, and nothing else.
    Metrics = 0,
    /// Also read entries, and watch.
    Read = 1,
    /// Also write.
    Write = 2,
    /// Also create and revoke tokens of its database.
    Admin = 3,
}

impl Rights {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Metrics, Self::Read, Self::Write, Self::Admin];
        all.into_iter().find(|rights| *rights as u8 == number)
    }
}

/// SHA-256 of an access token.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(super) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        BASE64_URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok().map(Self)
    }

    pub(super) fn to_text(self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Compares in constant time.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Identifies the access token in a signed token.
    pub(super) fn fingerprint(&self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }
}

/// An access token of a database, or of the server.
#[derive(Clone, Debug)]
pub(super) struct AccessToken {
    /// Its id in the admin API.
    pub(super) id: String,
    pub(super) rights: Rights,
    pub(super) hash: TokenHash,
    pub(super) created_ms: i64,
}

/// Random bytes from the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::unavailable(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

/// A new access token.
pub(super) fn new_token() -> Result<String> {
    Ok(format!("okv_{}", BASE64_URL_SAFE_NO_PAD.encode(random::<32>()?)))
}

/// How a request carries its token.
const BEARER: &str = "send 'Authorization: Bearer TOKEN'.";

/// The token of a request. No error text reveals the token.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let missing = || Refusal::unauthorized(&format!("Missing authorization header: {BEARER}"));
    let malformed = || Refusal::unauthorized(&format!("Malformed authorization header: {BEARER}"));
    let header = headers.get(AUTHORIZATION).ok_or_else(missing)?;
    let (scheme, token) =
        header.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::wrong_token());
    }
    Ok(token)
}

/// The contents of a signed token of the data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// The only database that it is valid for.
    pub(super) database: Uuid,
    pub(super) rights: Rights,
    /// The access token that it was issued for. Revoking that token revokes this one.
    pub(super) issued_for: [u8; 8],
    pub(super) expires_at_ms: i64,
}

/// Signs and verifies tokens of the data path. The key of one server lasts as long as its process; after
/// a restart, clients fetch their metadata again.
pub(super) struct Signer {
    key: [u8; 32],
}

const GRANT_BYTES: usize = 16 + 1 + 8 + 8;

impl Signer {
    pub(super) fn new() -> Result<Self> {
        random().map(Self::of)
    }

    /// With the key that several servers share.
    pub(super) fn of(key: [u8; 32]) -> Self {
        Self { key }
    }

    fn mac(&self, signed: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(signed);
        Some(mac)
    }

    pub(super) fn issue(&self, grant: &Grant) -> Result<String> {
        let mut bytes = Vec::with_capacity(GRANT_BYTES + 32);
        bytes.extend_from_slice(grant.database.as_bytes());
        bytes.push(grant.rights as u8);
        bytes.extend_from_slice(&grant.issued_for);
        bytes.extend_from_slice(&grant.expires_at_ms.to_be_bytes());
        let mac = self.mac(&bytes).ok_or_else(|| Error::internal("no key to sign with"))?;
        bytes.extend_from_slice(&mac.finalize().into_bytes());
        Ok(format!("okd_{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The grant of a token; `None` if this server did not issue it or it has expired.
    pub(super) fn verify(&self, token: &str, now_ms: i64) -> Option<Grant> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token.strip_prefix("okd_")?).ok()?;
        let (signed, signature) = bytes.split_at_checked(GRANT_BYTES)?;
        // Compares in constant time.
        self.mac(signed)?.verify_slice(signature).ok()?;
        let (database, rest) = signed.split_first_chunk::<16>()?;
        let (&rights, rest) = rest.split_first()?;
        let (issued_for, rest) = rest.split_first_chunk::<8>()?;
        let expires_at_ms = i64::from_be_bytes(rest.try_into().ok()?);
        (expires_at_ms > now_ms).then_some(Grant {
            database: Uuid::from_bytes(*database),
            rights: Rights::from_number(rights)?,
            issued_for: *issued_for,
            expires_at_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_unchanged_and_until_its_expiry() {
        let signer = Signer::new().unwrap();
        let grant = Grant {
            database: uuid::Builder::from_random_bytes([7; 16]).into_uuid(),
            rights: Rights::Write,
            issued_for: [9; 8],
            expires_at_ms: 1000,
        };
        let token = signer.issue(&grant).unwrap();
        assert_eq!(signer.verify(&token, 999), Some(grant));
        assert_eq!(signer.verify(&token, 1000), None);
        assert_eq!(Signer::new().unwrap().verify(&token, 0), None);
        assert_eq!(signer.verify(&token[4..], 0), None);
        for at in 4..token.len() {
            let mut other = token.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(signer.verify(&other, 0), None, "{at}");
            assert_eq!(signer.verify(&token[..at], 0), None, "{at}");
        }
    }

    #[test]
    fn hashes_are_kept_as_text() {
        let hash = TokenHash::of("a token");
        assert!(TokenHash::from_text(&hash.to_text()).unwrap().is(&hash));
        assert!(!TokenHash::of("another").is(&hash));
        assert!(TokenHash::from_text("AAAA").is_none());
    }
}
