//! The invariants of commands on lists.

use crate::ids::{LIST_LINK, SessionSlot};
use crate::sessions::{Session, Sessions};
use crate::store::MessageStore;
use crate::store::message::State;

impl Sessions {
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
