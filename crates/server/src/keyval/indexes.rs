//! Full-text indexes.

use axum::Extension;
use axum::extract::Request;
use serde::Serialize;

use super::answer::ok;
use super::json::Members;
use super::keys::{Query, of_json};
use crate::answer::whole;
use crate::api::admit::Admitted;
use crate::api::document_writer::{DocumentWriter, KeyBytes};
use crate::api::envelope::as_document;
use crate::api::indexes::{all, made, name_of, tokenizer_of};
use crate::api::media::Form;
use crate::api::problem::{Answered, Problem};
use crate::data::store_of;
use crate::pending::Pending;
use openkv_core::model::{IndexChoice, IndexRequest, IndexSpec, Tokenizer};

/// Creates an index. Another one of its prefix is replaced.
pub(super) async fn create(client: Extension<Admitted>, request: Request) -> Answered {
    let members = Members::of_body(&client, request.into_body()).await?;
    let missing = || Problem::bad_request("Key must be an array, received undefined");
    let prefix = of_json(members.get("prefix").ok_or_else(missing)?)?;
    // Documented as `options`; the client sends them beside the prefix.
    let nested = members.inner("options");
    let options = if members.given("options").is_some() { &nested } else { &members };
    let refused = || Problem::bad_request("fields must be a non-empty array");
    let fields = options.given("fields").ok_or_else(refused)?;
    let fields: Vec<String> = serde_json::from_str(fields.get()).map_err(|_| refused())?;
    if fields.is_empty() {
        return Err(Problem::bad_request("At least one field must be specified"));
    }
    let tokenize = options.text("tokenize");
    let tokenizer = tokenize.as_deref().map_or(Ok(Tokenizer::Unicode61), tokenizer_of)?;
    let name = name_of(&prefix)?;
    let spec = IndexSpec { name, prefix, fields, tokenizer, prefix_lengths: Vec::new() };
    made(&client, IndexRequest { spec, is_default: tokenize.is_none(), replace: true }).await?;
    Ok(ok()?)
}

/// An index.
#[derive(Serialize)]
struct Index<'i> {
    prefix: KeyBytes<'i>,
    fields: &'i [String],
    tokenize: &'static str,
}

/// Lists the indexes.
pub(super) async fn list(client: Extension<Admitted>) -> Answered {
    let found = all(&client).await?;
    let indexes: Vec<_> = found
        .iter()
        .map(|info| Index {
            prefix: KeyBytes(info.spec.prefix.as_bytes()),
            fields: &info.spec.fields,
            tokenize: info.spec.tokenizer.name(),
        })
        .collect();
    let (body, lossy) = DocumentWriter::of(Form::Json, 0, &indexes)?.finish();
    Ok(as_document(Form::Json, whole(body), lossy))
}

/// Drops the index of a prefix.
pub(super) async fn remove(client: Extension<Admitted>, request: Request) -> Answered {
    let missing = || Problem::bad_request("Missing 'prefix' query parameter");
    let prefix = Query::of(&client, request.uri()).key("prefix")?.ok_or_else(missing)?;
    let store = store_of(&client.database).await?;
    Pending::of(|reply| store.drop_index(IndexChoice::Prefix(prefix), reply)).await?;
    Ok(ok()?)
}
