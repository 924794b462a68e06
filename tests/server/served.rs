//! A server under test, and sessions of clients with it.

use std::net::SocketAddr;

use openkv::connect::wire::atomic_write::WriteAnswer;
use openkv::connect::wire::snapshot_read::ReadAnswer;
use openkv::connect::wire::{Entry, atomic_write, snapshot_read, watch};
use openkv::connect::{metadata, versions::Version};
use openkv::model::{
    AtomicWrite, EncodedValue, Encoding, Key, Limits, Mutation, Range, WriteParts,
};
use openkv::server::Server;
use openkv::server::options::ServerOptions;
use tempfile::TempDir;

use crate::client::{Reply, Stream, ask, send, status};

pub(crate) const ACCESS: &str = "access-token-of-a-file";
pub(crate) const READ: &str = "read-token-of-a-file";
pub(crate) const ADMIN: &str = "admin-token-of-a-folder";

/// A server and the folder of its databases.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) folder: TempDir,
}

pub(crate) fn options() -> ServerOptions {
    ServerOptions { listen: "127.0.0.1:0".into(), ..ServerOptions::default() }
}

/// One database.
pub(crate) fn file(change: impl FnOnce(&mut ServerOptions)) -> Served {
    let folder = TempDir::new().expect("a folder");
    let mut options = ServerOptions {
        path: folder.path().join("kv.sqlite3"),
        access_token: Some(ACCESS.into()),
        read_token: Some(READ.into()),
        ..options()
    };
    change(&mut options);
    Served { server: Server::start(options).expect("a server"), folder }
}

/// Many databases.
pub(crate) fn folder() -> Served {
    let folder = TempDir::new().expect("a folder");
    let server = Server::start(folder_options(&folder)).expect("a server");
    Served { server, folder }
}

pub(crate) fn folder_options(folder: &TempDir) -> ServerOptions {
    ServerOptions { path: folder.path().into(), admin_token: Some(ADMIN.into()), ..options() }
}

impl Served {
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, token: &str, body: &[u8]) -> Reply {
        let bearer = format!("Bearer {token}");
        ask(self.address(), method, path, &[("authorization", &bearer)], body)
    }

    /// A database of a folder, and its admin token.
    pub(crate) fn create(&self, name: &str, quotas: &str) -> String {
        let body = format!("{{\"name\":\"{name}\",\"quotas\":{quotas}}}");
        let reply = self.ask("POST", "/v1/admin/databases", ADMIN, body.as_bytes());
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["token"].as_str().expect("a token").to_owned()
    }

    pub(crate) fn session(&self, path: &str, token: &str) -> Session {
        let offer = metadata::write_request(&Version::ALL);
        let reply = self.ask("POST", path, token, offer.as_bytes());
        assert_eq!(reply.status, 200, "{}", reply.text());
        let metadata = metadata::read_answer(&reply.body, &Version::ALL).expect("metadata");
        Session {
            address: self.address(),
            token: metadata.token,
            database: metadata.database.to_string(),
        }
    }
}

/// A client with its token of the data path.
pub(crate) struct Session {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) database: String,
}

pub(crate) fn key(name: &str) -> Key {
    Key::from_encoded([&[2], name.as_bytes(), &[0]].concat())
}

pub(crate) fn set(name: &str, bytes: &[u8]) -> Vec<u8> {
    let value = EncodedValue { encoding: Encoding::Bytes, bytes: bytes.to_vec() };
    let set = Mutation::Set { key: key(name), suffixed: false, value, expiry: None };
    one(set)
}

pub(crate) fn delete(name: &str) -> Vec<u8> {
    one(Mutation::Delete { key: key(name) })
}

fn one(mutation: Mutation) -> Vec<u8> {
    let parts = WriteParts { mutations: vec![mutation], ..WriteParts::default() };
    let write = AtomicWrite::new(parts, &Limits::default()).expect("a write");
    atomic_write::write_request(write).expect("a request")
}

pub(crate) fn read(name: &str) -> Vec<u8> {
    snapshot_read::write_request(&[Range::Point(key(name))])
}

impl Session {
    pub(crate) fn headers(&self) -> [(String, String); 3] {
        [
            ("authorization".into(), format!("Bearer {}", self.token)),
            ("x-denokv-version".into(), "3".into()),
            ("x-denokv-database-id".into(), self.database.clone()),
        ]
    }

    pub(crate) fn post(&self, verb: &str, body: &[u8]) -> Reply {
        self.post_with(verb, &[], body)
    }

    /// As [`Session::post`], with further headers.
    pub(crate) fn post_with(&self, verb: &str, more: &[(&str, &str)], body: &[u8]) -> Reply {
        let headers = self.headers();
        let headers = headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let headers: Vec<_> = headers.chain(more.iter().copied()).collect();
        ask(self.address, "POST", &format!("/v2/{verb}"), &headers, body)
    }

    /// The status of an answer that may be endless.
    pub(crate) fn status(&self, verb: &str, body: &[u8]) -> u16 {
        let headers = self.headers();
        let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        status(send(self.address, "POST", &format!("/v2/{verb}"), &headers, body))
    }

    pub(crate) fn set(&self, name: &str, bytes: &[u8]) -> WriteAnswer {
        let reply = self.post("atomic_write", &set(name, bytes));
        assert_eq!(reply.status, 200, "{}", reply.text());
        atomic_write::read_answer(&reply.body).expect("an answer")
    }

    pub(crate) fn get(&self, name: &str) -> Option<Entry> {
        let reply = self.post("snapshot_read", &read(name));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let requested = [Range::Point(key(name))];
        match snapshot_read::read_answer(&reply.body, &requested, Version::V3).expect("an answer") {
            ReadAnswer::Entries { mut ranges, .. } => ranges.remove(0).into_iter().next(),
            ReadAnswer::Disabled => panic!("reads are disabled"),
        }
    }

    pub(crate) fn watch(&self, names: &[&str]) -> Stream {
        let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
        self.stream("watch", &watch::write_request(&keys))
    }

    pub(crate) fn stream(&self, verb: &str, body: &[u8]) -> Stream {
        let headers = self.headers();
        let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        Stream::new(send(self.address, "POST", &format!("/v2/{verb}"), &headers, body))
    }
}
