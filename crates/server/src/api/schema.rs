//! The entry of documents, and schemas of the OpenAPI document that no Rust type has: keys, typed
//! values, bounded numbers.
//!
//! The types for these schemas have no values: handlers and bodies only refer to them by name.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::document_writer::{ExpiryMs, KeyBytes, StampDigits, Stored, ValueError};
use openkv_core::model::{
    DEAD_RETENTION_MS_MAX, DURATION_MS_MAX, HISTORY_VERSIONS_MAX, HTTP_LIST_ENTRIES_DEFAULT,
    HTTP_LIST_ENTRIES_MAX, HTTP_WAIT_MS_MAX, LOCK_DURATION_MS_MAX, LOCK_DURATION_MS_MIN, LOCK_MS,
    MESSAGE_GROUP_BYTES_MAX, PRIORITY_MAX, QUEUE_NAME_BYTES_MAX, SCHEDULE_INTERVAL_MS_MAX,
    SCHEDULE_INTERVAL_MS_MIN, TIME_MS_MAX, Versionstamp,
};

type Named = (String, RefOr<Schema>);

/// Types with the names of their schemas, and the types to which the schemas refer.
macro_rules! schemas {
    ($($(#[$doc:meta])* $type:ident as $name:literal uses [$($used:ident),*] = $json:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) enum $type {}

            impl PartialSchema for $type {
                fn schema() -> RefOr<Schema> {
                    read($json)
                }
            }

            impl ToSchema for $type {
                fn name() -> Cow<'static, str> {
                    $name.into()
                }

                #[allow(unused_variables, reason = "many schemas refer to no other")]
                fn schemas(found: &mut Vec<Named>) {
                    $(
                        found.push(($used::name().into_owned(), $used::schema()));
                        $used::schemas(found);
                    )*
                }
            }
        )*

        #[cfg(test)]
        fn all() -> Vec<(&'static str, Value, RefOr<Schema>)> {
            vec![$(($name, $json, $type::schema())),*]
        }
    };
}

