//! Quotas: a user who has as much as it may gets no more.
//!
//! A command is held against them as a whole before it stores anything. A new queue and a new
//! durable subscription are held against them where they are made.

use model::{Command, MessageId, NewMessage, Quota, Refusal, Settlement, TransactionId};

use crate::Effects;
use crate::admission::bounds::Amount;
use crate::dedup::SendIds;
use crate::demand::{Address, Demand, ElementRule, Stores};
use crate::directory::{Directory, Target};
use crate::engine::Engine;
use crate::ids::SessionSlot;
use crate::keyspace::lists::as_run;
use crate::outcome::Outcome;
use crate::sessions::Session;
use crate::store::MessageStore;
use crate::store::accounts::Accounts;
use crate::transactions::Transaction;

impl Engine {
    /// The engine acts for the user of a session from now on.
    #[inline]
    pub(crate) fn act_as(&mut self, by: SessionSlot) {
        self.store.queues.accounts_mut().act_for(self.sessions.at(by).account());
    }

    /// Does what a session asked for before, in the course of a command that may be another's.
    pub(crate) fn acting_as<T>(&mut self, by: SessionSlot, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.store.queues.accounts().acting_sender().clone();
        self.act_as(by);
        let done = act(self);
        self.store.queues.accounts_mut().act_for(&before);
        done
    }

    /// Why the user for whom the engine acts may not have a command done.
    #[inline]
    pub(crate) fn over_quota(&self, by: SessionSlot, command: &Command) -> Option<Refusal> {
        if !self.store.queues.accounts().are_limited() {
            return None;
        }
        let Self { sessions, directory, store, dedup, .. } = self;
        Held { session: sessions.at(by), directory, store, dedup }.allow(command).err()
    }

    /// The commands of a run are held against quotas one by one.
    pub(crate) fn refuse_over_quota(
        &mut self,
        by: SessionSlot,
        command: Command,
        refusal: Refusal,
        effects: &mut Effects,
    ) -> Outcome {
        match as_run(command) {
            Ok(run) => Outcome::apart(run),
            Err(command) => self.refuse_send(by, &command, refusal, effects),
        }
    }
}

/// Holds what a session asks for against the quotas of its user, and changes nothing.
struct Held<'e> {
    session: &'e Session,
    directory: &'e Directory,
    store: &'e MessageStore,
    dedup: &'e SendIds,
}

