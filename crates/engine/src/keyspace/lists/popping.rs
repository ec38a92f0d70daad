//! Taking elements from the ends of lists, and moving them from one to another.
//!
//! A popped element is deleted at once, and the answer waits for that. If the policy of the queue
//! protects pops, the element is leased to the session until its next command instead.

use alloc::sync::Arc;

use model::{End, MessageId};

use crate::Effects;
use crate::bodies::Bodies;
use crate::ids::QueueSlot;
use crate::keyspace::PopArgs;
use crate::log::FrameWriter;
use crate::replies::ReplyBudget;
use crate::store::MessageStore;

impl ReplyBudget {
    /// Takes as much as the reply has room for.
    pub(crate) const fn hand(&self, end: End, max: u64) -> PopArgs {
        PopArgs { end, max, bytes_max: self.left() }
    }
}

impl MessageStore {
    /// True if there is an element that may be taken.
    pub(crate) fn may_take(&self, slot: QueueSlot) -> bool {
        let queue = self.queues.at(slot);
        let is_there = || match queue.is_expiring(self.latest) {
            true => self.elements(slot, End::Head).next().is_some(),
            false => queue.counts().ready() > 0,
        };
        queue.delivery.pause.is_none() && is_there()
    }

    /// The place of the first element from an end on, or of the next behind the last one. Messages
    /// beyond their time are passed by. A queue that is gone with its last message has none.
    pub(crate) fn element_behind(
        &mut self,
        last: Option<(u32, i64)>,
        slot: QueueSlot,
        end: End,
    ) -> Option<(u32, i64)> {
        let queue = self.queues.get(slot)?;
        let is_expiring = queue.is_expiring(self.latest);
        let is_over = |place: &(u32, i64)| is_expiring && self.is_over(self.message_of(place.1));
        let first = || queue.delivery.dispatch.ready().at_end(end);
        let mut next =
            last.map_or_else(first, |last| queue.delivery.dispatch.ready().next_from(end, last));
        let mut passed = 0;
        while let Some(place) = next.filter(is_over) {
            passed += 1;
            next = queue.delivery.dispatch.ready().next_from(end, place);
        }
        self.took_steps(passed);
        next
    }
}

impl Bodies {
    /// A message that is in no index is from now on in memory only. No client sees it before the
    /// log knows that.
    pub(crate) fn abandon_record(
        &mut self,
        id: MessageId,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) {
        let bytes = store.snapshot_bytes_of(store.message(id));
        let Some(mut message) = store.messages.remove(id.0) else { return };
        if message.is_journalled() {
            store.change_snapshot_bytes(bytes, 0);
            let after = self.journal_deletion(id, &message, store, log, effects);
            self.unaccount(id, &message, store);
            let body = self.here(&message).map(Arc::clone);
            let body = body.expect("invariant: what nothing else will have is here");
            let shared = message.shared();
            message.keep_in_memory(after.lsn);
            match shared {
                Some(name) => self.separate(name, &mut message, body, store),
                None => self.account(id, &message, store),
            }
        }
        store.messages.insert(id.0, message);
    }
}
