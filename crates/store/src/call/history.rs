//! The versions of an entry.

use super::Call;
use super::answering::Answering;
use openkv_core::model::{Error, HISTORY_STEP_BYTES, HISTORY_VERSIONS_MAX, Result};
use openkv_wire::protocol::frame::{parse_history, push_history_head, push_version};

/// A page of versions.
#[derive(Default)]
struct VersionsPage {
    count: u32,
    more: bool,
    versions: Vec<u8>,
    /// There was no memory for more.
    lacks: Option<Error>,
}

/// Answer: u32 count, u8 more, versions.
pub(super) fn history(frame: &[u8], call: Call) {
    let Some(((key, limit, before), call)) = call.parsed(parse_history(frame)) else { return };
    let limit = limit.clamp(1, HISTORY_VERSIONS_MAX);
    let Call { store, reply, answer_bytes_max, .. } = call;
    let bytes_max = HISTORY_STEP_BYTES.min(answer_bytes_max);
    let finish = |page: VersionsPage, read: Result<()>| {
        read.and(page.lacks.map_or(Ok(()), Err))?;
        let mut answer = Vec::with_capacity(page.versions.len() + 5);
        push_history_head(&mut answer, page.count, page.more);
        answer.extend_from_slice(&page.versions);
        Ok(answer)
    };
    let answering = Answering::new(reply, VersionsPage::default(), finish);
    store.versions(key, before, answering, move |to, version| {
        let page = &mut to.state;
        // At least one: the next page starts behind it.
        page.more = page.count as usize == limit || page.versions.len() >= bytes_max;
        if page.more {
            return false;
        }
        page.count += 1;
        push_version(&mut page.versions, &version);
        page.lacks = to.reply.holds(page.versions.len()).err();
        page.lacks.is_none()
    });
}
