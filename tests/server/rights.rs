//! Rights: every route with every wrong token.

use crate::client::ask;
use crate::extension::count_all;
use crate::served::{ACCESS, ADMIN, READ, delete, file, folder, key, read, set};
use openkv::connect::wire::watch;
use openkv::model::KeyRange;
use openkv::protocol::Command;
use openkv::protocol::extension::with_count;
use openkv::protocol::feed::write_request;

const VERBS: [&str; 8] = [
    "snapshot_read",
    "atomic_write",
    "watch",
    "openkv/read",
    "openkv/write",
    "openkv/watch",
    "openkv/feed",
    "openkv/call/10",
];

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
fn a_tenant_accesses_only_its_database() {
    let served = folder();
    let (one, two) = (served.create("one", "{}"), served.create("two", "{}"));
    let mut session = served.session("/one", &one);
    session.set("secret", b"one's");
    let theirs = served.session("/two", &two);
    assert_eq!(theirs.get("secret"), None);
    // Neither its metadata, nor its data path, nor its admin API.
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

/// The tokens of the database itself, and of another one.
struct Tokens {
    none: Vec<String>,
    unknown: String,
    theirs: String,
    read: String,
    withdrawn: String,
    expired: String,
    other_kind: String,
}

/// Statuses for: none or malformed, unknown, another database's, read-only, revoked, expired, a
/// token of the other kind.
type Expected = [u16; 7];

fn statuses(tokens: &Tokens, ask: impl Fn(Option<&str>) -> u16) -> Expected {
    let nobody: Vec<_> = tokens.none.iter().map(|header| ask(Some(header))).collect();
    assert!(nobody.iter().all(|status| *status == ask(None)), "{nobody:?}");
    let bearer = |token: &String| ask(Some(&format!("Bearer {token}")));
    let Tokens { unknown, theirs, read, withdrawn, expired, other_kind, .. } = tokens;
    let [unknown, theirs] = [unknown, theirs].map(bearer);
    [
        ask(None),
        unknown,
        theirs,
        bearer(read),
        bearer(withdrawn),
        bearer(expired),
        bearer(other_kind),
    ]
}

#[test]
fn every_route_with_every_wrong_token() {
    let mut options = crate::served::options();
    let folder = tempfile::TempDir::new().expect("a folder");
    options.path = folder.path().into();
    options.admin_token = Some(ADMIN.into());
    options.data_token_ms = Some(1000);
    let server = openkv::server::Server::start(options).expect("a server");
    let served = crate::served::Served { server, folder };
    let (one, two) = (served.create("one", "{}"), served.create("two", "{}"));
    let make = |rights: &str| {
        let body = format!("{{\"rights\":\"{rights}\"}}");
        let reply = served.ask("POST", "/v1/admin/databases/one/tokens", &one, body.as_bytes());
        let made = reply.json();
        (
            made["token"].as_str().expect("a token").to_owned(),
            made["id"].as_str().expect("an id").to_owned(),
        )
    };
    let ((read_access, _), (withdrawn_access, id)) = (make("read"), make("write"));
    let session = |token: &str| served.session("/one", token).token;
    let (expired, withdrawn) = (session(&one), session(&withdrawn_access));
    let path = format!("/v1/admin/databases/one/tokens/{id}");
    assert_eq!(served.ask("DELETE", &path, &one, b"").status, 204);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let malformed = ["Bearer", "", "Basic b25lOnR3bw==", "bearer\tx", "Bearer "];
    let none: Vec<_> = malformed.map(str::to_owned).to_vec();
    let own = served.session("/one", &one);
    let data = Tokens {
        none: none.clone(),
        unknown: format!("{}A", own.token),
        theirs: served.session("/two", &two).token,
        read: session(&read_access),
        withdrawn,
        expired: expired.clone(),
        other_kind: one.clone(),
    };
    let access = Tokens {
        none,
        unknown: "okv_AAAAAAAAAAAAAAAAAAAAAAAAAAAA".into(),
        theirs: two,
        read: read_access,
        withdrawn: withdrawn_access,
        expired,
        other_kind: own.token.clone(),
    };
    let ask_as = |method: &str, path: &str, header: Option<&str>, body: &[u8]| {
        let mut headers = Vec::new();
        if path.starts_with("/v2/") {
            headers.push(("x-denokv-version", "3"));
            headers.push(("x-denokv-database-id", own.database.as_str()));
        }
        headers.extend(header.map(|header| ("authorization", header)));
        if path == "/v2/watch" || path == "/v2/openkv/feed" {
            // An authorized stream is endless: its status counts.
            let stream = crate::client::send(served.address(), method, path, &headers, body);
            return crate::client::status(stream);
        }
        ask(served.address(), method, path, &headers, body).status
    };
    let verb = |verb: Command| format!("/v2/openkv/call/{}", verb.number());
    let [count, vacuum, backup] = [Command::Count, Command::Vacuum, Command::Backup].map(verb);
    let offer = b"{\"supportedVersions\":[3]}".to_vec();
    let rights = b"{\"rights\":\"read\"}".to_vec();
    let follow = write_request(&KeyRange { start: key("a"), end: key("b") }, None);
    let routes: [(&str, &str, Vec<u8>, &Tokens, Expected); 20] = [
        (
            "POST",
            "/v2/snapshot_read",
            body("snapshot_read"),
            &data,
            [401, 401, 400, 200, 401, 401, 401],
        ),
        (
            "POST",
            "/v2/atomic_write",
            body("atomic_write"),
            &data,
            [401, 401, 400, 403, 401, 401, 401],
        ),
        ("POST", "/v2/watch", body("watch"), &data, [401, 401, 400, 200, 401, 401, 401]),
        ("POST", "/v2/openkv/feed", follow, &data, [401, 401, 400, 200, 401, 401, 401]),
        ("POST", "/v2/openkv/consume", vec![], &data, [401, 401, 400, 403, 401, 401, 401]),
        ("POST", "/v2/openkv/receive", vec![], &data, [401, 401, 400, 403, 401, 401, 401]),
        ("POST", "/v2/openkv/read", with_count(0, b""), &data, [401, 401, 400, 200, 401, 401, 401]),
        (
            "POST",
            "/v2/openkv/write",
            with_count(0, b""),
            &data,
            [401, 401, 400, 403, 401, 401, 401],
        ),
        ("POST", &count, count_all(), &data, [401, 401, 400, 200, 401, 401, 401]),
        ("POST", &vacuum, vec![], &data, [401, 401, 400, 403, 401, 401, 401]),
        // It writes on the server's own machine: no client may call it.
        ("POST", &backup, vec![], &data, [404; 7]),
        ("POST", "/one", offer, &access, [401, 401, 401, 200, 401, 401, 401]),
        ("GET", "/v1/admin/databases", vec![], &access, [401; 7]),
        ("POST", "/v1/admin/databases", b"{\"name\":\"b\"}".to_vec(), &access, [401; 7]),
        ("GET", "/v1/admin/databases/one", vec![], &access, [401, 401, 401, 403, 401, 401, 401]),
        ("DELETE", "/v1/admin/databases/one", vec![], &access, [401; 7]),
        ("PUT", "/v1/admin/databases/one/quotas", b"{}".to_vec(), &access, [401; 7]),
        (
            "POST",
            "/v1/admin/databases/one/tokens",
            rights,
            &access,
            [401, 401, 401, 403, 401, 401, 401],
        ),
        (
            "DELETE",
            "/v1/admin/databases/one/tokens/1",
            vec![],
            &access,
            [401, 401, 401, 403, 401, 401, 401],
        ),
        ("GET", "/v1/admin/databases/none", vec![], &access, [401; 7]),
    ];
    for (method, path, body, tokens, expected) in routes {
        let found = statuses(tokens, |header| ask_as(method, path, header, &body));
        assert_eq!(found, expected, "{method} {path}");
    }
    // The database is unchanged.
    assert_eq!(served.session("/one", &one).get("a"), None);
}
