//! Giving up: one flag for all that a handle has under way with its server, its opening too.

use tokio::sync::watch as flag;

/// Raised once, when nobody waits for answers any more.
#[derive(Clone, Debug, Default)]
pub struct Abandon(flag::Sender<bool>);

impl Abandon {
    /// Ends everything under way, and refuses all that comes.
    pub fn now(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn happens(&self) {
        let mut flag = self.0.subscribe();
        // The sender is this one's own: there is no other end than the one waited for.
        let _told = flag.wait_for(|is_raised| *is_raised).await;
    }
}
