//! The leases that clients of HTTP hold. A token names a lease. The message alone does not: the
//! same session may lease it again once its former lease is over.

use std::collections::{BTreeMap, BTreeSet};

use model::{Delivery, MessageId, Nanos};

use crate::Token;

/// The leases of the gateway's session.
#[derive(Debug)]
pub(crate) struct Leases {
    by_message: BTreeMap<MessageId, Lease>,
    by_end: BTreeSet<(Nanos, MessageId)>,
    /// Mixed into each nonce, so that a token of another process fits none of this one.
    instance: u64,
    given: u64,
}

/// One lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    nonce: u64,
    pub(crate) ends: Nanos,
    /// The priority that the message had.
    pub(crate) priority: u32,
}

impl Leases {
    pub(crate) const fn new(instance: u64) -> Self {
        Self { by_message: BTreeMap::new(), by_end: BTreeSet::new(), instance, given: 0 }
    }

    /// Notes the lease of a message until `ends`. Returns its token.
    pub(crate) fn insert(&mut self, delivery: &Delivery, ends: Nanos) -> Token {
        self.given += 1;
        let token = Token { message: delivery.message, nonce: mixed(self.instance ^ self.given) };
        self.remove(token.message);
        let lease = Lease { nonce: token.nonce, ends, priority: delivery.priority };
        self.by_message.insert(token.message, lease);
        self.by_end.insert((ends, token.message));
        token
    }

    /// The lease of this token, unless it is over.
    pub(crate) fn find(&self, token: Token) -> Option<Lease> {
        let lease = self.by_message.get(&token.message)?;
        (lease.nonce == token.nonce).then_some(*lease)
    }

    /// The lease of a message lasts until `ends` now.
    pub(crate) fn extend(&mut self, message: MessageId, ends: Nanos) {
        if let Some(lease) = self.by_message.get_mut(&message) {
            self.by_end.remove(&(lease.ends, message));
            lease.ends = ends;
            self.by_end.insert((ends, message));
        }
    }

    /// The lease of a message is over.
    pub(crate) fn remove(&mut self, message: MessageId) {
        if let Some(lease) = self.by_message.remove(&message) {
            self.by_end.remove(&(lease.ends, message));
        }
    }

    /// Removes the leases that have expired.
    pub(crate) fn expire(&mut self, now: Nanos) {
        while let Some((ends, message)) = self.by_end.first().copied()
            && ends <= now
        {
            self.remove(message);
        }
    }
}

/// One round of splitmix64: near numbers look apart, and no two become one.
const fn mixed(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(message: u64) -> Delivery {
        Delivery::new(MessageId(message), (*b"").into())
    }

    #[test]
    fn token_names_one_lease() {
        let mut leases = Leases::new(7);
        let first = leases.insert(&delivery(1), Nanos(10));
        assert!(leases.find(first).is_some());
        let second = leases.insert(&delivery(1), Nanos(20));
        assert_eq!(leases.find(first), None);
        assert!(leases.find(second).is_some());
        leases.remove(MessageId(1));
        assert_eq!(leases.find(second), None);
        assert!(leases.by_end.is_empty());
    }

    #[test]
    fn lease_ends_at_its_time() {
        let mut leases = Leases::new(7);
        let token = leases.insert(&delivery(1), Nanos(10));
        leases.expire(Nanos(9));
        assert!(leases.find(token).is_some());
        leases.extend(MessageId(1), Nanos(15));
        leases.expire(Nanos(14));
        assert!(leases.find(token).is_some());
        leases.expire(Nanos(15));
        assert_eq!(leases.find(token), None);
        assert!(leases.by_message.is_empty());
    }
}
