//! Sessions, their producers and consumers, and the messages they hold.

pub(crate) mod acting;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::cell::Cell;

use model::{
    ClientName, DependsOn, Destination, LinkId, MessageId, Nanos, Principal, Refusal, Reply,
    SessionId, Settlement, limits,
};

use crate::collections::slab::Slab;
use crate::delivery::CreditConsumer;
use crate::directory::Target;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::keyspace::Popping;
use crate::outcome::Outcome;
use crate::sessions::acting::Acting;
use crate::transactions::SessionTransactions;

#[derive(Debug)]
pub(crate) struct Session {
    identity: Identity,
    links: Links,
    holdings: Holdings,
    owned: Owned,
    transactions: SessionTransactions,
    /// It has ended, and its messages are being returned so.
    closing: Option<Settlement>,
}

/// The names of a session.
#[derive(Debug)]
struct Identity {
    id: SessionId,
    /// The name that operators see.
    name: Option<Arc<str>>,
    /// The client that the session belongs to.
    client: Option<ClientName>,
    acting: Acting,
}

/// The producers and consumers of a session.
#[derive(Debug, Default)]
struct Links {
    producers: BTreeMap<LinkId, Target>,
    consumers: BTreeMap<LinkId, Consumer>,
    credit_consumers: BTreeMap<LinkId, CreditConsumer>,
    /// Consumers that wait and want to know before a lease ends.
    margins: BTreeSet<LinkId>,
    /// They are links of many clients, which have one each.
    shared: bool,
}

/// The messages that were delivered to a session and are not settled.
#[derive(Debug, Default)]
struct Holdings {
    /// Leased messages, by the end of the lease.
    leases: BTreeSet<(Nanos, MessageId)>,
    /// Messages that are held without a lease.
    held: BTreeSet<MessageId>,
    /// Messages that an open transaction settles.
    settling: BTreeSet<MessageId>,
    /// Leased messages that came from lists: deleted by the session's next command.
    popped: BTreeSet<MessageId>,
    /// The messages that the client can have begun; `None`: all.
    begun: Option<BTreeSet<MessageId>>,
}

/// State of other parts that ends with the session.
#[derive(Debug, Default)]
struct Owned {
    /// Tickets of its sends that wait for room.
    blocked: BTreeSet<u64>,
    /// The temporary destinations that go with it.
    temporary: BTreeSet<Destination>,
    /// The numbers of the subscriptions that it keeps.
    keeps: BTreeSet<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Consumer {
    watched: BTreeSet<QueueSlot>,
    wait: Option<Wait>,
    /// It is there for one waiting command on lists, which this describes.
    popping: Option<Box<Popping>>,
}

/// An unanswered receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Its place among all that wait: smaller has waited longer.
    ticket: u64,
    /// When it is given up.
    until: Option<Nanos>,
    /// How long before a lease ends it is given up; zero: never.
    margin: Nanos,
    /// How long the message is leased; `None`: as long as that says.
    lease: Option<Nanos>,
}

/// A client of a user. Two users may choose the same name for theirs.
type ClientKey = (Option<Arc<str>>, ClientName);

#[derive(Debug)]
pub(crate) struct Sessions {
    slots: Slab<Session>,
    ids: BTreeMap<SessionId, SessionSlot>,
    /// The one that was looked for last: it mostly has more to ask.
    found: Cell<Option<(SessionId, SessionSlot)>>,
    clients: BTreeMap<ClientKey, SessionSlot>,
}

impl Session {
    /// When the first of its leases ends; all that it holds returns at once when it is closing.
    pub(crate) fn first_lease(&self) -> Option<Nanos> {
        if self.closing.is_some() {
            return (!self.holds_nothing()).then_some(Nanos::ZERO);
        }
        self.holdings.leases.first().map(|(until, _)| *until)
    }

    pub(crate) const fn id(&self) -> SessionId {
        self.identity.id
    }

    pub(crate) const fn name(&self) -> Option<&Arc<str>> {
        self.identity.name.as_ref()
    }

