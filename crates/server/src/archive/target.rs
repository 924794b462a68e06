//! The place of an archive: a folder or an object store.

#[cfg(test)]
use std::sync::Arc;

#[cfg(test)]
use object_store::ObjectStore;

use openkv_core::model::Result;
pub(super) use openkv_engines::objects::{Created, READS, Target, Version};

/// As [`Target::open`]; in tests also a store that [`add_test_store`] has added.
pub(super) fn open(text: &str, create: bool) -> Result<Target> {
    #[cfg(test)]
    if let Some(objects) = test_store(text) {
        return Ok(Target::over(objects, text));
    }
    Target::open(text, create)
}

/// The stores of tests, by URL.
#[cfg(test)]
static TEST_STORES: parking_lot::Mutex<Vec<Arc<dyn ObjectStore>>> =
    parking_lot::Mutex::new(Vec::new());

#[cfg(test)]
const TEST_SCHEME: &str = "test://";

/// Makes an object store a target of tests; returns its URL.
#[cfg(test)]
pub(super) fn add_test_store(objects: Arc<dyn ObjectStore>) -> String {
    let mut stores = TEST_STORES.lock();
    stores.push(objects);
    format!("{TEST_SCHEME}{}", stores.len() - 1)
}

#[cfg(test)]
fn test_store(url: &str) -> Option<Arc<dyn ObjectStore>> {
    let number: usize = url.strip_prefix(TEST_SCHEME)?.parse().ok()?;
    TEST_STORES.lock().get(number).cloned()
}
