//! A folder or an object store: the place of an archive, or of a database. Only the files of this
//! folder name `object_store`.
//!
//! Duty: put, get, list and remove objects, and explain errors.
//! Invariant: no message has credentials, or the query of a URL, which may have some.
//! Never: replace an object, except where a caller names the version that it replaces.

mod counted;
mod explain;
mod http;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{join_all, ready};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    ClientOptions, GetOptions, GetRange, GetResult, ObjectStore, ObjectStoreExt, ObjectStoreScheme,
    PutMode, PutOptions, RetryConfig, UpdateVersion, WriteMultipart,
};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use counted::{Counted, Counters};
use explain::explain;
use http::{Attempts, Connector};
use openkv_core::model::{
    ARCHIVE_PART_BYTES, ARCHIVE_REQUEST_MS_MAX, ARCHIVE_RETRIES_MAX, Error, Kind, RequestCounts,
    Result,
};

/// The runtime of all requests to targets of the process.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("openkv-archive-io")
        .enable_all()
        .build()
});

/// Longest time of a request with its repetitions: the store has repeated it by itself for so long.
const REQUEST: Duration = Duration::from_millis(ARCHIVE_REQUEST_MS_MAX);

/// Attempts to read an object whose content arrives damaged.
pub const READS: usize = 3;

/// The file whose lock excludes other writers of a folder.
pub const LOCK: &str = "openkv-archive.lock";

/// An open target.
#[derive(Clone)]
pub struct Target {
    objects: Arc<dyn ObjectStore>,
    /// Its name in messages.
    name: Arc<str>,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
    counters: Arc<Counters>,
    ending: Arc<AtomicBool>,
}

/// What a URL says about its object store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings<'a> {
    /// The region of S3; otherwise that of the environment.
    pub region: Option<&'a str>,
    /// The endpoint of a store that is compatible with S3; otherwise that of the environment.
    pub endpoint: Option<&'a str>,
}

/// The result of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is new.
    New,
    /// An object of this name exists.
    Exists,
}

/// The version of an object that a write replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Option<UpdateVersion>);

/// The result of a look at an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Versioned {
    /// There is none.
    Absent,
    /// It has the version that the caller knows.
    Unchanged,
    /// Its content and its version.
    Found(Bytes, Version),
}

