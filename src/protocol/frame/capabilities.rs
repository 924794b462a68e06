//! What an opened database lacks.

use crate::model::Capabilities;

/// Appends for each missing capability u8 its number, u32 length and text of the advice. Empty: the
/// database has all of them.
pub fn push_lacks(out: &mut Vec<u8>, capabilities: Capabilities) {
    for (what, advice) in capabilities.lacks() {
        out.push(what.number());
        out.extend_from_slice(&(advice.len() as u32).to_le_bytes());
        out.extend_from_slice(advice.as_bytes());
    }
}
