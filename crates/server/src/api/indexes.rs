//! Full-text indexes: create, list, drop.

use axum::Extension;
use axum::extract::Request;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{Raw, json, json_body, key_in};
use super::problem::{Answered, Problem, shown};
use super::target::Query;
use crate::data::{Client, has_room, store_of};
use crate::pending::{Pending, Wanted};
use openkv_core::codec::key;
use openkv_core::interchange::key_json;
use openkv_core::model::{
    Error, IndexChoice, IndexInfo, IndexRequest, IndexSpec, Key, KeyPart, Limits, Result, Tokenizer,
};

/// The description of an index.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewIndex)]
pub(super) struct IndexBody {
    /// A key: the index covers the keys that extend it.
    #[schema(value_type = Option<Vec<serde_json::Value>>)]
    prefix: Raw,
    /// Paths into the values, steps separated by dots.
    fields: Vec<String>,
    /// `auto`, by default; `unicode61`, `porter`, `ascii` or `trigram`.
    tokenize: Option<String>,
    /// Lengths in characters of the beginnings of words that are indexed too.
    #[serde(default)]
    prefix_lengths: Vec<u8>,
    /// By default a literal of the prefix.
    name: Option<String>,
    /// Whether it replaces another index of its prefix or name, by default true.
    replace: Option<bool>,
}

/// An index.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Index)]
pub(super) struct IndexAnswer {
    name: String,
    #[schema(value_type = Vec<serde_json::Value>)]
    prefix: Box<RawValue>,
    fields: Vec<String>,
    tokenize: String,
    prefix_lengths: Vec<u8>,
    /// `building` while entries older than the index are being added, then `ready`.
    state: &'static str,
    /// The number of such entries that were added.
    indexed: u64,
    /// Entries with text in any field.
    documents: u64,
}

impl IndexAnswer {
    fn of(info: IndexInfo) -> Result<Self> {
        let IndexInfo { spec, building, scanned, documents } = info;
        let mut prefix = String::new();
        key_json::push(&mut prefix, spec.prefix.as_bytes())?;
        let prefix = RawValue::from_string(prefix);
        Ok(Self {
            name: spec.name,
            prefix: prefix.map_err(|error| Error::internal(error.to_string()))?,
            fields: spec.fields,
            tokenize: spec.tokenizer.name().to_owned(),
            prefix_lengths: spec.prefix_lengths,
            state: if building { "building" } else { "ready" },
            indexed: scanned,
            documents,
        })
    }
}

/// The indexes of the database.
#[derive(Serialize, ToSchema)]
#[schema(as = Indexes)]
pub(super) struct IndexesAnswer {
    /// By name.
    indexes: Vec<IndexAnswer>,
}

/// The outcome of a drop.
#[derive(Serialize, ToSchema)]
pub(super) struct Dropped {
    /// Whether the index existed.
    ok: bool,
}

/// Creates an index. It is built in the background.
#[utoipa::path(post, path = "/indexes", tag = "search", operation_id = "createIndex",
    request_body = IndexBody,
    responses((status = 200, description = "The index; the same one, if it existed.", body = IndexAnswer)))]
pub(super) async fn create(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    Query::of(&head.uri, &[])?;
    let (_, asked) = json_body::<IndexBody>(&client, &head, body).await?;
    let prefix = asked.prefix.as_ref().map(|raw| key_in("prefix", raw)).transpose()?;
    let prefix = checked(prefix.unwrap_or_else(|| Key::from_encoded(Vec::new())))?;
    let tokenizer = asked.tokenize.as_deref().map_or(Ok(Tokenizer::Auto), tokenizer_of)?;
    let name = asked.name.map_or_else(|| name_of(&prefix), Ok)?;
    let (fields, prefix_lengths) = (asked.fields, asked.prefix_lengths);
    let spec = IndexSpec { name, prefix, fields, tokenizer, prefix_lengths };
    let (is_default, replace) = (asked.tokenize.is_none(), asked.replace.unwrap_or(true));
    json(&IndexAnswer::of(made(&client, IndexRequest { spec, is_default, replace }).await?)?)
}

