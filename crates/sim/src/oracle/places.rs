//! Queues that hold no more than their bounds allow: what has a place there, who waits for one, and
//! who is refused for want of it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{
    Bound, Command, DeadReason, Destination, Nanos, QueueBounds, QueueFull, Refusal, Reply,
    Settlement, TransactionId, WhenFull,
};

use super::memory::brings;
use super::{Message, Oracle, Place};
use crate::amount::Amount;
use crate::history::Changes;
use crate::{Counted, Wish, workload};

/// The bounds, and who waits for a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    bounds: QueueBounds,
    pub(super) pace_max: Nanos,
    /// By ticket: the first to come first.
    pub(super) waiting: BTreeMap<u64, Waiting>,
    /// When somebody who waited went on, by queue.
    moved: BTreeMap<Rc<str>, Nanos>,
    /// Queues that held more than they may when a process began: until something comes nothing
    /// goes for that.
    pub(super) spared: BTreeSet<Rc<str>>,
    pub(super) counted: Counted,
}

/// What stores messages, as it was asked for.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    /// By a client of beanstalkd's protocol.
    Wish(Wish),
    /// By one of AMQP; a message says itself where it goes.
    Command(Command),
    /// By one of Redis: elements or a value, which take so many bytes while they wait. Their
    /// places are no concern of this oracle's.
    Elements(u64),
}

/// Somebody who was told that it takes time.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) client: u64,
    pub(super) sent: Sent,
    pub(super) since: Nanos,
    /// Its client wants no more to wait.
    pub(super) is_given_up: bool,
}

/// What goes into a queue at once, and what leaves it with that.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    stored: Amount,
    settled: Amount,
    /// Bytes of the largest message.
    largest: u64,
}

impl Places {
    pub(super) fn new(bounds: QueueBounds, pace_max: Nanos) -> Self {
        Self { bounds, pace_max, ..Self::default() }
    }

    /// A client is gone, and with it what it had waiting.
    pub(super) fn forget(&mut self, client: u64) {
        self.waiting.retain(|_, waiting| waiting.client != client);
    }

    /// The process fell.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.moved.clear();
    }
}

