//! Commands that wait for a member of a sorted set, or for an entry of a stream.
//!
//! A session waits with one command at a time, for several names. When one of these gets members or
//! entries, the sessions that wait for it are served in the order in which they began, after the
//! command that brought them has ended. An entry is for all that read it; one that is given to a
//! group is for one consumer of it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    CollectionKind, Nanos, QueueName, ReadPlace, Refusal, Reply, StreamId, StreamRead, limits,
};
use records::FieldsDraft;

use super::Work;
use crate::admission::batch_load::RECORD_BYTES_MAX;
use crate::ids::SessionSlot;
use crate::keyspace::Keyspace;
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::timers::Timer;

/// All commands that wait for members.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    by_session: BTreeMap<SessionSlot, Wait>,
    /// The sessions that wait for a name, the longest waiting first.
    by_name: BTreeMap<QueueName, BTreeSet<(u64, SessionSlot)>>,
    /// Names of `by_name` that may have something, and how far their line was served.
    ready: BTreeMap<QueueName, u64>,
    /// The moment of the timer that serves those for which a call had no room.
    resumes: Option<Nanos>,
    /// The last ticket that was given.
    last: u64,
}

/// A command that waits.
#[derive(Debug)]
struct Wait {
    /// Its place among all that wait.
    ticket: u64,
    names: Vec<QueueName>,
    what: Awaited,
    /// When it has waited long enough.
    until: Option<Nanos>,
}

/// The thing that a command waits for.
#[derive(Clone, Debug)]
pub(crate) enum Awaited {
    Members(Pop),
    /// Many sessions may name many streams.
    Entries(Arc<AwaitedEntries>),
}

/// Entries that a command waits for.
#[derive(Debug)]
pub(crate) struct AwaitedEntries {
    pub(crate) read: StreamRead,
    /// Without a group: the entry of each stream behind which it reads.
    pub(crate) behind: BTreeMap<QueueName, StreamId>,
}

impl AwaitedEntries {
    pub(crate) fn of(read: StreamRead) -> Self {
        let mut behind = BTreeMap::new();
        for (name, place) in read.places.iter().filter(|_| read.reader.is_none()) {
            if let ReadPlace::Behind(id) = place {
                let least = behind.entry(name.clone()).or_insert(*id);
                *least = (*least).min(*id);
            }
        }
        Self { read, behind }
    }
}

/// The members that are taken: so many from one end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pop {
    pub(crate) highest: bool,
    pub(crate) max: u64,
}

impl Waits {
    /// The key of this name has changed.
    pub(crate) fn notice(&mut self, name: &QueueName) {
        if !self.by_name.is_empty() && self.by_name.contains_key(name) {
            self.ready.insert(name.clone(), 0);
        }
    }

    /// True if some may be served.
    pub(crate) fn may_serve(&self) -> bool {
        !self.ready.is_empty()
    }

    fn end(&mut self, by: SessionSlot, store: &mut MessageStore) -> Option<Wait> {
        let wait = self.by_session.remove(&by)?;
        store.timers.change(Timer::WaitForMember(by), wait.until, None);
        for name in &wait.names {
            let Some(waiting) = self.by_name.get_mut(name) else { continue };
            waiting.remove(&(wait.ticket, by));
            if waiting.is_empty() {
                self.by_name.remove(name);
                self.ready.remove(name);
            }
        }
        Some(wait)
    }
}

impl Keyspace {
    /// A command of a session waits until one of these names has what it is for.
    pub(crate) fn wait_for(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        what: Awaited,
        wait: Option<Nanos>,
        store: &mut MessageStore,
    ) -> Outcome {
        let until = wait.map(|wait| store.latest + wait);
        let waits = &mut self.waits;
        waits.last += 1;
        let ticket = waits.last;
        for name in &names {
            waits.by_name.entry(name.clone()).or_default().insert((ticket, by));
        }
        store.took_steps(names.len());
        store.timers.change(Timer::WaitForMember(by), None, until);
        let wait = Wait { ticket, names, what, until };
        let before = waits.by_session.insert(by, wait);
        assert!(before.is_none(), "a session waits with one command");
        Outcome::NOTHING
    }

    /// A session waits no more; true if it did.
    pub(crate) fn end_wait(&mut self, by: SessionSlot, store: &mut MessageStore) -> bool {
        self.waits.end(by, store).is_some()
    }

    /// Serves the sessions that wait for names that have members now.
    pub(crate) fn serve_waits(&mut self, sessions: &Sessions, work: &mut Work<'_>) {
        self.serve_ready(sessions, work);
        let waits = &mut self.waits;
        let resumes = (!waits.ready.is_empty()).then_some(work.store.latest);
        work.store.timers.change(Timer::Members, waits.resumes, resumes);
        waits.resumes = resumes;
    }

