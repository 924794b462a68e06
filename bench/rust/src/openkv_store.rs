//! openkv as a library: its local file has what it reads, on the thread of the caller.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use openkv::codec::key;
use openkv::engine::Reader;
use openkv::model::{
    AtomicWrite, Decision, EncodedValue, Encoding, Key, KeyPart, Limits, Mutation, Result, WriteParts,
};
use openkv::open::{Target, open};
use openkv::store::Store;
use tokio::sync::oneshot;

use crate::{Failed, Measured, VALUE_BYTES};

/// Longest wait for the store.
const BUSY: Duration = Duration::from_secs(5);

/// The head of a byte string of so many bytes in CBOR.
const BYTES_HEAD: [u8; 2] = [0x58, VALUE_BYTES as u8];

thread_local! {
    /// The lane of this thread.
    static LANE: RefCell<Option<Box<dyn Reader>>> = const { RefCell::new(None) };
}

pub(crate) struct Openkv(Arc<Store>);

impl Openkv {
    pub(crate) async fn open(endpoint: &str, path: &str) -> std::result::Result<Self, Failed> {
        let bucket = Target::Bucket {
            url: format!("s3://bucket/{path}?region=us-east-1&endpoint={endpoint}"),
            cache: None,
            lead: "auto".to_owned(),
            eventual: false,
            advertise: None,
            encoding: None,
            leader: None,
        };
        // Opening waits for the object store.
        let opening = tokio::task::spawn_blocking(move || {
            Ok::<_, openkv::model::Error>(open(&bucket)?.store("the benchmark")?.clone())
        });
        Ok(Self(opening.await??))
    }
}

fn key_of(number: u64) -> Result<Key> {
    key::encode(&[KeyPart::String("rows".to_owned()), KeyPart::Number(number as f64)])
}

impl Measured for Openkv {
    async fn put(&self, number: u64, value: [u8; VALUE_BYTES]) -> std::result::Result<(), Failed> {
        let bytes = [&BYTES_HEAD, value.as_slice()].concat();
        let value = EncodedValue { encoding: Encoding::Cbor, bytes };
        let set = Mutation::Set { key: key_of(number)?, suffixed: false, value, expiry: None };
        let parts = WriteParts { mutations: vec![set], ..WriteParts::default() };
        let write = AtomicWrite::new(parts, &Limits::default())?;
        let (sender, decided) = oneshot::channel();
        self.0.commit(vec![Ok(write)], true, BUSY, Box::new(move |decisions| drop(sender.send(decisions))));
        match decided.await?.pop() {
            Some(Decision::Committed(_)) => Ok(()),
            other => Err(format!("{other:?}").into()),
        }
    }

    async fn get(&self, number: u64) -> std::result::Result<Option<usize>, Failed> {
        let key = key_of(number)?;
        let now_ms = self.0.now_ms();
        LANE.with_borrow_mut(|lane| {
            let lane = lane.get_or_insert_with(|| self.0.lane());
            let mut length = None;
            lane.read(now_ms, &mut |snapshot| {
                snapshot.get(key.as_bytes(), &mut |row| length = Some(row.value.len())).map(drop)
            })?;
            Ok(length)
        })
    }
}
