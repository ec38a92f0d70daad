//! Commands of clients of AMQP, and transactions. No part of a transaction is there before its
//! commit. All of it is there from then on, as one step of the history.

use std::rc::Rc;

use model::{Command, Destination, Nanos, NewMessage, Refusal, Reply, Settlement, TransactionId};

use super::{Consumer, NOTHING, Oracle, Sent};
use crate::history::Changes;

/// Commands of a transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Transaction {
    pub(super) puts: Vec<(Destination, NewMessage)>,
    pub(super) settled: Vec<(u64, Settlement)>,
    /// A part was refused: it cannot commit.
    rollback_only: bool,
    /// A part that waited never becomes one: the transaction is about to end.
    is_ending: bool,
}

impl Oracle {
    /// The engine has performed a command of a session of AMQP. Returns the changes that its reply
    /// reflects, for [`Oracle::told`]. Deliveries that the command causes come thereafter.
    ///
    /// # Panics
    /// When that must not be answered so.
    pub fn commanded(
        &mut self,
        now: Nanos,
        client: u64,
        command: &Command,
        reply: Option<&Reply>,
    ) -> Changes {
        self.begin_step(now);
        let sent = Sent::Command(self.addressed(client, command));
        if let Some(Reply::Waits { ticket }) = reply {
            self.waits(now, client, *ticket, sent);
            return NOTHING;
        }
        if let Some(reply) = reply {
            self.learn(&sent, reply);
            self.judge_place(now, client, &sent, reply, None);
        }
        let changes = self.perform(now, client, command, reply);
        // A commit may fill the call's frames, so that dead letters go when time goes on.
        self.is_behind |= matches!(command, Command::Commit { .. });
        self.shed(now);
        changes
    }

    pub(super) fn perform(
        &mut self,
        now: Nanos,
        client: u64,
        command: &Command,
        reply: Option<&Reply>,
    ) -> Changes {
        let Some(reply) = reply else {
            let Command::Credit { link, limit, drain, .. } = command else {
                panic!("no reply to {command:?}");
            };
            return self.credit(client, link.0, *limit, *drain);
        };
        match command {
            Command::OpenProducer { link, to } => {
                assert_eq!(*reply, Reply::Done, "{command:?}");
                self.producers.insert((client, link.0), to.clone());
                NOTHING
            }
            Command::CloseProducer { link } => {
                self.producers.remove(&(client, link.0));
                NOTHING
            }
            Command::Put { link, message, transaction } => {
                let to = self.producers.get(&(client, link.0)).expect("a producer").clone();
                self.send(now, client, &to, message, *transaction, reply)
            }
            Command::PutTo { to, message, transaction } => {
                self.send(now, client, to, message, *transaction, reply)
            }
            Command::OpenConsumer { link, queue, .. } => {
                assert_eq!(*reply, Reply::Done, "{command:?}");
                let queue = Rc::from(queue.as_str());
                self.inherit_groups(client, link.0, &queue);
                self.consumers.insert((client, link.0), Consumer::new(queue));
                NOTHING
            }
            Command::Subscribe { link, subscription } => {
                self.subscribe(client, link.0, subscription, reply)
            }
            Command::CloseConsumer { link } => self.close_consumer(client, link.0),
            Command::Unsubscribe { name } => self.unsubscribe(name, reply),
            Command::FindSubscription { name } => self.find_subscription(name, reply),
            Command::Settle { message, settlement, transaction } => {
                self.settle(now, client, *message, *settlement, *transaction, reply)
            }
            Command::Renew { message, lease } => {
                let lease = lease.expect("only HTTP extends leases here, and says for how long");
                self.renew(now, client, *message, lease, reply)
            }
            Command::Begin { transaction } => {
                assert_eq!(*reply, Reply::Done, "{command:?}");
                self.transactions.insert((client, *transaction), Transaction::default());
                NOTHING
            }
            Command::Commit { transaction } => self.commit(now, client, *transaction, reply),
            Command::Rollback { transaction } => {
                assert_eq!(*reply, Reply::Done, "{command:?}");
                let undone = self.transactions.remove(&(client, *transaction));
                self.undo(now, &undone.expect("it was begun"));
                NOTHING
            }
            _ => panic!("{reply:?} to {command:?} of {client}"),
        }
    }

    /// True if a client has settled a message in a transaction that is open.
    pub(super) fn is_enlisted(&self, client: u64, id: u64) -> bool {
        let own = self.transactions.iter().filter(|((of, _), _)| *of == client);
        own.flat_map(|(_, it)| &it.settled).any(|(settled, _)| *settled == id)
    }