impl Target {
    /// The target of a path or URL. With `create` the folder is created.
    ///
    /// # Errors
    /// `Invalid` for something else, and for a URL with credentials; `Unavailable` for a folder that is
    /// missing or cannot be created.
    pub fn open(text: &str, create: bool) -> Result<Self> {
        let url =
            Url::parse(text).ok().filter(|url| text.contains("://") && url.scheme() != "file");
        let Some(url) = url else {
            let path = text.strip_prefix("file://").unwrap_or(text);
            return Self::folder(FilePath::new(path), create);
        };
        if url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(Error::invalid(
                "target: a URL of an archive has no password and no query; give credentials in the environment \
                 (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, or \
                 AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY)",
            ));
        }
        let unknown = || {
            Error::invalid(format!(
                "target: {text:?} is no place for an archive: name a folder, or a URL s3://bucket/path, \
                 gs://bucket/path or az://container/path"
            ))
        };
        Self::remote(&url, text, Settings::default())?.ok_or_else(unknown)
    }

    /// The object store of a URL without a query; `None` for a URL of something else. `name` is its name in
    /// messages.
    ///
    /// # Errors
    /// `Invalid` for a path that no object can have; for settings that the store refuses.
    pub fn remote(url: &Url, name: &str, settings: Settings<'_>) -> Result<Option<Self>> {
        let Ok((scheme, path)) = ObjectStoreScheme::parse(url) else {
            let mut bare = url.clone();
            bare.set_path("");
            return match ObjectStoreScheme::parse(&bare) {
                Ok(_) => Err(Error::invalid(format!(
                    "{name}: the path has an empty part, as in a//b, or is no text in UTF-8"
                ))),
                Err(_) => Ok(None),
            };
        };
        let retry = RetryConfig {
            max_retries: ARCHIVE_RETRIES_MAX,
            retry_timeout: Duration::from_millis(ARCHIVE_REQUEST_MS_MAX),
            ..RetryConfig::default()
        };
        let explain = |error| explain(name, &error);
        let objects: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                let mut builder = AmazonS3Builder::from_env()
                    .with_url(url.as_str())
                    .with_retry(retry)
                    .with_http_connector(Connector::default());
                if let Some(region) = settings.region {
                    builder = builder.with_region(region);
                }
                if let Some(endpoint) = settings.endpoint {
                    let plain = endpoint.starts_with("http://");
                    builder = builder.with_endpoint(endpoint).with_allow_http(plain);
                }
                Arc::new(builder.build().map_err(explain)?)
            }
            ObjectStoreScheme::GoogleCloudStorage => Arc::new(
                GoogleCloudStorageBuilder::from_env()
                    .with_url(url.as_str())
                    .with_retry(retry)
                    .with_http_connector(Connector::default())
                    .build()
                    .map_err(explain)?,
            ),
            ObjectStoreScheme::MicrosoftAzure => Arc::new(
                MicrosoftAzureBuilder::from_env()
                    .with_url(url.as_str())
                    .with_retry(retry)
                    .with_client_options(ClientOptions::new())
                    .with_http_connector(Connector::default())
                    .build()
                    .map_err(explain)?,
            ),
            _ => return Ok(None),
        };
        Ok(Some(Self::over(Arc::new(PrefixStore::new(objects, path)), name)))
    }

    /// As [`Target::open`], without any change and without a request.
    ///
    /// # Errors
    /// As [`Target::open`]; a folder need not exist.
    pub fn check(text: &str) -> Result<()> {
        let is_url = text.contains("://") && !text.starts_with("file://");
        let path = FilePath::new(text.strip_prefix("file://").unwrap_or(text));
        if is_url || path.exists() { Self::open(text, false).map(drop) } else { Ok(()) }
    }

    /// The folder of a path. With `create` it is created.
    pub fn folder(path: &FilePath, create: bool) -> Result<Self> {
        let failed = |error: &std::io::Error| {
            let kind = match error.kind() {
                std::io::ErrorKind::PermissionDenied => Kind::Denied,
                std::io::ErrorKind::NotFound => Kind::Invalid,
                _ => Kind::Unavailable,
            };
            let shown = path.display();
            Error::new(kind, format!("target: the folder {shown} cannot be used: {error}"))
        };
        if create {
            std::fs::create_dir_all(path).map_err(|error| failed(&error))?;
        }
        let folder = path.canonicalize().map_err(|error| failed(&error))?;
        if !folder.is_dir() {
            return Err(Error::invalid(format!(
                "target: {} is a file; name a folder for the archive",
                path.display()
            )));
        }
        let name = path.display().to_string();
        let objects =
            LocalFileSystem::new_with_prefix(&folder).map_err(|error| explain(&name, &error))?;
        let target = Self::over(Arc::new(objects.with_fsync(true)), &name);
        Ok(Self { folder: Some(folder), ..target })
    }

    /// A target over a store. `name` is its name in messages.
    #[must_use]
    pub fn over(objects: Arc<dyn ObjectStore>, name: &str) -> Self {
        let counters = Arc::<Counters>::default();
        let objects = Arc::new(Counted::new(objects, counters.clone()));
        Self { objects, name: name.into(), folder: None, counters, ending: Arc::default() }
    }

    /// Its owner closes: from now on no read is repeated.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether its owner closes.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> RequestCounts {
        self.counters.counts()
    }

    /// Its name in messages, without credentials.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the lock of a folder, which the process holds until it is dropped. `None` for a store that is no
    /// folder.
    ///
    /// # Errors
    /// `Unavailable` if another archiver holds it.
    pub fn lock(&self) -> Result<Option<File>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let failed = |error: &std::io::Error| {
            let kind = match error.kind() {
                std::io::ErrorKind::PermissionDenied => Kind::Denied,
                _ => Kind::Unavailable,
            };
            Error::new(kind, format!("target: {}/{LOCK}: {error}", folder.display()))
        };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(folder.join(LOCK)).map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(std::fs::TryLockError::WouldBlock) => Err(self.owned()),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(&error)),
        }
    }

    /// The error of a target that another archiver writes.
    pub fn owned(&self) -> Error {
        Error::unavailable(format!(
            "another archiver writes to {}: stop it first, or name another target; nothing was changed",
            self.name
        ))
    }

    fn wait<T>(
        &self,
        name: &str,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T> {
        self.wait_raw(work)?.map_err(|error| self.explain(name, &error))
    }

    fn wait_raw<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let runtime = RUNTIME
            .as_ref()
            .map_err(|error| Error::unavailable(format!("no runtime for the archive: {error}")))?;
        Ok(runtime.block_on(work))
    }

    fn explain(&self, name: &str, error: &object_store::Error) -> Error {
        explain(&format!("{}/{name}", self.name), error)
    }

    /// Whether the target has nothing in it.
    pub fn is_empty(&self) -> Result<bool> {
        self.any_but(LOCK).map(|found| found.is_none())
    }

    /// Reads up to [`READS`] times, but not after `longest`: the store repeats requests, but not an answer whose body
    /// breaks.
    async fn again<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        longest: Duration,
        read: impl Fn() -> F,
    ) -> object_store::Result<T> {
        let began = Instant::now();
        for _ in 1..READS {
            match read().await {
                Err(object_store::Error::Generic { .. })
                    if began.elapsed() < longest && !self.is_ending() => {}
                done => return done,
            }
        }
        read().await
    }

    /// The name of any object but this one, without listing the others.
    pub fn any_but(&self, except: &str) -> Result<Option<String>> {
        let mut listing = self.objects.list(None);
        while let Some(object) = self.wait("", async { listing.next().await.transpose() })? {
            if object.location.as_ref() != except {
                return Ok(Some(object.location.to_string()));
            }
        }
        Ok(None)
    }

    /// An object and its version; `None` without one.
    pub fn versioned(&self, name: &str) -> Result<Option<(Bytes, Version)>> {
        let path = Path::from(name);
        let got = self.wait_raw(self.again(REQUEST, || async {
            let got = self.objects.get(&path).await?;
            let (e_tag, version) = (got.meta.e_tag.clone(), got.meta.version.clone());
            Ok((whole(got).await?, UpdateVersion { e_tag, version }))
        }))?;
        match got {
            Ok((bytes, version)) => {
                Ok(Some((bytes, Version((self.folder.is_none()).then_some(version)))))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.explain(name, &error)),
        }
    }

    /// As [`Target::versioned`], without the content if the object still has a version.
    pub fn versioned_since(&self, name: &str, since: Option<&Version>) -> Result<Versioned> {
        if let Some(Version(Some(UpdateVersion { e_tag: Some(tag), .. }))) = since {
            let path = Path::from(name);
            let options =
                || GetOptions { if_none_match: Some(tag.clone()), ..GetOptions::default() };
            let got = self.wait_raw(self.again(REQUEST, || async {
                let got = self.objects.get_opts(&path, options()).await?;
                let (e_tag, version) = (got.meta.e_tag.clone(), got.meta.version.clone());
                Ok((whole(got).await?, UpdateVersion { e_tag, version }))
            }))?;
            return match got {
                Ok((bytes, version)) => Ok(Versioned::Found(bytes, Version(Some(version)))),
                Err(object_store::Error::NotModified { .. }) => Ok(Versioned::Unchanged),
                Err(object_store::Error::NotFound { .. }) => Ok(Versioned::Absent),
                Err(error) => Err(self.explain(name, &error)),
            };
        }
        let found = self.versioned(name)?;
        Ok(found.map_or(Versioned::Absent, |(bytes, version)| Versioned::Found(bytes, version)))
    }

    /// Replaces an object if it still has this version, or creates it. `None` if it has another version, because another
    /// process writes, or is gone. In a folder the caller holds [`Target::lock`] instead of a version.
    pub fn replace(
        &self,
        name: &str,
        bytes: Vec<u8>,
        version: Option<&Version>,
    ) -> Result<Option<Version>> {
        let mode = match version {
            None => PutMode::Create,
            Some(Version(None)) => PutMode::Overwrite,
            Some(Version(Some(version))) => PutMode::Update(version.clone()),
        };
        let path = Path::from(name);
        if mode == PutMode::Overwrite {
            match self.wait_raw(self.objects.head(&path))? {
                Ok(_) => {}
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(self.explain(name, &error)),
            }
        }
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.objects.put_opts(&path, bytes.into(), options);
        match self.wait_raw(put)? {
            Ok(put) => {
                let version = UpdateVersion { e_tag: put.e_tag, version: put.version };
                Ok(Some(Version((self.folder.is_none()).then_some(version))))
            }
            Err(
                object_store::Error::Precondition { .. }
                | object_store::Error::AlreadyExists { .. },
            ) => Ok(None),
            Err(error) => Err(self.explain(name, &error)),
        }
    }

    /// The folder, if it is one.
    #[must_use]
    pub fn as_folder(&self) -> Option<&FilePath> {
        self.folder.as_deref()
    }

    /// As [`Target::get`]; `None` for an object that is not there.
    pub fn find(&self, name: &str) -> Result<Option<Bytes>> {
        self.find_all(std::slice::from_ref(&name.to_owned())).map(|mut found| found.pop().flatten())
    }

    /// As [`Target::find`], for several objects at once.
    ///
    /// # Errors
    /// The first error of the store.
    pub fn find_all(&self, names: &[String]) -> Result<Vec<Option<Bytes>>> {
        let find = |name: &String| {
            let path = Path::from(name.as_str());
            async move {
                self.again(REQUEST, || async { whole(self.objects.get(&path).await?).await }).await
            }
        };
        let found = self.wait_raw(join_all(names.iter().map(find)))?;
        let each = found.into_iter().zip(names).map(|(found, name)| match found {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.explain(name, &error)),
        });
        each.collect()
    }

    /// Creates an object; never replaces one.
    ///
    /// # Errors
    /// `Denied` if nothing was created; `OutcomeUnknown` if the credentials are refused after an attempt without a clear
    /// answer, which may have created it. After other errors of the store it may exist too.
    pub fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created> {
        let path = Path::from(name);
        let attempts = Attempts::default();
        let mut options = PutOptions::from(PutMode::Create);
        options.extensions.insert(attempts.clone());
        match self.wait_raw(self.objects.put_opts(&path, bytes.into(), options))? {
            Ok(_) => Ok(Created::New),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(Created::Exists),
            Err(error) => {
                let error = self.explain(name, &error);
                let is_open = error.kind() == Kind::Denied && attempts.count() > 1;
                let kind = if is_open { Kind::OutcomeUnknown } else { error.kind() };
                Err(Error::new(kind, error.message()))
            }
        }
    }

    /// Uploads a large object in parts: `read` returns the next bytes, empty at the end. An object of this
    /// name must not exist. Nothing is there before the last part is.
    pub fn upload(&self, name: &str, mut read: impl FnMut() -> Result<Vec<u8>>) -> Result<()> {
        let path = Path::from(name);
        let upload = self.wait(name, self.objects.put_multipart(&path))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, ARCHIVE_PART_BYTES);
        let done = loop {
            match read() {
                Err(error) => break Err(error),
                Ok(bytes) if bytes.is_empty() => break Ok(()),
                Ok(bytes) => {
                    let sent = self.wait(name, async {
                        // One part at a time is under way, so that memory is bounded.
                        upload.wait_for_capacity(1).await?;
                        upload.put(bytes.into());
                        Ok(())
                    });
                    if let Err(error) = sent {
                        break Err(error);
                    }
                }
            }
        };
        match done {
            Ok(()) => self.wait(name, upload.finish()).map(drop),
            Err(error) => {
                // The first error counts.
                drop(self.wait(name, upload.abort()));
                Err(error)
            }
        }
    }

    /// The first bytes of an object.
    pub fn head(&self, name: &str, bytes: u64) -> Result<Bytes> {
        let options =
            GetOptions { range: Some(GetRange::Bounded(0..bytes)), ..GetOptions::default() };
        let path = Path::from(name);
        let got =
            self.wait_raw(async { whole(self.objects.get_opts(&path, options).await?).await })?;
        got.or_else(|error| {
            // Every range of an empty object is refused.
            let is_empty = self.wait_raw(self.objects.head(&path))?.is_ok_and(|of| of.size == 0);
            if is_empty { Ok(Bytes::new()) } else { Err(self.explain(name, &error)) }
        })
    }

    /// A whole object.
    pub fn get(&self, name: &str) -> Result<Bytes> {
        let path = Path::from(name);
        self.wait(name, async { whole(self.objects.get(&path).await?).await })
    }

    /// Passes an object in parts to `write`.
    pub fn download(&self, name: &str, mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let path = Path::from(name);
        let got = self.wait(name, self.objects.get(&path))?;
        let mut parts = got.into_stream();
        while let Some(part) = self.wait(name, parts.try_next())? {
            write(&part)?;
        }
        Ok(())
    }

    /// The names of the objects of a folder, in order, with their sizes.
    pub fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let prefix = Path::from(folder);
        let named = self
            .objects
            .list(Some(&prefix))
            .map_ok(|object| (object.location.to_string(), object.size));
        let mut names: Vec<(String, u64)> = self.wait(folder, named.try_collect())?;
        names.sort_unstable();
        Ok(names)
    }

    /// Removes objects in any order, many with one request where the store can, while `goes_on`. Those that are not there
    /// any more are no error.
    pub fn remove_at_once(
        &self,
        names: &[String],
        goes_on: impl Fn() -> bool + Send + 'static,
    ) -> Result<()> {
        let paths: Vec<_> = names.iter().map(|name| Ok(Path::from(name.as_str()))).collect();
        let paths = stream::iter(paths).take_while(move |_| ready(goes_on()));
        let mut removed = self.objects.delete_stream(paths.boxed());
        while let Some(removed) = self.wait_raw(removed.next())? {
            match removed {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(explain(&self.name, &error)),
            }
        }
        Ok(())
    }

    /// Removes objects, one after the other; those that are not there any more are no error.
    pub fn remove(&self, names: &[String]) -> Result<()> {
        for name in names {
            let removed = self.wait_raw(self.objects.delete(&Path::from(name.as_str())))?;
            match removed {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.explain(name, &error)),
            }
        }
        Ok(())
    }
}

/// The bytes of an answer, which must be as many as it has announced: a connection that breaks early is no
/// damaged object.
async fn whole(got: GetResult) -> object_store::Result<Bytes> {
    let announced = got.range.end.saturating_sub(got.range.start);
    let bytes = got.bytes().await?;
    if bytes.len() as u64 == announced {
        return Ok(bytes);
    }
    let source = format!("an answer ended after {} of {announced} bytes", bytes.len()).into();
    Err(object_store::Error::Generic { store: "archive", source })
}
