//! The admin API: databases and tokens are created and removed while others are served.

use std::time::Duration;

use openkv::model::Kind;
use openkv::protocol::extension::with_count;
use openkv::server::Server;

use crate::client::{begin, end};
use crate::served::{ADMIN, folder, folder_options, read, set};

#[test]
fn databases_and_tokens_outlive_the_server() {
    let served = folder();
    let token = served.create("app", "{\"operationsPerSecond\":1000}");
    served.session("/app", &token).set("a", b"kept");
    let reply =
        served.ask("POST", "/v1/admin/databases/app/tokens", &token, b"{\"rights\":\"read\"}");
    assert_eq!(reply.status, 201, "{}", reply.text());
    let reader = reply.json()["token"].as_str().expect("a token").to_owned();

    let second = Server::start(folder_options(&served.folder));
    assert_eq!(second.err().map(|error| error.kind()), Some(Kind::Unavailable));

    let kept = std::fs::read_to_string(served.folder.path().join("openkv-server.json"));
    let kept = kept.expect("the registry");
    for token in [&token, &reader] {
        assert!(!kept.contains(token.as_str()), "a token is kept as it is");
    }
    let mut served = served;
    served.server.close();
    served.server = Server::start(folder_options(&served.folder)).expect("a server");
    let session = served.session("/app", &reader);
    assert_eq!(session.get("a").expect("an entry").value.bytes, b"kept");
    let shown = served.ask("GET", "/v1/admin/databases", ADMIN, b"").json();
    assert_eq!(shown[0]["name"], "app");
    assert_eq!(shown[0]["quotas"]["operationsPerSecond"], 1000);
    assert_eq!(shown[0]["tokens"].as_array().map(Vec::len), Some(2));
    assert!(shown[0]["tokens"][0].get("token").is_none());
}

#[test]
fn arrays_are_no_objects_and_other_methods_are_named() {
    let served = folder();
    let token = served.create("app", "{}");
    for (method, path, body) in [
        ("POST", "/v1/admin/databases", &b"[\"other\"]"[..]),
        ("PUT", "/v1/admin/databases/app/quotas", b"[1]"),
        ("POST", "/v1/admin/databases/app/tokens", b"[\"read\"]"),
    ] {
        let reply = served.ask(method, path, ADMIN, body);
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
        assert!(reply.text().contains("expected an object"), "{}", reply.text());
    }
    for (path, methods) in [
        ("/v1/admin/databases", "allow: get, post"),
        ("/healthz", "allow: get, head"),
        ("/app", "allow: post"),
    ] {
        let reply = served.ask("PATCH", path, &token, b"");
        assert_eq!(reply.status, 405, "{path}");
        assert!(reply.headers.to_lowercase().contains(methods), "{path}: {}", reply.headers);
    }
}

#[test]
fn a_revoked_token_is_rejected_at_once() {
    let served = folder();
    let admin = served.create("app", "{}");
    let made =
        served.ask("POST", "/v1/admin/databases/app/tokens", ADMIN, b"{\"rights\":\"write\"}");
    let made = made.json();
    let token = made["token"].as_str().expect("a token");
    let session = served.session("/app", token);
    let mut watch = session.watch(&["a"]);
    assert!(watch.next().is_some());
    let path = format!("/v1/admin/databases/app/tokens/{}", made["id"].as_str().expect("an id"));
    assert_eq!(served.ask("DELETE", &path, &admin, b"").status, 204);
    assert_eq!(watch.next(), None);
    assert_eq!(session.post("snapshot_read", &read("a")).status, 401);
    assert_eq!(served.ask("POST", "/app", token, b"").status, 401);
    assert_eq!(served.ask("DELETE", &path, &admin, b"").status, 404);
}

/// A token was checked when the head had arrived, and not again. A client that delayed the body
/// kept the rights of a token revoked meanwhile, or those of an earlier database of that name.
#[test]
fn a_token_revoked_before_the_body_arrives_is_refused() {
    let served = folder();
    let admin = served.create("app", "{}");
    let session = served.session("/app", &admin);
    let headers = session.headers();
    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let bearer = format!("Bearer {admin}");
    let own = [("authorization", bearer.as_str())];
    let rights = b"{\"rights\":\"admin\"}";
    let (plain, frames) = (set("a", b"late"), with_count(0, &[]));
    let late = [
        ("/v1/admin/databases/app/tokens", &own[..], &rights[..]),
        ("/v2/atomic_write", &headers, &plain),
        ("/v2/openkv/write", &headers, &frames),
        ("/app", &own, b"{\"supportedVersions\":[3]}"),
    ];
    let all: Vec<_> = late
        .iter()
        .map(|(path, headers, body)| begin(served.address(), path, headers, Some(body.len())))
        .collect();
    // The requests have been authorized.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(served.ask("DELETE", "/v1/admin/databases/app", ADMIN, b"").status, 204);
    served.create("app", "{}");
    for (stream, (path, _, body)) in all.into_iter().zip(late) {
        assert_eq!(end(stream, body).status, 401, "{path}");
    }
}