    fn serve_ready(&mut self, sessions: &Sessions, work: &mut Work<'_>) {
        let last_step = work.store.steps() + limits::STEPS_PER_TURN_MAX as u64;
        while let Some((name, served)) = self.waits.ready.first_key_value() {
            let (name, from) = (name.clone(), (*served, SessionSlot(0)));
            let line = self.waits.by_name.get(&name);
            let Some((ticket, by)) = line.and_then(|line| line.range(from..).next()).copied()
            else {
                self.waits.ready.remove(&name);
                continue;
            };
            // The rest is served in the next call.
            if work.store.steps() >= last_step {
                return;
            }
            let wait = self.waits.by_session.get(&by).expect("invariant: it stands in the line");
            let what = wait.what.clone();
            work.store.took_steps(limits::COMMAND_STEPS);
            if !self.has_awaited(&name, &what, work.store.latest) {
                self.waits.ready.insert(name, ticket + 1);
                continue;
            }
            if !work.log.makes_way(1, self.awaited_bytes(&name, &what, work), work.effects) {
                return;
            }
            self.waits.end(by, work.store);
            let reply = self.awaited(name, what, work);
            let after = work.log.after_all();
            work.effects.reply(sessions.at(by).id(), after, reply);
        }
    }

    /// True if a name has what a command waits for.
    fn has_awaited(&self, name: &QueueName, what: &Awaited, now: Nanos) -> bool {
        match what {
            Awaited::Members(_) => {
                let there = self.values.get(name, now).and_then(|it| it.collection());
                there.is_some_and(|there| there.kind == CollectionKind::SortedSet)
            }
            Awaited::Entries(entries) => self.has_news(name, entries, now),
        }
    }

    /// Does a command for which there is something now.
    fn awaited(&mut self, name: QueueName, what: Awaited, work: &mut Work<'_>) -> Reply {
        let done = match &what {
            Awaited::Members(pop) => self
                .pop_scored(&[name], *pop, work)
                .map(|popped| popped.map(|popped| Reply::ScoredPopped(Box::new(popped)))),
            Awaited::Entries(entries) => {
                let found = self.read(&entries.read, work);
                found.map(|found| found.map(|found| Reply::Stream(Box::new(found))))
            }
        };
        match done {
            Ok(Some(reply)) => reply,
            Ok(None) => unreachable!("invariant: it was just seen that there is something"),
            Err(refusal) => Reply::Refused(refusal),
        }
    }

    /// Bytes of the records of what a command that waits takes or reads.
    fn awaited_bytes(&self, name: &QueueName, what: &Awaited, work: &Work<'_>) -> usize {
        let Pop { max, .. } = match what {
            Awaited::Members(pop) => *pop,
            Awaited::Entries(entries) => {
                return self.most_read_bytes(&entries.read, work.store.latest);
            }
        };
        let there = self.values.get(name, work.store.latest).and_then(|it| it.collection());
        let Some(there) = there else { return 0 };
        let count = max.min(there.count);
        let beside = FieldsDraft::ENTRY_BYTES_MAX;
        let longest = count.saturating_mul((limits::FIELD_BYTES_MAX + beside) as u64);
        let all = there.bytes.saturating_add(count.saturating_mul(beside as u64));
        let bytes = usize::try_from(longest.min(all)).unwrap_or(usize::MAX);
        bytes.saturating_add(RECORD_BYTES_MAX + limits::QUEUE_NAME_BYTES_MAX)
    }

    /// Checks that a command may wait for so many names.
    pub(crate) fn may_wait_for(names: usize) -> Result<(), Refusal> {
        let are_few = names <= limits::CONSUMER_QUEUES_MAX;
        if are_few { Ok(()) } else { Err(Refusal::TooManyWatched) }
    }

    /// Verifies the commands that wait. Gives the number of their timers.
    pub(crate) fn check_waits(&self, sessions: &Sessions, store: &MessageStore) -> usize {
        let Waits { by_session, by_name, ready, resumes, last } = &self.waits;
        let mut pairs = BTreeSet::new();
        for (by, wait) in by_session {
            assert!(sessions.at(*by).closing().is_none(), "a closing session waits for nothing");
            assert!(wait.ticket <= *last, "tickets are given in order");
            pairs.extend(wait.names.iter().map(|name| (name, (wait.ticket, *by))));
        }
        let known = by_name.iter().flat_map(|(name, all)| all.iter().map(move |it| (name, *it)));
        assert!(known.eq(pairs), "a name knows the sessions that wait for it");
        assert_eq!(ready.is_empty(), resumes.is_none(), "sessions are served soon");
        // Nobody has noticed yet that a key is over.
        let is_over = |name: &QueueName| {
            let stored = self.values.stored(name);
            stored.is_some_and(|it| it.at.is_some_and(|at| at <= store.latest))
        };
        let quiet = by_name.iter().filter(|(name, _)| !ready.contains_key(*name) && !is_over(name));
        for (name, line) in quiet {
            for wait in line.iter().filter_map(|(_, by)| by_session.get(by)) {
                let is_served = self.has_awaited(name, &wait.what, store.latest);
                assert!(!is_served, "{name} has what a session waits for");
            }
        }
        let timers = by_session
            .iter()
            .filter(|(by, wait)| store.check_timer(Timer::WaitForMember(**by), wait.until) == 1);
        timers.count() + store.check_timer(Timer::Members, *resumes)
    }
}
