//! The OpenAPI document, made from the handlers.

use hyper::StatusCode;
use hyper::body::Bytes;
use utoipa::OpenApi;
use utoipa::openapi;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};

use super::media::Form;
use crate::server::answer::{Answer, answer, whole};

#[derive(OpenApi)]
#[openapi(info(
    title = "openkv",
    description = "A transactional key-value store.",
    license(name = "MIT")
))]
struct Base;

const TOKEN: &str = "token";

/// The document without routes.
pub(super) fn base() -> openapi::OpenApi {
    Base::openapi()
}

/// The text of a document.
#[derive(Clone)]
pub(super) struct Document(Bytes);

impl Document {
    pub(super) fn answer(&self) -> Answer {
        answer(StatusCode::OK, Form::Json.name(), whole(self.0.clone()))
    }
}

/// Completes the document: the token, and what the paths of axum do not tell.
pub(super) fn text(mut document: openapi::OpenApi, is_folder: bool) -> Document {
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, scheme);
    document.security = Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
    let paths = std::mem::take(&mut document.paths.paths);
    for (path, mut item) in paths {
        if is_folder {
            item.parameters.get_or_insert_default().push(database().into());
        }
        // The wildcard of axum.
        document.paths.paths.insert(path.replace("{*", "{"), item);
    }
    Document(document.to_json().unwrap_or_default().into())
}

fn database() -> Parameter {
    let name = "The name of the database.";
    ParameterBuilder::new()
        .name("database")
        .parameter_in(ParameterIn::Path)
        .required(utoipa::openapi::Required::True)
        .description(Some(name))
        .build()
}
