//! Queues and subscriptions that hold no more than their bounds allow. Messages have a place there;
//! sends wait for one, or are refused for want of it.
//!
//! A send to a topic wants a place in each of its subscriptions. It waits in the line of one that
//! has none: no reply tells which.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{
    Bound, Command, DeadReason, Destination, Durability, Nanos, QueueBounds, Refusal, Reply,
    Settlement, TransactionId, WhenFull,
};

use super::memory::brings;
use super::ruling::Rules;
use super::{Message, Oracle, Place};
use crate::amount::Amount;
use crate::history::{Changes, destination};
use crate::registration::is_subscription;
use crate::{Counted, Wish, workload};

/// The bounds, and sends that wait for a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) rules: Rules,
    pub(super) block_timeout: Nanos,
    /// By ticket: the first to come first.
    pub(super) waiting: BTreeMap<u64, Waiting>,
    /// When a send that waited there alone went on, by queue.
    moved: BTreeMap<Rc<str>, Nanos>,
    /// Queues that held more than they may when a process began or their rules were given: until
    /// something comes nothing goes for that.
    pub(super) spared: BTreeSet<Rc<str>>,
    /// Subscriptions that held more than they may when their subscriber came back, and that have
    /// not held less since.
    pub(super) catching_up: BTreeSet<Rc<str>>,
    /// The device is full: a journalled message that its queue has no room for stays in it, since
    /// a dead letter takes more room than the move frees.
    pub(super) is_scarce: bool,
    /// Queues that hold more than they may since then.
    pub(super) overfull: BTreeSet<Rc<str>>,
    pub(super) counted: Counted,
}

/// A command that stores messages, as its client gave it.
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

/// A send that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) client: u64,
    pub(super) sent: Sent,
    pub(super) since: Nanos,
    /// Its client wants no more to wait.
    pub(super) is_given_up: bool,
    /// Its client is gone, and nothing is to be done for it any more.
    is_abandoned: bool,
}

/// Messages that go into a queue at once, and those that leave it with them.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    stored: Amount,
    settled: Amount,
    /// Bytes of the largest message.
    largest: u64,
}

impl Places {
    pub(super) fn new(queues: QueueBounds, topics: QueueBounds, block_timeout: Nanos) -> Self {
        Self { rules: Rules::new(queues, topics), block_timeout, ..Self::default() }
    }

    /// How much a queue or a subscription may hold.
    fn bounds_of(&self, queue: &str) -> QueueBounds {
        self.rules.bounds_of(queue)
    }

    /// A client is gone, and with it its waiting sends.
    pub(super) fn forget(&mut self, client: u64) {
        self.waiting.retain(|_, waiting| waiting.client != client);
    }

    /// The process fell.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.moved.clear();
        self.catching_up.clear();
        self.overfull.clear();
    }
}

impl Oracle {
    /// Outcomes of sends, over all crashes.
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

    /// A client no longer wants its waiting sends.
    pub fn gives_up(&mut self, client: u64) {
        let own = self.places.waiting.values_mut().filter(|waiting| waiting.client == client);
        own.for_each(|waiting| waiting.is_given_up = true);
    }

    /// The client is gone that waited with this ticket.
    pub fn abandons(&mut self, ticket: u64) {
        if let Some(waiting) = self.places.waiting.get_mut(&ticket) {
            (waiting.is_given_up, waiting.is_abandoned) = (true, true);
            self.places.counted.abandoned += 1;
        }
    }

