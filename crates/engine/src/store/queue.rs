//! Queues: the messages of each by state, the consumers that wait for them, and counts.

pub(crate) mod index;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::ops::Bound;

use model::{Database, MessageId, NameSpan, Nanos, QueueName, QueuePolicy, Refusal, limits};
use records::{ExpiredList, Place, RecordView, StoredEnvelope};

use crate::admission::{Drain, WaitList};
use crate::bodies::ResidentBodies;
use crate::collections::order_set::OrderSet;
use crate::collections::pages::Pages;
use crate::collections::slab::Slab;
use crate::delivery::View;
use crate::directory::policy::QueuePolicies;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::store::accounts::{AccountSlot, Accounts};
use crate::store::dispatch::{DispatchList, Entry, ReadyPlace};
use crate::store::message::{Message, State};
use crate::store::message_groups::MessageGroups;

#[derive(Debug)]
pub(crate) struct Queue {
    /// Its own, or that of the topic which it takes messages of.
    pub(crate) name: QueueName,
    pub(crate) role: Role,
    pub(crate) policy: QueuePolicy,
    index: QueueIndex,
    pub(crate) delivery: QueueDelivery,
    bodies: QueueBodies,
    pub(crate) admission: QueueAdmission,
    usage: QueueUsage,
}

/// The messages of a queue by state, but for the ready ones, which [`QueueDelivery`] orders.
#[derive(Debug, Default)]
pub(crate) struct QueueIndex {
    counts: Counts,
    /// Members of an expired list: no consumer gets them, they are deleted in steps.
    expired_members: OrderSet,
    lifetime: ListLifetime,
    /// By when the delay ends.
    delayed: BTreeSet<(Nanos, MessageId)>,
    /// By the place each took when it was buried.
    buried: BTreeMap<u64, MessageId>,
    /// Messages that no session holds and that have a time to live, by its end.
    expiring: BTreeSet<(Nanos, MessageId)>,
}

/// The ready messages of a queue, and the consumers that wait for them.
#[derive(Debug, Default)]
pub(crate) struct QueueDelivery {
    /// Ready messages, and the consumers that wait for any of them.
    pub(crate) dispatch: DispatchList,
    /// The message groups; `None`: no message belongs to one.
    pub(crate) groups: Option<Box<MessageGroups>>,
    /// Ready messages that match a selector, by the text of the selector.
    pub(crate) views: BTreeMap<Arc<str>, View>,
    pub(crate) consumers: BTreeSet<ConsumerKey>,
    /// Consumers that want to know when there is nothing for them.
    pub(crate) draining: BTreeSet<ConsumerKey>,
    /// Browsers that have seen all messages and want to see more.
    pub(crate) browsers: BTreeSet<ConsumerKey>,
    /// When a delivery that was too much for one step goes on.
    pub(crate) resumes: Option<Nanos>,
    pub(crate) pause: Option<Pause>,
}

/// The bytes of a queue's bodies.
#[derive(Debug, Default)]
pub(crate) struct QueueBodies {
    residents: ResidentBodies,
    /// Bytes of the bodies of all its messages, resident or not.
    body_bytes: u64,
}

/// Sends that wait for a place in a queue, and how far the queue is beyond its bounds.
#[derive(Debug, Default)]
pub(crate) struct QueueAdmission {
    /// Sends that wait for a place.
    pub(crate) line: WaitList,
    /// Messages beyond the bounds were there before the bounds were so narrow, or were recovered:
    /// they stay until another message comes.
    pub(crate) spares: bool,
    /// The queue held more than its bounds when its consumers came, and has not been within them
    /// since.
    pub(crate) catches_up: bool,
    /// How fast messages leave it, where that is asked.
    pub(crate) drain: Drain,
}

/// Uses that keep a queue alive, and its totals.
#[derive(Debug, Default)]
pub(crate) struct QueueUsage {
    /// The account of the user who made it.
    owner: Option<AccountSlot>,
    producers: u64,
    /// Messages for it in open transactions.
    uncommitted: u64,
    /// Messages of it that open transactions settle.
    settling: u64,
    messages_total: u64,
    deleted_total: u64,
    paused_total: u64,
}

