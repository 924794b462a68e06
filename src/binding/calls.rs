//! The calls of a handle that JavaScript may cancel. A call without an `AbortSignal` is not in this
//! table.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::remote::Cancel;

/// The flags of cancellable calls, by the ids that JavaScript gave them.
#[derive(Clone, Default)]
pub(super) struct CancellableCalls(Arc<Mutex<HashMap<u64, Cancel>>>);

impl CancellableCalls {
    /// Adds a call, which stays in the table until the result is dropped.
    pub(super) fn enter(&self, id: u64) -> CancellableCall {
        let flag = Cancel::default();
        self.0.lock().insert(id, flag.clone());
        CancellableCall { table: self.clone(), id, flag }
    }

    /// Cancels a call. Has no effect on a call that is answered already.
    pub(super) fn cancel(&self, id: u64) {
        if let Some(flag) = self.0.lock().get(&id) {
            flag.raise();
        }
    }
}

/// An entry of the table, removed when dropped.
pub(super) struct CancellableCall {
    table: CancellableCalls,
    id: u64,
    flag: Cancel,
}

impl CancellableCall {
    /// The flag that is raised when the call is cancelled.
    pub(super) fn flag(&self) -> Cancel {
        self.flag.clone()
    }
}

impl Drop for CancellableCall {
    fn drop(&mut self) {
        self.table.0.lock().remove(&self.id);
    }
}
