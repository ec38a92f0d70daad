//! Taking elements from the ends of lists, and moving them from one to another.
//!
//! What is taken is deleted at once, and the answer waits for that; or, where the queue's policy
//! protects what is taken, it is leased to the session until its next command.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    Command, DependsOn, End, ListCommand, MessageId, Nanos, OneOrMany, QueueName, Refusal, Reply,
    limits,
};

use crate::Effects;
use crate::answering::{Shown, shown_bytes_of};
use crate::engine::{Bodies, Engine, MessageStore, Outcome};
use crate::lists::Taken;
use crate::log::{DELETED_BYTES_MAX, Log};
use crate::message::Message;
use crate::queue::QueueSlot;
use crate::session::SessionSlot;

/// How elements are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PopArgs {
    pub(crate) end: End,
    pub(crate) max: u64,
    /// Bytes of what is taken, unless the first alone has more.
    pub(crate) bytes_max: usize,
}

/// Where an element is moved to.
#[derive(Clone, Debug)]
pub(crate) struct MoveArgs {
    pub(crate) from_end: End,
    pub(crate) to: QueueName,
    pub(crate) to_end: End,
}

impl Engine {
    pub(crate) fn pop(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        hand: PopArgs,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self.list_of(by, name)?.filter(|slot| self.store.may_take(*slot)) else {
            return Ok(self.log.not_found());
        };
        if hand.max == 0 {
            return Ok(Outcome::reply(self.log.after_all(), Reply::Elements(OneOrMany::new())));
        }
        let Taken { elements, after } = self.take_elements(by, slot, hand, effects)?;
        Ok(Outcome::reply(after, Reply::Elements(elements)))
    }

    /// Takes from the first of several lists that has elements, or waits.
    pub(crate) fn pop_first(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        hand: PopArgs,
        wait: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        if names.len() > limits::CONSUMER_QUEUES_MAX {
            return Err(Refusal::TooManyWatched);
        }
        self.store.took_steps(names.len());
        for name in &names {
            if let Some(slot) = self.list_of(by, name)?
                && self.store.may_take(slot)
            {
                let queue = name.clone();
                let Taken { elements, after } = self.take_elements(by, slot, hand, effects)?;
                let elements = elements.into_vec();
                return Ok(Outcome::reply(after, Reply::Popped { queue, elements }));
            }
        }
        if wait == Some(Nanos::ZERO) {
            return Ok(self.log.nothing_in_time());
        }
        self.wait_to_pop(by, names, hand, wait, effects)
    }

    /// Moves an element from one list to another, or waits for one.
    pub(crate) fn move_element(
        &mut self,
        by: SessionSlot,
        from: QueueName,
        way: MoveArgs,
        wait: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        match self.list_of(by, &from)? {
            Some(slot) if self.store.may_take(slot) => self.move_from(slot, way, effects),
            _ if wait == Some(Nanos::ZERO) => Ok(self.log.nothing_in_time()),
            _ => self.wait_to_move(by, from, way, wait, effects),
        }
    }

    /// Moves an element that is there.
    pub(crate) fn move_from(
        &mut self,
        from: QueueSlot,
        way: MoveArgs,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        self.keyspace.check_is_list(&way.to, &self.store)?;
        let id = self.store.elements(from, way.from_end).next();
        let id = id.expect("invariant: it was just seen that there is an element");
        if shown_bytes_of(&self.bodies.element_of(id, &self.store, &self.context))
            > self.replies.left()
        {
            return Err(self.replies.refusal());
        }
        if !self.store.may_relocate(id, &self.log) {
            return Err(Refusal::StoreFull);
        }
        let to = self.directory.find_or_create(way.to, &mut self.store)?;
        let is_only_logged =
            |it: &Message| it.is_journalled() && self.bodies.sharing.here(it).is_none();
        if self.store.queues.at(to).is_memory_only() && is_only_logged(self.store.living(id)) {
            // Seldom: a move that waited, to where nothing is stored, of what came back from a
            // lease. A command that need not wait is done when it is here.
            return Err(Refusal::StoreFull);
        }
        self.end_list_if_over(to);
        self.store.took_steps(1);
        let element = self.bodies.element_of(id, &self.store, &self.context);
        let deadline = self.store.queues.at(from).index.lifetime.at;
        self.leave(id);
        if self.store.queues.at(to).is_memory_only() {
            self.bodies.abandon_record(id, &mut self.store, &mut self.log, effects);
        }
        let priority = self.store.priority_at(to, way.to_end);
        self.store.amend(id, |message| {
            message.priority = priority;
            message.revive();
        });
        let place = self.store.place_at(way.to_end);
        self.relocate(id, to, place, effects);
        if from == to {
            self.keyspace.keep_deadline(to, deadline, &mut self.store);
        }
        Ok(Outcome::reply(self.store.living(id).after(), Reply::Elements(OneOrMany::One(element)))
            .waking(to))
    }

