//! Who may do what: every route with every wrong token.

use crate::client::ask;
use crate::served::{ACCESS, ADMIN, READ, delete, file, folder, read, set};
use openkv::connect::wire::watch;

const VERBS: [&str; 3] = ["snapshot_read", "atomic_write", "watch"];

fn body(verb: &str) -> Vec<u8> {
    match verb {
        "snapshot_read" => read("a"),
        "atomic_write" => set("a", b"1"),
        _ => watch::write_request(&[]),
    }
}

#[test]
fn a_read_token_only_reads() {
    let served = file(|_| ());
    let session = served.session("/", READ);
    assert_eq!(session.get("a"), None);
    for body in [set("a", b"1"), delete("a")] {
        let reply = session.post("atomic_write", &body);
        assert_eq!(reply.status, 403);
        assert!(reply.text().contains("only read"), "{}", reply.text());
    }
}

#[test]
fn no_route_takes_a_token_of_another_kind() {
    let served = file(|_| ());
    let good = served.session("/", ACCESS);
    let other = file(|_| ());
    let foreign = other.session("/", ACCESS);
    let metadata_takes =
        |token: &str| served.ask("POST", "/", token, b"{\"supportedVersions\":[3]}");
    for token in ["x", ADMIN, &good.token, &foreign.token, "okd_", "okv_AAAA", &ACCESS[1..]] {
        let reply = metadata_takes(token);
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (401, "Invalid access token."),
            "{token}"
        );
        assert!(reply.headers.contains("www-authenticate: bearer"), "{}", reply.headers);
    }
    let mut cut = good.token.clone();
    cut.pop();
    for verb in VERBS {
        for token in ["x", ACCESS, READ, ADMIN, &foreign.token, &cut] {
            let bearer = format!("Bearer {token}");
            let headers = [
                ("authorization", bearer.as_str()),
                ("x-denokv-version", "3"),
                ("x-denokv-database-id", good.database.as_str()),
            ];
            let path = format!("/v2/{verb}");
            let reply = ask(served.address(), "POST", &path, &headers, &body(verb));
            assert_eq!(reply.status, 401, "{verb} {token}");
        }
    }
}

#[test]
fn a_tenant_has_its_own_database_and_no_other() {
    let served = folder();
    let (one, two) = (served.create("one", "{}"), served.create("two", "{}"));
    let mut session = served.session("/one", &one);
    session.set("secret", b"one's");
    let theirs = served.session("/two", &two);
    assert_eq!(theirs.get("secret"), None);
    // Neither its metadata, nor by naming it on the data path, nor by admin.
    for path in ["/two", "/none", "/ONE", "/one/"] {
        let reply = served.ask("POST", path, &one, b"{\"supportedVersions\":[3]}");
        assert!([401, 404].contains(&reply.status), "{path}: {}", reply.text());
    }
    let (known, unknown) = (
        served.ask("POST", "/two", &one, b"").text(),
        served.ask("POST", "/none", &one, b"").text(),
    );
    assert_eq!(known, unknown);
    session.database.clone_from(&theirs.database);
    for verb in VERBS {
        let reply = session.post(verb, &body(verb));
        assert_eq!((reply.status, reply.text().as_str()), (400, "Invalid database id."));
    }
    let admin = [
        ("GET", "/v1/admin/databases"),
        ("POST", "/v1/admin/databases"),
        ("GET", "/v1/admin/databases/two"),
        ("DELETE", "/v1/admin/databases/two"),
        ("DELETE", "/v1/admin/databases/one"),
        ("PUT", "/v1/admin/databases/one/quotas"),
        ("POST", "/v1/admin/databases/two/tokens"),
        ("DELETE", "/v1/admin/databases/two/tokens/1"),
    ];
    for (method, path) in admin {
        for token in [one.as_str(), "x", &session.token] {
            let reply = served.ask(method, path, token, b"{\"rights\":\"admin\"}");
            let refused = [401, 403].contains(&reply.status);
            assert!(refused, "{method} {path} {token}: {} {}", reply.status, reply.text());
        }
    }
    assert_eq!(theirs.get("secret"), None);
}
