//! The leases that clients of HTTP hold. A token names a lease. The message alone does not: the
//! same session may lease it again once its former lease is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Delivery, MessageId, Nanos, mixed};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    nonce: u64,
    /// The user who has it; `None`: there are no users.
    user: Option<Arc<str>>,
    pub(crate) ends: Nanos,
    /// The priority that the message had.
    pub(crate) priority: u32,
}

impl Leases {
    pub(crate) const fn new(instance: u64) -> Self {
        Self { by_message: BTreeMap::new(), by_end: BTreeSet::new(), instance, given: 0 }
    }

    /// Notes the lease of a message until `ends`. Returns its token.
    pub(crate) fn insert(
        &mut self,
        delivery: &Delivery,
        ends: Nanos,
        user: Option<Arc<str>>,
    ) -> Token {
        self.given += 1;
        let token = Token { message: delivery.message, nonce: mixed(self.instance ^ self.given) };
        self.remove(token.message);
        let lease = Lease { nonce: token.nonce, user, ends, priority: delivery.priority };
        self.by_message.insert(token.message, lease);
        self.by_end.insert((ends, token.message));
        token
    }

    /// The lease of this token, unless it is over, or another user's.
    pub(crate) fn find(&self, token: Token, user: Option<&Arc<str>>) -> Option<&Lease> {
        self.by_token(token).filter(|lease| lease.user.as_ref() == user)
    }

    /// True if the lease of this token is not over, whoever has it.
    pub(crate) fn holds(&self, token: Token) -> bool {
        self.by_token(token).is_some()
    }

    fn by_token(&self, token: Token) -> Option<&Lease> {
        self.by_message.get(&token.message).filter(|lease| lease.nonce == token.nonce)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(message: u64) -> Delivery {
        Delivery::new(MessageId(message), (*b"").into())
    }

    #[test]
    fn token_names_one_lease() {
        let mut leases = Leases::new(7);
        let first = leases.insert(&delivery(1), Nanos(10), None);
        assert!(leases.holds(first));
        let second = leases.insert(&delivery(1), Nanos(20), None);
        assert!(!leases.holds(first));
        assert!(leases.holds(second));
        leases.remove(MessageId(1));
        assert!(!leases.holds(second));
        assert!(leases.by_end.is_empty());
    }

    #[test]
    fn lease_belongs_to_its_user() {
        let mut leases = Leases::new(7);
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let token = leases.insert(&delivery(1), Nanos(10), Some(Arc::clone(&ann)));
        assert!(leases.find(token, Some(&ann)).is_some());
        assert!(leases.find(token, Some(&bob)).is_none() && leases.find(token, None).is_none());
    }

    #[test]
    fn lease_ends_at_its_time() {
        let mut leases = Leases::new(7);
        let token = leases.insert(&delivery(1), Nanos(10), None);
        leases.expire(Nanos(9));
        assert!(leases.holds(token));
        leases.extend(MessageId(1), Nanos(15));
        leases.expire(Nanos(14));
        assert!(leases.holds(token));
        leases.expire(Nanos(15));
        assert!(!leases.holds(token));
        assert!(leases.by_message.is_empty());
    }
}
