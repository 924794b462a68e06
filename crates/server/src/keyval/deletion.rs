//! Deletion of keys, with all entries below them unless `exact`.

use axum::Extension;
use axum::extract::Request;
use hyper::header::CONTENT_TYPE;

use super::answer::json;
use super::filter;
use super::json::Members;
use super::keys::{in_path, many_of_json};
use crate::api::admit::Admitted;
use crate::api::list::delete_all;
use crate::api::problem::{Answered, Problem};
use crate::clock::now_ms;
use crate::data::Client;
use openkv_core::model::Key;

async fn deleted(client: &Client, keys: &[Key], options: Option<&Members>) -> Answered {
    let exact = options.is_some_and(|options| options.is_true("exact"));
    let condition = options.and_then(|options| options.given("where"));
    let filter = filter::of_json(condition, now_ms())?;
    let count = delete_all(client, keys, !exact, filter.as_deref()).await?;
    Ok(json(&serde_json::json!({ "deletedCount": count }))?)
}

/// Deletes the entry of a key and all entries below it. KeyVal takes a body that it cannot read for none, and then deletes
/// everything; here that is an error.
pub(super) async fn delete(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let key = in_path(&client, &head.uri)?;
    let has_body = !hyper::body::Body::is_end_stream(&body);
    let options = match has_body {
        true => Some(Members::of_body(&client, body).await.map_err(|problem| {
            let given = head.headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
            let given = given.unwrap_or("no content type");
            Problem::bad_request(format!(
                "the options of the deletion ({given}): {}",
                problem.text()
            ))
        })?),
        false => None,
    };
    deleted(&client, &[key], options.as_ref()).await
}

/// Deletes the entries of keys and all entries below them.
pub(super) async fn delete_batch(client: Extension<Admitted>, request: Request) -> Answered {
    let members = Members::of_body(&client, request.into_body()).await?;
    let keys = many_of_json(members.get("keys"))?;
    deleted(&client, &keys, Some(&members)).await
}