#[test]
fn a_dropped_database_is_gone_with_its_files() {
    let served = folder();
    let token = served.create("app", "{}");
    let session = served.session("/app", &token);
    session.set("a", b"1");
    let mut watch = session.watch(&["a"]);
    assert!(watch.next().is_some());
    let files = || {
        let found = std::fs::read_dir(served.folder.path()).expect("the folder");
        let names = found.map(|file| file.expect("a file").file_name());
        names.filter(|name| name.to_string_lossy().contains(".sqlite3")).count()
    };
    assert!(files() > 0);
    assert_eq!(served.ask("DELETE", "/v1/admin/databases/app", ADMIN, b"").status, 204);
    assert_eq!(watch.next(), None);
    assert_eq!(session.post("snapshot_read", &read("a")).status, 401);
    assert_eq!(served.ask("POST", "/app", &token, b"").status, 401);
    assert_eq!(files(), 0);
    // A new database with the free name is another one.
    let token = served.create("app", "{}");
    assert_eq!(served.session("/app", &token).get("a"), None);
}

#[test]
fn a_list_of_databases_has_pages() {
    let served = folder();
    for name in ["eu-a", "us-a", "eu-c", "eu-b", "ap-a"] {
        served.create(name, "{}");
    }
    let read = |path: &str| {
        let reply = served.ask("GET", path, ADMIN, b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        let json = reply.json();
        let listed = json.as_array().expect("a list");
        let names: Vec<_> = listed.iter().map(|of| of["name"].as_str().expect("a name")).collect();
        let next = reply.headers.lines().find_map(|line| {
            let link = line.strip_prefix("link: <")?.strip_suffix("; rel=\"next\"")?;
            Some(link.trim_end_matches('>').to_owned())
        });
        (names.join(" "), next)
    };
    let all = "/v1/admin/databases";
    assert_eq!(read(all), ("ap-a eu-a eu-b eu-c us-a".to_owned(), None));
    assert_eq!(read(&format!("{all}?after=eu-b")), ("eu-c us-a".to_owned(), None));
    assert_eq!(read(&format!("{all}?limit=5")).1, None);
    let (names, next) = read(&format!("{all}?prefix=eu-&limit=2"));
    assert_eq!(names, "eu-a eu-b");
    assert_eq!(read(&next.expect("a next page")), ("eu-c".to_owned(), None));
    assert_eq!(read(&format!("{all}?prefix=none")), (String::new(), None));
}

#[test]
fn invalid_requests_are_named() {
    let served = folder();
    served.create("app", "{}");
    let databases = "/v1/admin/databases";
    for (method, path, body, status, words) in [
        ("POST", databases, "{\"name\":\"app\"}", 409, "already"),
        ("POST", databases, "{\"name\":\"App\"}", 400, "'App' given"),
        ("POST", databases, "{\"name\":\"v2\"}", 400, "is not v1, v2"),
        ("POST", databases, "{\"name\":\"../etc\"}", 400, "of a-z"),
        ("POST", databases, "{\"nam\":\"b\"}", 400, "unknown field `nam`"),
        ("POST", databases, "{\"name\":\"b\",\"quotas\":{\"byte\":1}}", 400, "`byte`"),
        ("PUT", "/v1/admin/databases/app/quotas", "{\"watches\":-1}", 400, "invalid value"),
        ("PUT", "/v1/admin/databases/b/quotas", "{}", 404, "no database 'b'"),
        ("POST", "/v1/admin/databases/app/tokens", "{\"rights\":\"all\"}", 400, "unknown variant"),
        ("GET", "/v1/admin/databases/b", "", 404, "no database 'b'"),
        ("PATCH", databases, "", 405, "use GET or POST"),
        ("GET", "/v1/admin/databases?limit=0", "", 400, "received '0'"),
        ("GET", "/v1/admin/databases?page=2", "", 400, "prefix, after and limit"),
        ("GET", "/v1/admin/other", "", 404, "Resource not found."),
        ("POST", "/", "", 404, "add /NAME to its URL"),
    ] {
        let reply = served.ask(method, path, ADMIN, body.as_bytes());
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        assert!(reply.text().contains(words), "{}", reply.text());
    }
}

#[test]
fn a_database_s_quota_bounds_that_database() {
    let served = folder();
    let noisy = served.create("noisy", "{\"operationsPerSecond\":3,\"watches\":1}");
    let quiet = served.create("quiet", "{}");
    let (noisy, quiet) = (served.session("/noisy", &noisy), served.session("/quiet", &quiet));
    let mut watch = noisy.watch(&["a"]);
    assert!(watch.next().is_some());
    let refused: Vec<_> = (0..20)
        .map(|_| noisy.post("snapshot_read", &read("a")))
        .filter(|reply| reply.status == 429)
        .collect();
    assert!(refused.len() >= 8, "{}", refused.len());
    for reply in refused {
        assert!(reply.headers.contains("retry-after: 1"), "{}", reply.headers);
    }
    for n in 0..30_u8 {
        quiet.set("a", &[n]);
        assert_eq!(quiet.get("a").expect("an entry").value.bytes, [n]);
    }
    let quotas = b"{\"watches\":1}";
    let path = "/v1/admin/databases/noisy/quotas";
    assert_eq!(served.ask("PUT", path, ADMIN, quotas).status, 204);
    let reply = noisy.post("watch", &openkv::connect::wire::watch::write_request(&[]));
    assert_eq!(reply.status, 429);
    assert!(reply.text().contains("quota of watches (max 1)"), "{}", reply.text());
}
