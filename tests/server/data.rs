//! The data path: written values are read, and invalid requests are refused in order and by name.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use openkv::connect::schema;
use openkv::connect::wire::atomic_write::WriteAnswer;
use openkv::model::REQUEST_HEAD_MS_MAX;
use openkv::server::Server;
use openkv::server::options::TlsFiles;
use prost::Message;

use crate::client::ask;
use crate::served::{ACCESS, READ, Served, delete, file, folder, folder_options, read, set};

#[test]
fn written_values_are_read() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    assert_eq!(session.get("a"), None);
    let WriteAnswer::Committed(stamp) = session.set("a", b"one") else { panic!("not committed") };
    let entry = session.get("a").expect("an entry");
    assert_eq!((entry.stamp, entry.value.bytes.as_slice()), (stamp, &b"one"[..]));
    // Another server on the same file finds it, under the same id.
    let (folder, database) = (served.folder, session.database);
    drop(served.server);
    let options = |of: &mut openkv::server::options::ServerOptions| {
        of.path = folder.path().join("kv.sqlite3");
        of.readonly = true;
    };
    let served = file(options);
    let session = served.session("/", ACCESS);
    assert_eq!(session.database, database);
    assert_eq!(session.get("a").expect("an entry").value.bytes, b"one");
    assert_eq!(session.set("a", b"two"), WriteAnswer::Disabled);
}

#[test]
fn every_version_has_its_headers() {
    let served = file(|_| ());
    let offers = [("", 1), ("{\"supportedVersions\":[1]}", 1), ("{\"supportedVersions\":[2]}", 2)];
    for (offer, version) in offers {
        let reply = served.ask("POST", "/", ACCESS, offer.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(reply.headers.contains("content-type: application/json\r\n"), "{}", reply.headers);
        let metadata = reply.json();
        assert_eq!(metadata["version"], version);
        let url = metadata["endpoints"][0]["url"].as_str().expect("a URL").to_owned();
        let expected = if version == 1 {
            format!("http://{}/v2", served.address())
        } else {
            "./v2".to_owned()
        };
        assert_eq!(url, expected);
        let bearer = format!("Bearer {}", metadata["token"].as_str().expect("a token"));
        let database = metadata["databaseId"].as_str().expect("an id");
        let headers: &[_] = if version == 1 {
            &[("authorization", bearer.as_str()), ("x-transaction-domain-id", database)]
        } else {
            &[
                ("authorization", bearer.as_str()),
                ("x-denokv-version", "2"),
                ("x-denokv-database-id", database),
            ]
        };
        let reply = ask(served.address(), "POST", "/v2/snapshot_read", headers, &read("a"));
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    for (offer, words) in [("{\"supportedVersions\":[4]}", "negotiate"), ("[", "supportedVersions")]
    {
        let reply = served.ask("POST", "/", ACCESS, offer.as_bytes());
        assert_eq!(reply.status, 400);
        assert!(reply.text().contains(words), "{}", reply.text());
    }
}

#[test]
fn a_request_is_looked_at_in_order() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let bearer = format!("Bearer {}", session.token);
    let good = [
        ("authorization", bearer.as_str()),
        ("x-denokv-version", "3"),
        ("x-denokv-database-id", session.database.as_str()),
    ];
    let path = "/v2/snapshot_read";
    let cases = [
        ("POST", "/v2/other", Vec::new(), 404, "Resource not found."),
        ("POST", "/v1/admin/databases", vec![], 404, "Resource not found."),
        ("GET", path, vec![], 405, "use POST"),
        ("POST", path, vec![], 401, "Missing authorization header"),
        ("POST", path, vec![("authorization", "Bearer")], 401, "Malformed"),
        ("POST", path, vec![("authorization", "Bearer x")], 401, "Invalid access token."),
        ("POST", path, vec![good[0], ("x-denokv-version", "9")], 400, "protocol version"),
        ("POST", path, good[..2].to_vec(), 400, "Invalid database id."),
        ("POST", path, good.to_vec(), 400, "Protobuf is invalid"),
    ];
    for (method, path, headers, status, words) in cases {
        // The body is invalid each time, and checked last.
        let reply = ask(served.address(), method, path, &headers, b"\xff");
        assert_eq!(reply.status, status, "{}", reply.text());
        assert!(reply.text().contains(words), "{}", reply.text());
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(served.address(), "GET", path, &[], b"").status, 200);
        assert_eq!(ask(served.address(), "POST", path, &[], b"").status, 405);
    }
}

