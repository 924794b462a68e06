//! Full-text search.

use axum::Extension;
use axum::extract::Request;

use super::filter;
use super::json::Members;
use super::keys::{Query, of_json};
use super::number::{limit_of_member, limit_of_text};
use crate::api::admit::Admitted;
use crate::api::media::Form;
use crate::api::problem::{Answered, Problem};
use crate::api::search::{SearchRequest, answer};
use crate::clock::now_ms;
use crate::data::Client;
use openkv_core::interchange::key_json;
use openkv_core::model::{Key, Search};
use openkv_core::search::words;

/// The query of a text: words, all of which must be found, or one of those around OR. As in KeyVal, the operators apply
/// from left to right.
pub(super) fn query_of(text: &str) -> Result<String, Problem> {
    // The bounds of all words, before the query grows by each.
    words(text)?;
    let (mut query, mut is_or, mut ends_with_or) = (String::new(), false, false);
    let nothing = words("")?;
    for token in text.split_whitespace() {
        if token.eq_ignore_ascii_case("and") || token.eq_ignore_ascii_case("or") {
            is_or = token.eq_ignore_ascii_case("or");
            continue;
        }
        let term = words(token)?;
        if term == nothing {
            continue;
        }
        query = match (query.is_empty(), is_or, ends_with_or) {
            (true, _, _) => term,
            (false, true, _) => format!("{query} OR {term}"),
            (false, false, true) => format!("({query}) AND {term}"),
            (false, false, false) => format!("{query} AND {term}"),
        };
        ends_with_or = is_or && query.contains(" OR ");
        is_or = false;
    }
    Ok(if query.is_empty() { nothing } else { query })
}

async fn found(
    client: &Client,
    prefix: Key,
    text: &str,
    limit: usize,
    filter: Option<Vec<u8>>,
) -> Answered {
    let mut name = String::new();
    key_json::push(&mut name, prefix.as_bytes())?;
    let search = Search { prefix, query: query_of(text)?, after: None, highlight: None };
    let request = SearchRequest { search, limit, offset: 0, filter, bare: true };
    answer(client, request, Form::Json).await.map_err(|problem| {
        match problem.text().starts_with("no index covers") {
            true => Problem::bad_request(format!("No index found for prefix: {name}")),
            false => problem,
        }
    })
}

fn missing(name: &str) -> Problem {
    Problem::bad_request(format!("{name} is required"))
}

/// Searches for words.
pub(super) async fn by_query(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let prefix = query.key("prefix")?.ok_or_else(|| missing("prefix"))?;
    let text = query.get("query").ok_or_else(|| missing("query"))?;
    found(&client, prefix, text, limit_of_text(query.get("limit"))?, None).await
}

/// Searches for words, with conditions.
pub(super) async fn search(client: Extension<Admitted>, request: Request) -> Answered {
    let members = Members::of_body(&client, request.into_body()).await?;
    let prefix = of_json(members.given("prefix").ok_or_else(|| missing("prefix"))?)?;
    let text = members.text("query").filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| missing("query"))?;
    // Documented as `options`; the client sends them beside the query.
    let options = members.inner("options");
    let limited = if options.given("limit").is_some() { &options } else { &members };
    let condition = options.given("where").or(members.given("where"));
    let filter = filter::of_json(condition, now_ms())?;
    found(&client, prefix, &text, limit_of_member(limited)?, filter).await
}
