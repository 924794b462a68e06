//! The admin API: databases, their tokens, quotas and archives, in JSON.
//!
//! | request | does |
//! |---|---|
//! | `GET /v1/admin/databases?prefix=&after=&limit=` | lists them, or a page of them |
//! | `GET /v1/admin/catalog` | their names and UUIDs, and the UUIDs of dropped ones: for read servers |
//! | `POST /v1/admin/databases` | creates one: `{ name, quotas? }` |
//! | `GET /v1/admin/databases/NAME` | shows it |
//! | `PUT /v1/admin/databases/NAME/quotas` | sets its quotas |
//! | `GET /v1/admin/databases/NAME/archive` | shows its archive |
//! | `PUT /v1/admin/databases/NAME/archive` | sets its policy: `{ to, snapshotEvery?, retention? }` |
//! | `DELETE /v1/admin/databases/NAME/archive` | removes the policy: the default of the server holds |
//! | `DELETE /v1/admin/databases/NAME` | drops it |
//! | `POST /v1/admin/databases/NAME/tokens` | creates a token: `{ rights }` |
//! | `DELETE /v1/admin/databases/NAME/tokens/ID` | revokes it |
//! | `GET /v1/admin/tokens` | lists the tokens of the server, which may read its metrics |
//! | `POST /v1/admin/tokens` | creates one: `{ rights: "metrics" }` |
//! | `DELETE /v1/admin/tokens/ID` | revokes it |
//!
//! The server's admin token allows all of these. A database's own admin token allows to show that
//! database and to manage its tokens.

use std::sync::Arc;

use hyper::header::LINK;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use url::form_urlencoded;

use super::Serving;
use super::answer::{Answer, Body, Refusal, answer, whole};
use super::archive_policy::{ArchivePolicy, ArchiveRequest};
use super::archives;
use super::auth::{AccessToken, Rights, TokenHash, bearer};
use super::catalog::{Requester, no_database};
use super::data::bytes_of;
use super::database::Database;
use super::followers::FollowerView;
use super::options::Quotas;
use super::request::{Object, RequestBody, only, read, unencoded, unreadable};
use super::slots::mark_authenticated;
use openkv_core::model::ADMIN_REQUEST_BYTES_MAX;
use openkv_wire::connect::time::to_rfc3339;
use openkv_wire::connect::versions::JSON_TYPE;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DatabaseView {
    name: String,
    database_id: String,
    path: String,
    created_at: String,
    /// None for a database that is not in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    watches: u32,
    /// The replicas that follow it here.
    replicas: Vec<FollowerView>,
    quotas: Quotas,
    tokens: Vec<TokenView>,
    /// Present only in the answer that creates the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenView {
    id: String,
    rights: Rights,
    created_at: String,
    /// Present only in the answer that creates the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// The document for read servers.
#[derive(Serialize)]
struct CatalogView {
    databases: Vec<Listed>,
    /// The UUIDs of databases that are no more.
    dropped: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    database_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewDatabase {
    name: String,
    #[serde(default)]
    quotas: Quotas,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    rights: Rights,
}

fn token_view(of: &AccessToken, token: Option<String>) -> TokenView {
    let AccessToken { id, rights, created_ms, .. } = of;
    TokenView { id: id.clone(), rights: *rights, created_at: to_rfc3339(*created_ms), token }
}

fn view(database: &Database, token: Option<String>) -> DatabaseView {
    DatabaseView {
        name: database.name.clone(),
        database_id: database.id.to_string(),
        path: format!("/{}", database.name),
        created_at: to_rfc3339(database.created_ms),
        // This thread may wait.
        bytes: Handle::current().block_on(bytes_of(database)),
        watches: database.watch_count(),
        replicas: database.followers.views(),
        quotas: database.quotas(),
        tokens: database.tokens().iter().map(|token| token_view(token, None)).collect(),
        token,
    }
}

fn json(status: StatusCode, body: &impl Serialize) -> Result<Answer, Refusal> {
    let body = serde_json::to_vec(body)
        .map_err(|error| openkv_core::model::Error::internal(error.to_string()))?;
    Ok(answer(status, JSON_TYPE, whole(body)))
}

fn nothing() -> Answer {
    let mut answer = answer(StatusCode::NO_CONTENT, JSON_TYPE, Body::Whole(None));
    answer.headers_mut().remove(hyper::header::CONTENT_TYPE);
    answer
}

async fn parsed<T: for<'a> Deserialize<'a>>(head: &Parts, body: RequestBody) -> Result<T, Refusal> {
    unencoded(head)?;
    let body = read(body, ADMIN_REQUEST_BYTES_MAX).await?;
    let parsed = serde_json::from_slice(&body).map(|Object(parsed)| parsed);
    parsed.map_err(|error| Refusal::bad_request(unreadable(&error)))
}

/// Authorizes a request by the server's admin token, or by that of the database `name`.
pub(super) async fn authorize(
    serving: &Serving,
    head: &Parts,
    name: Option<&str>,
) -> Result<Requester, Refusal> {
    if serving.catalog.is_open() {
        return Ok(Requester::Server);
    }
    let hash = TokenHash::of(bearer(&head.headers)?);
    if serving.admin_token.as_ref().is_some_and(|admin| admin.is(&hash)) {
        mark_authenticated(head);
        return Ok(Requester::Server);
    }
    let name = name.ok_or_else(Refusal::wrong_token)?;
    let find = || {
        let own = serving.catalog.by_name(name)?;
        let (rights, _) = own.token(&hash)?;
        Some((own, rights))
    };
    match serving.catalog.find(find).await? {
        Some((own, Rights::Admin)) => {
            mark_authenticated(head);
            own.take_operation().await?;
            Ok(Requester::Own(own.id, hash))
        }
        Some(_) => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "The token does not have the rights for this: it is not an admin's.",
        )),
        None => Err(Refusal::wrong_token()),
    }
}