    /// The outcome of a send that waited. Returns the changes that the reply reflects.
    ///
    /// # Panics
    /// When that must not come of it, or not yet.
    pub fn late(&mut self, now: Nanos, client: u64, ticket: u64, reply: &Reply) -> Changes {
        self.begin_step(now);
        // A message that comes late may be due at once, and go in the same moment.
        self.latest = Nanos::ZERO;
        let waiting = self.places.waiting.remove(&ticket);
        let waiting = waiting.unwrap_or_else(|| panic!("{client} does not wait with {ticket}"));
        assert_eq!(waiting.client, client, "who waited with {ticket} is answered");
        let is_undone = matches!(reply, Reply::Refused(_));
        assert!(is_undone || !waiting.is_abandoned, "{reply:?} for a client that is gone");
        self.learn(&waiting.sent, reply);
        self.judge_place(now, client, &waiting.sent, reply, Some((ticket, &waiting)));
        if !matches!(reply, Reply::Refused(_)) {
            self.places.counted.went_on += 1;
            self.memory.moves(now, &waiting.sent);
            let demands = self.demands(client, &waiting.sent);
            if demands.len() == 1 {
                self.places.moved.extend(demands.into_keys().map(|queue| (queue, now)));
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
        self.is_behind |= waiting.is_commit();
        self.shed(now);
        changes
    }

    /// True if messages may go because of others that come.
    #[must_use]
    pub fn sheds(&self) -> bool {
        self.places.rules.may_shed()
    }

    /// Messages for which queues have no place go, if that is the queues' rule.
    pub(super) fn shed(&mut self, now: Nanos) {
        self.shed_all(now);
        self.evict();
    }

    /// The same except for dead letters, which go once all is done.
    pub(super) fn shed_all(&mut self, now: Nanos) {
        let queues = if self.sheds() { self.queues() } else { Vec::new() };
        for queue in queues {
            if !self.places.overfull.contains(&queue) {
                self.shed_in(now, &queue);
            }
        }
    }

    fn shed_in(&mut self, now: Nanos, queue: &Rc<str>) {
        let bounds = self.places.bounds_of(queue);
        while sheds(&bounds)
            && !self.places.spared.contains(queue)
            && self.is_beyond(queue)
            && let Some(id) = self.least_needed(queue, &bounds)
        {
            if self.stays_for_now(id, bounds.when_full) {
                self.places.overfull.insert(queue.clone());
                return;
            }
            self.places.counted.shed += 1;
            match bounds.when_full {
                WhenFull::DeadLetter => self.die(now, id, DeadReason::Overflow),
                _ => self.remove(id),
            };
        }
    }

    /// With time, messages that stayed for want of room go.
    pub fn shed_what_stayed(&mut self, now: Nanos) {
        if !self.places.is_scarce && !self.places.overfull.is_empty() {
            self.step += 1;
            self.places.overfull.clear();
            self.shed(now);
        }
    }

    /// Something comes into a queue.
    pub(super) fn comes_into(&mut self, queue: &str) {
        self.places.spared.remove(queue);
        self.places.overfull.remove(queue);
    }

    /// The next steps happen while the device has room, or has none.
    pub fn see_room(&mut self, is_scarce: bool) {
        self.places.is_scarce = is_scarce;
    }

    /// True if a message cannot become a dead letter, for want of room.
    fn stays_for_now(&self, id: u64, when_full: WhenFull) -> bool {
        let message = self.messages.get(&id).expect("invariant: the caller found it");
        let is_to_move = when_full == WhenFull::DeadLetter && message.content.dead.is_none();
        self.places.is_scarce && is_to_move && message.nature.level > Durability::None
    }

    /// Among the least urgent ready messages, the older one of the first and the last. It is the
    /// last if that alone is more than the queue may hold.
    fn least_needed(&self, queue: &str, bounds: &QueueBounds) -> Option<u64> {
        let ready = |(id, message): (&u64, &Message)| {
            let is_ready = matches!(message.place, Place::Ready(_));
            let here = is_ready && &*message.content.queue == queue;
            here.then_some((message.content.priority, message.nature.order, *id))
        };
        let ready: Vec<_> = self.messages.iter().filter_map(ready).collect();
        let (priority, _, last) = ready.iter().copied().max()?;
        let (_, _, first) = ready.into_iter().filter(|(its, ..)| *its == priority).min()?;
        let bytes = self.messages.get(&last).map(|message| message.nature.bytes);
        let is_too_large = bytes > bounds.bytes_max.or(Some(u64::MAX));
        Some(if is_too_large { last } else { first.min(last) })
    }

    /// A process begins. No queue that always held its senders off holds more than it may.
    ///
    /// # Panics
    /// When one does.
    pub(super) fn spare_what_is_there(&mut self) {
        self.places.spared =
            self.queues().into_iter().filter(|queue| self.is_beyond(queue)).collect();
        let Places { rules, spared, .. } = &self.places;
        let wrong = spared.iter().find(|queue| rules.have_held_off(queue));
        assert_eq!(wrong, None, "it holds too much");
    }

    /// True if a queue holds more than it may.
    pub(super) fn is_beyond(&self, queue: &str) -> bool {
        self.held(queue).exceeds(&self.places.bounds_of(queue)).is_some()
    }

    /// All that may have bounds: queues, and the queues of subscriptions.
    pub(super) fn queues(&self) -> Vec<Rc<str>> {
        let queues = workload::QUEUES.into_iter().map(Rc::from);
        queues.chain(self.subscriptions.keys().cloned()).collect()
    }

    /// Asserts that no send waits for a place that is there.
    ///
    /// # Panics When one does.
    pub fn assert_placed(&self) {
        if self.memory.is_limited() {
            return;
        }
        let mut awaited = BTreeSet::new();
        for (ticket, waiting) in &self.places.waiting {
            let demands = self.demands(waiting.client, &waiting.sent);
            let is_first = demands.keys().all(|queue| !awaited.contains(queue));
            // Since then a commit may wait for its room in the log, and a repeated send behind
            // others.
            if is_first && !waiting.is_commit() && !self.repeats(&waiting.sent) {
                let lacks = |(queue, demand): (&Rc<str>, &Demand)| {
                    self.lack(queue, *demand).is_some() || self.may_be_slow(queue)
                };
                assert!(demands.iter().any(lacks), "{ticket} has a place: {demands:?}");
            }
            awaited.extend(demands.into_keys());
        }
    }

    /// The same command with its destination, independent of the link that it came by.
    pub(super) fn addressed(&self, client: u64, command: &Command) -> Command {
        let Command::Put { link, message, transaction } = command else { return command.clone() };
        let to = self.producers.get(&(client, link.0)).expect("a producer").clone();
        Command::PutTo { to, message: message.clone(), transaction: *transaction }
    }

    /// A client is told to wait for a place.
    pub(super) fn waits(&mut self, now: Nanos, client: u64, ticket: u64, sent: Sent) {
        if !self.memory.is_limited() {
            assert!(self.shortage_of_place(client, &sent), "{client} need not wait: {sent:?}");
        } else if !self.shortage_of_place(client, &sent) {
            self.judge_wait(client, &sent);
        }
        self.note_waiting(now, client, ticket, sent);
    }

    /// The same, where there is a reason that this oracle knows nothing of.
    pub(super) fn note_waiting(&mut self, now: Nanos, client: u64, ticket: u64, sent: Sent) {
        let waiting = Waiting { client, sent, since: now, is_given_up: false, is_abandoned: false };
        self.places.counted.waits += 1;
        let before = self.places.waiting.insert(ticket, waiting);
        assert!(before.is_none(), "ticket {ticket} is given once");
    }

    /// True if a send may have to wait for a place, and will have one.
    fn shortage_of_place(&self, client: u64, sent: &Sent) -> bool {
        let demands = self.demands(client, sent);
        let may_fit = |(queue, demand): (&Rc<str>, &Demand)| {
            let rejects = self.places.bounds_of(queue).when_full == WhenFull::Reject;
            self.never_fits(queue, *demand).is_none()
                && !(rejects && self.lack(queue, *demand).is_some())
        };
        let lacks = |(queue, demand): (&Rc<str>, &Demand)| {
            let bounds = self.places.bounds_of(queue);
            let is_full = self.lack(queue, *demand).is_some() || self.may_be_slow(queue);
            self.is_awaited(queue) || is_full && bounds.when_full == WhenFull::Block
        };
        let is_behind = || self.places.waiting.values().any(|it| it.sent.goes_as(sent));
        demands.iter().all(may_fit) && (demands.iter().any(lacks) || is_behind())
    }

    /// Judges a refusal or an answer by the place that there was for the send.
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
                self.places.counted.held_off += 1;
                let name = full.queue.as_str();
                let mut wanted = demands.iter().filter(|(queue, _)| destination(queue) == name);
                let is_right = wanted.any(|(queue, demand)| {
                    self.may_refuse(now, queue, *demand, full.bound, waited)
                });
                // A client that gave up is told of the line in which it stood, though all
                // subscriptions of its topic have gone meanwhile.
                let is_given_up = waited.is_some_and(|(_, waiting)| waiting.is_given_up);
                let is_right = is_right || is_given_up && demands.is_empty();
                // Only a client that gave up is not told that it was stored meanwhile.
                let is_right = is_right && (is_given_up || !self.repeats(sent));
                assert!(is_right, "{full} to {sent:?} of {client} at {now}: {waited:?}");
            }
            Reply::Stored { .. } | Reply::Done => {
                for (queue, demand) in &demands {
                    assert_eq!(self.lack(queue, *demand), None, "{queue} has no place: {sent:?}");
                    let grows = self.shortage_of_room_to_park(queue, *demand);
                    assert!(!grows, "{queue} holds too much on a full device: {sent:?}");
                }
                if !self.repeats(sent) {
                    let ticket = waited.map_or(u64::MAX, |(ticket, _)| ticket);
                    self.judge_turn(&demands, ticket, sent);
                }
            }
            _ => {}
        }
    }

    /// True if a send that wants a place may be refused for this bound of this queue.
    fn may_refuse(
        &self,
        now: Nanos,
        queue: &Rc<str>,
        demand: Demand,
        bound: Bound,
        waited: Option<(u64, &Waiting)>,
    ) -> bool {
        let Places { block_timeout, moved, .. } = &self.places;
        let bounds = self.places.bounds_of(queue);
        let is_given_up = waited.is_some_and(|(_, waiting)| waiting.is_given_up);
        if is_given_up || self.never_fits(queue, demand) == Some(bound) {
            return true;
        }
        let is_slow = bounds.target_age.map(Bound::Age) == Some(bound) && self.may_be_slow(queue);
        let is_named = is_slow || self.lack(queue, demand) == Some(bound);
        if bounds.when_full != WhenFull::Block {
            // No send overtakes one that waited there before the rules were these.
            return is_named || self.is_awaited(queue) && bounds.first() == Some(bound);
        }
        let Some((_, waiting)) = waited else { return false };
        // If memory is limited, the line for memory may be the one that went on.
        let moved = moved.get(queue).copied().filter(|_| !self.memory.is_limited());
        let moved = moved.unwrap_or_default();
        let since = if waiting.is_commit() { waiting.since } else { waiting.since.max(moved) };
        is_named && now >= since + *block_timeout
    }

    /// A send that waits for places goes on before all that came later and want these as well.
    fn judge_turn(&self, demands: &BTreeMap<Rc<str>, Demand>, ticket: u64, sent: &Sent) {
        if self.memory.is_limited() && !brings(sent) {
            // A commit passes by sends that wait for memory.
            return;
        }
        for (earlier, waiting) in self.places.waiting.range(..ticket) {
            let wanted = self.demands(waiting.client, &waiting.sent);
            let has_its_places = wanted.keys().all(|it| demands.contains_key(it));
            let is_passed = waiting.sent.goes_as(sent) || has_its_places && !wanted.is_empty();
            assert!(!is_passed || waiting.is_commit(), "{earlier} waits longer than {sent:?}");
        }
    }

    /// The bound that is in the way. A queue that sheds has a place for every message that could
    /// ever have one.
    fn lack(&self, queue: &str, demand: Demand) -> Option<Bound> {
        let bounds = self.places.bounds_of(queue);
        if !bounds.holds_off() {
            return self.never_fits(queue, demand);
        }
        self.held(queue).without(demand.settled).and(demand.stored).exceeds(&bounds)
    }

    /// True if a message that would have to become a dead letter for it stays, as the device is
    /// full.
    fn shortage_of_room_to_park(&self, queue: &str, demand: Demand) -> bool {
        let bounds = self.places.bounds_of(queue);
        let is_beyond = self.held(queue).and(demand.stored).exceeds(&bounds).is_some();
        let least = self.least_needed(queue, &bounds).filter(|_| is_beyond);
        least.is_some_and(|id| self.stays_for_now(id, bounds.when_full))
    }

    /// The bound that is in the way for ever. A message that goes on to a subscription has none.
    fn never_fits(&self, queue: &str, demand: Demand) -> Option<Bound> {
        let bounds = self.places.bounds_of(queue);
        if bounds.holds_off() {
            demand.stored.without(demand.settled).exceeds(&bounds)
        } else if is_subscription(queue) {
            None
        } else {
            Amount { messages: 0, bytes: demand.largest }.exceeds(&bounds)
        }
    }

    /// True if a send may wait for a place in a queue.
    fn is_awaited(&self, queue: &str) -> bool {
        let mut waiting = self.places.waiting.values();
        waiting.any(|waiting| self.demands(waiting.client, &waiting.sent).contains_key(queue))
    }

    /// True if messages in a queue may wait for longer than they should. How fast they leave is
    /// not followed here.
    fn may_be_slow(&self, queue: &str) -> bool {
        let mut here = self.messages.values().filter(|it| &*it.content.queue == queue);
        let is_ready = here.clone().any(|message| matches!(message.place, Place::Ready(_)));
        self.places.bounds_of(queue).target_age.is_some()
            && (is_ready || here.nth(THERE_ALWAYS - 1).is_some())
    }

    /// All that is stored in a queue.
    pub(super) fn held(&self, queue: &str) -> Amount {
        let here = self.messages.values().filter(|message| &*message.content.queue == queue);
        here.fold(Amount::default(), |sum, message| sum.and(Amount::one(message.nature.bytes)))
    }

    /// Messages that go into queues that may have bounds.
    fn demands(&self, client: u64, sent: &Sent) -> BTreeMap<Rc<str>, Demand> {
        let mut demands = BTreeMap::new();
        if !self.places.rules.are_bounded() {
            return demands;
        }
        match sent {
            Sent::Wish(Wish::Put { queue, body, .. }) => {
                add(&mut demands, queue, body.len());
            }
            sent if self.repeats(sent) => {}
            Sent::Command(Command::PutTo { to, message, transaction: None }) => {
                self.add_to(&mut demands, to, message.body.len());
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
            if self.is_repeated(to, message) {
                continue;
            }
            self.add_to(demands, to, message.body.len());
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

    fn add_to(&self, demands: &mut BTreeMap<Rc<str>, Demand>, to: &Destination, bytes: usize) {
        match to {
            Destination::Queue(queue) => add(demands, queue.as_str(), bytes),
            Destination::Topic(topic) => {
                let all = self.subscriptions.keys();
                let takers = all.filter(|queue| destination(queue) == topic.as_str());
                takers.for_each(|queue| add(demands, queue, bytes));
            }
        }
    }
}

impl Sent {
    /// True if it has the same destination as another, even if no queue takes it now.
    fn goes_as(&self, other: &Self) -> bool {
        self.destination().is_some() && self.destination() == other.destination()
    }

    const fn destination(&self) -> Option<&Destination> {
        match self {
            Self::Command(Command::PutTo { to, transaction: None, .. }) => Some(to),
            _ => None,
        }
    }

    /// The transaction that it is to be a part of.
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

/// True if such queues make a place by letting messages go.
pub(super) const fn sheds(bounds: &QueueBounds) -> bool {
    bounds.is_bounded() && matches!(bounds.when_full, WhenFull::DropOldest | WhenFull::DeadLetter)
}

fn add(demands: &mut BTreeMap<Rc<str>, Demand>, queue: &str, bytes: usize) {
    if workload::QUEUES.contains(&queue) || is_subscription(queue) {
        let demand: &mut Demand = demands.entry(queue.into()).or_default();
        demand.stored = demand.stored.and(Amount::one(bytes as u64));
        demand.largest = demand.largest.max(bytes as u64);
    }
}

/// Messages that may be in a queue however slowly they leave.
const THERE_ALWAYS: usize = 16;