/// The role of a queue among the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Found by its name.
    Named,
    /// Found by its name, until it is deleted or its session ends.
    Temporary(SessionSlot),
    /// Holds the messages of the subscription of this number.
    Subscription { number: u64, durable: bool },
    /// No client finds it any more: its messages are forgotten in steps, held ones when they come
    /// back.
    Leaving,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) asked: Nanos,
    pub(crate) until: Nanos,
}

/// How many messages stand where; kept with every step, never counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Ready ones of a priority below [`URGENT_BELOW`].
    urgent: u64,
    ready: u64,
    delayed: u64,
    leased: u64,
    buried: u64,
    /// Those that were ready when the time of their list was over.
    expired_members: u64,
}

/// When the ready messages of a queue, as a list, go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListLifetime {
    /// At that moment, all that are there then.
    pub(crate) at: Option<Nanos>,
    /// A list that was there before is over, and these of its messages are still to be deleted.
    pub(crate) over: Option<ExpiredList>,
}

#[derive(Debug)]
pub(crate) struct Queues {
    slots: Slab<Queue>,
    names: BTreeMap<QueueName, QueueSlot>,
    /// How many there may be.
    count_max: usize,
    /// The same with those of subscriptions, which take as much memory.
    slots_max: u64,
    accounts: Accounts,
}

impl Role {
    /// The policy by its name, as it applies to a queue of this role.
    pub(crate) const fn rules(self, policy: QueuePolicy) -> QueuePolicy {
        match self {
            Self::Subscription { .. } => policy,
            _ => QueuePolicy { bounds: policy.bounds.of_queue(), ..policy },
        }
    }
}

impl Queue {
    fn new(name: QueueName, policy: QueuePolicy, role: Role) -> Self {
        Self {
            name,
            role,
            policy: role.rules(policy),
            index: QueueIndex::default(),
            delivery: QueueDelivery::default(),
            bodies: QueueBodies::default(),
            admission: QueueAdmission::default(),
            usage: QueueUsage::default(),
        }
    }

    /// The number of the subscription that it holds messages of.
    pub(crate) const fn subscription(&self) -> Option<u64> {
        match self.role {
            Role::Subscription { number, .. } => Some(number),
            Role::Named | Role::Temporary(_) | Role::Leaving => None,
        }
    }

