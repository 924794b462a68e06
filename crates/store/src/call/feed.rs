//! Change feeds: where one may begin.

use super::Call;
use openkv_core::model::Versionstamp;

/// Answer: stamp(20) of the commit after which a feed has every change.
pub(super) fn position(_frame: &[u8], Call { store, reply, busy, .. }: Call) {
    store.feed_start(busy, move |version| {
        reply.tell(version.map(|version| Versionstamp::new(version).hex().to_vec()));
    });
}
