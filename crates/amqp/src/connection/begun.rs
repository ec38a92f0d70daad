//! The deliveries that a peer can have begun to work on. When its connection is lost, an attempt
//! counts for these alone: the peer never looked at deliveries that it had only fetched ahead.
//!
//! Deliveries of a link come in order, so of those that are unsettled the first is begun. A peer
//! that settles several at once, or one before earlier ones, shows that it works on so many at a
//! time; from then on that many of its link count.

use alloc::collections::BTreeSet;

use model::{MessageId, Settlement};

use crate::Connection;
use crate::connection::link::{Consumer, Kind};
use crate::connection::work::SettlingRange;

impl Connection {
    /// The messages that the peer can have begun and has not settled.
    #[must_use]
    pub fn begun(&self) -> BTreeSet<MessageId> {
        let consumers = self.links.values().filter_map(|link| match &link.kind {
            Kind::Consumer(consumer) => Some((link.session, consumer)),
            _ => None,
        });
        let of_link = |(key, consumer): (_, &Consumer)| {
            let (session, settled) = (self.sessions.get(&key)?, self.settling(key));
            let unsettled = consumer.unsettled.iter().filter(|delivery| !settled.has(**delivery));
            let begun = unsettled.take(consumer.at_a_time);
            let message = |delivery: &u64| session.unsettled.get(delivery)?.message;
            Some(begun.filter_map(message).collect::<BTreeSet<_>>())
        };
        consumers.filter_map(of_link).flatten().collect()
    }
}

impl Consumer {
    /// The peer settles a delivery of a range, which has not been taken out yet: it shows how many
    /// it works on at a time.
    pub(super) fn note_settled(&mut self, range: &SettlingRange, delivery: u64) {
        if self.at_a_time >= AT_A_TIME_MAX
            || !is_worked_on(range.settlement.unwrap_or(self.default))
        {
            return;
        }
        let at_once = range.last - delivery + 1;
        let at_once = usize::try_from(at_once).unwrap_or(AT_A_TIME_MAX);
        let at_once = at_once.min(self.unsettled.len());
        let is_first = self.unsettled.first() == Some(&delivery);
        let earlier =
            if is_first { 0 } else { self.unsettled.range(..delivery).take(AT_A_TIME_MAX).count() };
        self.at_a_time = self.at_a_time.max(at_once).max(earlier + 1).min(AT_A_TIME_MAX);
    }
}

/// A client has not worked on a message that it only gives back.
const fn is_worked_on(settlement: Settlement) -> bool {
    match settlement {
        Settlement::Release | Settlement::Return | Settlement::GiveBack { failed: false, .. } => {
            false
        }
        Settlement::Accept
        | Settlement::Fail
        | Settlement::GiveBack { failed: true, .. }
        | Settlement::Park(_) => true,
    }
}

/// Deliveries of one link that count at most: a peer that settles a thousand at once did not begin
/// all of them at the same moment.
const AT_A_TIME_MAX: usize = 64;