/// Authorizes a request for the metrics of the server: by the server's admin token, or by a token of it.
pub(super) async fn authorize_metrics(serving: &Serving, head: &Parts) -> Result<(), Refusal> {
    if serving.catalog.is_open() {
        return Ok(());
    }
    let hash = TokenHash::of(bearer(&head.headers)?);
    let is_admin = serving.admin_token.as_ref().is_some_and(|admin| admin.is(&hash));
    let find = || (is_admin || serving.catalog.is_token(&hash)).then_some(());
    serving.catalog.find(find).await?.ok_or_else(Refusal::wrong_token)?;
    mark_authenticated(head);
    Ok(())
}

/// Runs work that waits for the disk on a blocking thread.
async fn blocking<T: Send + 'static>(
    serving: &Arc<Serving>,
    work: impl FnOnce(&Serving) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let serving = serving.clone();
    let done = tokio::task::spawn_blocking(move || work(&serving)).await;
    done.map_err(|_| openkv_core::model::Error::internal("the admin API ended by a panic"))?
}

async fn named(serving: &Serving, name: &str) -> Result<Arc<Database>, Refusal> {
    let found = serving.catalog.find(|| serving.catalog.by_name(name)).await?;
    found.ok_or_else(|| no_database(name))
}

/// The databases that a list asks for.
struct DatabasesPage {
    /// What their names begin with.
    prefix: String,
    /// The name that they are behind.
    after: String,
    /// How many at most; `None`: all.
    limit: Option<usize>,
}