schemas! {
    /// A part of a key in `application/json`.
    KeyPart as "KeyPart" uses [TypedKeyPart] = json!({
        "description": "Strings, finite numbers and booleans are themselves; any part can be typed.",
        "anyOf": [
            { "type": "string" },
            { "type": "number" },
            { "type": "boolean" },
            reference("TypedKeyPart"),
        ],
    });

    /// A part of a key in `application/vnd.openkv+json`.
    TypedKeyPart as "TypedKeyPart" uses [] = json!({
        "oneOf": [
            typed("string", json!({ "type": "string" })),
            typed("number", json!({ "anyOf": [
                { "type": "number" },
                { "type": "string", "enum": ["NaN", "Infinity", "-Infinity", "-0"] },
            ] })),
            typed("bigint", json!({ "type": "string", "pattern": "^-?[0-9]+$" })),
            typed("boolean", json!({ "type": "boolean" })),
            typed("Uint8Array", json!({ "type": "string", "description": "base64url" })),
        ],
    });

    Key as "Key" uses [KeyPart] =
        json!({ "type": "array", "items": reference("KeyPart"), "minItems": 1 });

    TypedKey as "TypedKey" uses [TypedKeyPart] =
        json!({ "type": "array", "items": reference("TypedKeyPart"), "minItems": 1 });

    /// A key that bounds a range.
    Prefix as "Prefix" uses [KeyPart] = json!({ "type": "array", "items": reference("KeyPart") });

    /// A key that a commit completes.
    NewKey as "NewKey" uses [KeyPart] = json!({
        "type": "array",
        "items": { "anyOf": [
            reference("KeyPart"),
            {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": { "type": "string", "enum": ["commitVersionstamp", "uuidv7"] },
                    "value": { "type": "string" },
                },
                "additionalProperties": false,
            },
        ] },
        "minItems": 1,
    });

    /// A value in `application/vnd.openkv+json`.
    TypedValue as "TypedValue" uses [] = json!({
        "type": "object",
        "description": "docs/format.md, section 5",
        "required": ["type"],
        "properties": { "type": { "type": "string" } },
    });

    /// The value of a version in `application/vnd.openkv+json`; `null` where the entry was removed.
    TypedVersionValue as "TypedValue" uses [] = json!({
        "type": ["object", "null"],
        "description": "docs/format.md, section 5",
        "required": ["type"],
        "properties": { "type": { "type": "string" } },
    });

    /// What an [`EntryBody`] is in `application/vnd.openkv+json`.
    TypedEntryBody as "TypedEntry" uses [TypedKey, TypedValue, ValueError, Stamp] = json!({
        "description": "An entry in `application/vnd.openkv+json`.",
        "type": "object",
        "required": ["key"],
        "properties": {
            "key": reference("TypedKey"),
            "value": or_null(described("TypedValue", "As that of `Entry`; `null` if there is no entry.")),
            "valueError": or_null(described("ValueError", "Why the value cannot be read.")),
            "versionstamp": or_null(reference("Versionstamp")),
            "expireAt": {
                "type": ["integer", "null"],
                "format": "int64",
                "description": "Ms since the epoch.",
            },
        },
    });
    PageOrEntry as "PageOrEntry" uses [] = json!({
        "description": "What `GET /keys` answers.",
        "oneOf": [reference("Page"), reference("Entry")],
    });
    TypedPageOrEntry as "TypedPageOrEntry" uses [] = json!({
        "description": "The same in `application/vnd.openkv+json`.",
        "oneOf": [reference("TypedPage"), reference("TypedEntry")],
    });
    Stamp as "Versionstamp" uses [] = json!({ "type": "string", "pattern": "^[0-9a-f]{20}$" });

    /// The conditions of docs/reading.md#filters.
    Where as "Filter" uses [] =
        json!({ "type": "object", "description": "Only entries whose values match." });

    /// The order of a list.
    OrderBy as "OrderBy" uses [] = json!({
        "description": "A path, or paths with their orders, the most significant first.",
        "anyOf": [
            { "type": "string" },
            { "type": "object", "additionalProperties": { "type": "string", "enum": ["asc", "desc"] } },
        ],
    });

    /// The bytes of `application/cbor` or of a `Uint8Array`.
    Binary as "Binary" uses [] = json!({ "type": "string", "format": "binary" });

    QueueName as "QueueName" uses [] =
        json!({ "type": "string", "maxLength": QUEUE_NAME_BYTES_MAX });

    QueueState as "QueueState" uses [] =
        json!({ "type": "string", "enum": ["pending", "delayed", "processing"] });

    SearchMode as "SearchMode" uses [] =
        json!({ "type": "string", "enum": ["words", "query"], "default": "words" });

    /// The number of a message, or the lock of a delivery: beyond the integers of JSON.
    Number as "Number" uses [] = json!({ "type": "string", "pattern": "^-?[0-9]+$" });

    PageLimit as "PageLimit" uses [] =
        whole(1, HTTP_LIST_ENTRIES_MAX, Some(HTTP_LIST_ENTRIES_DEFAULT));

    VersionsLimit as "VersionsLimit" uses [] =
        whole(1, HISTORY_VERSIONS_MAX, Some(HISTORY_VERSIONS_MAX));

    Depth as "Depth" uses [] = json!({ "type": "integer", "minimum": 1 });

    Lifetime as "Lifetime" uses [] =
        duration(whole(1, TIME_MS_MAX, None::<u8>), "^([1-9][0-9]{0,3}(ms|s|m|h|d)){1,2}$");

    /// Ms; a longer delay than the longest is that one.
    Delay as "Delay" uses [] = duration(
        json!({ "type": "integer", "minimum": 0 }),
        "^([1-9][0-9]{0,3}(ms|s|m|h|d)){1,2}$",
    );

    Wait as "Wait" uses [] = duration(whole(0, HTTP_WAIT_MS_MAX, Some(0)), "^[1-9][0-9]?s$|^1m$");

    LockDuration as "LockDuration" uses [] = duration(
        whole(LOCK_DURATION_MS_MIN, LOCK_DURATION_MS_MAX, Some(LOCK_MS)),
        "^[1-9][0-9]{0,2}[sm]$",
    );

    /// The longest time of a handler.
    HandlerTime as "HandlerTime" uses [] =
        duration(whole(1, LOCK_DURATION_MS_MAX, None::<u8>), "^[1-9][0-9]{0,2}[sm]$");

    /// How long something is kept.
    Retention as "Retention" uses [] =
        duration(whole(0, DEAD_RETENTION_MS_MAX, None::<u8>), "^[1-9][0-9]{0,3}(ms|s|m|h|d)$");

    KeptTime as "KeptTime" uses [] =
        duration(whole(1, DEAD_RETENTION_MS_MAX, None::<u8>), "^[1-9][0-9]{0,3}(ms|s|m|h|d)$");

    Interval as "Interval" uses [] = duration(
        whole(SCHEDULE_INTERVAL_MS_MIN, SCHEDULE_INTERVAL_MS_MAX, None::<u8>),
        "^[1-9][0-9]{0,2}[smh]$",
    );

    /// What is added to the multiples of an interval.
    Offset as "Offset" uses [] = duration(
        json!({ "type": "integer", "minimum": 0 }),
        "^[1-9][0-9]{0,2}(ms|s|m|h)$",
    );

    /// A waiting time before a retry.
    BackoffTime as "BackoffTime" uses [] = duration(
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        "^[1-9][0-9]{0,2}(ms|s|m)$",
    );

    DurationOfRate as "DurationOfRate" uses [] =
        duration(whole(1, DURATION_MS_MAX, None::<u8>), "^[1-9][0-9]{0,3}(ms|s|m|h|d)$");

    GroupName as "GroupName" uses [] = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MESSAGE_GROUP_BYTES_MAX,
        "pattern": "^[ -~]+$",
    });

    Priority as "Priority" uses [] = whole(0, PRIORITY_MAX, Some(0));
}

