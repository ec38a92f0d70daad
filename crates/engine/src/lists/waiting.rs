//! Commands on lists that wait for an element.
//!
//! Such a command stands as a consumer of its own in each of its queues, in one line with all who
//! wait there: who waits longest is served first. It gets what it asked for once, after the command
//! that brought it has ended, in the same frame where that has room, and is a consumer no more.
//! Where one command brought something to several queues, they give in the order in which they got
//! it. Where the log has no room left for what one call may append, the rest is served in the next.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{Command, DependsOn, MessageId, Nanos, QueueName, Refusal, Reply, limits};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::engine::{Engine, MessageStore, Outcome};
use crate::keys::DEADLINE_BYTES_MAX;
use crate::lists::{MoveArgs, PopArgs, Taken};
use crate::log::DELETED_BYTES_MAX;
use crate::queue::QueueSlot;
use crate::receiving::Wanted;
use crate::session::{Consumer, ConsumerKey, LIST_LINK, SessionSlot, Sessions};

/// A command that waits.
#[derive(Debug)]
pub(crate) struct Popping {
    asked: Asked,
    /// What its answer waits for whatever that is.
    pub(crate) floor: DependsOn,
}

/// What it asked for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// Elements, of the list that gets some first.
    Elements(PopArgs),
    /// That one is moved.
    Move(MoveArgs),
}

impl Engine {
    pub(crate) fn wait_to_pop(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        hand: PopArgs,
        wait: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        self.stop_waiting(by, effects);
        let queues = self.queues_to_wait_in(by, names)?;
        Ok(self.sessions.wait_in(by, &queues, Asked::Elements(hand), wait, &mut self.store))
    }

    pub(crate) fn wait_to_move(
        &mut self,
        by: SessionSlot,
        from: QueueName,
        way: MoveArgs,
        wait: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        self.stop_waiting(by, effects);
        let queues = self.queues_to_wait_in(by, [from].into())?;
        Ok(self.sessions.wait_in(by, &queues, Asked::Move(way), wait, &mut self.store))
    }

    pub(crate) fn cancel_pop(&mut self, by: SessionSlot) -> Outcome {
        let key = ConsumerKey { session: by, link: LIST_LINK };
        let Some(popping) = self.end_popping(key) else { return Outcome::NOTHING };
        let after = self.log.after_all().and(popping.floor);
        Outcome::reply(after, Reply::TimedOut { link: None })
    }

    /// Makes way for what the first in line at this queue asked for, a command on lists. False
    /// where it has to wait for the next call.
    pub(crate) fn makes_way_for(
        &mut self,
        key: ConsumerKey,
        slot: QueueSlot,
        id: MessageId,
        effects: &mut Effects,
    ) -> bool {
        // What follows may need another frame; but a list and its deadline are one.
        self.state_lifetimes(effects);
        let popping = self.sessions.consumer(key).and_then(|consumer| consumer.popping.as_ref());
        match popping.map(|popping| &popping.asked) {
            Some(Asked::Elements(hand)) => {
                let ready = self.store.queues.at(slot).index.counts.ready;
                let most = hand.max.min(ready).min(limits::FRAME_RECORDS_MAX as u64) as usize;
                self.log.makes_way(most, most * DELETED_BYTES_MAX, effects)
            }
            // It is refused only where nothing else took the room.
            Some(Asked::Move(_))
                if !self.store.may_relocate(id, &self.log) && !self.log.is_unspent() =>
            {
                self.log.defer();
                false
            }
            Some(Asked::Move(_)) => self.log.makes_way(2, MOVED_BYTES_MAX, effects),
            None => true,
        }
    }

    /// The first in line at this queue is a command on lists, and there is an element: it is
    /// answered. Says which queue has got one by it.
    pub(crate) fn give_elements(
        &mut self,
        key: ConsumerKey,
        slot: QueueSlot,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let popping = self.end_popping(key).expect("invariant: it stands in the line");
        let floor = popping.floor;
        let (outcome, woken) = match popping.asked {
            Asked::Elements(hand) => {
                let queue = self.store.queues.at(slot).name.clone();
                let taken = self.take_elements(key.session, slot, hand, effects);
                let popped = taken.map(|Taken { elements, after }| {
                    let elements = elements.into_vec();
                    Outcome::reply(after, Reply::Popped { queue, elements })
                });
                (popped, None)
            }
            Asked::Move(way) => {
                let to = way.to.clone();
                (self.move_from(slot, way, effects), self.store.queues.find(to.as_str()))
            }
        };
        let outcome = outcome.unwrap_or_else(|refusal| self.log.refuse(refusal));
        let (after, reply) = outcome.into_answer().expect("invariant: it is answered");
        effects.reply(self.sessions.at(key.session).identity.id, after.and(floor), reply);
        woken
    }

