//! Cursors: no text panics, what is taken is the one cursor of its place, and resuming parts a
//! selector exactly at the entry.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openkv::codec::cursor::Selector;
use openkv_fuzz::within;

/// Takes a length and so many bytes off the front.
fn take<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let Some((&len, rest)) = data.split_first() else { return &[] };
    let (taken, rest) = rest.split_at(usize::from(len).min(rest.len()));
    *data = rest;
    taken
}

fn bytes_max(len: usize) -> usize {
    len * 8 + 1024
}

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    let (kind, start, end) = (take(&mut rest), take(&mut rest), take(&mut rest));
    let (key, text) = (take(&mut rest), rest);
    let selector = match kind.first() {
        Some(0) => Selector::prefix(start, None, None),
        Some(1) => Selector::prefix(start, Some(end), None),
        Some(2) => Selector::prefix(start, None, Some(end)),
        _ => Selector::between(start, end),
    };

    let (first, last) = selector.bounds();
    let within_bounds = |key: &[u8]| first.as_slice() <= key && key < last.as_slice();
    // Where what all keys begin with is a key, it is the start, and none has a zero behind it.
    let is_key = match key.strip_prefix(start) {
        Some([]) => first == start,
        rest => rest != Some(&[0]),
    };
    if let Some(cursor) = selector.cursor(key).filter(|_| is_key && within_bounds(key)) {
        let (from, to) = selector.resume(&cursor, false).expect("a cursor of its own");
        assert!(from.as_slice() > key && to == last);
        let (from, to) = selector.resume(&cursor, true).expect("a cursor of its own");
        assert!(from == first && to == key);
    }

    let Ok(text) = std::str::from_utf8(text) else { return };
    for reverse in [false, true] {
        let resumed = within(bytes_max(data.len()), || selector.resume(text, reverse));
        let Ok((from, to)) = resumed else { continue };
        assert!(from >= first && to <= last, "a selector was widened");
        // Where the bound is the cursor's and not the selector's, it has that cursor only.
        let at = if reverse { to.as_slice() } else { from.strip_suffix(&[0]).unwrap_or(&from) };
        let own = if reverse { to != last } else { from != first };
        if own {
            assert_eq!(selector.cursor(at).as_deref(), Some(text));
        }
    }
});
