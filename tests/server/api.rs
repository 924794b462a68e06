//! The HTTP API: bodies, its document and its page. `__test__/server/http` has the tests of its routes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::client::ask;
use crate::served::{ACCESS, ADMIN, Served, file, folder};

fn status(served: &Served, method: &str, path: &str, body: &str) -> (u16, Value) {
    let bearer = format!("Bearer {ACCESS}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let reply = ask(served.address(), method, &format!("/api{path}"), &headers, body.as_bytes());
    (reply.status, reply.json())
}

/// Bodies were read by position too: `DELETE` took `[true]` for `{"exact":true}`, and an atomic
/// operation a check without names.
#[test]
fn a_body_is_an_object() {
    let served = file(|_| ());
    assert_eq!(status(&served, "PUT", "/keys/a", "[1]").0, 200, "a value may be an array");
    for (method, path, body) in [
        ("DELETE", "/keys/a", "[true,null]"),
        ("POST", "/keys/list", "[[\"a\"]]"),
        ("POST", "/keys/count", "[[\"a\"]]"),
        ("POST", "/keys/batch", "[[[\"a\"]]]"),
        ("POST", "/keys/delete-batch", "[[[\"a\"]],true]"),
        ("POST", "/atomic", "[[],[]]"),
        ("POST", "/atomic", "{\"checks\":[[[\"a\"],null]]}"),
        ("POST", "/atomic", "{\"mutations\":[[\"delete\",[\"a\"]]]}"),
        ("POST", "/queue/enqueue", "[1]"),
        ("POST", "/queue/ack", "[\"1\",\"1\"]"),
    ] {
        let (status, problem) = status(&served, method, path, body);
        assert_eq!(status, 400, "{method} {path} {body}");
        let detail = problem["detail"].as_str().expect("a text");
        assert!(detail.contains("expected an object"), "{detail}");
    }
    assert_eq!(status(&served, "GET", "/keys/a", "").1["value"], serde_json::json!([1]));
}

/// `ack` took and ignored the members of `nack` and `extend`, so a mistaken request looked successful.
#[test]
fn the_end_of_a_delivery_has_no_members_of_another_end() {
    let served = file(|_| ());
    for (path, member, accepted) in [
        ("/queue/ack", "\"delay\":1", 400),
        ("/queue/ack", "\"lockDuration\":1000", 400),
        ("/queue/nack", "\"lockDuration\":1000", 400),
        ("/queue/nack", "\"delay\":1", 200),
        ("/queue/extend", "\"error\":\"no\"", 400),
        ("/queue/extend", "\"lockDuration\":1000", 200),
    ] {
        let body = format!("{{\"id\":\"1\",\"lock\":\"1\",{member}}}");
        let (status, answer) = status(&served, "POST", path, &body);
        assert_eq!(status, accepted, "{path} {member} {answer}");
    }
}

/// The route of the metrics refused the method of KV Connect, so no client could open a database with
/// its name.
#[test]
fn a_database_may_have_the_name_of_a_page() {
    let served = folder();
    for name in ["metrics", "docs"] {
        let token = served.create(name, "{}");
        let session = served.session(&format!("/{name}"), &token);
        assert_eq!(session.get("a"), None);
    }
    assert_eq!(served.ask("GET", "/metrics", ADMIN, b"").status, 200);
    let single = file(|_| ());
    assert_eq!(single.ask("POST", "/docs", ACCESS, b"").status, 405);
}

/// Every `$ref` of a document.
fn references<'d>(value: &'d Value, found: &mut BTreeSet<&'d str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        _ => {}
    }
}

#[test]
fn the_document_defines_what_it_refers_to() {
    for served in [file(|_| ()), folder()] {
        let document = served.ask("GET", "/openapi.json", "", b"").json();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let place = reference.strip_prefix('#').expect("a local reference");
            assert!(document.pointer(place).is_some(), "{reference}");
        }
        for (path, item) in document["paths"].as_object().expect("paths") {
            for method in ["get", "put", "post", "delete"] {
                let operation = &item[method];
                let responses = &operation["responses"];
                for status in ["200", "400", "401", "403", "429", "500", "503"] {
                    assert!(
                        operation.is_null() || responses[status].is_object(),
                        "{method} {path} {status}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_page_has_every_operation_and_loads_nothing() {
    let served = file(|_| ());
    let document = served.ask("GET", "/openapi.json", "", b"").json();
    let reply = ask(served.address(), "GET", "/docs", &[], b"");
    assert_eq!(reply.status, 200);
    assert!(reply.headers.contains("content-type: text/html"), "{}", reply.headers);
    assert!(reply.headers.contains("default-src 'none'; style-src 'sha256-"), "{}", reply.headers);
    let page = reply.text();
    for (_, item) in document["paths"].as_object().expect("paths") {
        for operation in item.as_object().expect("methods").values() {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(page.contains(&format!("<h3 id={id}>")), "{id}");
        }
    }
    for refused in ["<script", " src=", "url(", "@import", "style="] {
        assert!(!page.contains(refused), "{refused}");
    }
}
