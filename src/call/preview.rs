//! What a write would leave: a transaction's reads of its own writes.

use super::Call;
use crate::codec::frame::parse_writes;
use crate::model::Error;
use crate::store::Preview;

/// Frame: one write, without checks, of one key. Answer: u8 whether there is an entry, its stamp(20)
/// if so; u8 whether there would be one, if so u8 encoding and the value.
pub(super) fn preview(frame: &[u8], Call { store, limits, reply, .. }: Call) {
    let write = match parse_writes(frame, 1, &limits).map(|mut writes| writes.pop()) {
        Ok(Some(Ok(write))) => write,
        Ok(Some(Err(error))) => return reply.bad(error),
        Ok(None) => return reply.bad(Error::internal("a preview of nothing")),
        Err(bug) => return reply.bad(bug),
    };
    store.preview(
        write,
        Box::new(move |seen| match seen {
            Ok(Preview { before, after }) => {
                let mut out = vec![u8::from(before.is_some())];
                out.extend(before.iter().flat_map(|stamp| stamp.hex()));
                out.push(u8::from(after.is_some()));
                if let Some(value) = after {
                    out.push(value.encoding.id());
                    out.extend(value.bytes);
                }
                reply.good(out);
            }
            Err(error) => reply.bad(error),
        }),
    );
}
