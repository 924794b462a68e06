//! The studio: pages for browsers, which the JavaScript package has built.
//!
//! The page at `/` finds all that it needs below `/~studio/`, a path that is no database's since no
//! name has a `~`. Its own routes are in the fragment of its URL, which the server does not see.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, HeaderMap,
    HeaderName, HeaderValue, REFERRER_POLICY, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use tokio::sync::OnceCell;

use super::answer::{Answer, Refusal, answer, whole};
use super::{Serving, host};

/// The policy of the pages: they load files of this server, and nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'";

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <title>openkv</title><h1>The studio is not built</h1>\
    <p>This is a server of openkv. In a clone, <code>npm run build:studio</code> builds its studio; \
    the package on npm has it.</p></html>";

const PAGE: &str = "index.html";

/// The files of the studio, read once.
pub(super) struct Studio {
    folder: PathBuf,
    files: OnceCell<HashMap<String, File>>,
}

struct File {
    kind: &'static str,
    bytes: Bytes,
    /// The same, compressed.
    gzip: Option<Bytes>,
}

impl Studio {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, files: OnceCell::new() }
    }

    /// The files; `None` if the folder has no page. A folder that is built later is found then.
    async fn files(&self) -> Option<&HashMap<String, File>> {
        let folder = self.folder.clone();
        let reading = async || {
            let read = tokio::task::spawn_blocking(move || read_files(&folder)).await;
            read.ok().and_then(Result::ok).filter(|files| files.contains_key(PAGE)).ok_or(())
        };
        self.files.get_or_try_init(reading).await.ok()
    }
}

fn read_files(folder: &Path) -> std::io::Result<HashMap<String, File>> {
    let mut files = HashMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(kind) = kind_of(name) else { continue };
        let gzip = std::fs::read(folder.join(format!("{name}.gz"))).ok().map(Bytes::from);
        files.insert(name.to_owned(), File { kind, bytes: std::fs::read(&path)?.into(), gzip });
    }
    Ok(files)
}

/// The content type of a file; `None` for one that is not served by itself.
fn kind_of(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "html" => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

/// The routes of the studio's files; none without its folder.
pub(super) fn router(serving: &Arc<Serving>) -> Router<Arc<Serving>> {
    if serving.studio.is_none() {
        return Router::new();
    }
    Router::new().route("/~studio/server.json", get(about)).route("/~studio/{file}", get(file))
}

/// The page, for a browser that asks for the URL of the server; `None` for other clients.
pub(super) async fn page(serving: &Serving, head: &Parts) -> Option<Response> {
    let studio = serving.studio.as_ref()?;
    let accept = head.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok())?;
    let is_read = [Method::GET, Method::HEAD].contains(&head.method);
    if !is_read || !accept.contains("text/html") {
        return None;
    }
    if let Err(refusal) = host::check(serving, head) {
        return Some(of_studio(refusal.answer(), "no-store").into_response());
    }
    let found = studio.files().await.and_then(|files| files.get(PAGE));
    let not_built = || answer(StatusCode::OK, "text/html; charset=utf-8", whole(NOT_BUILT));
    let answer = found.map_or_else(not_built, |page| page.answer(&head.headers));
    // The names of the other files change with their contents, the page's does not.
    Some(of_studio(answer, "no-cache").into_response())
}

async fn file(State(serving): State<Arc<Serving>>, request: Request) -> Response {
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    match files(&serving).await.and_then(|files| files.get(name)) {
        Some(file) => {
            let answer = file.answer(request.headers());
            of_studio(answer, "public, max-age=31536000, immutable").into_response()
        }
        None => of_studio(Refusal::not_found().answer(), "no-store").into_response(),
    }
}

/// The facts that the page needs before it has a token.
async fn about(State(serving): State<Arc<Serving>>) -> Response {
    let about = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "databases": if serving.catalog.is_folder() { "many" } else { "one" },
        "open": serving.catalog.is_open(),
    });
    of_studio(answer(StatusCode::OK, "application/json", whole(about.to_string())), "no-store")
        .into_response()
}

async fn files(serving: &Serving) -> Option<&HashMap<String, File>> {
    serving.studio.as_ref()?.files().await
}

impl File {
    fn answer(&self, headers: &HeaderMap) -> Answer {
        let accepted = headers.get(ACCEPT_ENCODING).and_then(|accept| accept.to_str().ok());
        let gzip = self.gzip.as_ref().filter(|_| accepted.is_some_and(|a| a.contains("gzip")));
        let bytes = gzip.unwrap_or(&self.bytes).clone();
        let mut answer = answer(StatusCode::OK, self.kind, whole(bytes));
        let headers = answer.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if gzip.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer
    }
}

fn of_studio(mut answer: Answer, cache: &'static str) -> Answer {
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    let resource = HeaderName::from_static("cross-origin-resource-policy");
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, cache),
        (opener, "same-origin"),
        (resource, "same-origin"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
