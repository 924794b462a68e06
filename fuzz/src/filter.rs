//! Filters: no filter and no value panics or uses memory or time out of proportion, and the result
//! is deterministic.

use openkv::filter::Filter;
use openkv::model::Encoding;

pub(crate) fn check(data: &[u8]) {
    // The length of the filter, the filter, then the value.
    let Some((&len, rest)) = data.split_first() else { return };
    let (filter, value) = rest.split_at(usize::from(len).min(rest.len()));
    let Ok(filter) = Filter::parse(filter, 0) else { return };
    for encoding in [Encoding::Cbor, Encoding::Bytes, Encoding::Le64, Encoding::V8] {
        assert_eq!(filter.matches(encoding, value), filter.matches(encoding, value));
    }
}
