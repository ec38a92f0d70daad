//! The invariants of sends that wait.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::admission::{Admission, WaitListId};
use crate::demand::{Demand, Stores};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::timers::Timer;

impl Admission {
    /// Counts the bytes that wait for memory, and matches the waiting parts and commits with the
    /// open transactions.
    pub(crate) fn check_waiting_parts(&self, sessions: &Sessions) {
        let waiting =
            self.blocked_sends.sends.values().filter(|blocked| blocked.at.is_for_memory());
        let bytes = waiting.clone().map(|it| Demand::of(&it.command).waiting_bytes()).sum::<u64>();
        assert_eq!(bytes, self.blocked_sends.for_memory_bytes, "bytes that wait for memory");
        let mut parts = BTreeMap::<_, usize>::new();
        let mut commits = BTreeSet::new();
        for blocked in waiting {
            let stores = Demand::of(&blocked.command).stores;
            if let Stores::Transaction(id) = stores {
                commits.insert((blocked.by, id));
            }
            if let Some(id) = stores.part_of() {
                *parts.entry((blocked.by, id)).or_default() += 1;
            }
        }
        for (slot, session) in sessions.iter() {
            for (id, transaction) in session.transactions().open() {
                let found = parts.remove(&(slot, *id)).unwrap_or(0);
                assert_eq!(transaction.parts_waiting(), found, "parts that wait are known");
                let awaits = commits.remove(&(slot, *id));
                assert_eq!(transaction.awaits_parts(), awaits, "who waits for parts is known");
            }
        }
        assert!(parts.is_empty(), "parts that wait are of open transactions");
        assert!(commits.is_empty(), "commits that wait are of open transactions");
    }

    /// Each waiting send is in its line and known to its session, and each line goes on by its
    /// timer. Gives the number of timers that these have, but for those of queues' lines.
    pub(crate) fn check_blocked_sends(&self, sessions: &Sessions, store: &MessageStore) -> usize {
        for (ticket, blocked) in &self.blocked_sends.sends {
            let line = self.line(blocked.at, store);
            assert!(line.tickets.contains(ticket), "who waits for a place is in the line");
            let known = sessions.at(blocked.by).blocked().contains(ticket);
            assert!(known, "a session knows what it has waiting");
        }
        let lines = store.queues.iter().map(|(_, queue)| &queue.admission.line);
        let mut count = 0;
        for line in lines.chain([&self.blocked_sends.for_memory, &self.blocked_sends.for_parts]) {
            assert_eq!(line.due.is_some(), !line.is_empty(), "a line goes on by its timer");
            count += line.len();
        }
        assert_eq!(count, self.blocked_sends.sends.len(), "who is in a line waits");
        let known: usize = sessions.iter().map(|(_, session)| session.blocked().len()).sum();
        assert_eq!(known, self.blocked_sends.sends.len(), "each is of one session");
        let bytes: u64 = self.blocked_sends.sends.values().map(|blocked| blocked.bytes).sum();
        assert_eq!(bytes, self.blocked_sends.bytes, "bytes that wait for a place");
        let all = self.blocked_sends.sends.values();
        let bytes: u64 = all.map(|blocked| Demand::of(&blocked.command).waiting_bytes()).sum();
        assert_eq!(
            bytes, self.blocked_sends.memory_bytes,
            "bytes of memory that waiting sends take"
        );
        let times = self.blocked_sends.sends.iter();
        let timers = times.map(|(ticket, it)| store.check_timer(Timer::GiveUp(*ticket), it.until));
        let for_memory = [WaitListId::Memory, WaitListId::Transactions]
            .map(|of| store.check_timer(Timer::Admit(of), self.line(of, store).due));
        let sources = &store.admission.sources;
        assert_eq!(sources.due.is_some(), sources.is_changed(), "changed lists are looked at");
        timers.sum::<usize>()
            + for_memory.iter().sum::<usize>()
            + store.check_timer(Timer::Sources, sources.due)
    }

    /// Commits that wait for a place in a queue.
    pub(crate) fn commits_without_place(&self) -> usize {
        let blocked = self.blocked_sends.sends.values().filter(|it| !it.at.is_for_memory());
        let commits =
            blocked.filter(|it| matches!(Demand::of(&it.command).stores, Stores::Transaction(_)));
        commits.count()
    }

    /// True if the turn of the first send of a line is about to come.
    pub(crate) fn comes_soon(&self, of: WaitListId, store: &MessageStore) -> bool {
        let line = self.line(of, store);
        line.due.is_some_and(|due| due <= store.latest)
            || store.admission.sources.is_changed()
            || self.holds_back(of)
            || line.looks
    }
}