impl DatabasesPage {
    fn of(head: &Parts) -> Result<Self, Refusal> {
        let mut page = Self { prefix: String::new(), after: String::new(), limit: None };
        let query = head.uri.query().unwrap_or_default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "prefix" => page.prefix = value.into_owned(),
                "after" => page.after = value.into_owned(),
                "limit" => match value.parse() {
                    Ok(limit) if limit > 0 => page.limit = Some(limit),
                    _ => {
                        let text =
                            format!("limit must be a whole number from 1 on: received '{value}'.");
                        return Err(Refusal::bad_request(text));
                    }
                },
                _ => {
                    let text =
                        format!("Unknown parameter '{name}': known are prefix, after and limit.");
                    return Err(Refusal::bad_request(text));
                }
            }
        }
        Ok(page)
    }

    /// The header `Link` of the page behind `last`.
    fn link(&self, last: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("after", last);
        if let Some(limit) = self.limit {
            query.append_pair("limit", &limit.to_string());
        }
        if !self.prefix.is_empty() {
            query.append_pair("prefix", &self.prefix);
        }
        format!("</v1/admin/databases?{}>; rel=\"next\"", query.finish())
    }
}

/// Answers the list of the databases, or a page of it with a link to the next.
async fn list(serving: &Arc<Serving>, page: DatabasesPage) -> Result<Answer, Refusal> {
    serving.catalog.make_current().await?;
    blocking(serving, move |serving| {
        let limit = page.limit.unwrap_or(usize::MAX);
        let mut found = serving.catalog.page(&page.prefix, &page.after, limit.saturating_add(1));
        let has_more = found.len() > limit;
        found.truncate(limit);
        let views: Vec<_> = found.iter().map(|database| view(database, None)).collect();
        let mut answer = json(StatusCode::OK, &views)?;
        if let Some(last) = found.last().filter(|_| has_more)
            && let Ok(link) = page.link(&last.name).parse()
        {
            answer.headers_mut().insert(LINK, link);
        }
        Ok(answer)
    })
    .await
}

fn set_archive(
    serving: &Serving,
    name: &str,
    policy: Option<&ArchivePolicy>,
) -> Result<(), Refusal> {
    let found = serving.catalog.by_name(name).ok_or_else(|| no_database(name))?;
    policy.map_or(Ok(()), |policy| serving.archives.allows(&found, policy))?;
    serving.catalog.set_archive(name, policy)?;
    tracing::info!(database = name, is_set = policy.is_some(), "policy of archives changed");
    serving.archives.look_soon();
    Ok(())
}

