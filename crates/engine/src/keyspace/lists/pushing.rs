//! Storing elements at the ends of a list.

use alloc::sync::Arc;

use model::{End, NewMessage, PRIORITY_DEFAULT, Persistence, Refusal, limits};

use crate::Effects;
use crate::ids::QueueSlot;
use crate::log::{FrameWriter, NoRoom};
use crate::store::MessageStore;
use crate::store::drafting::{Drafted, Placement};

/// How elements are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Push {
    pub(crate) end: End,
    /// Only where there is something already.
    pub(crate) only_existing: bool,
    pub(crate) persistence: Persistence,
}

impl MessageStore {
    /// A new element with its record, not yet in the list.
    pub(crate) fn draft_element(
        &mut self,
        slot: QueueSlot,
        new: &NewMessage,
        order: Option<i64>,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Result<Drafted, Refusal> {
        if new.body.len() > limits::MESSAGE_BYTES_MAX {
            return Err(Refusal::StoreFull);
        }
        self.took_steps(1);
        let spot = Placement { order, beside_bytes: 0 };
        self.draft_alone(slot, new, spot, log, effects).map_err(|no_room| match no_room {
            NoRoom::InLog => Refusal::StoreFull,
            NoRoom::InFrame => Refusal::BatchTooLarge,
        })
    }

    /// The priority with which a message is put at an end, so that it really is there.
    pub(crate) fn priority_at(&self, slot: QueueSlot, end: End) -> u32 {
        let outermost = self
            .queues
            .at(slot)
            .delivery
            .dispatch
            .ready()
            .at_end(end)
            .map(|(priority, _)| priority);
        let outermost = outermost.unwrap_or(PRIORITY_DEFAULT);
        match end {
            End::Head => outermost.min(PRIORITY_DEFAULT),
            End::Tail => outermost.max(PRIORITY_DEFAULT),
        }
    }

    /// A place at an end, never given out before.
    pub(crate) fn place_at(&mut self, end: End) -> i64 {
        match end {
            End::Head => self.first_place(),
            End::Tail => self.last_place(),
        }
    }

    #[inline]
    pub(crate) fn draft_pushed(
        &mut self,
        slot: QueueSlot,
        push: &Push,
        priority: u32,
        body: Arc<[u8]>,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Result<Drafted, Refusal> {
        let new = element(body, priority, push.persistence);
        let place = (push.end == End::Head).then(|| self.first_place());
        self.draft_element(slot, &new, place, log, effects)
    }
}

/// An element as a message.
pub(crate) fn element(body: Arc<[u8]>, priority: u32, persistence: Persistence) -> NewMessage {
    NewMessage { priority, persistence, ..NewMessage::new(body) }
}
