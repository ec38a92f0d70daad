//! The user for whom a session acts.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Destination, Principal, QueueName, Right, RightSet, Rights};

use super::Session;
use crate::store::accounts as account;

/// The user for whom a session acts, and rights that were looked up.
#[derive(Debug, Default)]
pub(super) struct Acting {
    principal: Principal,
    /// The user as the accounts know it.
    account: account::Acting,
    /// The rights on names that were asked for last.
    known: Vec<(QueueName, RightSet)>,
    /// The place of the next one among these, once they are as many as may be.
    next: usize,
}

/// The names that a user sees in lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'s> {
    principal: &'s Principal,
    client: Option<&'s str>,
}

impl Session {
    /// True if it may not do everything.
    #[inline]
    pub(crate) const fn is_limited(&self) -> bool {
        !matches!(self.identity.acting.principal, Principal::Everyone)
    }

    pub(crate) const fn principal(&self) -> &Principal {
        &self.identity.acting.principal
    }

    /// The user for whom it acts, if it is one.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        self.principal().user()
    }

    /// Its user as the accounts know it.
    pub(crate) const fn account(&self) -> &account::Acting {
        &self.identity.acting.account
    }

    /// It acts for this one from now on.
    pub(super) fn act_for(&mut self, principal: Principal) {
        let same = match (self.principal(), &principal) {
            (Principal::User(before), Principal::User(after)) => Arc::ptr_eq(before, after),
            (before, after) => before == after,
        };
        if !same {
            let account = principal.rights().map(account::Acting::of).unwrap_or_default();
            self.identity.acting = Acting { principal, account, ..Acting::default() };
        }
    }

    /// The client has another name: rights may depend on it.
    pub(super) fn forget_rights(&mut self) {
        self.identity.acting.known.clear();
    }

    /// Its rights on a name. A temporary destination is its session's; all others may send there,
    /// for the name is a secret that they were told.
    pub(crate) fn rights_on(&mut self, name: &QueueName) -> RightSet {
        if name.is_temporary() {
            let owns = |destination| self.owned.temporary.contains(&destination);
            let is_own =
                owns(Destination::Queue(name.clone())) || owns(Destination::Topic(name.clone()));
            let is_user = self.principal().rights().is_some();
            return match (is_own, is_user) {
                (true, _) => RightSet::ALL,
                (false, true) => Right::Send.into(),
                (false, false) => self.principal().on(name.as_str(), None),
            };
        }
        let acting = &mut self.identity.acting;
        if let Some((_, rights)) = acting.known.iter().find(|(known, _)| known == name) {
            return *rights;
        }
        let client = self.identity.client.as_ref().map(QueueName::as_str);
        let rights = acting.principal.on(name.as_str(), client);
        acting.learn(name.clone(), rights);
        rights
    }

    /// The names that it sees in lists.
    pub(crate) fn sight(&self) -> Sight<'_> {
        let client = self.identity.client.as_ref().map(QueueName::as_str);
        Sight { principal: self.principal(), client }
    }
}

impl Acting {
    fn learn(&mut self, name: QueueName, rights: RightSet) {
        if self.known.len() < KNOWN_MAX {
            return self.known.push((name, rights));
        }
        if let Some(oldest) = self.known.get_mut(self.next) {
            *oldest = (name, rights);
        }
        self.next = (self.next + 1) % KNOWN_MAX;
    }
}

impl Sight<'_> {
    /// True if it sees all names.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self.principal, Principal::Everyone)
    }

    /// True if it sees a name. It takes [`Sight::steps`].
    pub(crate) fn sees(&self, name: &QueueName) -> bool {
        self.is_whole() || self.principal.on(name.as_str(), self.client).contains(Right::Look)
    }

    /// Steps that it takes to look at one name.
    pub(crate) fn steps(&self) -> usize {
        let rules = |rights: &Rights| {
            let (allow, deny) = rights.rules();
            allow.len() + deny.len()
        };
        1 + self.principal.rights().map_or(0, |rights| rules(rights) / RULES_PER_STEP)
    }
}

/// Names whose rights a session knows: those of a client that works on a few queues.
const KNOWN_MAX: usize = 8;

/// Rules that are held against a name in some 50 ns.
const RULES_PER_STEP: usize = 8;