/// Answers a request of the admin API.
pub(super) async fn route(
    serving: &Arc<Serving>,
    head: Parts,
    body: RequestBody,
    path: &str,
) -> Result<Answer, Refusal> {
    if !serving.catalog.is_folder() {
        return Err(Refusal::not_found());
    }
    if let Some(folder) = serving.catalog.primary_folder() {
        let text =
            format!("This is a read server: its primary, {}, has the admin API.", folder.url());
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, text));
    }
    let parts: Vec<_> = path.trim_start_matches("/v1/admin/").split('/').collect();
    match *parts.as_slice() {
        ["databases"] => {
            only(&head, &[Method::GET, Method::POST])?;
            authorize(serving, &head, None).await?;
            if head.method == Method::GET {
                return list(serving, DatabasesPage::of(&head)?).await;
            }
            let NewDatabase { name, quotas } = parsed(&head, body).await?;
            let made = blocking(serving, move |serving| {
                let (database, token) = serving.catalog.create(&name, quotas)?;
                Ok(view(&database, Some(token)))
            });
            json(StatusCode::CREATED, &made.await?)
        }
        ["catalog"] => {
            only(&head, &[Method::GET])?;
            authorize(serving, &head, None).await?;
            let databases = serving.catalog.all();
            let databases = databases
                .iter()
                .map(|of| Listed { name: of.name.clone(), database_id: of.id.to_string() });
            let dropped = serving.catalog.dropped().iter().map(ToString::to_string).collect();
            json(StatusCode::OK, &CatalogView { databases: databases.collect(), dropped })
        }
        ["databases", name] => {
            only(&head, &[Method::GET, Method::DELETE])?;
            let name = name.to_owned();
            if head.method == Method::GET {
                let requester = authorize(serving, &head, Some(&name)).await?;
                let found = named(serving, &name).await?;
                let shown = blocking(serving, move |_| {
                    requester.still(&found)?;
                    Ok(view(&found, None))
                });
                return json(StatusCode::OK, &shown.await?);
            }
            authorize(serving, &head, None).await?;
            let drop = move |serving: &Serving| {
                serving.catalog.drop_database(&name, |database| serving.archives.end(database))
            };
            blocking(serving, drop).await?;
            Ok(nothing())
        }
        ["databases", name, "quotas"] => {
            only(&head, &[Method::PUT])?;
            authorize(serving, &head, None).await?;
            let (name, quotas) = (name.to_owned(), parsed::<Quotas>(&head, body).await?);
            blocking(serving, move |serving| serving.catalog.set_quotas(&name, quotas)).await?;
            Ok(nothing())
        }
        ["databases", name, "archive"] => {
            only(&head, &[Method::GET, Method::PUT, Method::DELETE])?;
            // A policy names places of the machine and of its object stores: no tenant sets or sees one.
            authorize(serving, &head, None).await?;
            let name = name.to_owned();
            if head.method == Method::GET {
                let found = named(serving, &name).await?;
                let shown = blocking(serving, move |serving| {
                    Ok(archives::view(&serving.archives, &found)?)
                });
                return json(StatusCode::OK, &shown.await?);
            }
            let policy = match head.method {
                Method::PUT => Some(parsed::<ArchiveRequest>(&head, body).await?.policy("")?),
                _ => None,
            };
            blocking(serving, move |serving| set_archive(serving, &name, policy.as_ref())).await?;
            Ok(nothing())
        }
        ["tokens"] => {
            only(&head, &[Method::GET, Method::POST])?;
            authorize(serving, &head, None).await?;
            if head.method == Method::GET {
                serving.catalog.make_current().await?;
                let all = serving.catalog.tokens();
                let all: Vec<_> = all.iter().map(|token| token_view(token, None)).collect();
                return json(StatusCode::OK, &all);
            }
            let NewToken { rights } = parsed(&head, body).await?;
            if rights != Rights::Metrics {
                return Err(Refusal::bad_request(
                    "A token of the server has the rights 'metrics'. A token with other rights is one of a \
                     database: /v1/admin/databases/NAME/tokens.",
                ));
            }
            let made = blocking(serving, |serving| {
                let (token, record) = serving.catalog.add_server_token()?;
                Ok(token_view(&record, Some(token)))
            });
            json(StatusCode::CREATED, &made.await?)
        }
        ["tokens", id] => {
            only(&head, &[Method::DELETE])?;
            authorize(serving, &head, None).await?;
            let id = id.to_owned();
            blocking(serving, move |serving| serving.catalog.withdraw_server_token(&id)).await?;
            Ok(nothing())
        }
        ["databases", name, "tokens"] => {
            only(&head, &[Method::POST])?;
            let requester = authorize(serving, &head, Some(name)).await?;
            let (name, NewToken { rights }) = (name.to_owned(), parsed(&head, body).await?);
            let made = blocking(serving, move |serving| {
                let (token, record) = serving.catalog.add_token(&name, &requester, rights)?;
                Ok(token_view(&record, Some(token)))
            });
            json(StatusCode::CREATED, &made.await?)
        }
        ["databases", name, "tokens", id] => {
            only(&head, &[Method::DELETE])?;
            let requester = authorize(serving, &head, Some(name)).await?;
            let (name, id) = (name.to_owned(), id.to_owned());
            let withdraw =
                move |serving: &Serving| serving.catalog.withdraw_token(&name, &requester, &id);
            blocking(serving, withdraw).await?;
            Ok(nothing())
        }
        _ => Err(Refusal::not_found()),
    }
}