/// An entry in `application/json`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Entry)]
pub(crate) struct EntryBody<'e> {
    #[schema(value_type = Key)]
    key: KeyBytes<'e>,
    /// Absent where only keys are requested, where only the expiry has changed, and where it cannot be
    /// read.
    #[schema(value_type = serde_json::Value, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Option<Stored<'e>>>,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
    /// `null` if there is no entry.
    #[schema(value_type = Option<Stamp>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    versionstamp: Option<Option<StampDigits>>,
    /// RFC 3339; absent for an entry that does not expire, `null` if it no longer does.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expire_at: Option<Option<ExpiryMs>>,
}

impl<'e> EntryBody<'e> {
    /// An entry; without a value the one of a list of keys.
    pub(crate) fn new(
        key: &'e [u8],
        stamp: Versionstamp,
        value: Option<Stored<'e>>,
        expire_at_ms: Option<i64>,
    ) -> Self {
        Self {
            key: KeyBytes(key),
            value: value.map(Some),
            value_error: None,
            versionstamp: Some(Some(StampDigits(stamp))),
            expire_at: expire_at_ms.map(|ms| Some(ExpiryMs(ms))),
        }
    }

    /// There is no entry of a key.
    pub(crate) fn absent(key: &'e [u8]) -> Self {
        let (value, versionstamp) = (Some(None), Some(None));
        Self { key: KeyBytes(key), value, value_error: None, versionstamp, expire_at: None }
    }

    /// A commit has changed the expiry alone.
    pub(super) fn expiry_set(key: &'e [u8], expire_at_ms: Option<i64>) -> Self {
        let expire_at = Some(expire_at_ms.map(ExpiryMs));
        Self { key: KeyBytes(key), value: None, value_error: None, versionstamp: None, expire_at }
    }
}

/// Ms, or a text with units.
fn duration(ms: Value, pattern: &str) -> Value {
    json!({
        "description": "Ms, or a text with units (ms, s, m, h, d) like `5m`.",
        "oneOf": [ms, { "type": "string", "pattern": pattern }],
    })
}

fn whole(
    minimum: impl Into<Value>,
    maximum: impl Into<Value>,
    usual: Option<impl Into<Value>>,
) -> Value {
    let mut schema = json!({
        "type": "integer",
        "minimum": minimum.into(),
        "maximum": maximum.into(),
    });
    if let (Some(usual), Some(members)) = (usual, schema.as_object_mut()) {
        members.insert("default".into(), usual.into());
    }
    schema
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn described(name: &str, description: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}"), "description": description })
}

fn or_null(schema: Value) -> Value {
    json!({ "oneOf": [schema, { "type": "null" }] })
}

fn typed(name: &str, value: Value) -> Value {
    json!({
        "type": "object",
        "required": ["type", "value"],
        "properties": {
            "type": { "type": "string", "enum": [name] },
            "value": value,
        },
    })
}

fn read(schema: Value) -> RefOr<Schema> {
    // A test reads all of them.
    serde_json::from_value(schema).unwrap_or_else(|_| Schema::default().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_in_the_document_as_it_is_written() {
        for (name, written, found) in all() {
            assert_eq!(serde_json::to_value(found).unwrap(), written, "{name}");
        }
    }
}