    pub(crate) fn rename(&mut self, name: Arc<str>) {
        self.identity.name = Some(name);
    }

    pub(crate) const fn client(&self) -> Option<&ClientName> {
        self.identity.client.as_ref()
    }

    pub(crate) const fn closing(&self) -> Option<Settlement> {
        self.closing
    }

    pub(crate) const fn transactions(&self) -> &SessionTransactions {
        &self.transactions
    }

    pub(crate) const fn transactions_mut(&mut self) -> &mut SessionTransactions {
        &mut self.transactions
    }

    pub(crate) const fn leases(&self) -> &BTreeSet<(Nanos, MessageId)> {
        &self.holdings.leases
    }

    pub(crate) const fn held(&self) -> &BTreeSet<MessageId> {
        &self.holdings.held
    }

    pub(crate) const fn settling(&self) -> &BTreeSet<MessageId> {
        &self.holdings.settling
    }

    pub(crate) const fn popped(&self) -> &BTreeSet<MessageId> {
        &self.holdings.popped
    }

    /// It leases a message until then; false if it did before.
    pub(crate) fn lease(&mut self, id: MessageId, until: Nanos) -> bool {
        assert!(self.closing.is_none(), "a closing session takes nothing");
        debug_assert!(!self.holdings.held.contains(&id), "a message is leased or held");
        self.holdings.leases.insert((until, id))
    }

    /// False if it did not lease the message until then.
    pub(crate) fn end_lease(&mut self, id: MessageId, until: Nanos) -> bool {
        debug_assert!(!self.holdings.settling.contains(&id), "a settled message is held");
        self.holdings.leases.remove(&(until, id))
    }

    /// It holds a message; false if it did before.
    pub(crate) fn hold(&mut self, id: MessageId) -> bool {
        assert!(self.closing.is_none(), "a closing session takes nothing");
        self.holdings.held.insert(id)
    }

    /// False if it did not hold the message.
    pub(crate) fn end_hold(&mut self, id: MessageId) -> bool {
        debug_assert!(
            !self.holdings.settling.contains(&id),
            "a message is held until its transaction ends"
        );
        self.holdings.held.remove(&id)
    }

    /// An open transaction settles a message that the session holds.
    pub(crate) fn begin_settling(&mut self, id: MessageId) {
        debug_assert!(self.holdings.held.contains(&id), "a transaction settles held messages");
        let is_new = self.holdings.settling.insert(id);
        assert!(is_new, "a message is settled in one transaction");
    }

    pub(crate) fn end_settling(&mut self, id: MessageId) {
        let was_settling = self.holdings.settling.remove(&id);
        assert!(was_settling, "a message is settled in one transaction");
        debug_assert!(self.holdings.held.contains(&id), "a transaction settles held messages");
    }

    /// A message that it leases came from a list.
    pub(crate) fn note_popped(&mut self, id: MessageId) {
        assert!(self.closing.is_none(), "a closing session takes nothing");
        let is_new = self.holdings.popped.insert(id);
        assert!(is_new, "an element is popped once");
    }

    /// False if the message came from no list.
    pub(crate) fn end_popped(&mut self, id: MessageId) -> bool {
        self.holdings.popped.remove(&id)
    }

    pub(crate) fn take_popped(&mut self) -> BTreeSet<MessageId> {
        core::mem::take(&mut self.holdings.popped)
    }

    /// Its client can have begun these messages, and no others.
    pub(crate) fn note_begun(&mut self, begun: BTreeSet<MessageId>) {
        self.holdings.begun = Some(begun);
    }

    /// The message that a closing session returns next: a leased one as if nothing had been, any
    /// other as its end says, unless its client cannot have begun it.
    pub(crate) fn next_to_return(&self) -> Option<(MessageId, Settlement)> {
        if let Some((_, id)) = self.holdings.leases.first() {
            return Some((*id, Settlement::Return));
        }
        let (id, settlement) = self.holdings.held.first().copied().zip(self.closing)?;
        let is_begun = self.holdings.begun.as_ref().is_none_or(|begun| begun.contains(&id));
        Some((id, if is_begun { settlement } else { Settlement::Return }))
    }