    /// The place of its messages, in the terms of records.
    pub(crate) fn place(&self) -> Place<'_> {
        match self.role {
            Role::Subscription { number, .. } => Place::Subscription(number),
            Role::Named | Role::Temporary(_) | Role::Leaving => Place::Queue(self.name.as_str()),
        }
    }

    /// True if messages stored in it are never journalled, whatever their sender asks.
    pub(crate) fn is_memory_only(&self) -> bool {
        match self.role {
            Role::Named | Role::Subscription { durable: true, .. } => false,
            Role::Temporary(_) | Role::Subscription { durable: false, .. } | Role::Leaving => true,
        }
    }

    pub(crate) fn is_named(&self) -> bool {
        matches!(self.role, Role::Named | Role::Temporary(_))
    }

    /// So many producers point to it.
    pub(crate) const fn producers(&self) -> u64 {
        self.usage.producers
    }

    /// So many messages for it are in open transactions.
    pub(crate) const fn uncommitted(&self) -> u64 {
        self.usage.uncommitted
    }

    /// So many messages of it are settled by open transactions.
    pub(crate) const fn settling(&self) -> u64 {
        self.usage.settling
    }

    /// Uses that keep it alive.
    pub(crate) const fn usage(&self) -> &QueueUsage {
        &self.usage
    }

    /// A producer points to it.
    pub(crate) const fn begin_producer(&mut self) {
        self.usage.producers += 1;
    }

    /// A producer points to it no more.
    pub(crate) fn end_producer(&mut self) {
        assert!(self.usage.producers > 0, "a destination knows its producers");
        self.usage.producers -= 1;
    }

    /// An open transaction holds a message for it.
    pub(crate) const fn begin_uncommitted(&mut self) {
        self.usage.uncommitted += 1;
    }

    /// A transaction that held a message for it has ended.
    pub(crate) fn end_uncommitted(&mut self) {
        assert!(self.usage.uncommitted > 0, "a destination knows its transactions");
        self.usage.uncommitted -= 1;
    }

    /// An open transaction settles one of its messages.
    pub(crate) fn began_settling(&mut self) {
        self.usage.settling += 1;
        debug_assert!(
            self.usage.settling <= self.index.counts.leased,
            "a session holds the messages that a transaction settles"
        );
    }

    /// The transaction has ended.
    pub(crate) fn ended_settling(&mut self) {
        assert!(self.usage.settling > 0, "a queue knows what is being settled");
        self.usage.settling -= 1;
    }

    /// A command goes on with it though it may be empty meanwhile.
    pub(crate) const fn keep(&mut self) {
        self.usage.uncommitted += 1;
    }

    /// See [`Queue::keep`].
    pub(crate) fn let_go(&mut self) {
        assert!(self.usage.uncommitted > 0, "a queue was kept before it is let go");
        self.usage.uncommitted -= 1;
    }

    /// A message of it was deleted.
    pub(crate) const fn count_deleted(&mut self) {
        self.usage.deleted_total += 1;
    }

    /// It was paused, or its pause ended.
    pub(crate) const fn count_paused(&mut self) {
        self.usage.paused_total += 1;
    }

    /// The bodies of its messages that are in memory and may leave.
    pub(crate) const fn residents(&self) -> &ResidentBodies {
        &self.bodies.residents
    }

    /// See [`Queue::residents`].
    pub(crate) const fn residents_mut(&mut self) -> &mut ResidentBodies {
        &mut self.bodies.residents
    }

    /// A message comes into it.
    pub(crate) fn came_one(&mut self) {
        self.usage.messages_total += 1;
        self.admission.spares = false;
    }

    /// It has a name, and ready messages.
    pub(crate) fn is_list(&self) -> bool {
        self.role == Role::Named && self.index.counts.ready > 0
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.role == Role::Leaving
    }

    /// When the next of its messages is to be forgotten. At once, while it has a message of an
    /// expired list, or is leaving and has a message that no session holds.
    pub(crate) fn forgets_at(&self) -> Option<Nanos> {
        let is_left = self.is_leaving() && self.index.counts.sum() > self.index.counts.leased;
        (is_left || self.index.counts.expired_members > 0).then_some(Nanos::ZERO)
    }

    /// True if the list of this name ended at `now` or before, and that was not noticed yet.
    pub(crate) fn is_ended(&self, now: Nanos) -> bool {
        self.index.lifetime.at.is_some_and(|at| at <= now)
    }

    /// True if this place among the ready is that of a message of a list that is over.
    pub(crate) fn is_expired_member(&self, priority: u32, order: i64) -> bool {
        self.index.counts.expired_members > 0
            && self.index.expired_members.contains(priority, order)
    }

    /// The place of the message to deliver next to a consumer that owns no group; none while
    /// nothing may be delivered.
    pub(crate) fn next_ready(&self, now: Nanos) -> Option<ReadyPlace> {
        if self.is_held_up(now) { None } else { self.delivery.dispatch.first_free() }
    }

    /// True while nothing is delivered: it is paused, or messages beyond their time have not gone
    /// yet.
    pub(crate) fn is_held_up(&self, now: Nanos) -> bool {
        self.delivery.pause.is_some() || self.is_expiring(now)
    }

    /// True if messages that are beyond their time are still in it.
    pub(crate) fn is_expiring(&self, now: Nanos) -> bool {
        self.first_expiry().is_some_and(|at| at <= now) || self.is_ended(now)
    }

    /// When the time of the first message is over.
    pub(crate) fn first_expiry(&self) -> Option<Nanos> {
        self.index.expiring.first().map(|(at, _)| *at)
    }

    /// How many consumers wait for a message of it.
    pub(crate) fn waiting_count(&self) -> u64 {
        self.dispatch_lists().map(|line| line.waiting().len() as u64).sum()
    }

    /// Its own, and those of its views.
    pub(crate) fn dispatch_lists(&self) -> impl Iterator<Item = &DispatchList> {
        core::iter::once(&self.delivery.dispatch)
            .chain(self.delivery.views.values().map(View::dispatch))
    }

    /// See [`Queue::dispatch_lists`].
    pub(crate) fn dispatch_lists_mut(&mut self) -> impl Iterator<Item = &mut DispatchList> {
        core::iter::once(&mut self.delivery.dispatch)
            .chain(self.delivery.views.values_mut().map(View::dispatch_mut))
    }

    /// When the first delay ends.
    pub(crate) fn first_delay(&self) -> Option<Nanos> {
        self.index.delayed.first().map(|(until, _)| *until)
    }

    /// When the pause ends.
    pub(crate) fn pause_ends(&self) -> Option<Nanos> {
        self.delivery.pause.map(|pause| pause.until)
    }

    /// Nothing points to it, and nothing else keeps it.
    pub(crate) fn is_idle(&self) -> bool {
        let stays = match self.role {
            Role::Named => self.policy.kept,
            Role::Temporary(_) | Role::Subscription { .. } => true,
            Role::Leaving => false,
        };
        let pointed = self.usage.producers + self.usage.uncommitted + self.index.counts.sum();
        !stays
            && pointed == 0
            && self.delivery.consumers.is_empty()
            && self.admission.line.is_empty()
    }
}

