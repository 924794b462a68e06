//! An object store that fails: it refuses, loses its answers, cuts them, or is slow.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

pub(super) const NEVER: u64 = 0;
/// Six of 16 requests.
pub(super) const OFTEN: u64 = 60;
/// Six of 128 requests.
pub(super) const SELDOM: u64 = 57;

#[derive(Debug)]
pub(super) struct Faulty {
    inner: InMemory,
    /// How many bits of a mixture decide: [`NEVER`], [`OFTEN`] or [`SELDOM`].
    pub(super) rate: AtomicU64,
    /// Every request so far; it decides which one fails, and how.
    requests: AtomicU64,
    pub(super) faults: AtomicU64,
}

#[derive(Debug)]
enum Fault {
    Refused,
    Lost,
    Cut,
    Slow,
}

impl Faulty {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: InMemory::new(),
            rate: OFTEN.into(),
            requests: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        })
    }

    fn fault(&self) -> Option<Fault> {
        let rate = self.rate.load(Ordering::SeqCst);
        if rate == NEVER {
            return None;
        }
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        // A mixture that repeats nothing for long.
        let fault = match number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> rate {
            0 | 1 => Fault::Refused,
            2 | 3 => Fault::Lost,
            4 => Fault::Cut,
            5 => Fault::Slow,
            _ => return None,
        };
        self.faults.fetch_add(1, Ordering::SeqCst);
        Some(fault)
    }
}

fn refused() -> Error {
    Error::Generic { store: "faulty", source: "503 Slow Down".into() }
}

async fn slow() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        match self.fault() {
            Some(Fault::Refused) => Err(refused()),
            Some(Fault::Lost | Fault::Cut) => {
                self.inner.put_opts(location, payload, options).await?;
                Err(refused())
            }
            Some(Fault::Slow) => {
                slow().await;
                self.inner.put_opts(location, payload, options).await
            }
            None => self.inner.put_opts(location, payload, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        match self.fault() {
            Some(Fault::Slow) | None => self.inner.put_multipart_opts(location, options).await,
            Some(_) => Err(refused()),
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let fault = self.fault();
        if matches!(fault, Some(Fault::Refused | Fault::Lost)) {
            return Err(refused());
        }
        let mut got = self.inner.get_opts(location, options).await?;
        match fault {
            Some(Fault::Cut) => {
                let (range, meta, attributes) =
                    (got.range.clone(), got.meta.clone(), got.attributes.clone());
                let extensions = got.extensions.clone();
                let bytes = got.bytes().await?;
                let half = bytes.slice(0..bytes.len() / 2);
                let payload = futures_util::stream::once(async move { Ok::<Bytes, Error>(half) });
                got = GetResult {
                    payload: GetResultPayload::Stream(payload.boxed()),
                    meta,
                    range,
                    attributes,
                    extensions,
                };
            }
            Some(Fault::Slow) => slow().await,
            _ => {}
        }
        Ok(got)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.fault() {
            Some(Fault::Slow) | None => self.inner.list(prefix),
            Some(_) => futures_util::stream::once(async { Err(refused()) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
