//! Sessions, their producers and consumers, and the messages they hold.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::cell::Cell;

use model::{
    ClientName, Destination, LinkId, MessageId, Nanos, SessionId, Settlement, TransactionId,
};

use crate::collections::slab::Slab;
use crate::delivery::CreditConsumer;
use crate::directory::Target;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::keyspace::Popping;
use crate::transactions::{Observing, Transaction};

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) identity: Identity,
    pub(crate) links: Links,
    pub(crate) holdings: Holdings,
    pub(crate) owned: Owned,
    pub(crate) transactions: SessionTransactions,
    /// It has ended, and its messages are being returned so.
    pub(crate) closing: Option<Settlement>,
}

/// The names of a session.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) id: SessionId,
    /// The name that operators see.
    pub(crate) name: Option<Arc<str>>,
    /// The client that the session belongs to.
    pub(crate) client: Option<ClientName>,
}

/// The producers and consumers of a session.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) producers: BTreeMap<LinkId, Target>,
    pub(crate) consumers: BTreeMap<LinkId, Consumer>,
    pub(crate) credit_consumers: BTreeMap<LinkId, CreditConsumer>,
    /// Consumers that wait and want to know before a lease ends.
    pub(crate) margins: BTreeSet<LinkId>,
}

/// The messages that were delivered to a session and are not settled.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    /// Leased messages, by the end of the lease.
    pub(crate) leases: BTreeSet<(Nanos, MessageId)>,
    /// Messages that are held without a lease.
    pub(crate) held: BTreeSet<MessageId>,
    /// Messages that an open transaction settles.
    pub(crate) settling: BTreeSet<MessageId>,
    /// Leased messages that came from lists: deleted by the session's next command.
    pub(crate) popped: BTreeSet<MessageId>,
    /// The messages that the client can have begun; `None`: all.
    pub(crate) begun: Option<BTreeSet<MessageId>>,
}

/// State of other parts that ends with the session.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    /// Tickets of its sends that wait for room.
    pub(crate) blocked: BTreeSet<u64>,
    /// The temporary destinations that go with it.
    pub(crate) temporary: BTreeSet<Destination>,
    /// The numbers of the subscriptions that it keeps.
    pub(crate) keeps: BTreeSet<u64>,
}

/// The open transactions of a session, and the keys that it observes.
#[derive(Debug, Default)]
pub(crate) struct SessionTransactions {
    pub(crate) open: BTreeMap<TransactionId, Transaction>,
    /// The keys that it observes.
    pub(crate) observing: Option<Box<Observing>>,
}

#[derive(Debug, Default)]
pub(crate) struct Consumer {
    pub(crate) watched: BTreeSet<QueueSlot>,
    pub(crate) wait: Option<Wait>,
    /// It is there for one waiting command on lists, which this describes.
    pub(crate) popping: Option<Box<Popping>>,
}

/// An unanswered receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Its place among all that wait: smaller has waited longer.
    pub(crate) ticket: u64,
    /// When it is given up.
    pub(crate) until: Option<Nanos>,
    /// How long before a lease ends it is given up; zero: never.
    pub(crate) margin: Nanos,
    /// How long the message is leased; `None`: as long as that says.
    pub(crate) lease: Option<Nanos>,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    slots: Slab<Session>,
    ids: BTreeMap<SessionId, SessionSlot>,
    /// The one that was looked for last: it mostly has more to ask.
    found: Cell<Option<(SessionId, SessionSlot)>>,
    clients: BTreeMap<ClientName, SessionSlot>,
}

impl Session {
    /// When the first of its leases ends; all that it holds returns at once when it is closing.
    pub(crate) fn first_lease(&self) -> Option<Nanos> {
        if self.closing.is_some() {
            return (!self.holds_nothing()).then_some(Nanos::ZERO);
        }
        self.holdings.leases.first().map(|(until, _)| *until)
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
            identity: Identity { id, name: None, client: None },
            links: Links::default(),
            holdings: Holdings::default(),
            owned: Owned::default(),
            transactions: SessionTransactions::default(),
            closing: None,
        });
        self.ids.insert(id, SessionSlot(slot));
    }

    /// Makes it a client's, and no other's; false when another session is that client's.
    pub(crate) fn identify(&mut self, slot: SessionSlot, client: ClientName) -> bool {
        if self.clients.get(&client).is_some_and(|other| *other != slot) {
            return false;
        }
        let before = self.at_mut(slot).identity.client.replace(client.clone());
        if let Some(before) = before {
            self.clients.remove(&before);
        }
        self.clients.insert(client, slot);
        true
    }

    pub(crate) fn find_client(&self, client: &ClientName) -> Option<SessionSlot> {
        self.clients.get(client).copied()
    }

    /// From now on it can ask for nothing. Its messages are still to be returned, `held` so.
    pub(crate) fn begin_close(&mut self, slot: SessionSlot, held: Settlement) {
        let session = self.at_mut(slot);
        assert!(session.links.margins.is_empty(), "a session closes without waits");
        assert!(session.transactions.open.is_empty(), "a session closes without transactions");
        assert!(session.owned.blocked.is_empty(), "a session closes without sends that wait");
        session.closing = Some(held);
        let (id, client) = (session.identity.id, session.identity.client.take());
        self.ids.remove(&id);
        self.found.set(None);
        if let Some(client) = client {
            self.clients.remove(&client);
        }
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
