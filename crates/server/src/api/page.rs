//! `/docs`: the OpenAPI document as a page for people.
//!
//! Invariant: the page has no script and loads nothing; its policy allows its own style alone. Every
//! text of the document is escaped.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::answer::{Answer, answer, whole};

const HTML_TYPE: &str = "text/html; charset=utf-8";
const STYLE: &str = include_str!("page.css");

/// The page.
pub(super) struct Page {
    html: Bytes,
    policy: HeaderValue,
}

impl Page {
    /// The page of an OpenAPI document.
    pub(super) fn of(document: &Value) -> Self {
        let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        // It is ASCII; without the style the page is still readable.
        let none = HeaderValue::from_static("default-src 'none'");
        Self { html: html(document).into(), policy: HeaderValue::try_from(policy).unwrap_or(none) }
    }

    pub(super) fn answer(&self) -> Answer {
        let mut answer = answer(StatusCode::OK, HTML_TYPE, whole(self.html.clone()));
        let headers = answer.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        let referrer = HeaderName::from_static("referrer-policy");
        headers.insert(referrer, HeaderValue::from_static("no-referrer"));
        answer
    }
}

/// An operation with its place.
struct Operation<'d> {
    path: &'d str,
    method: String,
    id: &'d str,
    tag: &'d str,
    what: &'d Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (path, item) in members(&document["paths"]) {
        for (method, what) in members(item).filter(|(_, what)| what.is_object()) {
            found.push(Operation {
                path,
                method: method.to_uppercase(),
                id: text(&what["operationId"]),
                tag: text(at(what, "/tags/0")),
                what,
            });
        }
    }
    found.sort_by_key(|operation| operation.tag);
    found
}

fn html(document: &Value) -> String {
    let (title, all) = (text(at(document, "/info/title")), operations(document));
    let version = text(at(document, "/info/version"));
    let mut out = format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>{0} HTTP API</title><style>{STYLE}</style>\
         <h1>{0} HTTP API</h1><p>Version {1}. The same as <a href=/openapi.json>OpenAPI</a>. \
         A token is sent as <code>authorization: Bearer TOKEN</code>.</p><nav><ul>",
        escaped(title),
        escaped(version),
    );
    for Operation { path, method, id, .. } in &all {
        let path = escaped(path);
        push(&mut out, format_args!("<li><a href=#{id}><code>{method}</code> {path}</a></li>"));
    }
    out.push_str("</ul></nav><main>");
    let mut tag = "";
    for operation in &all {
        if operation.tag != tag {
            tag = operation.tag;
            push(&mut out, format_args!("<h2>{}</h2>", escaped(tag)));
        }
        push_operation(&mut out, operation);
    }
    out.push_str("<h2>types</h2>");
    for (name, schema) in members(at(document, "/components/schemas")) {
        let name = escaped(name);
        push(&mut out, format_args!("<h3 id={name}><code>{name}</code></h3>"));
        push_text(&mut out, "p", &schema["description"]);
        push(&mut out, format_args!("<pre>{}</pre>", type_of(schema, 0)));
    }
    out.push_str("</main></html>");
    out
}

fn push_operation(out: &mut String, operation: &Operation<'_>) {
    let Operation { path, method, id, what, .. } = operation;
    push(out, format_args!("<h3 id={id}><code>{method} {}</code></h3>", escaped(path)));
    push_text(out, "p", &what["summary"]);
    let rows = what["parameters"].as_array().into_iter().flatten().map(|parameter| {
        let is_required = parameter["required"] == true;
        let name = format!("{}{}", text(&parameter["name"]), if is_required { "" } else { "?" });
        [
            format!("<code>{}</code> ({})", escaped(&name), escaped(text(&parameter["in"]))),
            format!("<code>{}</code>", type_of(&parameter["schema"], 0)),
            escaped(text(&parameter["description"])),
        ]
    });
    push_table(out, ["parameter", "type", ""], rows);
    let rows = members(at(what, "/requestBody/content")).map(|(name, content)| {
        let schema = type_of(&content["schema"], 0);
        [format!("<code>{}</code>", escaped(name)), format!("<code>{schema}</code>"), String::new()]
    });
    push_table(out, ["body", "type", ""], rows);
    let rows = members(&what["responses"]).map(|(status, response)| {
        let types = members(&response["content"]).map(|(name, content)| {
            format!("<code>{}: {}</code><br>", escaped(name), type_of(&content["schema"], 0))
        });
        let component = text(&response["$ref"]).rsplit('/').next().unwrap_or_default();
        let about = format!("{}{}", text(&response["description"]), words(component));
        [format!("<code>{}</code>", escaped(status)), escaped(&about), types.collect()]
    });
    push_table(out, ["status", "", "body"], rows);
}

