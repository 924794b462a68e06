//! The OpenAPI document, made from the handlers: `npm run generate` writes it to `openapi.json`, and a test
//! compares it.
//!
//! Every operation gets what admission and the form of bodies decide for all of them: the refusals,
//! and the typed form of JSON bodies.

use std::collections::btree_map::Entry;

use hyper::StatusCode;
use serde_json::Value;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{self, Ref, RefOr, Response};
use utoipa::{OpenApi, ToSchema};

use super::admit::Asks;
use super::media::Form;
use super::problem::{PROBLEM_TYPE, ProblemBody};
use super::schema::Binary;
use super::{BASE, HandlerDescription, Route, Routes, routes};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "openkv",
        description = "A transactional key-value store.",
        license(name = "MIT")
    ),
    components(schemas(ProblemBody<'static>))
)]
struct Base;

const TOKEN: &str = "token";

/// The refusals that any operation can answer with.
const OF_ALL: [StatusCode; 8] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNPROCESSABLE_ENTITY,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Those of an operation with a body.
const OF_BODIES: [StatusCode; 2] =
    [StatusCode::REQUEST_TIMEOUT, StatusCode::UNSUPPORTED_MEDIA_TYPE];

/// Those of an operation that writes.
const OF_WRITES: [StatusCode; 2] = [StatusCode::CONFLICT, StatusCode::MISDIRECTED_REQUEST];

/// Those of an operation that answers in several forms.
const OF_FORMS: [StatusCode; 1] = [StatusCode::NOT_ACCEPTABLE];

/// What the document says of a route.
#[derive(Default)]
pub(super) struct RouteDescription {
    paths: openapi::Paths,
    schemas: Vec<(String, RefOr<openapi::Schema>)>,
}

impl RouteDescription {
    pub(super) fn add<D: HandlerDescription>(&mut self) {
        let mut operation = D::operation();
        operation.tags = Some(D::tags().into_iter().map(str::to_owned).collect());
        self.paths.add_path_operation(D::path(), D::methods(), operation);
        D::schemas(&mut self.schemas);
    }
}

/// Adds what all operations of these routes have in common.
fn complete(paths: &mut openapi::Paths, asks: Asks) {
    for item in paths.paths.values_mut() {
        for operation in operations(item) {
            let mut refusals = OF_ALL.to_vec();
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                refusals.extend(OF_BODIES);
                if let Some(json) = body.content.get(Form::Json.name()).cloned() {
                    body.content.entry(Form::Typed.name().into()).or_insert(json);
                    body.content.entry(Form::Cbor.name().into()).or_insert_with(binary);
                }
            }
            if asks == Asks::Write {
                refusals.extend(OF_WRITES);
            }
            for response in operation.responses.responses.values_mut() {
                // Every document of typed JSON is available in CBOR.
                if let RefOr::T(Response { content, .. }) = response
                    && content.contains_key(Form::Typed.name())
                {
                    content.entry(Form::Cbor.name().into()).or_insert_with(binary);
                }
            }
            if has_forms(operation) {
                refusals.extend(OF_FORMS);
            }
            refuse(operation, &refusals);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, .. } = item;
    [get, put, post, delete].into_iter().flatten()
}

fn has_forms(operation: &Operation) -> bool {
    operation
        .responses
        .responses
        .values()
        .any(|response| matches!(response, RefOr::T(Response { content, .. }) if content.len() > 1))
}

/// Documents refusals, and the body of those that the handler names.
fn refuse(operation: &mut Operation, refusals: &[StatusCode]) {
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        if let RefOr::T(response) = response
            && status.starts_with('4')
        {
            let description = std::mem::take(&mut response.description);
            *response = problem(&description);
        }
    }
    for status in refusals {
        let reference = RefOr::Ref(Ref::from_response_name(component(*status)));
        responses.entry(status.as_str().to_owned()).or_insert(reference);
    }
}

fn binary() -> RefOr<openapi::Content> {
    let schema = Ref::from_schema_name(Binary::name());
    openapi::ContentBuilder::new().schema(Some(schema)).build().into()
}

fn component(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Error").replace(' ', "")
}

fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name(ProblemBody::name());
    let content = openapi::ContentBuilder::new().schema(Some(schema)).build();
    openapi::ResponseBuilder::new().description(description).content(PROBLEM_TYPE, content).build()
}

/// The document of a server of one file.
fn document() -> Value {
    let mut document = Base::openapi();
    let components = document.components.get_or_insert_default();
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme(TOKEN, scheme);
    for status in [&OF_ALL[..], &OF_BODIES, &OF_WRITES, &OF_FORMS].concat() {
        let reason = status.canonical_reason().unwrap_or("Error");
        components.responses.insert(component(status), problem(reason).into());
    }
    document.security = Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
    for Routes { asks, routes, .. } in routes() {
        for Route { description: RouteDescription { mut paths, schemas }, .. } in routes {
            complete(&mut paths, asks);
            for (path, item) in paths.paths {
                // The wildcard of axum.
                let path = format!("{BASE}{path}").replace("{*", "{");
                match document.paths.paths.entry(path) {
                    Entry::Vacant(place) => drop(place.insert(item)),
                    Entry::Occupied(mut place) => place.get_mut().merge_operations(item),
                }
            }
            document.components.get_or_insert_default().schemas.extend(schemas);
        }
    }
    let mut value = serde_json::to_value(&document).unwrap();
    rename(&mut value);
    value
}

/// Gives the types of the forms of one body the names that clients see: `Page` and `TypedPage`
/// instead of `Page_Entry` and `Page_TypedEntry`.
fn rename(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some((place, name)) = reference.rsplit_once('/')
            {
                *reference = format!("{place}/{}", shown(name));
            }
            if let Some(Value::Object(schemas)) = members.get_mut("schemas") {
                let all = std::mem::take(schemas);
                schemas.extend(all.into_iter().map(|(name, schema)| (shown(&name), schema)));
            }
            members.values_mut().for_each(rename);
        }
        _ => {}
    }
}

fn shown(name: &str) -> String {
    let forms =
        [("_TypedEntry", "Typed"), ("_TypedValue", "Typed"), ("_Entry", ""), ("_Value", "")];
    let named = |(suffix, form): (&str, &str)| {
        name.strip_suffix(suffix).map(|name| format!("{form}{name}"))
    };
    forms.into_iter().find_map(named).unwrap_or_else(|| name.to_owned())
}

#[test]
fn the_document_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/openapi.json");
    let text = format!("{:#}\n", document());
    if std::env::var_os("OPENKV_GENERATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == text, "run `npm run generate`");
}
