//! Sends that wait for a place in a queue, or for memory, in the order in which they came.
//!
//! The engine answers each at once that it waits, and later with its result. A send is stored and
//! counted when its turn comes; until then it is known only here. FIFO: a send queues behind
//! earlier waiting sends even if the queue has room. So no sender overtakes itself or another. A
//! send that waited for memory may then wait for a place. A send that waited for a place needs no
//! more memory.
//!
//! A line goes on by its timer, one send a time. The timer is due as soon as a message has left the
//! line's queue, or there is memory. So other commands are served in between, consumers before
//! senders. As long as a line goes on, every send in it waits. If it has not gone on for as long as
//! the operator says, each send that has waited so long is refused. A session that ends takes its
//! sends out of all lines.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use model::{Command, DependsOn, Destination, Nanos, Reply, limits};

use crate::admission::send_timeouts::shorten_wait;
use crate::admission::{Admission, BlockedSend, BlockedSends, SourceWaits, WaitList, WaitListId};
use crate::context::Context;
use crate::demand::Demand;
use crate::directory::{Directory, Target};
use crate::ids::{QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::timers::Timer;

impl BlockedSends {
    pub(crate) fn new(still_max: Nanos) -> Self {
        Self {
            sends: BTreeMap::new(),
            bytes: 0,
            memory_bytes: 0,
            for_memory_bytes: 0,
            for_memory: WaitList::default(),
            for_parts: WaitList::default(),
            leaving: BTreeSet::new(),
            sources: SourceWaits::default(),
            held_back: BTreeSet::new(),
            is_log_behind: false,
            is_closed: false,
            next: 1,
            still_max,
        }
    }

    pub(crate) fn takes(&self, bytes: u64) -> bool {
        !self.is_closed
            && self.sends.len() < limits::BLOCKED_SENDS_MAX
            && self.bytes + bytes <= limits::BLOCKED_BYTES_MAX as u64
    }
}

impl Admission {
    /// A message has left a queue, or the queue is about to go: sends that wait for a place may go
    /// on.
    pub(crate) fn made_place(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        self.may_go_on(WaitListId::Queue(slot), store);
    }

    /// True if the log is behind and the waiting send would add to it.
    pub(crate) fn is_held_back(&self, ticket: u64, sessions: &Sessions, context: &Context) -> bool {
        let blocked =
            self.blocked_sends.sends.get(&ticket).expect("invariant: who is in a line waits");
        self.blocked_sends.is_log_behind
            && sessions.bytes_added(blocked.by, &blocked.command, context).is_some()
    }

    pub(crate) fn unblock(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> BlockedSend {
        let mut blocked = self.take_blocked(ticket, sessions, store);
        shorten_wait(&mut blocked.command, store.latest, blocked.until);
        sessions.at_mut(blocked.by).owned.blocked.remove(&ticket);
        blocked
    }

    pub(crate) fn take_blocked(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> BlockedSend {
        self.leave_line(ticket, sessions, store);
        let blocked = self.blocked_sends.sends.remove(&ticket);
        let blocked = blocked.expect("invariant: who is in a line waits");
        self.blocked_sends.bytes -= blocked.bytes;
        self.blocked_sends.memory_bytes -= Demand::of(&blocked.command).waiting_bytes();
        self.blocked_sends.sources.remove(&blocked.command, ticket);
        self.set_sources_due(store);
        store.timers.change(Timer::GiveUp(ticket), blocked.until, None);
        blocked
    }
}

impl Directory {
    /// The same command, named by its target: it does not depend on the link that it came by.
    pub(crate) fn addressed(
        &self,
        by: SessionSlot,
        command: Command,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> Command {
        let Command::Put { link, message, transaction } = command else { return command };
        let to = match sessions.at(by).links.producers.get(&link) {
            Some(Target::Queue(slot)) => Destination::Queue(store.queues.at(*slot).name.clone()),
            Some(Target::Topic(slot)) => Destination::Topic(self.topics.at(*slot).name.clone()),
            None => return Command::Put { link, message, transaction },
        };
        Command::PutTo { to, message, transaction }
    }
}

impl Outcome {
    /// Turns the answer, if there is one now, into the late answer of the send that was told to
    /// wait.
    pub(crate) fn late(mut self, ticket: u64, floor: DependsOn) -> Self {
        if let Some((after, reply)) = self.take_answer() {
            let reply = Reply::Late { ticket, reply: Box::new(reply) };
            return self.answering(after.and(floor), reply);
        }
        self
    }
}