fn push_table(out: &mut String, head: [&str; 3], rows: impl Iterator<Item = [String; 3]>) {
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let [a, b, c] = head;
    push(out, format_args!("<table><tr><th>{a}<th>{b}<th>{c}"));
    for [a, b, c] in rows {
        push(out, format_args!("<tr><td>{a}<td>{b}<td>{c}"));
    }
    out.push_str("</table>");
}

/// A schema in the notation of TypeScript, as HTML.
fn type_of(schema: &Value, depth: usize) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        let name = escaped(name);
        return format!("<a href=#{name}>{name}</a>");
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(schemas) = schema[several].as_array() {
            let between = if several == "allOf" { " &amp; " } else { " | " };
            let all = schemas.iter().map(|schema| type_of(schema, depth));
            return all.collect::<Vec<_>>().join(between);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let all = values.iter().map(|value| escaped(&value.to_string()));
        return all.collect::<Vec<_>>().join(" | ");
    }
    match &schema["type"] {
        Value::Array(names) => {
            let one = |name: &Value| {
                let mut schema = schema.clone();
                if let Some(members) = schema.as_object_mut() {
                    members.insert("type".to_owned(), name.clone());
                }
                type_of(&schema, depth)
            };
            names.iter().map(one).collect::<Vec<_>>().join(" | ")
        }
        Value::String(name) => match name.as_str() {
            "array" => match type_of(&schema["items"], depth) {
                items if items.contains(" | ") => format!("({items})[]"),
                items => format!("{items}[]"),
            },
            "object" if schema["properties"].is_object() => object(schema, depth),
            name => format!("{}{}", escaped(name), bounds(schema)),
        },
        _ => "any".to_owned(),
    }
}

fn object(schema: &Value, depth: usize) -> String {
    let inner = "  ".repeat(depth + 1);
    let required = schema["required"].as_array();
    let mut out = "{\n".to_owned();
    for (name, schema) in members(&schema["properties"]) {
        let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
        let mark = if is_required { "" } else { "?" };
        if let Some(about) = schema["description"].as_str() {
            let about = about.replace('\n', " ");
            push(&mut out, format_args!("{inner}// {}\n", escaped(&about)));
        }
        let of = type_of(schema, depth + 1);
        push(&mut out, format_args!("{inner}{}{mark}: {of}\n", escaped(name)));
    }
    out + &"  ".repeat(depth) + "}"
}

fn bounds(schema: &Value) -> String {
    let mut out = String::new();
    for (name, sign) in [("minimum", "≥"), ("maximum", "≤"), ("default", "="), ("pattern", "")]
    {
        match &schema[name] {
            Value::Null => {}
            Value::String(text) => push(&mut out, format_args!(" {sign}{}", escaped(text))),
            other => push(&mut out, format_args!(" {sign}{other}")),
        }
    }
    out
}

fn push_text(out: &mut String, element: &str, value: &Value) {
    if let Some(text) = value.as_str() {
        push(out, format_args!("<{element}>{}</{element}>", escaped(text)));
    }
}

fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a `String` does not fail.
    let _ = out.write_fmt(what);
}

fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().map(Map::iter).into_iter().flatten()
}

/// `BadRequest` as "Bad Request".
fn words(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_the_document_are_no_markup() {
        let text = "<img src=x onerror=alert(1)>'\"&";
        let named = json!({ "type": "string", "description": text, "pattern": text });
        let page = html(&json!({
            "info": { "title": text, "version": text },
            "paths": { text: { "get": {
                "operationId": "one", "tags": [text], "summary": text,
                "parameters": [{ "name": text, "in": text, "description": text, "schema": named }],
                "requestBody": { "content": { text: { "schema": { "enum": [text] } } } },
                "responses": { text: { "description": text, "content": { text: {
                    "schema": { "type": "object", "properties": { text: named } },
                } } } },
            } } },
            "components": { "schemas": { text: named } },
        }));
        assert!(!page.contains("<img"), "{page}");
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;&#39;&quot;&amp;"));
    }

    #[test]
    fn a_schema_reads_like_a_type() {
        for (schema, expected) in [
            (json!({}), "any"),
            (json!({ "type": ["string", "null"] }), "string | null"),
            (json!({ "type": "integer", "minimum": 1, "maximum": 9 }), "integer ≥1 ≤9"),
            (
                json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, {}] } }),
                "(string | any)[]",
            ),
            (json!({ "$ref": "#/components/schemas/Key" }), "<a href=#Key>Key</a>"),
            (
                json!({
                    "type": "object",
                    "required": ["a"],
                    "properties": { "a": { "type": "string" }, "b": { "enum": [1] } },
                }),
                "{\n  a: string\n  b?: 1\n}",
            ),
        ] {
            assert_eq!(type_of(&schema, 0), expected);
        }
    }
}
