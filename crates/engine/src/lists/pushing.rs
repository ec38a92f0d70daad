//! Storing elements at the ends of a list.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    End, NewMessage, OneOrMany, PRIORITY_DEFAULT, Persistence, QueueName, Refusal, limits,
};

use crate::Effects;
use crate::engine::{Context, Engine, MessageStore, Outcome};
use crate::log::{Log, NoRoom};
use crate::producing::{Drafted, Placement};
use crate::queue::QueueSlot;

/// How elements are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Push {
    pub(crate) end: End,
    /// Only where there is something already.
    pub(crate) only_existing: bool,
    pub(crate) persistence: Persistence,
}

impl Engine {
    pub(crate) fn push(
        &mut self,
        name: QueueName,
        push: &Push,
        elements: OneOrMany<Arc<[u8]>>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        self.keyspace.check_is_list(&name, &self.store)?;
        if push.only_existing {
            let known = self.store.queues.find(name.as_str());
            if known.is_none_or(|slot| self.elements_count(slot) == 0) {
                return Ok(self.log.counted(0));
            }
        }
        let slot = self.directory.find_or_create(name, &mut self.store)?;
        self.end_list_if_over(slot);
        let stored = self.store_elements(slot, push, elements, effects);
        if let Err(refusal) = stored {
            self.remove_if_idle(slot);
            return Err(refusal);
        }
        let count = self.elements_count(slot);
        Ok(self.log.counted(count).waking(slot))
    }

    /// All of them or none, in one frame.
    fn store_elements(
        &mut self,
        slot: QueueSlot,
        push: &Push,
        elements: OneOrMany<Arc<[u8]>>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if elements.len() > limits::TRANSACTION_RECORDS_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        self.state_if_stale(slot, effects);
        let priority = self.store.priority_at(slot, push.end);
        let elements = match elements {
            OneOrMany::One(body) => {
                // What fails leaves nothing behind.
                let (id, message) = self.draft_pushed(slot, push, priority, body, effects)?;
                self.admit(id, message);
                return Ok(());
            }
            OneOrMany::Many(elements) => elements,
        };
        let (draft, next) = (self.log.draft(effects), self.store.next.message);
        let mut drafted = Vec::with_capacity(elements.len());
        if elements.len() > 1 {
            self.log.widen();
        }
        for body in elements {
            match self.draft_pushed(slot, push, priority, body, effects) {
                Ok(one) => drafted.push(one),
                Err(refusal) => {
                    self.log.take_back(&draft, effects);
                    self.store.next.message = next;
                    return Err(refusal);
                }
            }
        }
        for (id, message) in drafted {
            self.admit(id, message);
        }
        Ok(())
    }

    fn draft_pushed(
        &mut self,
        slot: QueueSlot,
        push: &Push,
        priority: u32,
        body: Arc<[u8]>,
        effects: &mut Effects,
    ) -> Result<Drafted, Refusal> {
        let new = element(body, priority, push.persistence);
        let place = (push.end == End::Head).then(|| self.store.first_place());
        self.store.draft_element(slot, &new, place, &mut self.log, &self.context, effects)
    }
}

impl MessageStore {
    /// A new element with its record, not yet in the list.
    pub(crate) fn draft_element(
        &mut self,
        slot: QueueSlot,
        new: &NewMessage,
        order: Option<i64>,
        log: &mut Log,
        context: &Context,
        effects: &mut Effects,
    ) -> Result<Drafted, Refusal> {
        if new.body.len() > limits::MESSAGE_BYTES_MAX {
            return Err(Refusal::StoreFull);
        }
        self.took_steps(1);
        let spot = Placement { order, beside_bytes: 0 };
        self.draft_alone(slot, new, spot, log, context, effects).map_err(|no_room| match no_room {
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
}

/// An element as a message.
pub(crate) fn element(body: Arc<[u8]>, priority: u32, persistence: Persistence) -> NewMessage {
    NewMessage { priority, persistence, ..NewMessage::new(body) }
}
