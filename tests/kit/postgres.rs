//! A PostgreSQL server for tests. All test processes of a checkout share it: the first starts it, and
//! `postgres.sh` ends it after the last.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, NoTls};

/// The URL of a database of openkv that nobody has used.
pub(crate) fn fresh_url() -> String {
    static PORT: OnceLock<u16> = OnceLock::new();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let port = PORT.get_or_init(shared_port);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let unique = format!("{}-{number}-{:x}", std::process::id(), getrandom::u32().expect("random"));
    format!("postgres://postgres@127.0.0.1:{port}/postgres?kv={unique}")
}

/// Runs SQL on the server of a URL.
#[allow(dead_code, reason = "not every test that includes this file runs SQL")]
pub(crate) fn on_server(url: &str, run: impl AsyncFnOnce(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let url = url.split('?').next().expect("a URL");
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
        tokio::spawn(connection);
        run(client).await;
    });
}

/// What the server has logged, for all of its users.
#[allow(dead_code, reason = "not every test that includes this file reads the log")]
pub(crate) fn log() -> String {
    fs::read_to_string(folder().join("log")).expect("the log")
}

/// The folder of the repository: a test of a crate in `crates/` begins two folders below it.
fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().find(|folder| folder.join("package.json").exists()).expect("the repository")
}

fn folder() -> PathBuf {
    repository().join("target/postgres")
}

fn shared_port() -> u16 {
    let folder = folder();
    fs::create_dir_all(&folder).expect("a folder");
    let lock_file = |name| File::create(folder.join(name)).expect("a lock file");
    let users = lock_file("users");
    users.lock_shared().expect("a lock");
    // Held until this process ends.
    std::mem::forget(users);
    let starting = lock_file("starting");
    starting.lock().expect("a lock");
    running_port(&folder).unwrap_or_else(|| start(&folder))
}

fn running_port(folder: &Path) -> Option<u16> {
    let port = fs::read_to_string(folder.join("port")).ok()?.trim().parse().ok()?;
    TcpStream::connect(("127.0.0.1", port)).ok().map(|_| port)
}

#[expect(clippy::zombie_processes, reason = "the script outlives this process")]
fn start(folder: &Path) -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let log = folder.join("log");
    let mut script = Command::new(repository().join("tests/kit/postgres.sh"))
        .arg(folder)
        .arg(port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log).expect("a log"))
        // A signal for the group of this process must not end the server of the others.
        .process_group(0)
        .spawn()
        .expect("tests/kit/postgres.sh");
    let mut said = String::new();
    let stdout = script.stdout.take().expect("its output");
    BufReader::new(stdout).read_line(&mut said).expect("its output");
    let log = fs::read_to_string(&log).unwrap_or_default();
    assert_eq!(said, "ready\n", "PostgreSQL does not start: {log}");
    port
}