impl QueueUsage {
    /// The account of the user who made the queue.
    pub(crate) const fn owner(&self) -> Option<AccountSlot> {
        self.owner
    }

    /// Messages that came, that were deleted, and pauses.
    pub(crate) const fn totals(&self) -> (u64, u64, u64) {
        (self.messages_total, self.deleted_total, self.paused_total)
    }
}

impl Counts {
    /// Ready ones that count as urgent.
    pub(crate) const fn urgent(&self) -> u64 {
        self.urgent
    }

    pub(crate) const fn ready(&self) -> u64 {
        self.ready
    }

    pub(crate) const fn delayed(&self) -> u64 {
        self.delayed
    }

    /// Those that sessions hold.
    pub(crate) const fn leased(&self) -> u64 {
        self.leased
    }

    pub(crate) const fn buried(&self) -> u64 {
        self.buried
    }

    pub(crate) const fn expired_members(&self) -> u64 {
        self.expired_members
    }

    /// Breaks an invariant, to see that the check finds it.
    #[cfg(test)]
    pub(crate) const fn miscount(&mut self) {
        self.ready += 1;
    }

    pub(crate) fn add(&mut self, state: State, priority: u32) {
        *self.of(state) += 1;
        if state == State::Ready && priority < URGENT_BELOW {
            self.urgent += 1;
        }
    }

    pub(crate) fn subtract(&mut self, state: State, priority: u32, is_expired_member: bool) {
        let count = if is_expired_member { &mut self.expired_members } else { self.of(state) };
        assert!(*count > 0, "a message leaves a state that none is in");
        *count -= 1;
        if state == State::Ready && priority < URGENT_BELOW && !is_expired_member {
            assert!(self.urgent > 0, "an urgent message was counted when it became ready");
            self.urgent -= 1;
        }
    }

    /// How many messages there are.
    pub(crate) fn sum(&self) -> u64 {
        self.ready + self.delayed + self.leased + self.buried + self.expired_members
    }

