//! The invariants of commands on lists, and of open transactions.

use alloc::collections::BTreeMap;

use crate::admission::Admission;
use crate::ids::{LIST_LINK, SessionSlot};
use crate::sessions::{Session, Sessions};
use crate::store::MessageStore;
use crate::store::message::State;
use crate::transactions::{Transaction, Transactions};

impl Transactions {
    pub(crate) fn check_open(&self, admission: &Admission, sessions: &Sessions) {
        let all = sessions.iter().map(|(_, session)| session);
        let all = all.flat_map(|session| session.transactions().open().values());
        let (mut bytes, mut waiting) = (0, 0);
        for transaction in all {
            bytes += transaction.bytes();
            waiting += usize::from(transaction.waits());
        }
        assert_eq!(bytes, self.uncommitted_bytes(), "what is open is counted");
        let blocked = admission.commits_without_place();
        assert_eq!(waiting, self.awaiting().len() + blocked, "who waits for room is known");
        admission.check_waiting_parts(sessions);
        for (session, id) in self.awaiting() {
            let transaction = sessions.at(*session).transactions().open().get(id);
            assert!(
                transaction.is_some_and(Transaction::waits),
                "who waits for room has committed"
            );
        }
    }
}

impl Sessions {
    pub(crate) fn check_settling(&self, store: &MessageStore) {
        let sessions = self.iter().map(|(_, session)| session);
        let mut settling = BTreeMap::new();
        for id in sessions.flat_map(|session| session.settling()) {
            *settling.entry(store.message(*id).queue()).or_insert(0) += 1;
        }
        for (slot, queue) in store.queues.iter() {
            assert_eq!(queue.settling(), settling.remove(&slot).unwrap_or(0), "what is settled");
        }
        assert!(settling.is_empty(), "what is settled is in a queue that is there");
    }

    pub(crate) fn check_lists(&self, store: &MessageStore) {
        self.iter().for_each(|(slot, session)| store.check_popping(slot, session));
    }
}

impl MessageStore {
    fn check_popping(&self, slot: SessionSlot, session: &Session) {
        for (link, consumer) in session.consumers() {
            let is_popping = consumer.popping().is_some();
            assert_eq!(is_popping, *link == LIST_LINK, "commands on lists wait as one consumer");
            assert!(!is_popping || consumer.wait().is_some(), "and are there while they wait");
        }
        for id in session.popped() {
            let state = self.messages.get(id.0).map(|message| message.state());
            let is_its = matches!(state, Some(State::Leased { holder, .. }) if holder == slot);
            assert!(is_its, "message {id} is leased until it is known to have arrived");
        }
        let is_closing = session.closing().is_some();
        assert!(!is_closing || session.popped().is_empty(), "what is popped returns at the end");
    }
}
