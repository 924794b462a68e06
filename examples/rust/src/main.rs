//! Opens a file, watches an order, places it in one commit with its stock, and prints what the watch sees;
//! then the same over an engine of its own.
//!
//! ```sh
//! cargo run -p openkv-example -- orders.sqlite3
//! ```

mod map_engine;

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use map_engine::MapEngine;
use openkv::codec::{cbor, key};
use openkv::model::{
    AtomicWrite, Check, Decision, EncodedValue, Encoding, Error, Key, KeyPart, Limits, Mutation,
    PageMemory, Result, WriteParts,
};
use openkv::open::{Target, open, system};
use openkv::store::Store;

/// Longest wait for other processes.
const BUSY: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).map_or_else(|| "orders.sqlite3".into(), PathBuf::from);
    let path = std::path::absolute(path).map_err(|error| Error::invalid(error.to_string()))?;
    let memory = PageMemory::default();
    let file = Target::File { path, readonly: false, busy: BUSY, encoding: None, memory };
    println!("in a file: {}", place_order(open(&file)?.store("the example")?)?);
    let own = Store::start(MapEngine::default(), system(), false)?;
    println!("in a map: {}", place_order(&own)?);
    Ok(())
}

/// Places an order, unless it is there, and counts it in the same commit; tells what a watch of it sees.
fn place_order(store: &Store) -> Result<String> {
    let text = |parts: &[&str]| {
        let parts: Vec<_> = parts.iter().map(|part| KeyPart::String((*part).to_owned())).collect();
        key::encode(&parts)
    };
    let (order, count) = (text(&["orders", "ada-1"])?, text(&["count", "orders"])?);

    let watch = store.watch(vec![order.clone()], false, None);
    let (sender, seen) = channel();
    store.watch_next(watch, Box::new(move |entries| drop(sender.send(entries))));
    let before = seen.recv().map_err(|_| Error::closed())??;

    let decision = commit(store, order.clone(), count)?;
    let (sender, seen) = channel();
    store.watch_next(watch, Box::new(move |entries| drop(sender.send(entries))));
    let after = match &decision {
        Decision::Committed(_) | Decision::CommittedWith(..) => {
            seen.recv().map_err(|_| Error::closed())??
        }
        Decision::CheckFailed(_) | Decision::NotUnique(_) => before.clone(),
        Decision::Deleted(_) => None,
        Decision::Rejected(error) => return Err(error.clone()),
    };
    store.watch_cancel(watch);
    Ok(format!("{decision:?}; before {before:?}, after {after:?}"))
}

/// One commit: the order must not exist, is stored, and counts.
fn commit(store: &Store, order: Key, count: Key) -> Result<Decision> {
    let number = EncodedValue { encoding: Encoding::Cbor, bytes: cbor::encode_number(3.0) };
    let parts = WriteParts {
        checks: vec![Check { key: order.clone(), expected: None }],
        mutations: vec![
            Mutation::Set { key: order, suffixed: false, value: number, expiry: None },
            Mutation::Arith {
                op: openkv::model::Arith::Sum,
                key: count,
                operand: EncodedValue::le64(1),
            },
        ],
        ..WriteParts::default()
    };
    let write = AtomicWrite::new(parts, &Limits::default())?;
    let (sender, decided) = channel();
    store.commit(
        vec![Ok(write)],
        true,
        BUSY,
        Box::new(move |decisions| drop(sender.send(decisions))),
    );
    let mut decisions = decided.recv().map_err(|_| Error::closed())?;
    decisions.pop().ok_or_else(Error::closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_placed_once() {
        let store = Store::start(MapEngine::default(), system(), false).unwrap();
        assert!(place_order(&store).unwrap().starts_with("Committed("));
        assert!(place_order(&store).unwrap().starts_with("CheckFailed([0])"));
    }
}