    pub(crate) const fn blocked(&self) -> &BTreeSet<u64> {
        &self.owned.blocked
    }

    /// A send of it waits for room.
    pub(crate) fn note_blocked(&mut self, ticket: u64) {
        assert!(self.closing.is_none(), "a closing session waits for nothing");
        let is_new = self.owned.blocked.insert(ticket);
        assert!(is_new, "a ticket is given once");
    }

    pub(crate) fn end_blocked(&mut self, ticket: u64) {
        let was_blocked = self.owned.blocked.remove(&ticket);
        assert!(was_blocked, "a session knows its sends that wait");
    }

    pub(crate) fn take_blocked(&mut self) -> BTreeSet<u64> {
        core::mem::take(&mut self.owned.blocked)
    }

    pub(crate) const fn temporary(&self) -> &BTreeSet<Destination> {
        &self.owned.temporary
    }

    /// A destination goes with it.
    pub(crate) fn add_temporary(&mut self, destination: Destination) {
        assert!(self.closing.is_none(), "a closing session makes nothing");
        assert!(self.owned.temporary.len() < limits::SESSION_TEMPORARY_MAX);
        let is_new = self.owned.temporary.insert(destination);
        assert!(is_new, "a temporary destination is made once");
    }

    /// False if the destination does not go with it.
    pub(crate) fn end_temporary(&mut self, destination: &Destination) -> bool {
        self.owned.temporary.remove(destination)
    }

    pub(crate) fn take_temporary(&mut self) -> BTreeSet<Destination> {
        core::mem::take(&mut self.owned.temporary)
    }

    pub(crate) const fn keeps(&self) -> &BTreeSet<u64> {
        &self.owned.keeps
    }

    /// It keeps a subscription.
    pub(crate) fn keep(&mut self, number: u64) {
        assert!(self.closing.is_none(), "a closing session keeps nothing");
        let is_new = self.owned.keeps.insert(number);
        assert!(is_new, "a session keeps a subscription once");
    }

    pub(crate) fn end_keeping(&mut self, number: u64) {
        let was_kept = self.owned.keeps.remove(&number);
        assert!(was_kept, "a session knows the subscriptions that it keeps");
    }

    pub(crate) fn take_keeps(&mut self) -> BTreeSet<u64> {
        core::mem::take(&mut self.owned.keeps)
    }

    pub(crate) const fn producers(&self) -> &BTreeMap<LinkId, Target> {
        &self.links.producers
    }

    pub(crate) const fn consumers(&self) -> &BTreeMap<LinkId, Consumer> {
        &self.links.consumers
    }

    pub(crate) const fn credit_consumers(&self) -> &BTreeMap<LinkId, CreditConsumer> {
        &self.links.credit_consumers
    }

    /// True if it has a consumer of this link.
    pub(crate) fn has_consumer(&self, link: LinkId) -> bool {
        self.links.consumers.contains_key(&link) || self.links.credit_consumers.contains_key(&link)
    }

    /// Its links are those of many clients, which have one each.
    pub(crate) const fn share_links(&mut self) {
        self.links.shared = true;
    }

    /// How many producers and consumers its client has.
    pub(crate) fn links_count(&self) -> u64 {
        let Links { producers, consumers, credit_consumers, shared, .. } = &self.links;
        let all = producers.len() + consumers.len() + credit_consumers.len();
        if *shared { 0 } else { all as u64 }
    }

    pub(crate) const fn margins(&self) -> &BTreeSet<LinkId> {
        &self.links.margins
    }

    /// Gives the target that a producer of this link had before.
    pub(crate) fn open_producer(&mut self, link: LinkId, target: Target) -> Option<Target> {
        assert!(self.closing.is_none(), "a closing session opens nothing");
        self.links.producers.insert(link, target)
    }

