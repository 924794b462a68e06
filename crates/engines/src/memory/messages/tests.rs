//! What messages leave behind.

use super::*;
use openkv_core::model::queue_of_group;

/// Each group that ever had a message left two empty sets.
#[test]
fn a_group_without_messages_leaves_nothing() {
    let mut messages = Messages::default();
    for group in ["a", "b"] {
        let queue = queue_of_group("mail", group);
        let message = Message { queue: queue.clone(), value: vec![1], ..Message::default() };
        messages.enqueue(message, 5).unwrap();
        let claim = Claim { queue, max: 1, lock_ms: 10, lock: 7 };
        let [taken] = messages.claim(&claim, 5).unwrap().try_into().unwrap();
        assert_eq!((messages.waiting.len(), messages.locked.len()), (0, 1));
        assert!(messages.acknowledge(taken.id, 7).unwrap().is_some());
        assert_eq!((messages.waiting.len(), messages.locked.len()), (0, 0));
    }
}
