//! When subscriptions end by themselves: with their last consumer, or with the session of that, at
//! once or some time later.
//!
//! The link or connection that keeps a subscription goes first; then its time begins, unless a
//! consumer comes again. A durable one that recovery found has no consumer: its time begins when
//! the process knows the time, for a client cannot come while there is no server.

use alloc::vec::Vec;

use model::{Expiry, Nanos, Refusal, Subscription, SubscriptionOwner, limits};
use records::VARINT_BYTES_MAX;

use crate::directory::{Directory, Entry};
use crate::ids::SessionSlot;
use crate::log::FrameWriter;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::timers::Timer;

impl Sessions {
    /// Checks that a session may keep one more subscription.
    pub(crate) fn may_keep(&self, by: SessionSlot, asked: &Subscription) -> Result<(), Refusal> {
        let session = self.at(by);
        let is_kept = asked.ends().is_some_and(|expiry| expiry.with == SubscriptionOwner::Session);
        let count = session.keeps().len() + session.temporary().len();
        let is_too_much = is_kept && count >= limits::SESSION_TEMPORARY_MAX;
        if is_too_much { Err(Refusal::TooManyTemporary) } else { Ok(()) }
    }
}

impl Directory {
    /// Checks that the log has room to say that a subscription ends otherwise than it did.
    pub(crate) fn may_restate(
        &self,
        number: u64,
        expiry: Option<Expiry>,
        log: &FrameWriter,
    ) -> Result<(), Refusal> {
        let Entry { asks, record_bytes, .. } = self.subscriptions.at(number);
        let is_written = *record_bytes > 0 && asks.expiry != expiry;
        let has_room = record_bytes + VARINT_BYTES_MAX as u64 <= log.room_left();
        if is_written && !has_room { Err(Refusal::StoreFull) } else { Ok(()) }
    }

    pub(crate) fn begin_to_end(&mut self, number: u64, ends_at: Nanos, store: &mut MessageStore) {
        let entry = self.subscriptions.at_mut(number);
        assert!(entry.owner.is_none(), "a subscription ends once nothing keeps it");
        assert!(entry.ends_at.is_none(), "a subscription begins to end once");
        entry.ends_at = Some(ends_at);
        store.timers.change(Timer::Unused(number), None, Some(ends_at));
    }

    /// A consumer of a subscription says when the subscription ends. True if the log is to be told.
    pub(crate) fn keep(
        &mut self,
        number: u64,
        by: SessionSlot,
        expiry: Option<Expiry>,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> bool {
        let entry = self.subscriptions.at_mut(number);
        let ends_at = entry.ends_at.take();
        let before = entry.owner.take();
        let is_changed = core::mem::replace(&mut entry.asks.expiry, expiry) != expiry;
        let ends = entry.asks.ends();
        let is_kept = ends.is_some_and(|expiry| expiry.with == SubscriptionOwner::Session);
        entry.owner = is_kept.then_some(by);
        entry.is_recovered = false;
        store.timers.change(Timer::Unused(number), ends_at, None);
        if let Some(before) = before {
            sessions.at_mut(before).end_keeping(number);
        }
        if is_kept {
            sessions.at_mut(by).keep(number);
        }
        is_changed
    }

    /// The session that kept a subscription has ended.
    pub(crate) fn end_keeping(&mut self, number: u64) {
        let before = self.subscriptions.at_mut(number).owner.take();
        assert!(before.is_some(), "a subscription knows the session that keeps it");
    }

    /// How long a subscription lasts that nothing keeps any more; `None`: something keeps it, or it
    /// is ending already.
    pub(crate) fn lasts_unused(&self, number: u64, store: &MessageStore) -> Option<Nanos> {
        let entry = self.subscriptions.at(number);
        let Expiry { after, .. } = entry.asks.ends()?;
        let is_kept = entry.owner.is_some() || self.has_consumers(number, store);
        (!is_kept && entry.ends_at.is_none()).then_some(after)
    }

    /// The time of a subscription is over. True if it was found in the log: then its time begins.
    pub(crate) fn end_time(&mut self, number: u64, store: &mut MessageStore) -> bool {
        let entry = self.subscriptions.at_mut(number);
        let ends_at = entry.ends_at.take();
        assert!(ends_at.is_some(), "the timer is set while a subscription is ending");
        store.timers.change(Timer::Unused(number), ends_at, None);
        core::mem::take(&mut entry.is_recovered)
    }

    /// After a start there are no consumers: each subscription that expires begins its time when
    /// the clock begins.
    pub(crate) fn recover_expiries(&mut self, store: &mut MessageStore) {
        let entries = self.subscriptions.iter_from(0);
        let ending = entries.filter(|(_, entry)| entry.asks.ends().is_some());
        let numbers: Vec<u64> = ending.map(|(number, _)| number).collect();
        for number in numbers {
            self.subscriptions.at_mut(number).is_recovered = true;
            self.begin_to_end(number, store.latest, store);
        }
    }

    /// Takes a subscription without consumers out of its topic. The topic may go with it.
    pub(crate) fn withdraw(
        &mut self,
        number: u64,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        let entry = self.unregister(number, store);
        if let Some(owner) = entry.owner() {
            sessions.at_mut(owner).end_keeping(number);
        }
        self.begin_leaving(entry.queue(), sessions, store);
    }
}
