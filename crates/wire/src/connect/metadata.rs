//! The metadata exchange: the versions that a client offers, and the endpoints of the database.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::{from_rfc3339, to_rfc3339};
use super::versions::Version;
use openkv_core::model::{Error, METADATA_ENDPOINTS_MAX, Result};

/// The consistency of an endpoint's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// The newest state.
    Strong,
    /// A recent state.
    Eventual,
}

/// An endpoint of the data path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Absolute, or (from version 2 on) relative to the metadata's own URL. Does not end with `/`.
    pub url: String,
    /// The consistency of its answers.
    pub consistency: Consistency,
}

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The version of the data path.
    pub version: Version,
    /// The database.
    pub database: Uuid,
    /// In the server's order; the client uses the first suitable one.
    pub endpoints: Vec<Endpoint>,
    /// The bearer token of the data path.
    pub token: String,
    /// The expiry of this answer, in ms since the epoch.
    pub expires_at_ms: i64,
    /// The extensions of openkv that the server offers to a client that requested them; empty for
    /// other clients and servers.
    pub extensions: Vec<String>,
    /// The time of the database, in ms since the epoch, for a client that makes ids of writes by it.
    pub now_ms: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offer {
    supported_versions: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetadataDocument {
    version: u64,
    database_id: String,
    endpoints: Vec<Endpoint>,
    token: String,
    expires_at: String,
    // Other clients reject unknown fields; they never get this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<String>,
    // As the extensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

#[derive(Deserialize)]
struct AnswerVersion {
    version: u64,
}

/// Says, beside [`EXTENSIONS_HEADER`], that the client reads packed arrays (docs/format.md §2.1), which a
/// stored value may have since format 5 of files. Without it a server offers no extension: the
/// protocol's own requests have values in V8's format, which every client reads.
pub const PACKED_HEADER: &str = "x-openkv-packed";

/// Requests openkv's extensions, in a header of the metadata exchange; its value is `1`.
pub const EXTENSIONS_HEADER: &str = "x-openkv-extensions";

/// The body of a request that offers these versions.
pub fn write_request(offered: &[Version]) -> String {
    let numbers: Vec<_> = offered.iter().map(|version| version.number().to_string()).collect();
    format!("{{\"supportedVersions\":[{}]}}", numbers.join(","))
}

/// The versions that a request offers. A request without a body offers version 1.
///
/// # Errors
/// `Invalid` for any other body.
pub fn read_request(body: &[u8]) -> Result<Vec<u64>> {
    if body.is_empty() {
        return Ok(vec![1]);
    }
    let offer: Offer = serde_json::from_slice(body).map_err(|error| {
        Error::invalid(format!("The request is not {{\"supportedVersions\":[2,3]}}: {error}"))
    })?;
    Ok(offer.supported_versions)
}

/// The body of an answer.
///
/// # Errors
/// `Internal` if it cannot be written, which is a bug.
pub fn write_answer(metadata: &Metadata) -> Result<String> {
    let answer = MetadataDocument {
        version: u64::from(metadata.version.number()),
        database_id: metadata.database.to_string(),
        endpoints: metadata.endpoints.clone(),
        token: metadata.token.clone(),
        expires_at: to_rfc3339(metadata.expires_at_ms),
        extensions: metadata.extensions.clone(),
        time: metadata.now_ms.map(to_rfc3339),
    };
    serde_json::to_string(&answer).map_err(|error| Error::internal(error.to_string()))
}

/// Reads an answer to a request that offered `offered`. Ignores unknown fields.
///
/// # Errors
/// `Unsupported` for another version, which is checked first; `Invalid` for a malformed answer, for
/// a URL of an endpoint that ends with `/` or has a query or a fragment, and for a time without a
/// zone.
pub fn read_answer(body: &[u8], offered: &[Version]) -> Result<Metadata> {
    let AnswerVersion { version: number } = serde_json::from_slice(body).map_err(not_metadata)?;
    let version = Version::from_number(number).filter(|version| offered.contains(version));
    let Some(version) = version else {
        return Err(Error::unsupported(format!(
            "the server reported unsupported KV Connect metadata version {number}"
        )));
    };
    let answer: MetadataDocument = serde_json::from_slice(body).map_err(not_metadata)?;
    let database = Uuid::try_parse(&answer.database_id).map_err(|_| {
        Error::invalid(format!("the metadata's databaseId is no UUID: '{}'", answer.database_id))
    })?;
    let given = answer.endpoints.len();
    if given > METADATA_ENDPOINTS_MAX {
        return Err(Error::invalid(format!(
            "the metadata has too many endpoints (max {METADATA_ENDPOINTS_MAX}): {given} given"
        )));
    }
    for Endpoint { url, .. } in &answer.endpoints {
        if url.ends_with('/') {
            return Err(Error::invalid(format!("endpoint URL must not end with '/': '{url}'")));
        }
        if url.contains(['?', '#']) {
            return Err(Error::invalid(format!(
                "endpoint URL must have no query and no fragment: '{url}'"
            )));
        }
    }
    let expires_at_ms = from_rfc3339(&answer.expires_at).ok_or_else(|| {
        Error::invalid(format!(
            "the metadata's expiresAt is no RFC 3339 time with a zone: '{}'",
            answer.expires_at
        ))
    })?;
    let now_ms = answer.time.as_deref().and_then(from_rfc3339);
    let MetadataDocument { endpoints, token, extensions, .. } = answer;
    Ok(Metadata { version, database, endpoints, token, expires_at_ms, extensions, now_ms })
}

fn not_metadata(error: serde_json::Error) -> Error {
    Error::invalid(format!("not the metadata of a KV Connect endpoint: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        Metadata {
            version: Version::V3,
            database: Uuid::default(),
            endpoints: vec![Endpoint { url: "/v2".into(), consistency: Consistency::Strong }],
            token: "a-token".into(),
            expires_at_ms: 1_795_236_359_123,
            extensions: Vec::new(),
            now_ms: None,
        }
    }

    #[test]
    fn an_answer_has_exactly_the_protocol_s_fields() {
        assert_eq!(
            write_answer(&metadata()).unwrap(),
            "{\"version\":3,\"databaseId\":\"00000000-0000-0000-0000-000000000000\",\
             \"endpoints\":[{\"url\":\"/v2\",\"consistency\":\"strong\"}],\
             \"token\":\"a-token\",\"expiresAt\":\"2026-11-21T04:45:59.123Z\"}"
        );
    }

    #[test]
    fn metadata_round_trips() {
        let mut metadata = metadata();
        for extensions in [vec![], vec!["count".to_owned()]] {
            metadata.now_ms = (!extensions.is_empty()).then_some(1_795_236_000_007);
            metadata.extensions = extensions;
            let body = write_answer(&metadata).unwrap();
            assert_eq!(read_answer(body.as_bytes(), &Version::ALL).unwrap(), metadata);
        }
        let offered = write_request(&[Version::V1, Version::V3]);
        assert_eq!(read_request(offered.as_bytes()).unwrap(), [1, 3]);
        assert_eq!(read_request(b"").unwrap(), [1]);
    }

    #[test]
    fn a_database_id_is_read_in_every_form_of_a_uuid() {
        let good = write_answer(&metadata()).unwrap();
        let read = |id: &str| {
            let body = good.replacen("00000000-0000-0000-0000-000000000000", id, 1);
            read_answer(body.as_bytes(), &Version::ALL)
                .map(|metadata| metadata.database.to_string())
        };
        for form in [
            "0198c0de-1234-4abc-8def-0123456789ab",
            "0198C0DE-1234-4ABC-8DEF-0123456789AB",
            "0198c0de12344abc8def0123456789ab",
            "{0198c0de-1234-4abc-8def-0123456789ab}",
            "urn:uuid:0198c0de-1234-4abc-8def-0123456789ab",
        ] {
            assert_eq!(read(form).unwrap(), "0198c0de-1234-4abc-8def-0123456789ab", "{form}");
        }
        for bad in [
            "",
            "0198c0de-1234-4abc-8def-0123456789a",
            "0198c0de-1234-4abc-8def-0123456789abc",
            "0198c0de012344abc-8def-0123456789ab1",
            "0198c0dg-1234-4abc-8def-0123456789ab",
            "{0198c0de-1234-4abc-8def-0123456789ab",
            "é198c0de-1234-4abc-8def-0123456789ab",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_malformed_request_is_rejected() {
        for bad in ["{", "[]", "{}", "{\"supportedVersions\":3}", "{\"supportedVersions\":[-1]}"] {
            assert!(read_request(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_version_is_checked_first() {
        let error = read_answer(b"{\"version\":4}", &Version::ALL).unwrap_err();
        assert_eq!(error.kind(), openkv_core::model::Kind::Unsupported);
        assert!(error.message().contains("version 4"), "{error}");
        let body = write_answer(&metadata()).unwrap();
        assert!(read_answer(body.as_bytes(), &[Version::V1]).is_err());
    }

    #[test]
    fn a_malformed_answer_is_rejected_with_the_fault() {
        let good = write_answer(&metadata()).unwrap();
        for (from, to, words) in [
            ("\"/v2\"", "\"/v2/\"", "must not end with '/'"),
            ("\"/v2\"", "\"/v2?a\"", "no query"),
            ("strong", "weak", "unknown variant"),
            (".123Z", "", "zone"),
            ("00000000-0000", "x", "no UUID"),
            ("\"token\"", "\"toke\"", "missing field `token`"),
        ] {
            let bad = good.replacen(from, to, 1);
            let error = read_answer(bad.as_bytes(), &Version::ALL).unwrap_err();
            assert!(error.message().contains(words), "{error}");
        }
    }
}
