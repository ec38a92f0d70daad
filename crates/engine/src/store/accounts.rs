//! Accounts: what the users have in queues, by the fingerprints of their names.
//!
//! Records name a message's user by such a fingerprint, so an account outlives the user, and a
//! restart. A user without quotas has one too: quotas may come later.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use model::{Quota, Refusal, Rights, fingerprint};

/// An account as messages and queues name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountSlot(NonZeroU16);

/// The messages and queues of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    sender: u64,
    messages: u64,
    body_bytes: u64,
    queues: u64,
}

/// All accounts, and the one for which the engine acts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    all: Vec<Account>,
    slots: BTreeMap<u64, AccountSlot>,
    acting: Acting,
}

/// The sender for whom the engine acts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acting {
    /// Zero: no user.
    sender: u64,
    /// The user's, if there are quotas among them.
    limits: Option<Arc<Rights>>,
}

impl Acting {
    /// A user of these rights.
    pub(crate) fn of(rights: &Arc<Rights>) -> Self {
        let has_quotas = !rights.quotas().is_empty();
        // Zero is no user's.
        let sender = fingerprint(rights.user().as_bytes(), 0).max(1);
        Self { sender, limits: has_quotas.then(|| Arc::clone(rights)) }
    }
}

impl Account {
    /// The messages that the user has stored in queues and that are there.
    pub(crate) const fn messages(&self) -> u64 {
        self.messages
    }

    /// The bytes of their bodies.
    pub(crate) const fn body_bytes(&self) -> u64 {
        self.body_bytes
    }
}

impl Accounts {
    /// From now on messages and queues that come are this sender's.
    #[inline]
    pub(crate) fn act_for(&mut self, acting: &Acting) {
        if acting.sender != 0 || self.acting.sender != 0 {
            self.acting.clone_from(acting);
        }
    }

    /// The sender whose messages and queues come; zero: no user's.
    #[inline]
    pub(crate) const fn acting(&self) -> u64 {
        self.acting.sender
    }

    /// The same, with the user's limits.
    pub(crate) const fn acting_sender(&self) -> &Acting {
        &self.acting
    }

    /// True if that is a user with quotas.
    #[inline]
    pub(crate) const fn are_limited(&self) -> bool {
        self.acting.limits.is_some()
    }

    /// The messages and queues of that user.
    pub(crate) fn own(&self) -> Account {
        self.slots.get(&self.acting.sender).map_or_else(Account::default, |slot| *self.at(*slot))
    }

    /// Checks that the user may have so much.
    pub(crate) fn allow(&self, quota: Quota, amount: u64) -> Result<(), Refusal> {
        let allowed = self.acting.limits.as_ref().map(|rights| rights.allow(quota, amount));
        let reached = |reached| Refusal::QuotaReached(Box::new(reached));
        allowed.unwrap_or(Ok(())).map_err(reached)
    }

    /// Checks that the user may make another queue.
    pub(crate) fn allow_queue(&self) -> Result<(), Refusal> {
        self.allow(Quota::Queues, self.own().queues + 1)
    }

    /// The account of a sender, made now if it is to be. `None`: it is no user, or there are
    /// [`ACCOUNTS_MAX`] already.
    #[inline]
    pub(crate) fn open(&mut self, sender: u64) -> Option<AccountSlot> {
        if sender == 0 { None } else { self.find_or_make(sender) }
    }

    fn find_or_make(&mut self, sender: u64) -> Option<AccountSlot> {
        if let Some(slot) = self.slots.get(&sender) {
            return Some(*slot);
        }
        if self.all.len() >= ACCOUNTS_MAX {
            return None;
        }
        let number = u16::try_from(self.all.len() + 1).ok().and_then(NonZeroU16::new)?;
        self.all.push(Account { sender, ..Account::default() });
        self.slots.insert(sender, AccountSlot(number));
        debug_assert_eq!(self.slots.len(), self.all.len(), "each account is found by its sender");
        Some(AccountSlot(number))
    }

    /// The sender of an account; zero for none.
    pub(crate) fn sender(&self, slot: Option<AccountSlot>) -> u64 {
        slot.map_or(0, |slot| self.at(slot).sender)
    }

