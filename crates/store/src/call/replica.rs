//! Calls about a replica, on a database without one: each is refused.

use super::Call;
use openkv_core::model::Error;

/// Refuses.
pub(super) fn none(_frame: &[u8], call: Call) {
    let why =
        "replica: the handle has none; open the URL of an openkv server with the option replica";
    call.reply.bad(Error::unsupported(why));
}
