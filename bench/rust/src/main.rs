//! The Rust programs of bench/bucket.mjs: openkv or SlateDB, on the same S3-compatible server. It prints one line of JSON.
//!
//! Duty: durable writes in a closed loop, some in flight, each awaited until it is in the store; then reads of what
//! was written.
//!
//!   openkv-bench openkv|slatedb PORT PATH IN_FLIGHT SECONDS KEYS

mod openkv_store;
mod slatedb_store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use openkv_store::Openkv;
use slatedb_store::Slate;

/// The bytes of a value.
const VALUE_BYTES: usize = 100;
/// Prime to every number of keys, so that reads visit each key.
const STEP: u64 = 6_997;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// A database under measurement. Keys are numbers.
trait Measured: Send + Sync + 'static {
    /// Writes a value, and waits until it is durable.
    fn put(&self, key: u64, value: [u8; VALUE_BYTES]) -> impl Future<Output = Result<(), Failed>> + Send;

    /// The length of the value of a key, in bytes.
    fn get(&self, key: u64) -> impl Future<Output = Result<Option<usize>, Failed>> + Send;
}

/// Never the same twice: SQLite leaves a page clean that gets the same bytes.
fn value(number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [b'x'; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
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
                // A call that was answered at once leaves the thread to the other loops too.
                tokio::task::yield_now().await;
            }
            Ok::<(), Failed>(())
        }));
    }
    for each in loops {
        each.await??;
    }
    Ok(count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

async fn measure(db: impl Measured, in_flight: u64, window: Duration, keys: u64) -> Result<(), Failed> {
    let db = Arc::new(db);
    // Every key is there before it is read.
    let mut filled = Vec::new();
    for key in 0..keys {
        let db = db.clone();
        filled.push(tokio::spawn(async move { db.put(key, value(key)).await }));
    }
    for written in filled {
        written.await??;
    }
    let of = db.clone();
    let put = move |number: u64| {
        let db = of.clone();
        async move { db.put(number % keys, value(number)).await }
    };
    rate(in_flight, window / 4, put.clone()).await?;
    let sets = rate(in_flight, window, put).await?;
    let get = move |number: u64| {
        let db = db.clone();
        async move {
            match db.get(number.wrapping_mul(STEP) % keys).await? {
                Some(length) if length >= VALUE_BYTES => Ok(()),
                found => Err(format!("a key has {found:?} bytes").into()),
            }
        }
    };
    let gets = rate(in_flight, window, get).await?;
    println!("{{\"sets\":{sets},\"gets\":{gets}}}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, port, path, in_flight, seconds, keys] = arguments.as_slice() else {
        return Err("arguments: openkv|slatedb PORT PATH IN_FLIGHT SECONDS KEYS".into());
    };
    let endpoint = format!("http://127.0.0.1:{}", port.parse::<u16>()?);
    let (in_flight, keys) = (in_flight.parse()?, keys.parse()?);
    let window = Duration::from_secs_f64(seconds.parse()?);
    match store.as_str() {
        "openkv" => measure(Openkv::open(&endpoint, path).await?, in_flight, window, keys).await,
        "slatedb" => measure(Slate::open(&endpoint, path).await?, in_flight, window, keys).await,
        _ => Err(format!("there is no store {store}").into()),
    }
}