    /// All that is ready belongs to a list that is over. Gives how many that are.
    pub(crate) fn expire_ready(&mut self) -> Self {
        let (urgent, ready) = (self.urgent, self.ready);
        (self.urgent, self.ready) = (0, 0);
        self.expired_members += ready;
        Self { urgent, ready, ..Self::default() }
    }

    /// So many are over in one of the queues that this sums.
    pub(crate) fn expire_some(&mut self, expired: &Self) {
        assert!(expired.ready <= self.ready, "only ready messages expire with their list");
        assert!(expired.urgent <= self.urgent, "urgent messages are counted among the ready");
        self.urgent -= expired.urgent;
        self.ready -= expired.ready;
        self.expired_members += expired.ready;
    }

    /// One more expired member is known.
    pub(crate) fn add_expired_member(&mut self) {
        self.expired_members += 1;
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            urgent: self.urgent + other.urgent,
            ready: self.ready + other.ready,
            delayed: self.delayed + other.delayed,
            leased: self.leased + other.leased,
            buried: self.buried + other.buried,
            expired_members: self.expired_members + other.expired_members,
        }
    }

    fn of(&mut self, state: State) -> &mut u64 {
        match state {
            State::Ready => &mut self.ready,
            State::Delayed { .. } => &mut self.delayed,
            State::Leased { .. } | State::Held { .. } => &mut self.leased,
            State::Buried { .. } => &mut self.buried,
        }
    }
}

impl Queues {
    /// Those that exist from the start. All may take half of so much memory, but for their
    /// messages.
    pub(crate) fn new(policies: &QueuePolicies, memory_limit: u64) -> Self {
        let (slots, names) = (Slab::new(), BTreeMap::new());
        let slots_max = memory_limit / 2 / QUEUE_BYTES;
        let (count_max, accounts) = (limits::QUEUES_MAX, Accounts::default());
        let mut queues = Self { slots, names, count_max, slots_max, accounts };
        for (name, policy) in policies.kept() {
            queues.create(name.clone(), policy);
        }
        queues
    }

    pub(crate) fn create(&mut self, name: QueueName, policy: QueuePolicy) -> QueueSlot {
        self.create_named(name, policy, Role::Named)
    }

    /// A queue of the user for whom the engine acts.
    pub(crate) fn create_for_user(&mut self, name: QueueName, policy: QueuePolicy) -> QueueSlot {
        let slot = self.create(name, policy);
        self.set_owner(slot, self.accounts.acting());
        slot
    }

    /// A queue that has no owner becomes this sender's, if that is a user.
    pub(crate) fn set_owner(&mut self, slot: QueueSlot, sender: u64) {
        let owner = self.accounts.open(sender);
        let queue = self.at_mut(slot);
        if queue.role == Role::Named && queue.usage.owner.is_none() && !queue.policy.kept {
            queue.usage.owner = owner;
            self.accounts.add_queue(owner);
        }
    }

    /// The messages and queues of users.
    pub(crate) const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// See [`Queues::accounts`].
    pub(crate) const fn accounts_mut(&mut self) -> &mut Accounts {
        &mut self.accounts
    }

    /// A queue, and what users have.
    pub(crate) fn at_with_accounts(&mut self, slot: QueueSlot) -> (&mut Queue, &mut Accounts) {
        let queue = self.slots.get_mut(slot.0);
        (queue.expect("invariant: who points to a queue keeps it alive"), &mut self.accounts)
    }

    /// A queue of this name that goes with a session.
    pub(crate) fn create_temporary(&mut self, name: QueueName, by: SessionSlot) -> QueueSlot {
        self.create_named(name, QueuePolicy::default(), Role::Temporary(by))
    }

    /// The queue of a subscription, which has no name of its own.
    pub(crate) fn create_subscription(
        &mut self,
        topic: QueueName,
        number: u64,
        durable: bool,
        policy: QueuePolicy,
    ) -> QueueSlot {
        let role = Role::Subscription { number, durable };
        QueueSlot(self.slots.insert(Queue::new(topic, policy, role)))
    }

