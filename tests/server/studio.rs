//! The studio: its files are answered to browsers, and nothing else of the machine is.

use std::fs;

use tempfile::TempDir;

use crate::client::{Reply, ask};
use crate::served::{ACCESS, Served, file, folder_options};

const HTML: [(&str, &str); 1] = [("accept", "text/html,*/*;q=0.8")];

/// A folder as the build leaves it, and a file beside it.
fn built() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let studio = folder.path().join("studio");
    fs::create_dir(&studio).expect("a folder");
    for (name, text) in [
        ("index.html", "<!doctype html>page"),
        ("app-1.js", "let app"),
        ("app-1.js.gz", "compressed"),
        ("notes.txt", "not of the studio"),
    ] {
        fs::write(studio.join(name), text).expect("a file");
    }
    fs::write(folder.path().join("secret.js"), "secret").expect("a file");
    folder
}

fn with_studio(built: &TempDir) -> Served {
    file(|options| options.studio = Some(built.path().join("studio")))
}

fn get(served: &Served, path: &str, headers: &[(&str, &str)]) -> Reply {
    ask(served.address(), "GET", path, headers, b"")
}

#[test]
fn a_browser_gets_the_page_with_a_strict_policy() {
    let built = built();
    let served = with_studio(&built);
    let page = get(&served, "/", &HTML);
    assert_eq!((page.status, page.text().as_str()), (200, "<!doctype html>page"));
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
         img-src 'self' blob: data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
         form-action 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-cache",
        "content-type: text/html",
    ] {
        assert!(page.headers.contains(header), "{header}: {}", page.headers);
    }
    let head = ask(served.address(), "HEAD", "/", &HTML, b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn files_are_compressed_for_clients_that_accept_it_and_kept_for_ever() {
    let built = built();
    let served = with_studio(&built);
    let plain = get(&served, "/~studio/app-1.js", &[]);
    assert_eq!((plain.status, plain.text().as_str()), (200, "let app"));
    assert!(plain.headers.contains("immutable"), "{}", plain.headers);
    let gzip = get(&served, "/~studio/app-1.js", &[("accept-encoding", "gzip, br")]);
    assert_eq!(gzip.text(), "compressed");
    assert!(gzip.headers.contains("content-encoding: gzip"), "{}", gzip.headers);
    assert!(gzip.headers.contains("vary: accept-encoding"), "{}", gzip.headers);
}

#[test]
fn no_other_file_is_answered() {
    let built = built();
    let served = with_studio(&built);
    for path in [
        "/~studio/notes.txt",
        "/~studio/app-1.js.gz",
        "/~studio/../secret.js",
        "/~studio/..%2fsecret.js",
        "/~studio/%2e%2e%2fsecret.js",
        "/~studio/..%5csecret.js",
        "/~studio/",
        "/~studio/none.js",
    ] {
        let reply = get(&served, path, &HTML);
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
    }
}

/// Clients of KV Connect use the same URL.
#[test]
fn other_clients_of_the_url_notice_nothing() {
    let built = built();
    let (with, without) = (with_studio(&built), file(|_| {}));
    for served in [&with, &without] {
        let body = b"{\"supportedVersions\":[3]}";
        assert_eq!(served.ask("POST", "/", ACCESS, body).status, 200);
        assert_eq!(served.ask("POST", "/", "wrong", body).status, 401);
        assert_eq!(get(served, "/", &[("accept", "*/*")]).status, 405);
        assert_eq!(ask(served.address(), "PUT", "/", &HTML, b"").status, 405);
    }
    assert_eq!(get(&without, "/", &HTML).status, 405);
    assert_eq!(get(&without, "/~studio/server.json", &[]).status, 404);
}

#[test]
fn a_page_of_another_name_is_refused() {
    let built = built();
    let served = with_studio(&built);
    let head =
        b"GET / HTTP/1.1\r\nhost: evil.example\r\naccept: text/html\r\nconnection: close\r\n\r\n";
    assert_eq!(crate::client::raw(served.address(), head).status, 403);
}

#[test]
fn the_page_learns_whether_there_are_many_databases() {
    let built = built();
    let one = with_studio(&built);
    let about = get(&one, "/~studio/server.json", &[]).json();
    assert_eq!((about["databases"].as_str(), about["open"].as_bool()), (Some("one"), Some(false)));
    let folder = TempDir::new().expect("a folder");
    let mut options = folder_options(&folder);
    options.studio = Some(built.path().join("studio"));
    let server = openkv::server::Server::start(options).expect("a server");
    let many = Served { server, folder };
    assert_eq!(get(&many, "/~studio/server.json", &[]).json()["databases"], "many");
    assert_eq!(get(&many, "/", &HTML).text(), "<!doctype html>page");
    assert_eq!(get(&many, "/", &[]).status, 404);
}

#[test]
fn a_studio_that_is_not_built_says_how_to_build_it() {
    let folder = TempDir::new().expect("a folder");
    let served = file(|options| options.studio = Some(folder.path().join("none")));
    let page = get(&served, "/", &HTML);
    assert_eq!(page.status, 200);
    assert!(page.text().contains("npm run build:studio"), "{}", page.text());
    // Built while the server runs.
    fs::create_dir(folder.path().join("none")).expect("a folder");
    fs::write(folder.path().join("none/index.html"), "built").expect("a file");
    assert_eq!(get(&served, "/", &HTML).text(), "built");
}
