//! Archives of a server's databases: by its default, and by policies of the admin API.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use openkv::archive::{RestoreOptions, list, restore};
use openkv::model::Kind;
use openkv::server::Server;
use openkv::server::options::{ArchiveRequest, ServerOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{ADMIN, Served, file, folder_options};

const PATIENCE: Duration = Duration::from_secs(60);

fn to(target: &Path) -> Option<ArchiveRequest> {
    serde_json::from_value(json!({ "to": target })).expect("a policy")
}

/// A folder of databases and the folder of their archives.
struct Archived {
    served: Served,
    targets: TempDir,
    has_default: bool,
}

fn archived(has_default: bool) -> Archived {
    let (folder, targets) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let server = start(&folder, &targets, has_default);
    Archived { served: Served { server, folder }, targets, has_default }
}

fn start(folder: &TempDir, targets: &TempDir, has_default: bool) -> Server {
    let archive = if has_default { to(targets.path()) } else { None };
    Server::start(ServerOptions { archive, ..folder_options(folder) }).expect("a server")
}

impl Archived {
    fn target(&self, name: &str) -> PathBuf {
        self.targets.path().join(name)
    }

    /// Closes the server; `between` happens while there is none.
    fn restart(&mut self, between: impl FnOnce(&Self)) {
        self.served.server.close();
        between(self);
        self.served.server = start(&self.served.folder, &self.targets, self.has_default);
    }

    fn path(name: &str) -> String {
        format!("/v1/admin/databases/{name}/archive")
    }

    fn shown(&self, name: &str) -> Value {
        let reply = self.served.ask("GET", &Self::path(name), ADMIN, b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    fn put(&self, name: &str, policy: &Value) -> (u16, String) {
        let body = policy.to_string();
        let reply = self.served.ask("PUT", &Self::path(name), ADMIN, body.as_bytes());
        (reply.status, reply.text())
    }

    fn wait(&self, name: &str, until: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let shown = self.shown(name);
            if until(&shown) {
                return shown;
            }
            assert!(begun.elapsed() < PATIENCE, "{shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn metrics(&self) -> String {
        self.served.ask("GET", "/metrics", ADMIN, b"").text()
    }
}

/// The number of entries that a restore of a target gives.
fn restored(target: &Path) -> u64 {
    let folder = TempDir::new().expect("a folder");
    let options = RestoreOptions {
        target: target.to_str().expect("a name").into(),
        file: folder.path().join("restored"),
        at: None,
        range: None,
    };
    restore(&options, &mut |_, _| true).expect("a restore").entries
}

/// Whether a target has a snapshot, which a restore needs.
fn has(target: &Path) -> bool {
    let listing = list(target.to_str().expect("a name"));
    let has_snapshot = |listing: openkv::archive::Listing| {
        listing.timelines.iter().any(|timeline| !timeline.snapshots.is_empty())
    };
    listing.is_ok_and(has_snapshot)
}

#[test]
fn each_database_of_a_folder_is_archived_from_its_creation_to_its_end() {
    let mut archived = archived(true);
    let (shop, mail) = (archived.served.create("shop", "{}"), archived.served.create("mail", "{}"));
    for number in 0..10 {
        archived.served.session("/shop", &shop).set(&format!("k{number}"), b"1");
    }
    archived.served.session("/mail", &mail).set("a", b"1");
    let shown = archived.wait("shop", |shown| shown["state"] == "running");
    assert_eq!((&shown["by"], &shown["error"]), (&json!("server"), &Value::Null));
    assert_eq!(shown["to"], json!(archived.target("shop")));
    archived.wait("mail", |shown| shown["state"] == "running");
    // Everything is archived when the server is closed.
    archived.restart(|archived| {
        assert_eq!(restored(&archived.target("shop")), 10);
        assert_eq!(restored(&archived.target("mail")), 1);
    });
    // A dropped database leaves its archive, with its last commits; another one of the name gets its own.
    archived.served.session("/shop", &shop).set("last", b"1");
    let reply = archived.served.ask("DELETE", "/v1/admin/databases/shop", ADMIN, b"");
    assert_eq!(reply.status, 204, "{}", reply.text());
    assert_eq!(restored(&archived.target("shop")), 11);
    let shop = archived.served.create("shop", "{}");
    archived.served.session("/shop", &shop).set("other", b"1");
    let shown = archived.wait("shop", |shown| shown["snapshots"] == 1);
    let target = PathBuf::from(shown["to"].as_str().expect("a target"));
    let name = target.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(name.starts_with("shop.") && name.len() == "shop.".len() + 36, "{shown}");
    archived.restart(|_| assert_eq!(restored(&target), 1));
    assert_eq!(restored(&archived.target("shop")), 11);
}

/// The commits before a crash, and those of other processes, are in the file only.
#[test]
fn what_a_database_got_while_no_server_archived_it_is_archived_without_a_request() {
    let mut archived = archived(false);
    let names: Vec<String> = (0..7).map(|number| format!("d{number}")).collect();
    let tokens: Vec<String> = names.iter().map(|name| archived.served.create(name, "{}")).collect();
    for (name, token) in names.iter().zip(&tokens) {
        archived.served.session(&format!("/{name}"), token).set("a", b"1");
        assert_eq!(archived.shown(name)["state"], "off");
    }
    archived.has_default = true;
    archived.restart(|_| {});
    for name in &names {
        let shown = archived.wait(name, |shown| shown["state"] == "idle");
        assert_eq!((&shown["error"], &shown["lagMs"]), (&Value::Null, &Value::Null));
        assert_eq!(restored(&archived.target(name)), 1);
        // Nobody writes to it, and the server has it closed.
        let listing = list(archived.target(name).to_str().expect("a name")).expect("a listing");
        assert_eq!(listing.owner, None);
    }
    let metrics = archived.metrics();
    assert!(
        metrics.contains("openkv_archive_state{database=\"d3\",state=\"idle\"} 1"),
        "{metrics}"
    );
    assert!(!metrics.contains("openkv_archive_lag_seconds{database=\"d3\""), "{metrics}");
    // A client opens one: it is followed.
    let session = archived.served.session("/d3", &tokens[3]);
    session.set("b", b"1");
    archived.wait("d3", |shown| shown["state"] == "running" && shown["objects"] != 0);
    let metrics = archived.metrics();
    assert!(
        metrics.contains("openkv_archive_state{database=\"d3\",state=\"running\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("openkv_archive_lag_seconds{database=\"d3\"}"), "{metrics}");
    archived.restart(|archived| assert_eq!(restored(&archived.target("d3")), 2));
}

#[test]
fn a_policy_is_set_shown_kept_and_removed() {
    let mut archived = archived(false);
    let token = archived.served.create("shop", "{}");
    let session = archived.served.session("/shop", &token);
    session.set("a", b"1");
    let (own, other) = (archived.target("own"), archived.target("other"));
    let policy = json!({ "to": own, "snapshotEvery": "6h", "retention": "90d" });
    assert_eq!(archived.put("shop", &policy), (204, String::new()));
    let shown = archived.wait("shop", |shown| shown["snapshots"] == 1);
    assert_eq!((&shown["by"], &shown["to"]), (&json!("policy"), &json!(own)));
    assert_eq!(shown["snapshotEveryMs"], 6 * 3_600_000);
    assert_eq!(shown["retentionMs"], 90 * 86_400_000_i64);
    archived.restart(|archived| {
        let kept = archived.served.folder.path().join("openkv-server.json");
        let kept: Value =
            serde_json::from_slice(&std::fs::read(kept).expect("the registry")).expect("JSON");
        assert_eq!(kept["format"], 2);
        assert_eq!(kept["databases"][0]["archive"]["to"], json!(own));
    });
    assert_eq!(archived.shown("shop")["by"], "policy");
    // Another target: the archive goes on there.
    archived.served.session("/shop", &token).set("b", b"1");
    let has_both = |target: &Path| {
        let begun = Instant::now();
        while !has(target) || restored(target) != 2 {
            assert!(begun.elapsed() < PATIENCE, "nothing is archived");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    has_both(&own);
    assert_eq!(archived.put("shop", &json!({ "to": other })).0, 204);
    archived.wait("shop", |shown| shown["to"] == json!(other) && shown["state"] == "running");
    has_both(&other);
    let reply = archived.served.ask("DELETE", &Archived::path("shop"), ADMIN, b"");
    assert_eq!(reply.status, 204);
    let shown = archived.shown("shop");
    assert_eq!(
        (&shown["by"], &shown["state"], &shown["to"]),
        (&json!("none"), &json!("off"), &Value::Null)
    );
    // The records are those of every version again.
    let kept = archived.served.folder.path().join("openkv-server.json");
    assert!(std::fs::read_to_string(kept).expect("the registry").contains("\"format\": 1"));
}

#[test]
fn a_policy_excludes_a_database_from_the_default() {
    let mut archived = archived(true);
    archived.served.create("shop", "{}");
    let token = archived.served.create("cache", "{}");
    assert_eq!(archived.put("cache", &json!({ "to": null })).0, 204);
    archived.served.session("/cache", &token).set("a", b"1");
    archived.wait("shop", |shown| shown["snapshots"] == 1);
    let shown = archived.wait("cache", |shown| shown["state"] == "off");
    assert_eq!(shown["by"], "policy");
    archived.restart(|archived| drop(std::fs::remove_dir_all(archived.target("cache"))));
    archived.wait("shop", |shown| shown["state"] == "idle");
    assert!(!archived.target("cache").exists());
    let reply = archived.served.ask("DELETE", &Archived::path("cache"), ADMIN, b"");
    assert_eq!(reply.status, 204);
    archived.wait("cache", |shown| shown["by"] == "server" && shown["state"] == "idle");
    assert_eq!(restored(&archived.target("cache")), 1);
}

#[test]
fn policies_are_refused_with_what_to_do_and_show_no_credential() {
    let archived = archived(false);
    let own = archived.served.create("shop", "{}");
    archived.served.create("mail", "{}");
    let taken = archived.target("mail");
    assert_eq!(archived.put("mail", &json!({ "to": taken })).0, 204);
    for (policy, status, words) in [
        (json!({}), 400, "missing field `to`"),
        (json!({ "to": "backup" }), 400, "absolute path or a URL"),
        (json!({ "to": "s3://me:secret-1@bucket/x" }), 400, "credentials in the environment"),
        (json!({ "to": archived.target("x"), "retention": "soon" }), 400, "must be a duration"),
        (json!({ "to": taken }), 409, "the database 'mail' is archived there"),
    ] {
        let (given, text) = archived.put("shop", &policy);
        assert_eq!(given, status, "{policy}: {text}");
        assert!(text.contains(words) && !text.contains("secret-1"), "{text}");
    }
    assert_eq!(archived.shown("shop")["by"], "none");
    // Targets are places of the operator: no tenant sees or sets one.
    for method in ["GET", "PUT", "DELETE"] {
        let reply = archived.served.ask(method, &Archived::path("shop"), &own, b"{}");
        assert!(matches!(reply.status, 401 | 403), "{method}: {}", reply.status);
        let reply = archived.served.ask(method, &Archived::path("none"), ADMIN, b"{\"to\":null}");
        assert_eq!(reply.status, 404, "{method}");
    }
    assert_eq!(archived.served.ask("POST", &Archived::path("shop"), ADMIN, b"").status, 405);
}

#[test]
fn a_target_that_fails_is_tried_again_and_said() {
    let archived = archived(false);
    let token = archived.served.create("shop", "{}");
    archived.served.session("/shop", &token).set("a", b"1");
    let target = archived.target("with-mine");
    std::fs::create_dir(&target).expect("a folder");
    std::fs::write(target.join("mine"), "x").expect("a file");
    assert_eq!(archived.put("shop", &json!({ "to": target })).0, 204);
    let shown =
        archived.wait("shop", |shown| shown["failures"] != 0 && shown["state"] == "failing");
    assert!(shown["error"].as_str().is_some_and(|error| error.contains("no archive")), "{shown}");
    let metrics = archived.metrics();
    assert!(
        metrics.contains("openkv_archive_state{database=\"shop\",state=\"failing\"} 1"),
        "{metrics}"
    );
    assert!(!metrics.contains("with-mine"), "clients see metrics: {metrics}");
    std::fs::remove_file(target.join("mine")).expect("a removal");
    let shown = archived.wait("shop", |shown| shown["state"] == "running");
    assert!(shown["failures"].as_u64().is_some_and(|failures| failures > 0), "{shown}");
    assert_eq!(shown["error"], Value::Null);
}

#[test]
fn a_file_is_archived_and_an_unusable_target_ends_the_start() {
    let targets = TempDir::new().expect("a folder");
    let target = targets.path().join("app");
    let mut served = file(|options| options.archive = to(&target));
    let session = served.session("/", crate::served::ACCESS);
    session.set("a", b"1");
    session.set("b", b"1");
    served.server.close();
    assert_eq!(restored(&target), 2);
    std::fs::write(targets.path().join("mine"), "x").expect("a file");
    let folder = TempDir::new().expect("a folder");
    for (unusable, words) in
        [(targets.path().to_owned(), "not empty and no archive"), (target, "another database")]
    {
        let options = ServerOptions {
            path: folder.path().join("kv.sqlite3"),
            access_token: Some(crate::served::ACCESS.into()),
            archive: to(&unusable),
            ..crate::served::options()
        };
        let error = Server::start(options).err().expect("a refusal");
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().contains(words), "{error}");
    }
}
