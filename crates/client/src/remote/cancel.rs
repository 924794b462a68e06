//! Cancellation: a flag that ends work under way. A handle has one for its opening and for all its
//! requests to a server; a cancellable call has one of its own.

use tokio::sync::watch as flag;

/// A flag that is raised at most once, when no caller waits for the answer any more.
#[derive(Clone, Debug, Default)]
pub struct Cancel(flag::Sender<bool>);

impl Cancel {
    /// Cancels everything under way and refuses all later work.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) async fn raised(&self) {
        let mut flag = self.0.subscribe();
        // The sender is a clone of this one's, so the channel cannot close while this waits.
        let _raised = flag.wait_for(|is_raised| *is_raised).await;
    }
}
