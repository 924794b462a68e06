//! The policy of an archive: where to, how often a snapshot, how far back. As requests name it, and as the
//! records of a server keep it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use openkv_core::model::{DURATION_MS_MAX, Error, Result, parse_duration};

/// A policy in a request or an option.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveRequest {
    /// A folder by its absolute path, a URL of an object store, or null: the database is not archived.
    pub to: Value,
    /// Time between two snapshots: ms, or a text with a unit.
    #[serde(default)]
    pub snapshot_every: Value,
    /// How long the archive reaches back.
    #[serde(default)]
    pub retention: Value,
}

/// A policy. What is left out has the default of `kv.archive`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArchivePolicy {
    /// `None`: the database is not archived, whatever the server does by default.
    pub(crate) to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) snapshot_every_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) retention_ms: Option<i64>,
}

impl ArchiveRequest {
    /// The policy. `within` is the name of the option before its fields, with a dot, or empty.
    ///
    /// # Errors
    /// `Invalid`, which names the field and what is expected. No error repeats a target that may have
    /// credentials.
    pub(crate) fn policy(&self, within: &str) -> Result<ArchivePolicy> {
        let to = match &self.to {
            Value::Null => None,
            Value::String(to) => Some(checked(within, to)?),
            other => {
                return Err(Error::invalid(format!(
                    "{within}to must be a folder by its absolute path, a URL (s3://bucket/path, gs://bucket/path, \
                     az://container/path), or null for no archive: {} given",
                    kind_of(other)
                )));
            }
        };
        let snapshot_every_ms = duration(&format!("{within}snapshotEvery"), &self.snapshot_every)?;
        let retention_ms = duration(&format!("{within}retention"), &self.retention)?;
        Ok(ArchivePolicy { to, snapshot_every_ms, retention_ms })
    }
}

fn checked(within: &str, to: &str) -> Result<String> {
    let is_url = to.contains("://");
    if !is_url && !Path::new(to).is_absolute() {
        return Err(Error::invalid(format!(
            "{within}to must be an absolute path or a URL, because a server has no working folder that its \
             clients know: '{to}' given"
        )));
    }
    crate::archive::check_target(to)?;
    Ok(to.to_owned())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A duration, as js/arguments/duration.ts has them.
fn duration(name: &str, given: &Value) -> Result<Option<i64>> {
    let ms = match given {
        Value::Null => return Ok(None),
        Value::Number(ms) => ms.as_i64(),
        Value::String(text) => parse_duration(text),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    match ms {
        Some(ms) if (1..=DURATION_MS_MAX).contains(&ms) => Ok(Some(ms)),
        _ => Err(Error::invalid(format!(
            "{name} must be a duration from 1 ms to {DURATION_MS_MAX} ms (36525d), as an integer of milliseconds or \
             as a text with a unit (ms, s, m, h, d), for example \"7d\": {given} given"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> std::result::Result<ArchivePolicy, String> {
        let request: ArchiveRequest =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        request.policy("").map_err(|error| error.message().to_owned())
    }

    #[test]
    fn policies_are_read() {
        let all = policy(r#"{"to":"s3://b/p","snapshotEvery":"6h","retention":60000}"#);
        let expected = ArchivePolicy {
            to: Some("s3://b/p".into()),
            snapshot_every_ms: Some(6 * 3_600_000),
            retention_ms: Some(60_000),
        };
        assert_eq!(all, Ok(expected.clone()));
        let kept = serde_json::to_string(&expected).unwrap();
        assert_eq!(serde_json::from_str::<ArchivePolicy>(&kept).unwrap(), expected);
        let off = ArchivePolicy { to: None, snapshot_every_ms: None, retention_ms: None };
        assert_eq!(policy(r#"{"to":null}"#), Ok(off));
    }

    #[test]
    fn invalid_policies_are_refused_by_name_and_show_no_credential() {
        for (json, words) in [
            ("{}", "missing field `to`"),
            (r#"{"to":"x","where":"y"}"#, "unknown field `where`"),
            (r#"{"to":7}"#, "to must be a folder by its absolute path"),
            (r#"{"to":"backup"}"#, "absolute path or a URL"),
            (r#"{"to":""}"#, "absolute path or a URL"),
            (r#"{"to":"ftp://host/x"}"#, "is no place for an archive"),
            (r#"{"to":"s3://me:secret-1@bucket/x"}"#, "credentials in the environment"),
            (r#"{"to":"s3://bucket/x?secret-1"}"#, "credentials in the environment"),
            (r#"{"to":"s3://b/p","snapshotEvery":"soon"}"#, "snapshotEvery must be a duration"),
            (r#"{"to":"s3://b/p","retention":0}"#, "retention must be a duration"),
            (r#"{"to":"s3://b/p","retention":"36526d"}"#, "retention must be a duration"),
            (r#"{"to":"s3://b/p","retention":"99999999999999999d"}"#, "retention must be"),
            (r#"{"to":"s3://b/p","retention":[1]}"#, "retention must be a duration"),
        ] {
            let message = policy(json).unwrap_err();
            assert!(message.contains(words), "{json}: {message}");
            assert!(!message.contains("secret-1"), "{json}: {message}");
        }
    }
}