    /// Ends the wait of a command on lists, if this is one.
    pub(crate) fn end_popping(&mut self, key: ConsumerKey) -> Option<Box<Popping>> {
        let popping = self.sessions.consumer_mut(key)?.popping.take()?;
        let was_waiting = self.sessions.end_wait(key, &mut self.store);
        assert!(was_waiting, "a command on lists is there while it waits");
        let consumer = self.sessions.at_mut(key.session).links.consumers.remove(&key.link);
        for queue in consumer.into_iter().flat_map(|consumer| consumer.watched) {
            self.admission.end_watch(key, queue, None, &mut self.store);
            self.remove_if_idle(queue);
        }
        Some(popping)
    }

    /// Ends the wait of a command on lists, if one waits: by time, or because a second one came,
    /// for each is answered once.
    pub(crate) fn stop_waiting(&mut self, by: SessionSlot, effects: &mut Effects) {
        if let Some((after, reply)) = self.cancel_pop(by).into_answer() {
            effects.reply(self.sessions.at(by).identity.id, after, reply);
        }
    }

    /// The queues of these names, which are made where they are not there.
    fn queues_to_wait_in(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
    ) -> Result<Vec<QueueSlot>, Refusal> {
        let mut queues = Vec::with_capacity(names.len());
        for name in names {
            match self.directory.queue_to_consume(by, name, &mut self.store) {
                Ok(queue) => queues.push(queue),
                Err(refusal) => {
                    queues.into_iter().for_each(|queue| self.remove_if_idle(queue));
                    return Err(refusal);
                }
            }
        }
        Ok(queues)
    }
}

impl Sessions {
    /// What a command was answered, from the output `first` on, waits for this too; and so does
    /// what it will be answered, if it waits.
    pub(crate) fn raise_answers(
        &mut self,
        by: SessionSlot,
        floor: DependsOn,
        first: usize,
        effects: &mut Effects,
    ) {
        if floor == DependsOn::NOTHING {
            return;
        }
        let key = ConsumerKey { session: by, link: LIST_LINK };
        if let Some(popping) = self.consumer_mut(key).and_then(|it| it.popping.as_mut()) {
            popping.floor = floor;
        }
        let id = self.at(by).identity.id;
        for output in effects.outputs.iter_mut().skip(first).filter(|it| it.session == id) {
            output.after = output.after.and(floor);
        }
    }

    pub(crate) fn is_popping(&self, key: ConsumerKey) -> bool {
        self.consumer(key).is_some_and(|consumer| consumer.popping.is_some())
    }

    fn wait_in(
        &mut self,
        by: SessionSlot,
        queues: &[QueueSlot],
        asked: Asked,
        wait: Option<Nanos>,
        store: &mut MessageStore,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link: LIST_LINK };
        let consumer = Consumer {
            watched: queues.iter().copied().collect(),
            wait: None,
            popping: Some(Box::new(Popping { asked, floor: DependsOn::NOTHING })),
        };
        for &queue in queues {
            store.queues.at_mut(queue).delivery.consumers.insert(key);
        }
        self.at_mut(by).links.consumers.insert(key.link, consumer);
        let lease = None;
        self.begin_wait(key, Wanted { wait, margin: Nanos::ZERO, lease }, store);
        Outcome::NOTHING
    }
}

/// What a move says, and what is said of a list that begins with it.
const MOVED_BYTES_MAX: usize = CHANGED_BYTES_MAX + DEADLINE_BYTES_MAX;

/// No protocol may use the link that commands on lists wait as.
pub(crate) const fn is_for_list_link(command: &Command) -> bool {
    matches!(
        command,
        Command::OpenConsumer { link: LIST_LINK, .. }
            | Command::Subscribe { link: LIST_LINK, .. }
            | Command::SubscribePattern { link: LIST_LINK, .. }
            | Command::CloseConsumer { link: LIST_LINK }
            | Command::Credit { link: LIST_LINK, .. }
            | Command::Watch { link: LIST_LINK, .. }
            | Command::Unwatch { link: LIST_LINK, .. }
            | Command::Receive { link: LIST_LINK, .. }
            | Command::CancelReceive { link: LIST_LINK }
    )
}
