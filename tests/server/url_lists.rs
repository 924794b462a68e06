//! A client with the URLs of several servers of one database.

use std::sync::Arc;
use std::time::Duration;

use openkv::database::Database;
use openkv::model::{Kind, Result};
use openkv::open::{Target, open};
use openkv::protocol::Command;
use openkv::remote::Client;

use crate::extension::{call, count_all};
use crate::served::{ACCESS, Served, file};

fn connect(urls: &[String]) -> Result<Arc<Client>> {
    let target = Target::Url {
        urls: urls.to_vec(),
        access_token: ACCESS.into(),
        timeout: Duration::from_secs(10),
        retries: true,
        replica: None,
    };
    open(&target).map(|opened| {
        let Database::Remote(client) = opened else { panic!("URLs give a remote database") };
        client
    })
}

/// URLs of no server: no test gets these ports.
const NOBODY: [&str; 2] = ["http://127.0.0.1:1/", "http://127.0.0.1:2/"];

/// Two servers of one file, with one entry.
fn two_servers() -> (Served, Served) {
    let first = file(|_| ());
    first.session("/", ACCESS).set("a", b"1");
    let path = first.folder.path().join("kv.sqlite3");
    let second = file(|options| options.path = path);
    (first, second)
}

fn count(client: &Client) -> Result<Vec<u8>> {
    call(client, Command::Count, &count_all())
}

fn one() -> Vec<u8> {
    1_f64.to_le_bytes().to_vec()
}

#[test]
fn the_next_url_is_tried_when_the_first_is_not_reached() {
    let (first, _second) = two_servers();
    let client =
        connect(&[NOBODY[0].into(), first.server.url(), NOBODY[1].into()]).expect("a client");
    assert_eq!(count(&client), Ok(one()));
}

#[test]
fn a_client_moves_to_another_server_of_the_database_when_its_own_ends() {
    let (mut first, second) = two_servers();
    let client = connect(&[first.server.url(), second.server.url()]).expect("a client");
    assert_eq!(count(&client), Ok(one()));
    first.server.close();
    assert_eq!(count(&client), Ok(one()));
}

#[test]
fn a_server_of_another_database_is_refused_with_both_urls() {
    let (mut first, second) = (file(|_| ()), file(|_| ()));
    let urls = [first.server.url(), second.server.url()];
    let client = connect(&urls).expect("a client");
    first.server.close();
    let error = count(&client).expect_err("another database");
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    for url in urls {
        assert!(error.message().contains(&url), "{error}");
    }
    assert!(!error.message().contains(ACCESS));
}

#[test]
fn without_a_server_the_error_has_the_reason_of_each_url() {
    let target = Target::Url {
        urls: NOBODY.map(String::from).to_vec(),
        access_token: ACCESS.into(),
        // Long enough for an exchange with a port of this machine.
        timeout: Duration::from_millis(500),
        retries: true,
        replica: None,
    };
    let error = open(&target).map(|_| ()).expect_err("no server");
    assert_eq!(error.kind(), Kind::Unavailable);
    for url in NOBODY {
        assert!(error.message().contains(url), "{error}");
    }
}
