//! When subscriptions end by themselves: with their last consumer, or with the session of that, at
//! once or some time later.
//!
//! What keeps a subscription goes first; then its time begins, unless somebody consumes from it
//! again. A durable one that was found in the log has nobody: its time begins when the process
//! knows what time it is, for a client cannot come while there is no server.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{
    DependsOn, Durability, Expiry, Keeper, Nanos, Persistence, Refusal, Subscription, limits,
};
use records::{RecordView, SubscriptionView, VARINT_BYTES_MAX, encoded_bytes};

use crate::Effects;
use crate::engine::{Directory, Engine, MessageStore};
use crate::log::Log;
use crate::session::{SessionSlot, Sessions};
use crate::subscriptions::Entry;
use crate::timers::Timer;

impl Engine {
    /// Somebody consumes from a subscription and says when it ends. Gives what waits for that, if
    /// it had to be written.
    pub(crate) fn keep_subscription(
        &mut self,
        number: u64,
        by: SessionSlot,
        expiry: Option<Expiry>,
        effects: &mut Effects,
    ) -> Option<DependsOn> {
        let entry = self.directory.subscriptions.at_mut(number);
        let ends_at = entry.ends_at.take();
        let before = entry.keeper.take();
        let is_changed = core::mem::replace(&mut entry.asks.expiry, expiry) != expiry;
        let ends = entry.asks.ends();
        let is_kept = ends.is_some_and(|expiry| expiry.with == Keeper::Session);
        entry.keeper = is_kept.then_some(by);
        entry.is_recovered = false;
        self.store.timers.change(Timer::Unused(number), ends_at, None);
        if let Some(before) = before {
            self.sessions.at_mut(before).owned.keeps.remove(&number);
        }
        if is_kept {
            self.sessions.at_mut(by).owned.keeps.insert(number);
        }
        is_changed.then(|| self.state_subscription(number, effects))
    }

    /// Says in the log what a subscription is now.
    fn state_subscription(&mut self, number: u64, effects: &mut Effects) -> DependsOn {
        let level = self.context.policy.durability(Persistence::Persistent);
        let entry = self.directory.subscriptions.at(number);
        let before = entry.record_bytes;
        let asks = entry.asks.clone();
        let record = SubscriptionView::of(number, &asks).map(RecordView::Subscribed);
        let Some(record) = record.filter(|_| level != Durability::None) else {
            return self.log.after_all();
        };
        let now = encoded_bytes(&record);
        self.store.totals.snapshot_bytes -= Self::snapshot_bytes_of_record(before);
        self.store.totals.snapshot_bytes += Self::snapshot_bytes_of_record(now);
        self.directory.subscriptions.at_mut(number).record_bytes = now;
        self.log.append(&record, level, effects);
        self.log.after_open()
    }

    /// A session ends, and with it what it keeps.
    pub(crate) fn stop_keeping(&mut self, by: SessionSlot, effects: &mut Effects) {
        let keeps = core::mem::take(&mut self.sessions.at_mut(by).owned.keeps);
        self.store.took_steps(keeps.len());
        for number in keeps {
            self.directory.subscriptions.at_mut(number).keeper = None;
            self.end_if_unused(number, effects);
        }
    }

    /// Ends a subscription that nothing keeps any more, or lets its time begin.
    pub(crate) fn end_if_unused(&mut self, number: u64, effects: &mut Effects) {
        let entry = self.directory.subscriptions.at(number);
        let Some(Expiry { after, .. }) = entry.asks.ends() else { return };
        if entry.keeper.is_some()
            || entry.ends_at.is_some()
            || self.directory.has_consumers(number, &self.store)
        {
            return;
        }
        if after == Nanos::ZERO {
            return self.end_subscription(number, effects);
        }
        self.directory.begin_to_end(number, self.store.latest + after, &mut self.store);
    }

    /// The time of a subscription is over; or it begins, where it was found in the log.
    pub(crate) fn expire_subscription(&mut self, number: u64, effects: &mut Effects) {
        let entry = self.directory.subscriptions.at_mut(number);
        let before = entry.ends_at.take();
        let is_recovered = core::mem::take(&mut entry.is_recovered);
        self.store.timers.change(Timer::Unused(number), before, None);
        if is_recovered {
            self.end_if_unused(number, effects);
        } else {
            self.end_subscription(number, effects);
        }
    }

    /// A record states a subscription that is known: only when it ends may have changed.
    pub(crate) fn restate_subscription(&mut self, number: u64, asks: Box<Subscription>, size: u64) {
        let entry = self.directory.subscriptions.at_mut(number);
        let before = core::mem::replace(&mut entry.record_bytes, size);
        entry.asks = asks;
        self.store.totals.snapshot_bytes -= Self::snapshot_bytes_of_record(before);
        self.store.totals.snapshot_bytes += Self::snapshot_bytes_of_record(size);
    }
}

impl Sessions {
    /// Whether a session may keep what is asked for beside what it keeps.
    pub(crate) fn may_keep(&self, by: SessionSlot, asked: &Subscription) -> Result<(), Refusal> {
        let session = self.at(by);
        let is_kept = asked.ends().is_some_and(|expiry| expiry.with == Keeper::Session);
        let count = session.owned.keeps.len() + session.owned.temporary.len();
        let is_too_much = is_kept && count >= limits::SESSION_TEMPORARY_MAX;
        if is_too_much { Err(Refusal::TooManyTemporary) } else { Ok(()) }
    }
}

impl Directory {
    /// Whether the log has room to say that a subscription ends otherwise than it did.
    pub(crate) fn may_restate(
        &self,
        number: u64,
        expiry: Option<Expiry>,
        log: &Log,
    ) -> Result<(), Refusal> {
        let Entry { asks, record_bytes, .. } = self.subscriptions.at(number);
        let is_written = *record_bytes > 0 && asks.expiry != expiry;
        let has_room = record_bytes + VARINT_BYTES_MAX as u64 <= log.room_left();
        if is_written && !has_room { Err(Refusal::StoreFull) } else { Ok(()) }
    }

    fn begin_to_end(&mut self, number: u64, ends_at: Nanos, store: &mut MessageStore) {
        store.timers.change(Timer::Unused(number), None, Some(ends_at));
        self.subscriptions.at_mut(number).ends_at = Some(ends_at);
    }

    /// Nobody consumes after a start: the time of each that has one begins with the clock.
    pub(crate) fn recover_expiries(&mut self, store: &mut MessageStore) {
        let entries = self.subscriptions.iter_from(0);
        let ending = entries.filter(|(_, entry)| entry.asks.ends().is_some());
        let numbers: Vec<u64> = ending.map(|(number, _)| number).collect();
        for number in numbers {
            self.subscriptions.at_mut(number).is_recovered = true;
            self.begin_to_end(number, store.latest, store);
        }
    }
}
