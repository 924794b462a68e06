//! An object store in memory that counts requests, and fails those that a test names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not arrive.
    Refused,
    /// It happens, and its answer is lost.
    Lost,
    /// The credentials are refused.
    Denied,
    /// A condition of it is ignored.
    Unconditional,
    /// It happens once the lease is released.
    AfterRelease,
    /// It happens once [`Store::let_go`] is called.
    Held,
}

#[derive(Debug)]
pub(super) struct Store {
    inner: InMemory,
    /// Faults of requests like `PUT log/`, each for one request.
    faults: Mutex<Vec<(&'static str, Fault)>>,
    /// The requests so far.
    requests: Mutex<Vec<String>>,
    /// Objects that listings have answered.
    pub(super) listed: Arc<AtomicUsize>,
    /// A request has waited for a release, and seen it.
    pub(super) saw_release: AtomicBool,
    /// Requests that may go on, of those that are held.
    let_go: Semaphore,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            inner: InMemory::new(),
            faults: Mutex::default(),
            requests: Mutex::default(),
            listed: Arc::default(),
            saw_release: AtomicBool::default(),
            let_go: Semaphore::new(0),
        }
    }
}

impl Store {
    /// Lets one held request happen.
    pub(super) fn let_go(&self) {
        self.let_go.add_permits(1);
    }

    /// The next request that begins with this text fails.
    pub(super) fn fail(&self, request: &'static str, fault: Fault) {
        self.faults.lock().push((request, fault));
    }

    /// The requests so far that begin with this text.
    pub(super) fn requests(&self, like: &str) -> Vec<String> {
        let requests = self.requests.lock();
        requests.iter().filter(|request| request.starts_with(like)).cloned().collect()
    }

    /// Faults that have not happened.
    pub(super) fn faults(&self) -> usize {
        self.faults.lock().len()
    }

    fn note(&self, method: &str, name: &str) -> Option<Fault> {
        let request = format!("{method} {name}");
        let mut faults = self.faults.lock();
        let at = faults.iter().position(|(like, _)| request.starts_with(like));
        self.requests.lock().push(request);
        at.map(|at| faults.remove(at).1)
    }

    async fn until_released(&self) {
        for _ in 0..1_000 {
            let lease = self.inner.get(&Path::from("lease.json")).await.unwrap();
            let lease = lease.bytes().await.unwrap();
            if String::from_utf8_lossy(&lease).contains("\"released\":true") {
                return self.saw_release.store(true, Ordering::SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn refused() -> Error {
    Error::Generic { store: "test", source: "503 Slow Down".into() }
}

fn denied(path: &Path) -> Error {
    Error::PermissionDenied { path: path.to_string(), source: "403 Forbidden".into() }
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("test")
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        match self.note("PUT", location.as_ref()) {
            Some(Fault::Refused) => return Err(refused()),
            Some(Fault::Denied) => return Err(denied(location)),
            Some(Fault::Lost) => {
                self.inner.put_opts(location, payload, options).await?;
                return Err(refused());
            }
            Some(Fault::Unconditional) => options.mode = PutMode::Overwrite,
            Some(Fault::AfterRelease) => self.until_released().await,
            Some(Fault::Held) => self.let_go.acquire().await.unwrap().forget(),
            None => {}
        }
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        match self.note("UPLOAD", location.as_ref()) {
            Some(Fault::AfterRelease) => self.until_released().await,
            Some(_) => return Err(refused()),
            None => {}
        }
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self.note("GET", location.as_ref()) {
            Some(Fault::Denied) => Err(denied(location)),
            Some(_) => Err(refused()),
            None => self.inner.get_opts(location, options).await,
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.note("DELETE", "");
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.note("LIST", prefix.map(Path::as_ref).unwrap_or_default()).is_some() {
            return futures_util::stream::once(async { Err(refused()) }).boxed();
        }
        let listed = self.listed.clone();
        let count = move |_: &Result<ObjectMeta>| {
            listed.fetch_add(1, Ordering::SeqCst);
        };
        self.inner.list(prefix).inspect(count).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