    fn create_named(&mut self, name: QueueName, policy: QueuePolicy, role: Role) -> QueueSlot {
        let slot = QueueSlot(self.slots.insert(Queue::new(name.clone(), policy, role)));
        let before = self.names.insert(name, slot);
        assert!(before.is_none(), "a queue is created once");
        slot
    }

    /// From now on no client finds it.
    pub(crate) fn begin_leaving(&mut self, slot: QueueSlot) {
        let queue = self.at_mut(slot);
        assert!(!queue.is_leaving(), "a queue leaves once");
        assert!(queue.delivery.consumers.is_empty(), "a queue leaves when its consumers are gone");
        let role = core::mem::replace(&mut queue.role, Role::Leaving);
        let (name, owner) = (queue.name.clone(), queue.usage.owner.take());
        self.accounts.remove_queue(owner);
        if matches!(role, Role::Named | Role::Temporary(_)) {
            self.names.remove(&name);
        }
    }

    /// Forgets a queue that nothing points to.
    pub(crate) fn remove(&mut self, slot: QueueSlot) {
        let queue = self.slots.remove(slot.0).expect("invariant: only an existing queue is idle");
        assert!(
            queue.is_idle() && queue.delivery.dispatch.waiting().is_empty(),
            "only an idle queue goes"
        );
        assert!(queue.index.lifetime == ListLifetime::default(), "an idle queue is no list");
        assert!(
            queue.delivery.views.is_empty() && queue.index.expiring.is_empty(),
            "an idle queue is empty"
        );
        debug_assert!(queue.bodies.body_bytes == 0, "an idle queue has no bodies");
        if queue.role == Role::Named {
            self.names.remove(&queue.name);
        }
        self.accounts.remove_queue(queue.usage.owner);
    }

    pub(crate) fn find(&self, name: &str) -> Option<QueueSlot> {
        self.names.get(name).copied()
    }

    pub(crate) fn get(&self, slot: QueueSlot) -> Option<&Queue> {
        self.slots.get(slot.0)
    }

    pub(crate) fn at(&self, slot: QueueSlot) -> &Queue {
        self.slots.get(slot.0).expect("invariant: who points to a queue keeps it alive")
    }

    pub(crate) fn at_mut(&mut self, slot: QueueSlot) -> &mut Queue {
        self.slots.get_mut(slot.0).expect("invariant: who points to a queue keeps it alive")
    }

    /// The record of a message that has changed.
    pub(crate) fn change_of<'a>(&'a self, id: MessageId, message: &'a Message) -> RecordView<'a> {
        let moved = message.is_moved().then(|| self.at(message.queue()).place());
        RecordView::Changed { message: id, standing: message.standing(id), moved }
    }