    pub(crate) fn close_producer(&mut self, link: LinkId) -> Option<Target> {
        self.links.producers.remove(&link)
    }

    /// Takes its producers and consumers; none of them waits.
    pub(crate) fn take_links(&mut self) -> (BTreeMap<LinkId, Target>, BTreeMap<LinkId, Consumer>) {
        assert!(self.links.margins.is_empty(), "a consumer is closed when it waits no more");
        (core::mem::take(&mut self.links.producers), core::mem::take(&mut self.links.consumers))
    }

    pub(crate) fn open_credit_consumer(&mut self, link: LinkId, consumer: CreditConsumer) {
        assert!(self.closing.is_none(), "a closing session opens nothing");
        assert!(!self.links.consumers.contains_key(&link), "a link is a consumer of one kind");
        let before = self.links.credit_consumers.insert(link, consumer);
        assert!(before.is_none(), "a link is opened once");
    }

    pub(crate) fn close_credit_consumer(&mut self, link: LinkId) -> Option<CreditConsumer> {
        self.links.credit_consumers.remove(&link)
    }

    /// A consumer, which is opened with its first queue, watches another one. Gives its wait.
    pub(crate) fn watch(&mut self, link: LinkId, queue: QueueSlot) -> Option<Wait> {
        assert!(self.closing.is_none(), "a closing session opens nothing");
        let is_other = self.links.credit_consumers.contains_key(&link);
        assert!(!is_other, "a link is a consumer of one kind");
        let consumer = self.links.consumers.entry(link).or_default();
        let is_new = consumer.watched.insert(queue);
        assert!(is_new, "a consumer watches a queue once");
        consumer.wait
    }

    pub(crate) fn close_consumer(&mut self, link: LinkId) -> Option<Consumer> {
        let consumer = self.links.consumers.remove(&link)?;
        assert!(consumer.wait.is_none(), "a consumer is closed when it waits no more");
        Some(consumer)
    }

    /// Opens the consumer that a command on lists waits as.
    pub(crate) fn begin_popping(
        &mut self,
        link: LinkId,
        watched: BTreeSet<QueueSlot>,
        popping: Box<Popping>,
    ) {
        let consumer = Consumer { watched, wait: None, popping: Some(popping) };
        let before = self.links.consumers.insert(link, consumer);
        assert!(before.is_none(), "commands on lists wait one at a time");
    }

    /// Closes the consumer of a command on lists, which waits no more; gives the queues it watched.
    pub(crate) fn end_popping(&mut self, link: LinkId) -> (Box<Popping>, BTreeSet<QueueSlot>) {
        let consumer = self.close_consumer(link).expect("invariant: the command was there");
        (consumer.popping.expect("invariant: it is a command on lists"), consumer.watched)
    }

    /// A consumer waits from now on.
    pub(crate) fn begin_wait(&mut self, link: LinkId, wait: Wait) {
        assert!(self.closing.is_none(), "a closing session waits for nothing");
        if wait.margin != Nanos::ZERO {
            self.links.margins.insert(link);
        }
        let before = self.consumer_mut(link).wait.replace(wait);
        assert!(before.is_none(), "a consumer waits once");
    }

    /// A consumer that waits does so no more; gives the queues that it watches.
    pub(crate) fn end_wait(&mut self, link: LinkId) -> (Wait, &BTreeSet<QueueSlot>) {
        self.links.margins.remove(&link);
        let consumer = self.consumer_mut(link);
        let wait = consumer.wait.take().expect("invariant: the caller knows that it waits");
        (wait, &consumer.watched)
    }

    /// The queues that a consumer watches, until [`Session::return_watched`].
    pub(crate) fn lend_watched(&mut self, link: LinkId) -> BTreeSet<QueueSlot> {
        core::mem::take(&mut self.consumer_mut(link).watched)
    }

    pub(crate) fn return_watched(&mut self, link: LinkId, watched: BTreeSet<QueueSlot>) {
        let lent = core::mem::replace(&mut self.consumer_mut(link).watched, watched);
        assert!(lent.is_empty(), "nothing is watched meanwhile");
    }