impl Held<'_> {
    fn allow(&self, command: &Command) -> Result<(), Refusal> {
        let Self { session, store, .. } = self;
        let accounts = store.queues.accounts();
        if opens_link(session, command) {
            accounts.allow(Quota::Links, session.links_count() + 1)?;
        }
        if let Command::Table { step, transaction } = command {
            let open = session.transactions().open().get(transaction);
            let before = open.map_or_else(Amount::default, amount_of);
            let bytes = step.body_bytes() as u64;
            return accounts.allow_transaction(before.and(Amount { messages: 0, bytes }));
        }
        let stores = Demand::of(command).stores;
        if let Stores::Message { message, part_of: Some(id), .. } = stores {
            let open = session.transactions().open().get(&id);
            let before = open.map_or_else(Amount::default, amount_of);
            return accounts.allow_transaction(before.and(Amount::one(message.body.len())));
        }
        if let Stores::Batch(_) = stores {
            accounts.allow_transaction(stored(stores))?;
        }
        let amount = self.counted(stores);
        if amount == Amount::default() {
            return Ok(());
        }
        let (own, settled) = (accounts.own(), self.settled_by(stores));
        let held = Amount { messages: own.messages(), bytes: own.body_bytes() };
        let all = held.without(settled).and(amount);
        accounts.allow(Quota::Messages, if amount.messages == 0 { 0 } else { all.messages })?;
        accounts.allow(Quota::Bytes, if amount.bytes == 0 { 0 } else { all.bytes })
    }

    /// The messages that a command stores in queues and that were not stored before: a sender that
    /// sends again is to be told so.
    fn counted(&self, stores: Stores<'_>) -> Amount {
        let Self { session, .. } = self;
        match stores {
            Stores::Transaction(id) => {
                let open = session.transactions().open().get(&id);
                let puts = open.into_iter().flat_map(|transaction| transaction.puts());
                let new = puts.filter(|(target, message)| self.is_new(Some(**target), message));
                new.fold(Amount::default(), |all, (_, message)| {
                    all.and(Amount::one(message.body.len()))
                })
            }
            Stores::Message { to: Address::Topic(_), .. } => Amount::default(),
            Stores::Message { to, message, .. } => {
                let target = match to {
                    Address::Producer(link) => session.producers().get(&link).copied(),
                    Address::Queue(name) => {
                        self.store.queues.find(name.as_str()).map(Target::Queue)
                    }
                    Address::Topic(_) => None,
                };
                if self.is_new(target, message) { stored(stores) } else { Amount::default() }
            }
            stores => stored(stores),
        }
    }

    /// True if a message for a queue is not there yet; a topic stores none itself.
    fn is_new(&self, target: Option<Target>, message: &NewMessage) -> bool {
        match target {
            Some(Target::Topic(_)) => false,
            Some(target) => !self.dedup.was_sent(target, message, self.directory, self.store),
            None => true,
        }
    }

    /// The user's messages that go with a commit.
    fn settled_by(&self, stores: Stores<'_>) -> Amount {
        let Stores::Transaction(id) = stores else { return Amount::default() };
        let accounts = self.store.queues.accounts();
        let accepted = accepted_by(self.session, id).filter_map(|id| self.store.find(id));
        let own =
            accepted.filter(|message| accounts.sender(message.account()) == accounts.acting());
        own.fold(Amount::default(), |all, message| {
            all.and(Amount { messages: 1, bytes: message.body_bytes() })
        })
    }
}

impl Accounts {
    /// Checks that a transaction of the user may bring so much.
    fn allow_transaction(&self, amount: Amount) -> Result<(), Refusal> {
        self.allow(Quota::TransactionMessages, amount.messages)?;
        self.allow(Quota::TransactionBytes, amount.bytes)
    }
}

/// The messages that a transaction stores, and the bytes that its parts count for.
fn amount_of(transaction: &Transaction) -> Amount {
    Amount { messages: transaction.puts().len() as u64, bytes: transaction.bytes() as u64 }
}

fn accepted_by(session: &Session, id: TransactionId) -> impl Iterator<Item = MessageId> {
    let open = session.transactions().open().get(&id);
    let settlements = open.into_iter().flat_map(|transaction| transaction.settlements());
    settlements.filter(|(_, settlement)| *settlement == Settlement::Accept).map(|(id, _)| *id)
}

/// True if the session has one more producer or consumer after the command.
fn opens_link(session: &Session, command: &Command) -> bool {
    match command {
        Command::OpenProducer { link, .. } => !session.producers().contains_key(link),
        Command::OpenConsumer { link, .. }
        | Command::Subscribe { link, .. }
        | Command::Watch { link, .. } => !session.has_consumer(*link),
        _ => false,
    }
}

/// The messages that a command brings to queues, and their bytes.
fn stored(stores: Stores<'_>) -> Amount {
    match stores {
        Stores::Message { to: Address::Topic(_), .. }
        | Stores::Nothing
        | Stores::Value { .. }
        | Stores::Values(_)
        | Stores::Edited { .. }
        | Stores::Entries(_)
        | Stores::Stream(_)
        | Stores::Transaction(_) => Amount::default(),
        Stores::Message { message, .. } => Amount::one(message.body.len()),
        Stores::Elements { elements, rule, .. } => {
            let bytes = elements.iter().map(|element| element.len() as u64).sum();
            let count = if rule == ElementRule::Instead { 0 } else { elements.len() as u64 };
            Amount { messages: count, bytes }
        }
        Stores::Batch(commands) => {
            let all = commands.iter().map(|command| stored(Demand::of(command).stores));
            all.fold(Amount::default(), Amount::and)
        }
    }
}
