//! A store whose requests are counted.
//!
//! Duty: count each request before it is sent, and the bytes of objects.
//! Never: another request, or another answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use openkv_core::model::{OBJECT_LIST_PAGE_ENTRIES, RequestCounts};

/// The counters of a target.
#[derive(Debug, Default)]
pub(super) struct Counters {
    get: AtomicU64,
    put: AtomicU64,
    list: AtomicU64,
    delete: AtomicU64,
    got_bytes: AtomicU64,
    put_bytes: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn counts(&self) -> RequestCounts {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RequestCounts {
            get: now(&self.get),
            put: now(&self.put),
            list: now(&self.list),
            delete: now(&self.delete),
            got_bytes: now(&self.got_bytes),
            put_bytes: now(&self.put_bytes),
        }
    }

    fn put(&self, payload: &PutPayload) {
        add(&self.put, 1);
        add(&self.put_bytes, payload.content_length() as u64);
    }
}

#[derive(Debug)]
pub(super) struct Counted {
    inner: Arc<dyn ObjectStore>,
    counters: Arc<Counters>,
}

impl Counted {
    pub(super) fn new(inner: Arc<dyn ObjectStore>, counters: Arc<Counters>) -> Self {
        Self { inner, counters }
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.counters.put(&payload);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        add(&self.counters.put, 1);
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(CountedUpload { inner, counters: self.counters.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        add(&self.counters.get, 1);
        let is_head = options.head;
        let got = self.inner.get_opts(location, options).await?;
        if !is_head {
            add(&self.counters.got_bytes, got.range.end.saturating_sub(got.range.start));
        }
        Ok(got)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let counters = self.counters.clone();
        let counted = locations.inspect(move |_| add(&counters.delete, 1));
        self.inner.delete_stream(counted.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let counters = self.counters.clone();
        add(&counters.list, 1);
        let mut found = 0_u64;
        let listed = self.inner.list(prefix).inspect(move |_| {
            // The next one is on another page.
            if found > 0 && found.is_multiple_of(OBJECT_LIST_PAGE_ENTRIES) {
                add(&counters.list, 1);
            }
            found += 1;
        });
        listed.boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        add(&self.counters.list, 1);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        add(&self.counters.put, 1);
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct CountedUpload {
    inner: Box<dyn MultipartUpload>,
    counters: Arc<Counters>,
}

#[async_trait]
impl MultipartUpload for CountedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.counters.put(&data);
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        add(&self.counters.put, 1);
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        add(&self.counters.delete, 1);
        self.inner.abort().await
    }
}