    fn consumer_mut(&mut self, link: LinkId) -> &mut Consumer {
        let consumer = self.links.consumers.get_mut(&link);
        consumer.expect("invariant: the caller found the consumer")
    }

    /// The messages that it leases and holds.
    pub(crate) fn holds(&self) -> impl Iterator<Item = MessageId> {
        self.holdings.leases.iter().map(|(_, id)| *id).chain(self.holdings.held.iter().copied())
    }

    pub(crate) fn holds_nothing(&self) -> bool {
        self.holdings.leases.is_empty() && self.holdings.held.is_empty()
    }

    /// When the consumer's margin begins, were the session's first lease to end at `first`.
    pub(crate) fn margin_begins(&self, link: LinkId, first: Option<Nanos>) -> Option<Nanos> {
        let wait = self.links.consumers.get(&link)?.wait?;
        if wait.margin == Nanos::ZERO { None } else { Some(Nanos(first?.since(wait.margin).0)) }
    }
}

impl Consumer {
    pub(crate) const fn watched(&self) -> &BTreeSet<QueueSlot> {
        &self.watched
    }

    pub(crate) fn into_watched(self) -> BTreeSet<QueueSlot> {
        self.watched
    }

    /// False if it did not watch the queue.
    pub(crate) fn unwatch(&mut self, queue: QueueSlot) -> bool {
        self.watched.remove(&queue)
    }

    pub(crate) const fn wait(&self) -> Option<Wait> {
        self.wait
    }

    /// It waits until then; gives until when it waited before.
    pub(crate) fn prolong_wait(&mut self, until: Nanos) -> Option<Nanos> {
        let wait = self.wait.as_mut().expect("invariant: the timer is set while it waits");
        let before = wait.until.replace(until);
        assert!(before.is_none_or(|before| before <= until), "a wait becomes no shorter");
        before
    }

    pub(crate) fn popping(&self) -> Option<&Popping> {
        self.popping.as_deref()
    }

    pub(crate) fn popping_mut(&mut self) -> Option<&mut Popping> {
        self.popping.as_deref_mut()
    }
}

impl Wait {
    pub(crate) const fn new(
        ticket: u64,
        until: Option<Nanos>,
        margin: Nanos,
        lease: Option<Nanos>,
    ) -> Self {
        Self { ticket, until, margin, lease }
    }

    pub(crate) const fn ticket(&self) -> u64 {
        self.ticket
    }

    pub(crate) const fn until(&self) -> Option<Nanos> {
        self.until
    }

    pub(crate) const fn margin(&self) -> Nanos {
        self.margin
    }

    pub(crate) const fn lease(&self) -> Option<Nanos> {
        self.lease
    }
}