impl Oracle {
    /// What became of those who sent, over all crashes.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.places.counted
    }

    /// A client of beanstalkd's protocol was told to wait for a place.
    ///
    /// # Panics
    /// When there is one.
    pub fn wish_waits(&mut self, now: Nanos, client: u64, ticket: u64, wish: &Wish) {
        self.begin_step(now);
        self.waits(now, client, ticket, Sent::Wish(wish.clone()));
    }

    /// What a client had waiting it no longer wants.
    pub fn gives_up(&mut self, client: u64) {
        let own = self.places.waiting.values_mut().filter(|waiting| waiting.client == client);
        own.for_each(|waiting| waiting.is_given_up = true);
    }

    /// What came of something that waited. Returns the changes that the reply reflects.
    ///
    /// # Panics
    /// When that must not come of it, or not yet.
    pub fn late(&mut self, now: Nanos, client: u64, ticket: u64, reply: &Reply) -> Changes {
        self.begin_step(now);
        // What comes late may be due at once, and go in the same moment.
        self.latest = Nanos::ZERO;
        let waiting = self.places.waiting.remove(&ticket);
        let waiting = waiting.unwrap_or_else(|| panic!("{client} does not wait with {ticket}"));
        assert_eq!(waiting.client, client, "who waited with {ticket} is answered");
        self.judge_place(now, client, &waiting.sent, reply, Some((ticket, &waiting)));
        if !matches!(reply, Reply::Refused(_)) {
            self.places.counted.went_on += 1;
            self.memory.moves(now);
            for queue in self.demands(client, &waiting.sent).into_keys() {
                self.places.moved.insert(queue, now);
            }
        }
        if let Some(transaction) = waiting.sent.transaction() {
            self.give_up_part(client, transaction, reply);
        }
        let changes = match &waiting.sent {
            Sent::Wish(wish) => self.perform_wish(now, client, wish, reply),
            Sent::Command(command) => self.perform(now, client, command, Some(reply)),
            Sent::Elements(_) => unreachable!("they are answered elsewhere"),
        };
        self.shed(now);
        changes
    }

    /// Whether messages may go because of others that come.
    #[must_use]
    pub fn sheds(&self) -> bool {
        sheds(&self.places.bounds)
    }

    /// What queues have no place for goes, where that is their rule.
    pub(super) fn shed(&mut self, now: Nanos) {
        let bounds = self.places.bounds;
        for queue in workload::QUEUES.into_iter().filter(|_| sheds(&bounds)) {
            while !self.places.spared.contains(queue)
                && self.held(queue).exceeds(&bounds).is_some()
                && let Some(id) = self.least_needed(queue)
            {
                self.places.counted.shed += 1;
                match bounds.when_full {
                    WhenFull::DeadLetter => self.die(now, id, DeadReason::Overflow),
                    _ => self.remove(id),
                };
            }
        }
    }

    /// Of the least urgent that are ready the older of the first and the last; the last, where
    /// that is more than the queue may hold.
    fn least_needed(&self, queue: &str) -> Option<u64> {
        let ready = |(id, message): (&u64, &Message)| {
            let is_ready = matches!(message.place, Place::Ready(_));
            let here = is_ready && &*message.content.queue == queue;
            here.then_some((message.content.priority, message.nature.order, *id))
        };
        let ready: Vec<_> = self.messages.iter().filter_map(ready).collect();
        let (priority, _, last) = ready.iter().copied().max()?;
        let (_, _, first) = ready.into_iter().filter(|(its, ..)| *its == priority).min()?;
        let bytes = self.messages.get(&last).map(|message| message.nature.bytes);
        let is_too_large = bytes > self.places.bounds.bytes_max.or(Some(u64::MAX));
        Some(if is_too_large { last } else { first.min(last) })
    }

    /// A process begins. No queue whose senders are held off holds more than it may.
    ///
    /// # Panics
    /// When one does.
    pub(super) fn spare_what_is_there(&mut self) {
        let bounds = &self.places.bounds;
        let is_beyond = |queue: &&str| self.held(queue).exceeds(bounds).is_some();
        let beyond = workload::QUEUES.into_iter().filter(is_beyond).map(Rc::from).collect();
        assert!(!bounds.holds_off() || beyond == BTreeSet::new(), "{beyond:?} hold too much");
        self.places.spared = beyond;
    }

    /// Nobody waits for a place that is there.
    ///
    /// # Panics
    /// When somebody does.
    pub fn assert_placed(&self) {
        if self.places.bounds.target_age.is_some() || self.memory.is_limited() {
            return;
        }
        for queue in workload::QUEUES {
            let first = self.places.waiting.iter().find_map(|(ticket, waiting)| {
                let demands = self.demands(waiting.client, &waiting.sent);
                let demand = demands.get(queue)?;
                Some((*ticket, waiting, *demand, demands.len()))
            });
            let Some((ticket, waiting, demand, queues)) = first else { continue };
            // A commit may wait for its room in the log since; and who wants places in several
            // queues may wait for another, with those behind it.
            if queues == 1 && !waiting.is_commit() {
                assert!(self.lack(queue, demand).is_some(), "{ticket} has a place in {queue}");
            }
        }
    }

    /// The same command, whatever becomes of the link that it came by.
    pub(super) fn addressed(&self, client: u64, command: &Command) -> Command {
        let Command::Put { link, message, transaction } = command else { return command.clone() };
        let to = self.producers.get(&(client, link.0)).expect("a producer").clone();
        Command::PutTo { to, message: message.clone(), transaction: *transaction }
    }

    /// Somebody is told to wait for a place.
    pub(super) fn waits(&mut self, now: Nanos, client: u64, ticket: u64, sent: Sent) {
        if !self.memory.is_limited() {
            assert!(self.lacks_place(client, &sent), "{client} need not wait: {sent:?}");
        } else if !self.lacks_place(client, &sent) {
            self.judge_wait(client, &sent);
        }
        self.note_waiting(now, client, ticket, sent);
    }

    /// The same, where there is a reason that this oracle knows nothing of.
    pub(super) fn note_waiting(&mut self, now: Nanos, client: u64, ticket: u64, sent: Sent) {
        let waiting = Waiting { client, sent, since: now, is_given_up: false };
        self.places.counted.waits += 1;
        let before = self.places.waiting.insert(ticket, waiting);
        assert!(before.is_none(), "ticket {ticket} is given once");
    }

    /// Whether what is sent may have to wait for a place, and will have one.
    fn lacks_place(&self, client: u64, sent: &Sent) -> bool {
        let bounds = self.places.bounds;
        let demands = self.demands(client, sent);
        let fits = |demand: &Demand| demand.stored.without(demand.settled).exceeds(&bounds);
        let lacks = |(queue, demand): (&Rc<str>, &Demand)| {
            self.lack(queue, *demand).is_some() || self.may_be_slow(queue) || self.is_awaited(queue)
        };
        bounds.when_full == WhenFull::Pace
            && demands.values().all(|demand| fits(demand).is_none())
            && demands.iter().any(lacks)
    }

    /// Whether there was a place for what was sent, if that is what decided.
    pub(super) fn judge_place(
        &mut self,
        now: Nanos,
        client: u64,
        sent: &Sent,
        reply: &Reply,
        waited: Option<(u64, &Waiting)>,
    ) {
        self.judge_memory(now, client, sent, reply, waited);
        let demands = self.demands(client, sent);
        match reply {
            Reply::Refused(Refusal::QueueFull(full)) => {
                let demand = demands.get(full.queue.as_str());
                let demand = demand.unwrap_or_else(|| panic!("{full} is none of {sent:?}"));
                self.places.counted.held_off += 1;
                self.judge_refusal(now, *demand, full, waited);
            }
            Reply::Stored { .. } | Reply::Done => {
                for (queue, demand) in &demands {
                    assert_eq!(self.lack(queue, *demand), None, "{queue} has no place: {sent:?}");
                }
                self.judge_turn(&demands, waited.map_or(u64::MAX, |(ticket, _)| ticket), sent);
            }
            _ => {}
        }
    }

    fn judge_refusal(
        &self,
        now: Nanos,
        demand: Demand,
        full: &QueueFull,
        waited: Option<(u64, &Waiting)>,
    ) {
        let Places { bounds, pace_max, moved, .. } = &self.places;
        let queue = full.queue.as_str();
        let least = demand.stored.without(demand.settled);
        if bounds.holds_off() && least.exceeds(bounds) == Some(full.bound) {
            return;
        }
        let lack = self.lack(queue, demand);
        let is_slow = bounds.target_age.map(Bound::Age) == Some(full.bound);
        let is_named = lack == Some(full.bound) || is_slow && self.may_be_slow(queue);
        if bounds.when_full != WhenFull::Pace {
            assert!(is_named, "{full}, though it lacks {lack:?}");
            return;
        }
        let (ticket, waiting) = waited.unwrap_or_else(|| panic!("{full} to who could wait"));
        if waiting.is_given_up {
            return;
        }
        assert!(is_named, "{full} to {ticket}, though it lacks {lack:?}");
        // Where memory is limited it may be the line for that which went on.
        let moved = moved.get(queue).copied().filter(|_| !self.memory.is_limited());
        let moved = moved.unwrap_or_default();
        let since = if waiting.is_commit() { waiting.since } else { waiting.since.max(moved) };
        assert!(now >= since + *pace_max, "{full} to {ticket}, who waits since {since}");
    }

    /// Who waits for a place in one queue alone goes on before all who came later.
    fn judge_turn(&self, demands: &BTreeMap<Rc<str>, Demand>, ticket: u64, sent: &Sent) {
        if self.memory.is_limited() && !brings(sent) {
            // A commit passes by those who wait for memory.
            return;
        }
        for (earlier, waiting) in self.places.waiting.range(..ticket) {
            let wanted = self.demands(waiting.client, &waiting.sent);
            let is_passed = wanted.len() == 1 && wanted.keys().all(|it| demands.contains_key(it));
            assert!(!is_passed || waiting.is_commit(), "{earlier} waits longer than {sent:?}");
        }
    }

    /// The bound that is in the way. What sheds has a place for all that could ever have one.
    fn lack(&self, queue: &str, demand: Demand) -> Option<Bound> {
        if sheds(&self.places.bounds) {
            return Amount { messages: 0, bytes: demand.largest }.exceeds(&self.places.bounds);
        }
        let held = self.held(queue).without(demand.settled).and(demand.stored);
        held.exceeds(&self.places.bounds)
    }

    /// Whether somebody may wait for a place in a queue.
    fn is_awaited(&self, queue: &str) -> bool {
        let mut waiting = self.places.waiting.values();
        waiting.any(|waiting| self.demands(waiting.client, &waiting.sent).contains_key(queue))
    }

    /// Whether messages in a queue may wait for longer than they should. How fast they leave is
    /// not followed here.
    fn may_be_slow(&self, queue: &str) -> bool {
        let mut here = self.messages.values().filter(|it| &*it.content.queue == queue);
        let is_ready = here.clone().any(|message| matches!(message.place, Place::Ready(_)));
        self.places.bounds.target_age.is_some()
            && (is_ready || here.nth(THERE_ALWAYS - 1).is_some())
    }

    /// All that is stored in a queue.
    fn held(&self, queue: &str) -> Amount {
        let here = self.messages.values().filter(|message| &*message.content.queue == queue);
        here.fold(Amount::default(), |sum, message| sum.and(Amount::one(message.nature.bytes)))
    }

    /// What goes into queues that are bounded.
    fn demands(&self, client: u64, sent: &Sent) -> BTreeMap<Rc<str>, Demand> {
        let mut demands = BTreeMap::new();
        if !self.places.bounds.is_bounded() {
            return demands;
        }
        match sent {
            Sent::Wish(Wish::Put { queue, body, .. }) => {
                add(&mut demands, queue, body.len());
            }
            Sent::Command(Command::PutTo { to, message, transaction: None }) => {
                add_to(&mut demands, to, message.body.len());
            }
            Sent::Command(Command::Commit { transaction }) => {
                self.add_transaction(client, *transaction, &mut demands);
            }
            _ => {}
        }
        demands
    }

    fn add_transaction(
        &self,
        client: u64,
        id: TransactionId,
        demands: &mut BTreeMap<Rc<str>, Demand>,
    ) {
        let Some(transaction) = self.transactions.get(&(client, id)) else { return };
        for (to, message) in &transaction.puts {
            add_to(demands, to, message.body.len());
        }
        for (id, settlement) in &transaction.settled {
            let Some(message) = self.messages.get(id) else { continue };
            if let Some(demand) = demands.get_mut(&message.content.queue)
                && *settlement == Settlement::Accept
            {
                demand.settled = demand.settled.and(Amount::one(message.nature.bytes));
            }
        }
    }
}