    /// All about a message but its body.
    pub(crate) fn envelope_of<'a>(
        &'a self,
        id: MessageId,
        message: &'a Message,
    ) -> StoredEnvelope<'a> {
        let sender = self.accounts.sender(message.account());
        message.envelope(id, self.at(message.queue()).place(), sender)
    }

    /// All by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (QueueSlot, &Queue)> {
        self.slots.iter().map(|(slot, queue)| (QueueSlot(slot), queue))
    }

    /// Those with a name of this part, ascending, and where each is: behind this name, or all.
    pub(crate) fn entries_in(
        &self,
        span: NameSpan,
        after: Option<&QueueName>,
    ) -> impl Iterator<Item = (&QueueName, QueueSlot)> {
        let mut mark = [0; 4];
        let first = span.from().map(|first| &*first.encode_utf8(&mut mark));
        let after =
            after.map(QueueName::as_str).filter(|after| first.is_none_or(|it| *after >= it));
        let from = match (after, first) {
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        let entries = self.names.range::<str, _>((from, Bound::Unbounded));
        let entries = entries.take_while(move |(name, _)| span.holds(name.as_str()));
        entries.map(|(name, slot)| (name, *slot))
    }

    /// The same of the queues that any client may see: temporary ones are in no list.
    pub(crate) fn listed_after(
        &self,
        name: Option<&QueueName>,
    ) -> impl Iterator<Item = (&QueueName, QueueSlot)> {
        const PREFIX: &str = limits::TEMPORARY_PREFIX;
        let name = name.map(QueueName::as_str);
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        let before = name.is_none_or(|name| name < PREFIX);
        let before = before.then(|| self.names.range::<str, _>((from, Bound::Excluded(PREFIX))));
        let from = match name {
            Some(name) if name >= BEHIND_TEMPORARY => Bound::Excluded(name),
            _ => Bound::Included(BEHIND_TEMPORARY),
        };
        let behind = self.names.range::<str, _>((from, Bound::Unbounded));
        before.into_iter().flatten().chain(behind).map(|(name, slot)| (name, *slot))
    }

    /// All of any role, from one by chance on.
    pub(crate) fn some_from(&self, seed: u64) -> impl Iterator<Item = &Queue> {
        self.slots.iter_from(seed)
    }

    /// Those of a database that are lists, by name; all where none is given.
    pub(crate) fn lists_of(
        &self,
        database: Option<Database>,
    ) -> impl Iterator<Item = (QueueSlot, &QueueName)> {
        let all = NameSpan::of(database).flat_map(|span| self.entries_in(span, None));
        all.map(|(name, slot)| (slot, name)).filter(|(slot, _)| self.at(*slot).is_list())
    }

    /// Bounds how many there may be.
    #[cfg(test)]
    pub(crate) fn bound(&mut self, count_max: usize) {
        self.count_max = count_max;
    }

    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// Bytes of memory that they take, but for their messages.
    pub(crate) const fn memory_bytes(&self) -> u64 {
        self.slots.len() as u64 * QUEUE_BYTES
    }

    /// Checks that there may be another one.
    pub(crate) fn takes_another(&self) -> Result<(), Refusal> {
        if self.count() >= self.count_max {
            return Err(Refusal::TooManyQueues { max: self.count_max });
        }
        if self.slots.len() as u64 >= self.slots_max {
            return Err(Refusal::TooManyQueues { max: self.slots_max as usize });
        }
        Ok(())
    }

    /// True if there is no memory for the queue of another subscription, beside the bytes that
    /// subscriptions take themselves: they leave half to others.
    pub(crate) const fn is_crowded_beside(&self, bytes: u64) -> bool {
        self.slots.len() as u64 + bytes / QUEUE_BYTES >= self.slots_max / 2
    }
}

/// Bytes of a queue in memory, as the operating system sees it. They include a short name, its
/// place in the index of names and the first leaves of its own indexes.
const QUEUE_BYTES: u64 = 1_280;

/// Ready messages below this priority count as urgent in statistics.
pub(crate) const URGENT_BELOW: u32 = 1024;

/// The first name behind those that begin as temporary ones do: `/` is followed by `0`.
const BEHIND_TEMPORARY: &str = "temporary0";

/// A ready message as the lists of its queue keep it.
// Nearly all queues have no groups, and each message comes by here: it is no call.
#[inline(always)]
pub(crate) fn entry_of(
    queue: &Queue,
    messages: &Pages<Box<Message>>,
    id: MessageId,
    place: ReadyPlace,
) -> Entry {
    if queue.delivery.groups.is_none() {
        return Entry::of_none(place);
    }
    grouped_entry_of(queue, messages, id)
}

/// The same where messages of the queue belong to groups.
fn grouped_entry_of(queue: &Queue, messages: &Pages<Box<Message>>, id: MessageId) -> Entry {
    let message = messages.get(id.0).expect("invariant: the caller found it");
    queue.entry_of(id, message)
}

/// The message that an order among the ready belongs to. `reordered` names the messages that have
/// another place than their number.
pub(crate) fn whose_place(reordered: &Pages<MessageId>, order: i64) -> MessageId {
    reordered.get(order as u64).copied().unwrap_or(MessageId(order as u64))
}