impl Sessions {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Slab::new(),
            ids: BTreeMap::new(),
            found: Cell::new(None),
            clients: BTreeMap::new(),
        }
    }

    /// Opens it unless it is open.
    pub(crate) fn open(&mut self, id: SessionId) {
        if self.ids.contains_key(&id) {
            return;
        }
        let slot = self.slots.insert(Session {
            identity: Identity { id, name: None, client: None, acting: Acting::default() },
            links: Links::default(),
            holdings: Holdings::default(),
            owned: Owned::default(),
            transactions: SessionTransactions::default(),
            closing: None,
        });
        self.ids.insert(id, SessionSlot(slot));
    }

    /// Makes it a client's, and no other's; refused when another session is that client's.
    pub(crate) fn identify(&mut self, slot: SessionSlot, client: ClientName) -> Outcome {
        let key = (self.at(slot).user().cloned(), client.clone());
        if self.clients.get(&key).is_some_and(|other| *other != slot) {
            return Outcome::refused(Refusal::ClientInUse);
        }
        self.forget_client(slot);
        let session = self.at_mut(slot);
        session.identity.client = Some(client);
        session.forget_rights();
        self.clients.insert(key, slot);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// It belongs to no client.
    fn forget_client(&mut self, slot: SessionSlot) {
        let session = self.at_mut(slot);
        let user = session.user().cloned();
        if let Some(client) = session.identity.client.take() {
            let was_known = self.clients.remove(&(user, client));
            assert_eq!(was_known, Some(slot), "a client has one session");
        }
    }

    /// A session acts for this one from now on. It keeps its client if the user is the same.
    pub(crate) fn act_for(&mut self, slot: SessionSlot, principal: Principal) {
        if self.at(slot).principal().user() != principal.user() {
            self.forget_client(slot);
        }
        self.at_mut(slot).act_for(principal);
    }

    /// The session of a client of this user.
    pub(crate) fn find_client(
        &self,
        user: Option<&Arc<str>>,
        client: &ClientName,
    ) -> Option<SessionSlot> {
        self.clients.get(&(user.cloned(), client.clone())).copied()
    }

    /// From now on it can ask for nothing. Its messages are still to be returned, `held` so.
    pub(crate) fn begin_close(&mut self, slot: SessionSlot, held: Settlement) {
        let session = self.at_mut(slot);
        assert!(session.links.margins.is_empty(), "a session closes without waits");
        assert!(session.transactions.open().is_empty(), "a session closes without transactions");
        assert!(session.owned.blocked.is_empty(), "a session closes without sends that wait");
        assert!(session.owned.temporary.is_empty(), "temporary destinations go before it closes");
        assert!(session.owned.keeps.is_empty(), "subscriptions that it keeps end before it closes");
        assert!(session.holdings.popped.is_empty(), "a closing session returns popped elements");
        assert!(session.holdings.settling.is_empty(), "only transactions settle what it holds");
        assert!(session.closing.is_none(), "a session closes once");
        session.closing = Some(held);
        let id = session.id();
        self.forget_client(slot);
        let was_open = self.ids.remove(&id);
        assert_eq!(was_open, Some(slot), "a session is found by its id until it closes");
        self.found.set(None);
    }

    /// Forgets it. Nothing may point to it.
    pub(crate) fn close(&mut self, slot: SessionSlot) -> Option<Box<Session>> {
        let session = self.slots.remove(slot.0)?;
        assert!(session.closing.is_some(), "a session is forgotten when it is closing");
        assert!(session.holds_nothing(), "a session closes when it holds nothing");
        Some(session)
    }

    pub(crate) fn slot(&self, id: SessionId) -> Option<SessionSlot> {
        if let Some((last, slot)) = self.found.get()
            && last == id
        {
            return Some(slot);
        }
        let slot = self.ids.get(&id).copied()?;
        self.found.set(Some((id, slot)));
        Some(slot)
    }

    pub(crate) fn at(&self, slot: SessionSlot) -> &Session {
        self.slots.get(slot.0).expect("invariant: who points to a session has it open")
    }

    pub(crate) fn at_mut(&mut self, slot: SessionSlot) -> &mut Session {
        self.slots.get_mut(slot.0).expect("invariant: who points to a session has it open")
    }

    pub(crate) fn consumer(&self, key: ConsumerKey) -> Option<&Consumer> {
        self.slots.get(key.session.0)?.links.consumers.get(&key.link)
    }

    pub(crate) fn consumer_mut(&mut self, key: ConsumerKey) -> Option<&mut Consumer> {
        self.slots.get_mut(key.session.0)?.links.consumers.get_mut(&key.link)
    }

    pub(crate) fn credit_consumer(&self, key: ConsumerKey) -> Option<&CreditConsumer> {
        self.slots.get(key.session.0)?.links.credit_consumers.get(&key.link)
    }

    pub(crate) fn credit_consumer_mut(&mut self, key: ConsumerKey) -> Option<&mut CreditConsumer> {
        self.slots.get_mut(key.session.0)?.links.credit_consumers.get_mut(&key.link)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionSlot, &Session)> {
        self.slots.iter().map(|(slot, session)| (SessionSlot(slot), session))
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.ids.len()
    }
}