    /// Takes elements from a list that has one: so many as are wanted, and as one frame and one
    /// reply hold. None, where the first is too much for that.
    pub(crate) fn take_elements(
        &mut self,
        by: SessionSlot,
        slot: QueueSlot,
        hand: PopArgs,
        effects: &mut Effects,
    ) -> Result<Taken, Refusal> {
        let max = hand.max.min(limits::FRAME_RECORDS_MAX as u64);
        let mut taken = Taken { elements: OneOrMany::new(), after: DependsOn::NOTHING };
        let mut bytes = 0;
        let mut last = None;
        while (taken.elements.len() as u64) < max
            && let Some(place) = self.store.element_behind(last, slot, hand.end)
        {
            let id = self.store.message_of(place.1);
            let its = limits::BESIDE_ELEMENT_BYTES + self.store.living(id).body.len();
            bytes += its;
            let is_first = taken.elements.is_empty();
            if is_first && its > self.replies.left() {
                return Err(self.replies.refusal());
            }
            let is_much = bytes > hand.bytes_max || its > self.replies.left();
            if !is_first && (is_much || !self.log.takes_more(1, DELETED_BYTES_MAX)) {
                break;
            }
            last = Some(place);
            taken.elements.push(self.bodies.element_of(id, &self.store, &self.context));
            taken.after = taken.after.and(self.take_element(by, id, effects));
        }
        self.store.took_steps(taken.elements.len());
        Ok(taken)
    }

    /// The session's next command, if it is one that [`says_arrived`], says that what it took has
    /// reached it. Says what waits for that to be known.
    pub(crate) fn settle_popped(&mut self, by: SessionSlot, effects: &mut Effects) -> DependsOn {
        if self.sessions.at(by).holdings.popped.is_empty() {
            return DependsOn::NOTHING;
        }
        let popped = core::mem::take(&mut self.sessions.at_mut(by).holdings.popped);
        self.store.took_steps(popped.len());
        for id in popped {
            self.leave(id);
            self.finish(id, effects);
        }
        let after = self.log.after_open();
        self.log.seal(effects);
        after
    }

    /// Says what waits for it to be gone, or leased.
    fn take_element(&mut self, by: SessionSlot, id: MessageId, effects: &mut Effects) -> DependsOn {
        let message = self.store.living(id);
        let (seen, queue) = (message.after(), message.queue);
        if let Some(span) = self.store.queues.at(queue).policy.pop_lease {
            self.move_to_lease(by, id, Some(span));
            self.sessions.at_mut(by).holdings.popped.insert(id);
            return seen;
        }
        self.leave(id);
        seen.and(self.finish(id, effects))
    }
}

impl Shown {
    /// One that takes what the reply has room for.
    pub(crate) const fn hand(&self, end: End, max: u64) -> PopArgs {
        PopArgs { end, max, bytes_max: self.left() }
    }
}

impl MessageStore {
    /// Whether there is an element that may be taken.
    pub(crate) fn may_take(&self, slot: QueueSlot) -> bool {
        let queue = self.queues.at(slot);
        let is_there = || match queue.is_expiring(self.latest) {
            true => self.elements(slot, End::Head).next().is_some(),
            false => queue.index.counts.ready > 0,
        };
        queue.delivery.pause.is_none() && is_there()
    }

    /// The place of the first element from an end on, or of the next behind the last one; what is
    /// over is passed by. Of a queue that is gone with its last message, none.
    fn element_behind(
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
    /// A message that is in no index is from now on in memory only. Nobody sees it before the log
    /// knows that.
    fn abandon_record(
        &mut self,
        id: MessageId,
        store: &mut MessageStore,
        log: &mut Log,
        effects: &mut Effects,
    ) {
        let bytes = store.snapshot_bytes_of(store.living(id));
        let Some(mut message) = store.messages.remove(id.0) else { return };
        if message.is_journalled() {
            store.totals.snapshot_bytes -= bytes;
            let after = self.journal_deletion(id, &message, store, log, effects);
            self.unaccount(id, &message, store);
            let body = self.sharing.here(&message).map(Arc::clone);
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

/// Whether a client says by it that what it took has reached it. A session settles what its
/// subscriptions bring and gives credit by itself, and others end its waits in its name.
pub(crate) fn says_arrived(command: &Command) -> bool {
    match command {
        Command::Settle { .. } | Command::Credit { .. } => false,
        Command::CancelSends | Command::CancelSend { .. } => false,
        Command::List(command) => !matches!(command, ListCommand::CancelPop),
        _ => true,
    }
}