    /// A message of so many bytes is in a queue.
    #[inline]
    pub(crate) fn add_message(&mut self, slot: Option<AccountSlot>, bytes: u64) {
        if let Some(slot) = slot {
            let account = self.at_mut(slot);
            account.messages += 1;
            account.body_bytes += bytes;
        }
    }

    /// It is in no queue any more.
    #[inline]
    pub(crate) fn remove_message(&mut self, slot: Option<AccountSlot>, bytes: u64) {
        if let Some(slot) = slot {
            let account = self.at_mut(slot);
            assert!(account.messages > 0, "a message was counted when it came");
            account.messages -= 1;
            account.subtract_bytes(bytes);
        }
    }

    /// The body of a message has so many bytes now, and had so many before.
    pub(crate) fn resize(&mut self, slot: Option<AccountSlot>, before: u64, now: u64) {
        if let Some(slot) = slot {
            let account = self.at_mut(slot);
            account.subtract_bytes(before);
            account.body_bytes += now;
        }
    }

    /// A queue is the user's.
    pub(crate) fn add_queue(&mut self, slot: Option<AccountSlot>) {
        slot.into_iter().for_each(|slot| self.at_mut(slot).queues += 1);
    }

    /// A queue of the user's goes.
    pub(crate) fn remove_queue(&mut self, slot: Option<AccountSlot>) {
        if let Some(slot) = slot {
            let account = self.at_mut(slot);
            assert!(account.queues > 0, "a queue was counted when it came");
            account.queues -= 1;
        }
    }

    /// Checks the counts against the messages and queues that are there, each with its bytes.
    ///
    /// # Panics
    /// When they differ.
    pub(crate) fn check(
        &self,
        messages: impl Iterator<Item = (AccountSlot, u64)>,
        owners: impl Iterator<Item = AccountSlot>,
    ) {
        let mut found = self.clone();
        found
            .all
            .iter_mut()
            .for_each(|it| *it = Account { sender: it.sender, ..Account::default() });
        messages.for_each(|(slot, bytes)| found.add_message(Some(slot), bytes));
        owners.for_each(|slot| found.add_queue(Some(slot)));
        assert_eq!(found.all, self.all, "accounts have what is there");
    }

    fn at(&self, AccountSlot(number): AccountSlot) -> &Account {
        self.all.get(usize::from(number.get()) - 1).expect("invariant: no account goes")
    }

    fn at_mut(&mut self, AccountSlot(number): AccountSlot) -> &mut Account {
        self.all.get_mut(usize::from(number.get()) - 1).expect("invariant: no account goes")
    }
}

impl Account {
    fn subtract_bytes(&mut self, bytes: u64) {
        assert!(bytes <= self.body_bytes, "bytes of a body were counted when it came");
        self.body_bytes -= bytes;
    }
}

/// Users over the life of a process that have accounts. What later ones store counts to no user.
pub(crate) const ACCOUNTS_MAX: usize = u16::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_count_what_is_there() {
        let mut accounts = Accounts::default();
        assert_eq!(accounts.open(0), None);
        let (ann, bob) = (accounts.open(7), accounts.open(8));
        assert_eq!(accounts.open(7), ann);
        accounts.add_message(ann, 100);
        accounts.add_message(ann, 10);
        accounts.add_message(bob, 1);
        accounts.resize(ann, 10, 0);
        accounts.remove_message(ann, 100);
        accounts.add_queue(ann);
        let mut held = |sender: u64| {
            accounts.act_for(&Acting { sender, limits: None });
            let account = accounts.own();
            (account.messages, account.body_bytes, account.queues)
        };
        assert_eq!((held(7), held(8), held(9)), ((1, 0, 1), (1, 1, 0), (0, 0, 0)));
        assert_eq!((accounts.sender(bob), accounts.sender(None)), (8, 0));
    }

    #[test]
    fn accounts_are_bounded() {
        let mut accounts = Accounts::default();
        let opened = (1..=70_000).filter(|sender| accounts.open(*sender).is_some()).count();
        assert_eq!(opened, ACCOUNTS_MAX);
        assert!(accounts.open(1).is_some());
    }
}