#[test]
fn bodies_have_a_bound() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let over = vec![0; 2 * 1024 * 1024 + 1];
    for verb in ["snapshot_read", "atomic_write", "watch"] {
        let reply = session.post(verb, &over);
        assert_eq!(reply.status, 413, "{verb}");
        // Without a token none of it is read.
        let path = format!("/v2/{verb}");
        assert_eq!(ask(served.address(), "POST", &path, &[], &over).status, 401);
    }
    assert_eq!(served.ask("POST", "/", ACCESS, &over).status, 413);
}

#[test]
fn hostile_bodies_are_refused_and_nothing_else() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let mutation = |mutation_type, data: &[u8], encoding| {
        let value = Some(schema::KvValue { data: data.to_vec(), encoding });
        let key = b"\x02a\x00".to_vec();
        let mutation = schema::Mutation { key, value, mutation_type, ..Default::default() };
        schema::AtomicWrite { mutations: vec![mutation], ..Default::default() }.encode_to_vec()
    };
    let cases = [
        mutation(1, b"1234567", 2),
        mutation(1, b"not V8", 1),
        mutation(1, b"", 99),
        mutation(77, b"", 3),
        mutation(4, b"text", 3),
        [0x0a, 0].repeat(500_000),
        [0x12, 0].repeat(500_000),
        vec![0x0b; 100_000],
    ];
    for (at, body) in cases.iter().enumerate() {
        let reply = session.post("atomic_write", body);
        assert_eq!(reply.status, 400, "{at}: {}", reply.text());
    }
    let seed = set("a", &[7; 300]);
    for at in 0..seed.len() {
        for bit in [1, 0x80] {
            let mut body = seed.clone();
            body[at] ^= bit;
            assert!([200, 400].contains(&session.post("atomic_write", &body).status), "{at}");
        }
    }
    assert!(matches!(session.set("b", b"still here"), WriteAnswer::Committed(_)));
}

#[test]
fn bodies_that_are_cut_anywhere_are_answered() {
    let served = file(|_| ());
    let session = served.session("/", ACCESS);
    let mutations = [("a", 40), ("b", 1)].map(|(name, len)| {
        let set =
            schema::AtomicWrite::decode(set(name, &vec![7; len]).as_slice()).expect("a write");
        set.mutations[0].clone()
    });
    let key = b"\x02a\x00".to_vec();
    let check = schema::Check { key: key.clone(), versionstamp: vec![0; 10] };
    let message = schema::Enqueue {
        payload: vec![0xff, 0x0f, 0x30],
        keys_if_undelivered: vec![key],
        backoff_schedule: vec![1, 100_000],
        ..Default::default()
    };
    let write = schema::AtomicWrite {
        checks: vec![check],
        mutations: mutations.to_vec(),
        enqueues: vec![message],
    };
    let watch = openkv::connect::wire::watch::write_request(&[crate::served::key("a")]);
    for (verb, whole) in
        [("snapshot_read", read("a")), ("atomic_write", write.encode_to_vec()), ("watch", watch)]
    {
        assert_eq!(session.status(verb, &whole), 200, "{verb}");
        for end in 0..whole.len() {
            let status = session.status(verb, &whole[..end]);
            assert!([200, 400].contains(&status), "{verb} cut at {end}: {status}");
        }
    }
    let offer = b"{\"supportedVersions\":[1,2,3]}";
    for end in 1..offer.len() {
        assert_eq!(served.ask("POST", "/", ACCESS, &offer[..end]).status, 400, "{end}");
    }
    assert!(matches!(session.set("b", b"still here"), WriteAnswer::Committed(_)));
}

