//! SlateDB: its memory has what it reads.

use std::sync::Arc;
use std::time::Duration;

use slatedb::Db;
use slatedb::config::Settings;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::aws::{AmazonS3Builder, S3ConditionalPut};

use crate::{Failed, Measured, VALUE_BYTES};

/// As short as its settings allow: a write waits for the flush that begins next.
const FLUSH_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) struct Slate(Db);

impl Slate {
    pub(crate) async fn open(endpoint: &str, path: &str) -> Result<Self, Failed> {
        let store: Arc<dyn ObjectStore> = Arc::new(
            AmazonS3Builder::from_env()
                .with_endpoint(endpoint)
                .with_allow_http(true)
                .with_bucket_name("bucket")
                .with_conditional_put(S3ConditionalPut::ETagMatch)
                .build()?,
        );
        let settings = Settings { flush_interval: Some(FLUSH_INTERVAL), ..Settings::default() };
        Ok(Self(Db::builder(path, store).with_settings(settings).build().await?))
    }
}

fn key(number: u64) -> String {
    format!("rows/{number:08}")
}

impl Measured for Slate {
    async fn put(&self, number: u64, value: [u8; VALUE_BYTES]) -> Result<(), Failed> {
        self.0.put(key(number), value).await?.await_durable().await?;
        Ok(())
    }

    async fn get(&self, number: u64) -> Result<Option<usize>, Failed> {
        Ok(self.0.get(key(number)).await?.map(|value| value.len()))
    }
}
