//! Looking after the file.

use super::Call;

/// Answer: u32 pages in the log, u32 pages of them moved.
pub(super) fn checkpoint(Call { store, reply, .. }: Call) {
    store.order(Box::new(move |writer| match writer.and_then(|writer| writer.checkpoint()) {
        Ok(done) => {
            let numbers =
                [done.log_pages, done.moved_pages].map(|pages| (pages as u32).to_le_bytes());
            reply.good(Some(numbers.concat()));
        }
        Err(error) => reply.bad(&error),
    }));
}