/// The tokenizer of a name.
pub(crate) fn tokenizer_of(given: &str) -> Result<Tokenizer, Problem> {
    let found = Tokenizer::ALL.iter().copied().find(|known| known.name() == given);
    found.ok_or_else(|| {
        let known: Vec<_> = Tokenizer::ALL.iter().map(|known| known.name()).collect();
        let (known, given) = (known.join(", "), shown(given));
        Problem::bad_request(format!("tokenize must be one of {known}: received {given}"))
    })
}

/// Creates an index.
pub(crate) async fn made(client: &Client, request: IndexRequest) -> Result<IndexInfo, Problem> {
    request.spec.check()?;
    has_room(&client.database).await?;
    let store = store_of(&client.database).await?;
    Ok(Pending::of(|reply| store.create_index(request, reply)).await?)
}

/// The default name: a unique text of the prefix, as `kv.createIndex` makes it.
pub(crate) fn name_of(prefix: &Key) -> Result<String> {
    let parts = key::decode(prefix.as_bytes()).map_err(|why| Error::invalid(why.to_string()))?;
    let texts = parts.into_iter().map(|part| match part {
        KeyPart::String(text) => Ok(serde_json::Value::from(text).to_string()),
        KeyPart::BigInt(n) => Ok(format!("{n}n")),
        KeyPart::Bytes(bytes) => {
            Ok(bytes.iter().fold("0x".to_owned(), |hex, byte| format!("{hex}{byte:02x}")))
        }
        KeyPart::Bool(b) => Ok(b.to_string()),
        KeyPart::Number(n) if n == 0.0 && n.is_sign_negative() => Ok("-0".to_owned()),
        KeyPart::Number(n) if n.is_nan() => Ok("NaN".to_owned()),
        KeyPart::Number(n) if n.is_infinite() => {
            Ok(if n > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
        }
        number @ KeyPart::Number(_) => {
            let mut text = String::new();
            key_json::push(&mut text, key::encode(&[number])?.as_bytes())?;
            Ok(text.trim_matches(['[', ']']).to_owned())
        }
    });
    Ok(format!("[{}]", texts.collect::<Result<Vec<_>>>()?.join(",")))
}

fn checked(prefix: Key) -> Result<Key, Problem> {
    let (max, given) = (Limits::wide().key_bytes_max, prefix.len());
    match given <= max {
        true => Ok(prefix),
        false => {
            let text = format!("prefix too large (max {max} bytes): {given} bytes given");
            Err(Problem::too_large(text))
        }
    }
}

/// Lists the indexes, with the number of their documents.
#[utoipa::path(get, path = "/indexes", tag = "search", operation_id = "listIndexes",
    responses((status = 200, description = "All indexes.", body = IndexesAnswer)))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    Query::of(request.uri(), &[])?;
    let found = all(&client).await?;
    let indexes = found.into_iter().map(IndexAnswer::of).collect::<Result<_>>()?;
    json(&IndexesAnswer { indexes })
}

/// The indexes of the database.
pub(crate) async fn all(client: &Client) -> Result<Vec<IndexInfo>, Problem> {
    let store = store_of(&client.database).await?;
    let wanted = Wanted::new();
    let patience = wanted.patience(&store, "kv.listIndexes");
    Ok(Pending::of(|reply| store.indexes(Some(patience), reply)).await?)
}

/// Drops an index, by its prefix or its name.
#[utoipa::path(delete, path = "/indexes", tag = "search", operation_id = "dropIndex",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("name" = Option<String>, Query, description = "The name of the index."),
    ),
    responses((status = 200, description = "Whether it existed.", body = Dropped)))]
pub(super) async fn remove(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(request.uri(), &["prefix", "name"])?;
    let choice = match (query.key("prefix")?, query.get("name")) {
        (Some(prefix), None) => IndexChoice::Prefix(prefix),
        (None, Some(name)) => IndexChoice::Name(name.to_owned()),
        _ => {
            return Err(Problem::bad_request(
                "An index is named by prefix or by name: give one of them.",
            ));
        }
    };
    let store = store_of(&client.database).await?;
    json(&Dropped { ok: Pending::of(|reply| store.drop_index(choice, reply)).await? })
}
