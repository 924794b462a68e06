//! The metadata exchange: an access token becomes a token of the data path.

use hyper::header::{HOST, HeaderMap};
use hyper::http::request::Parts;
use hyper::{StatusCode, Uri};

use super::Serving;
use super::answer::{Answer, Refusal, answer, whole};
use super::auth::{Grant, TokenHash, bearer};
use super::database::Database;
use super::read_server::Primary;
use super::slots::mark_authenticated;
use openkv_wire::connect::metadata::{
    Consistency, EXTENSIONS_HEADER, Endpoint, Metadata, PACKED_HEADER, read_request, write_answer,
};
use openkv_wire::connect::versions::{JSON_TYPE, Version};
use openkv_wire::protocol::extension::{LOG, LOG_INDEXES, OFFERED, WRITE_IDS};
use std::sync::Arc;

/// Authorizes an access token. The answer does not reveal whether the database exists.
pub(super) async fn authorize(
    serving: &Serving,
    name: &str,
    head: &Parts,
) -> Result<(Arc<Database>, super::auth::Rights, [u8; 8]), Refusal> {
    let database = serving.catalog.named(name);
    if let Some(open) = &database
        && let Some((rights, issued_for)) = open.open_rights()
    {
        return Ok((open.clone(), rights, issued_for));
    }
    let hash = TokenHash::of(bearer(&head.headers)?);
    let find = || {
        let database = serving.catalog.named(name)?;
        let (rights, issued_for) = database.token(&hash)?;
        Some((database, rights, issued_for))
    };
    let found = serving.catalog.find(find).await?.ok_or_else(Refusal::wrong_token)?;
    mark_authenticated(head);
    Ok(found)
}

/// The URL of the data path, on the server that the request was sent to.
fn endpoint(serving: &Serving, version: Version, uri: &Uri, headers: &HeaderMap) -> Option<String> {
    // A read server of a folder has a data path for each database.
    let name = uri.path().trim_matches('/');
    let within = serving.catalog.primary_folder().map(|_| format!("{name}/")).unwrap_or_default();
    match version {
        // Relative to the metadata's URL, so that a proxy may put both under a path of its own.
        Version::V2 | Version::V3 => Some(format!("./{within}v2")),
        Version::V1 => {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok());
            let host = host.or_else(|| uri.authority().map(|authority| authority.as_str()))?;
            Some(format!("{}://{host}/{within}v2", serving.scheme))
        }
    }
}

fn says(headers: &HeaderMap, name: &str) -> bool {
    headers.get(name).is_some_and(|value| value.as_bytes() == b"1")
}

/// Whether a client asks for the extensions and reads all forms of values.
fn asks_for_extensions(headers: &HeaderMap) -> bool {
    says(headers, EXTENSIONS_HEADER) && says(headers, PACKED_HEADER)
}

/// The extensions, for a client that asks for them. Others get only the protocol's own fields,
/// because Deno's clients refuse unknown fields.
fn offered_to(headers: &HeaderMap, database: &Database) -> Vec<String> {
    if !asks_for_extensions(headers) {
        return Vec::new();
    }
    let ids = database.remembers_writes().then_some(WRITE_IDS);
    let has_log = database.can_be_followed();
    let offered = OFFERED.into_iter().filter(|of| has_log || ![LOG, LOG_INDEXES].contains(of));
    offered.chain(ids).map(str::to_owned).collect()
}

/// The endpoints of a database. If another server leads it, that one is the strong endpoint, unless this
/// server hands requests over.
async fn endpoints(
    serving: &Serving,
    database: &Arc<Database>,
    own: String,
) -> Result<Vec<Endpoint>, Refusal> {
    let strong = |url| Endpoint { url, consistency: Consistency::Strong };
    let eventual = |url| Endpoint { url, consistency: Consistency::Eventual };
    if serving.forwarder.is_some() {
        return Ok(vec![strong(own)]);
    }
    Ok(match database.leader().await? {
        Some(leader) => vec![strong(format!("{leader}/v2")), eventual(own)],
        None => {
            let read_servers = database.followers.urls(serving.catalog.next_turn());
            let others = read_servers.into_iter().map(|url| eventual(format!("{url}/v2")));
            std::iter::once(strong(own)).chain(others).collect()
        }
    })
}

/// Answers with the metadata of the primary.
pub(super) async fn of_read_server(
    serving: &Serving,
    primary: &Primary,
    head: &Parts,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let token = bearer(&head.headers)?;
    let offered = read_request(body)?;
    let versions: Vec<_> =
        Version::ALL.into_iter().filter(|of| offered.contains(&of.number().into())).collect();
    let extensions = asks_for_extensions(&head.headers);
    let own = |version| endpoint(serving, version, &head.uri, &head.headers);
    let metadata = primary.metadata(token, &versions, extensions, own).await?;
    mark_authenticated(head);
    Ok(answer(StatusCode::OK, JSON_TYPE, whole(write_answer(&metadata)?)))
}

/// Answers with metadata. The token is checked again after the body has arrived.
pub(super) async fn exchange(
    serving: &Serving,
    (database, rights, issued_for): (Arc<Database>, super::auth::Rights, [u8; 8]),
    (uri, headers): (&Uri, &HeaderMap),
    body: &[u8],
) -> Result<Answer, Refusal> {
    if !database.has_token(issued_for) {
        return Err(Refusal::wrong_token());
    }
    let offered = read_request(body)?;
    let version = Version::negotiate(&offered, &Version::ALL).ok_or_else(|| {
        Refusal::bad_request(
            "could not negotiate a protocol version: the server speaks versions 1, 2 and 3.",
        )
    })?;
    let url = endpoint(serving, version, uri, headers)
        .ok_or_else(|| Refusal::bad_request("Version 1 of the protocol needs a host header."))?;
    let now_ms = serving.catalog.now_ms();
    let expires_at_ms = now_ms + serving.data_token_ms;
    let grant = Grant { database: database.id, rights, issued_for, expires_at_ms };
    let extensions = offered_to(headers, &database);
    let metadata = Metadata {
        version,
        database: database.id,
        endpoints: endpoints(serving, &database, url).await?,
        token: serving.signer.issue(&grant)?,
        expires_at_ms,
        now_ms: extensions.iter().any(|offered| offered == WRITE_IDS).then_some(now_ms),
        extensions,
    };
    Ok(answer(StatusCode::OK, JSON_TYPE, whole(write_answer(&metadata)?)))
}