    pub(super) fn enlist_put(
        &mut self,
        client: u64,
        id: TransactionId,
        to: &Destination,
        message: &NewMessage,
        reply: &Reply,
    ) -> Changes {
        let transaction = self.transactions.get_mut(&(client, id)).expect("it was begun");
        if transaction.is_taken(reply) {
            transaction.puts.push((to.clone(), message.clone()));
        }
        NOTHING
    }

    pub(super) fn enlist_settlement(
        &mut self,
        client: u64,
        id: TransactionId,
        part: (u64, Settlement),
        may: bool,
        reply: &Reply,
    ) -> Changes {
        let transaction = self.transactions.get_mut(&(client, id)).expect("it was begun");
        if *reply == Reply::NotFound {
            assert!(!may, "{client} holds {}", part.0);
            transaction.rollback_only = true;
            return self.everything();
        }
        if transaction.is_taken(reply) {
            assert!(may, "{client} does not hold {}", part.0);
            transaction.settled.push(part);
        }
        NOTHING
    }

    /// A command that waited to be a part of a transaction is none: the transaction ends or cannot
    /// commit.
    pub(super) fn give_up_part(&mut self, client: u64, id: TransactionId, reply: &Reply) {
        let transaction = self.transactions.get_mut(&(client, id));
        if let Some(transaction) = transaction.filter(|_| *reply == TRANSACTION_FAILED) {
            transaction.is_ending |= !transaction.rollback_only;
            transaction.rollback_only = true;
        }
    }

    fn commit(&mut self, now: Nanos, client: u64, id: TransactionId, reply: &Reply) -> Changes {
        let transaction = self.transactions.remove(&(client, id)).expect("it was begun");
        let (conflict, may_conflict) = self.conflict(&transaction.puts);
        let allowed = match reply {
            Reply::Refused(Refusal::TransactionFailed) => transaction.rollback_only,
            Reply::Refused(Refusal::SendIdReused) => {
                !transaction.rollback_only && (conflict.is_some() || may_conflict)
            }
            Reply::Done => !transaction.rollback_only && conflict.is_none(),
            // The place is judged before.
            Reply::Refused(Refusal::QueueFull(_)) => true,
            Reply::Refused(Refusal::StoreFull | Refusal::TransactionTooLarge) => {
                !transaction.rollback_only
            }
            _ => false,
        };
        assert!(allowed, "{reply:?} to a commit of {client}: {transaction:?}");
        if *reply != Reply::Done {
            self.undo(now, &transaction);
            let reused = *reply == Reply::Refused(Refusal::SendIdReused) && !may_conflict;
            return conflict.filter(|_| reused).unwrap_or(NOTHING);
        }
        let (begin, first_id) = (self.history.len(), self.next_id);
        let (mut named, mut repeated) = (Vec::new(), None);
        for (to, message) in &transaction.puts {
            if let Some(changes) = self.answered_before(to, message) {
                if repeated.is_none() || !self.are_in_memory(changes.clone()) {
                    repeated = Some(changes);
                }
                continue;
            }
            let first = self.next_id;
            self.store(now, to, message);
            self.remember(to, message, first, NOTHING);
            named.push((to, message));
        }
        let mut waits_for_all = false;
        for (id, settlement) in &transaction.settled {
            waits_for_all |= self.orphans.contains_key(id);
            self.apply_settlement(now, *id, *settlement);
        }
        self.bind(begin, first_id);
        let all = begin..self.history.len();
        for (to, message) in named {
            self.know_changes(to, message, all.clone());
        }
        match repeated {
            _ if waits_for_all => self.everything(),
            Some(changes) if self.are_in_memory(all.clone()) => changes,
            _ => all,
        }
    }

    /// Messages that it settled are as after a delivery that failed.
    fn undo(&mut self, now: Nanos, transaction: &Transaction) {
        for (id, _) in &transaction.settled {
            self.apply_settlement(now, *id, Settlement::Fail);
        }
    }
}

impl Transaction {
    /// True if a part of it was taken; one that was not makes it rollback-only.
    fn is_taken(&mut self, reply: &Reply) -> bool {
        let may_be_taken = !self.is_ending || *reply == TRANSACTION_FAILED;
        assert!(may_be_taken, "{reply:?} to a part of a transaction that ends: {self:?}");
        match reply {
            Reply::Done => assert!(!self.rollback_only, "nothing more is taken"),
            &TRANSACTION_FAILED => assert!(self.rollback_only, "it is sound: {self:?}"),
            Reply::Refused(Refusal::TransactionTooLarge | Refusal::MemoryFull) => {
                self.rollback_only = true;
            }
            _ => panic!("{reply:?} to a part of a transaction"),
        }
        *reply == Reply::Done
    }
}

const TRANSACTION_FAILED: Reply = Reply::Refused(Refusal::TransactionFailed);

#[cfg(test)]
#[path = "transactions_test.rs"]
mod tests;
