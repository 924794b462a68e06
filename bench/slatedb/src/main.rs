//! The peer of bench/bucket.mjs: SlateDB, on the same S3-compatible server. It prints one line of JSON.
//!
//! Duty: durable writes in a closed loop, some in flight, each awaited until it is in the store; then reads of what
//! was written, which its memory has.
//!
//!   openkv-bench-slatedb ENDPOINT PATH IN_FLIGHT SECONDS KEYS

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use slatedb::config::Settings;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use slatedb::Db;

/// The bytes of a value.
const VALUE_BYTES: usize = 100;
/// As short as its settings allow: a write waits for the flush that begins next.
const FLUSH_INTERVAL: Duration = Duration::from_millis(1);

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn key(number: u64) -> String {
    format!("rows/{number:08}")
}

/// Calls of `call` a second, in a closed loop.
async fn rate<F, Fut>(in_flight: u64, window: Duration, call: F) -> Result<f64, Failed>
where
    F: Fn(u64) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Failed>> + Send,
{
    let count = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut loops = Vec::new();
    for _ in 0..in_flight {
        let (count, call) = (count.clone(), call.clone());
        loops.push(tokio::spawn(async move {
            while began.elapsed() < window {
                call(count.fetch_add(1, Ordering::Relaxed)).await?;
            }
            Ok::<(), Failed>(())
        }));
    }
    for each in loops {
        each.await??;
    }
    Ok(count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, path, in_flight, seconds, keys] = arguments.as_slice() else {
        return Err("arguments: ENDPOINT PATH IN_FLIGHT SECONDS KEYS".into());
    };
    let (in_flight, keys): (u64, u64) = (in_flight.parse()?, keys.parse()?);
    let window = Duration::from_secs_f64(seconds.parse()?);
    let store: Arc<dyn ObjectStore> = Arc::new(
        AmazonS3Builder::from_env()
            .with_endpoint(endpoint)
            .with_allow_http(true)
            .with_bucket_name("bucket")
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .build()?,
    );
    let settings = Settings { flush_interval: Some(FLUSH_INTERVAL), ..Settings::default() };
    let db = Db::builder(path.as_str(), store).with_settings(settings).build().await?;
    let db = Arc::new(db);

    let of = db.clone();
    let put = move |number: u64| {
        let db = of.clone();
        async move {
            let mut value = [b'x'; VALUE_BYTES];
            value[..8].copy_from_slice(&number.to_le_bytes());
            db.put(key(number % keys), value).await?.await_durable().await?;
            Ok(())
        }
    };
    // Every key is there before it is read.
    rate(in_flight, window / 4, put.clone()).await?;
    let mut filled = Vec::new();
    for number in 0..keys {
        filled.push(db.put(key(number), [b'x'; VALUE_BYTES]).await?);
    }
    for write in filled {
        write.await_durable().await?;
    }
    let sets = rate(in_flight, window, put).await?;
    let of = db.clone();
    let get = move |number: u64| {
        let db = of.clone();
        async move {
            let found = db.get(key(number.wrapping_mul(6_997) % keys)).await?;
            if found.is_some_and(|value| value.len() == VALUE_BYTES) {
                return Ok(());
            }
            Err("a key is missing".into())
        }
    };
    let gets = rate(in_flight, window, get).await?;
    db.close().await?;
    println!("{{\"sets\":{sets},\"gets\":{gets}}}");
    Ok(())
}
