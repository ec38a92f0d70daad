//! Sends that wait for a place in a queue, or for memory, in the order in which they came.
//!
//! Each is answered at once that it waits, and later with what came of it. It is stored, and
//! counts, when its turn comes; until then nothing is known of it but here. Who comes while others
//! wait goes behind them, though there be a place, so that no sender overtakes itself or another.
//! A send that waited for memory may wait for a place then; one that waited for a place needs no
//! more memory.
//!
//! A line goes on by its timer, which is due as soon as a message has left its queue, or there is
//! memory, a send a time: so others are served in between, those who take before those who bring.
//! As long as a line goes on everybody in it waits; when it has not for as long as the operator
//! says, whoever has waited so long is refused. A session that ends takes its sends out of all.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use model::{Command, DependsOn, Destination, Nanos, Reply, limits};

use crate::admission::Admission;
use crate::admission::send_timeouts::shorten_wait;
use crate::admission::source_waits::SourceWaits;
use crate::admission::wait_lists::{WaitList, WaitListId};
use crate::bodies::memory::waiting_bytes;
use crate::context::Context;
use crate::directory::Directory;
use crate::directory::targets::Target;
use crate::ids::{QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::timers::Timer;

/// All sends that wait, by ticket: the first to come first.
#[derive(Debug)]
pub(crate) struct Pacing {
    pub(crate) sends: BTreeMap<u64, Paced>,
    /// Bytes that all of them store.
    pub(crate) bytes: u64,
    /// Bytes of memory that all of them take.
    pub(crate) memory_bytes: u64,
    /// Of these, what those take that wait for memory.
    pub(crate) for_memory_bytes: u64,
    /// Sends that wait for memory, but for those of the next list.
    pub(crate) for_memory: WaitList,
    /// Parts of transactions that wait for memory, and commits behind their own parts.
    pub(crate) for_parts: WaitList,
    /// Queues that nobody finds any more, with a line in which somebody waits still.
    pub(crate) leaving: BTreeSet<QueueSlot>,
    /// Which of them depend on what is in a list.
    pub(crate) sources: SourceWaits,
    /// Lines whose first would go on if the log was not behind.
    pub(crate) held_back: BTreeSet<WaitListId>,
    /// The log takes no more than what settles.
    pub(crate) is_log_behind: bool,
    /// No send may begin to wait any more.
    pub(crate) is_closed: bool,
    pub(crate) next: u64,
    /// How long a line may stand still.
    pub(crate) still_max: Nanos,
}

/// One that waits.
#[derive(Debug)]
pub(crate) struct Paced {
    pub(crate) by: SessionSlot,
    pub(crate) command: Command,
    pub(crate) bytes: u64,
    /// The list that it waits in.
    pub(crate) at: WaitListId,
    pub(crate) since: Nanos,
    /// When it is given up, if it said how long it waits.
    pub(crate) until: Option<Nanos>,
    /// A position that its answer waits for as well.
    pub(crate) floor: DependsOn,
}

impl Pacing {
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
    /// A message has left a queue, or the queue is about to go: who waits for a place may go on.
    pub(crate) fn made_place(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        self.may_go_on(WaitListId::Queue(slot), store);
    }

    /// True if the log is to take no more of what adds to it.
    pub(crate) fn is_held_back(&self, ticket: u64, sessions: &Sessions, context: &Context) -> bool {
        let paced = self.pacing.sends.get(&ticket).expect("invariant: who is in a line waits");
        self.pacing.is_log_behind
            && sessions.bytes_added(paced.by, &paced.command, context).is_some()
    }

    pub(crate) fn leave_pacing(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Paced {
        let mut paced = self.take_paced(ticket, sessions, store);
        shorten_wait(&mut paced.command, store.latest, paced.until);
        sessions.at_mut(paced.by).owned.paced.remove(&ticket);
        paced
    }

    pub(crate) fn take_paced(
        &mut self,
        ticket: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Paced {
        self.leave_line(ticket, sessions, store);
        let paced = self.pacing.sends.remove(&ticket);
        let paced = paced.expect("invariant: who is in a line waits");
        self.pacing.bytes -= paced.bytes;
        self.pacing.memory_bytes -= waiting_bytes(&paced.command);
        self.pacing.sources.remove(&paced.command, ticket);
        self.set_sources_due(store);
        store.timers.change(Timer::GiveUp(ticket), paced.until, None);
        paced
    }
}

impl Directory {
    /// The same command, whatever becomes of the link that it came by.
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
    /// It answers what was said to wait, if it answers now.
    pub(crate) fn late(mut self, ticket: u64, floor: DependsOn) -> Self {
        if let Some((after, reply)) = self.take_answer() {
            let reply = Reply::Late { ticket, reply: Box::new(reply) };
            return self.answering(after.and(floor), reply);
        }
        self
    }
}
