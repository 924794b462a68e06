//! The options of a server for clients of KeyVal.

use openkv_core::model::{
    Error, KEYVAL_LOCK_MS, LOCK_DURATION_MS_MAX, LOCK_DURATION_MS_MIN, Result,
};

/// Validated options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Every part of a key in a path or a query is a text.
    pub(super) strings: bool,
    /// How long a message is locked.
    pub(super) lock_ms: i64,
}

impl Rules {
    /// # Errors
    /// `Invalid`, naming the option.
    pub(crate) fn of(strings: bool, lock_ms: Option<u64>) -> Result<Self> {
        let (least, most) = (i64::from(LOCK_DURATION_MS_MIN), i64::from(LOCK_DURATION_MS_MAX));
        let given = lock_ms.map_or(Some(KEYVAL_LOCK_MS), |ms| i64::try_from(ms).ok());
        let lock_ms = given.filter(|ms| (least..=most).contains(ms)).ok_or_else(|| {
            let given = lock_ms.unwrap_or_default();
            Error::invalid(format!(
                "keyvalLockDuration must be from {least} to {most} ms: {given} given"
            ))
        })?;
        Ok(Self { strings, lock_ms })
    }
}