impl Sent {
    /// That which it is to be a part of.
    pub(super) const fn transaction(&self) -> Option<TransactionId> {
        match self {
            Self::Command(Command::PutTo { transaction, .. }) => *transaction,
            _ => None,
        }
    }
}

impl Waiting {
    pub(super) const fn is_commit(&self) -> bool {
        matches!(self.sent, Sent::Command(Command::Commit { .. }))
    }
}

/// Whether such queues make a place by letting messages go.
fn sheds(bounds: &QueueBounds) -> bool {
    matches!(bounds.when_full, WhenFull::DropOldest | WhenFull::DeadLetter)
}

fn add_to(demands: &mut BTreeMap<Rc<str>, Demand>, to: &Destination, bytes: usize) {
    if let Destination::Queue(queue) = to {
        add(demands, queue.as_str(), bytes);
    }
}

fn add(demands: &mut BTreeMap<Rc<str>, Demand>, queue: &str, bytes: usize) {
    if workload::QUEUES.contains(&queue) {
        let demand: &mut Demand = demands.entry(queue.into()).or_default();
        demand.stored = demand.stored.and(Amount::one(bytes as u64));
        demand.largest = demand.largest.max(bytes as u64);
    }
}

/// Messages that may be in a queue however slowly they leave.
const THERE_ALWAYS: usize = 16;
