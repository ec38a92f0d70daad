//! The numbers that are given out once: of messages and their places, and of consumers that wait.

use model::{MessageId, Nanos};
use records::{RecordView, place_of};

use crate::store::{MessageStore, Next};

impl Next {
    pub(crate) const fn new() -> Self {
        Self { message: 1, front: -1, buried: 1, ticket: 1 }
    }
}

impl MessageStore {
    /// The number of the next message.
    pub(crate) const fn next_message(&self) -> MessageId {
        MessageId(self.next.message)
    }

    /// So many messages take the next numbers.
    pub(crate) const fn number_messages(&mut self, count: u64) {
        self.next.message += count;
    }

    /// The messages from this number on were drafts, and are stored nowhere.
    pub(crate) fn take_back_numbers(&mut self, from: MessageId) {
        assert!(from.0 <= self.next.message, "only numbers that were given out are taken back");
        assert!(self.messages.get(from.0).is_none(), "message {from} is not stored");
        self.next.message = from.0;
    }

    /// A place behind all that there are, never given out before.
    pub(crate) fn last_place(&mut self) -> i64 {
        let place = place_of(self.next_message());
        self.next.message += 1;
        place
    }

    /// A place in front of all that there are, never given out before.
    pub(crate) const fn first_place(&mut self) -> i64 {
        let place = self.next.front;
        self.next.front -= 1;
        place
    }

    /// A place behind all buried messages.
    pub(crate) const fn buried_place(&mut self) -> u64 {
        let place = self.next.buried;
        self.next.buried += 1;
        place
    }

    /// A place behind all consumers that wait.
    pub(crate) const fn ticket(&mut self) -> u64 {
        let ticket = self.next.ticket;
        self.next.ticket += 1;
        ticket
    }

    /// The bounds of all places that were given out: each is behind the first and in front of that
    /// of the second.
    pub(crate) const fn places_given_out(&self) -> (i64, u64) {
        (self.next.front, self.next.message)
    }

    /// True if this place among the buried was given out.
    pub(crate) const fn has_buried_place(&self, place: u64) -> bool {
        place < self.next.buried
    }

    /// True if this ticket was given out.
    pub(crate) const fn has_ticket(&self, ticket: u64) -> bool {
        ticket < self.next.ticket
    }

    /// The record that a snapshot begins with.
    pub(crate) const fn sequence(&self) -> RecordView<'static> {
        RecordView::Sequence {
            next_message: self.next.message,
            next_buried: self.next.buried,
            latest: self.latest,
        }
    }

    /// Recovery has found these numbers to be next, and that moment.
    pub(crate) fn recover_numbers(&mut self, message: u64, buried: u64, latest: Nanos) {
        self.next.message = self.next.message.max(message);
        self.next.buried = self.next.buried.max(buried);
        self.latest = self.latest.max(latest);
    }

    /// Recovery has found that places are given out between these.
    pub(crate) fn recover_places(&mut self, above: i64, below: u64) {
        self.next.front = self.next.front.min(above);
        self.next.message = self.next.message.max(below);
    }

    /// Recovery has found a message at this place among the buried.
    pub(crate) fn recover_buried_place(&mut self, place: u64) {
        self.next.buried = self.next.buried.max(place + 1);
    }

    /// Breaks an invariant, to see that the check finds it.
    #[cfg(test)]
    pub(crate) const fn misnumber(&mut self, message: u64) {
        self.next.message = message;
    }
}