#[test]
fn quotas_are_reported() {
    let served = file(|options| {
        options.quotas.operations_per_second = Some(5);
        options.quotas.bytes = Some(100_000);
    });
    let session = served.session("/", READ);
    let replies: Vec<_> = (0..20).map(|_| session.post("snapshot_read", &read("a"))).collect();
    let refused: Vec<_> = replies.iter().filter(|reply| reply.status == 429).collect();
    assert!(!refused.is_empty());
    assert!(refused[0].headers.contains("retry-after: 1"), "{}", refused[0].headers);
    assert!(refused[0].text().contains("quota of operations (max 5 a second)"));

    let served = file(|options| options.quotas.bytes = Some(100_000));
    let session = served.session("/", ACCESS);
    let full = (0..100).find_map(|at| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let reply = session.post("atomic_write", &set(&format!("k{at}"), &[1; 60_000]));
        (reply.status != 200).then_some(reply)
    });
    let full = full.expect("a refusal");
    assert_eq!(full.status, 429);
    assert!(full.text().contains("storage"), "{}", full.text());
    assert_eq!(session.post("atomic_write", &delete("k0")).status, 200);

    let served = file(|options| options.quotas.queue_depth = Some(2));
    let session = served.session("/", ACCESS);
    let payload = vec![0xff, 0x0f, 0x30];
    let enqueues = vec![schema::Enqueue { payload, ..Default::default() }];
    let message = schema::AtomicWrite { enqueues, ..Default::default() }.encode_to_vec();
    let statuses = [(); 3].map(|()| session.post("atomic_write", &message).status);
    assert_eq!(statuses, [200, 200, 429]);
}

/// A closing server waited for clients that had sent nothing, or half of a request.
#[test]
fn a_closing_server_does_not_wait_for_idle_clients() {
    let tls = || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("__test__/server/tls");
        Some(TlsFiles { cert: folder.join("cert.pem"), key: folder.join("key.pem") })
    };
    for tls in [None, tls()] {
        let mut served = file(|options| options.tls = tls);
        let strangers = ["", "POST / HTTP/1.1\r\nhost: a\r\n", "PRI * HT"].map(|said| {
            let mut stranger = TcpStream::connect(served.address()).expect("a connection");
            stranger.write_all(said.as_bytes()).expect("a part of a head");
            stranger
        });
        // The connections have been accepted.
        std::thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        served.server.close();
        assert!(begun.elapsed() < Duration::from_millis(REQUEST_HEAD_MS_MAX / 2));
        drop(strangers);
    }
}

/// The bodies of 422 and 503 showed where the server keeps its files.
#[test]
fn an_error_of_a_file_shows_no_path_of_the_server() {
    let served = folder();
    let token = served.create("shop", "{}");
    let Served { server, folder } = served;
    drop(server);
    let files = std::fs::read_dir(folder.path()).expect("files");
    let names = files.map(|file| file.expect("a file").path());
    for path in names.filter(|path| path.to_string_lossy().contains(".sqlite3")) {
        std::fs::write(path, [b'x'; 8192]).expect("damage");
    }
    let server = Server::start(folder_options(&folder)).expect("a server");
    let served = Served { server, folder };
    let reply = served.session("/shop", &token).post("snapshot_read", &read("a"));
    assert_eq!(reply.status, 422, "{}", reply.text());
    let root = served.folder.path().to_string_lossy().into_owned();
    assert!(!reply.text().contains(&root), "{}", reply.text());
    assert!(reply.text().starts_with("the database: "), "{}", reply.text());
}
