//! Commands that wait for a member of a sorted set, or for an entry of a stream.
//!
//! A session waits with one command at a time, for several names. When one of these gets members or
//! entries, the sessions that wait for it are served in the order in which they began, after the
//! command that brought them has ended. An entry is for all that read it; one that is given to a
//! group is for one consumer of it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
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

/// All commands that wait for members or entries.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    by_session: BTreeMap<SessionSlot, Wait>,
    /// Those that wait for members of sorted sets.
    members: Lines,
    /// Those that wait for entries of streams.
    entries: Lines,
    /// The moment of the timer that serves those for which a call had no room.
    resumes: Option<Nanos>,
    /// The last ticket that was given.
    last: u64,
}

/// The sessions that wait for names.
#[derive(Debug, Default)]
struct Lines {
    /// The longest waiting first.
    by_name: BTreeMap<QueueName, BTreeSet<(u64, SessionSlot)>>,
    /// Names of `by_name` that may have something, and how far their line was served.
    ready: BTreeMap<QueueName, u64>,
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
#[derive(Debug)]
pub(crate) enum Awaited {
    Members(Pop),
    Entries(AwaitedEntries),
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

impl Lines {
    fn notice(&mut self, name: &QueueName) {
        if !self.by_name.is_empty() && self.by_name.contains_key(name) {
            self.ready.insert(name.clone(), 0);
        }
    }

    /// A name that may have something, and who is next in its line; nobody where it was served.
    fn next(&self) -> Option<(QueueName, Option<(u64, SessionSlot)>)> {
        let (name, served) = self.ready.first_key_value()?;
        let from = (*served, SessionSlot(0));
        let line = self.by_name.get(name);
        Some((name.clone(), line.and_then(|line| line.range(from..).next()).copied()))
    }

    fn leave(&mut self, name: &QueueName, place: (u64, SessionSlot)) {
        let Some(waiting) = self.by_name.get_mut(name) else { return };
        waiting.remove(&place);
        if waiting.is_empty() {
            self.by_name.remove(name);
            self.ready.remove(name);
        }
    }
}

impl Waits {
    /// The key of this name has changed.
    pub(crate) fn notice(&mut self, name: &QueueName) {
        self.members.notice(name);
        self.entries.notice(name);
    }

    /// True if some may be served.
    pub(crate) fn may_serve(&self) -> bool {
        !self.members.ready.is_empty() || !self.entries.ready.is_empty()
    }

    /// The thing that a session waits for.
    fn what(&self, by: SessionSlot) -> &Awaited {
        &self.by_session.get(&by).expect("invariant: it stands in a line").what
    }

    fn lines_of(&mut self, what: &Awaited) -> &mut Lines {
        match what {
            Awaited::Members(_) => &mut self.members,
            Awaited::Entries(_) => &mut self.entries,
        }
    }

    fn end(&mut self, by: SessionSlot, store: &mut MessageStore) -> Option<Wait> {
        let wait = self.by_session.remove(&by)?;
        store.timers.change(Timer::WaitForMember(by), wait.until, None);
        let lines = self.lines_of(&wait.what);
        wait.names.iter().for_each(|name| lines.leave(name, (wait.ticket, by)));
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
        let lines = waits.lines_of(&what);
        for name in &names {
            lines.by_name.entry(name.clone()).or_default().insert((ticket, by));
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
        let resumes = waits.may_serve().then_some(work.store.latest);
        work.store.timers.change(Timer::Members, waits.resumes, resumes);
        waits.resumes = resumes;
    }

    fn serve_ready(&mut self, sessions: &Sessions, work: &mut Work<'_>) {
        let last_step = work.store.steps() + limits::STEPS_PER_TURN_MAX as u64;
        while let Some((name, next)) = self.waits.members.next() {
            let has_members = self.has_members(&name, work.store.latest);
            let Some((_, by)) = next.filter(|_| has_members) else {
                self.waits.members.ready.remove(&name);
                continue;
            };
            if work.store.steps() >= last_step || !self.serve(name, by, sessions, work) {
                return;
            }
        }
        while let Some((name, next)) = self.waits.entries.next() {
            let Some((ticket, by)) = next else {
                self.waits.entries.ready.remove(&name);
                continue;
            };
            if work.store.steps() >= last_step {
                return;
            }
            if !self.has_awaited(&name, self.waits.what(by), work.store.latest) {
                // Another one of the line may be behind another entry, or of another group.
                work.store.took_steps(limits::COMMAND_STEPS);
                self.waits.entries.ready.insert(name, ticket + 1);
            } else if !self.serve(name, by, sessions, work) {
                return;
            }
        }
    }

    /// Serves a session for which a name has something; false if it is served in the next call.
    fn serve(
        &mut self,
        name: QueueName,
        by: SessionSlot,
        sessions: &Sessions,
        work: &mut Work<'_>,
    ) -> bool {
        let bytes = self.awaited_bytes(&name, self.waits.what(by), work);
        if !work.log.makes_way(1, bytes, work.effects) {
            return false;
        }
        let wait = self.waits.end(by, work.store).expect("invariant: it stands in the line");
        work.store.took_steps(limits::COMMAND_STEPS);
        let reply = self.awaited(name, wait.what, work);
        let after = work.log.after_all();
        work.effects.reply(sessions.at(by).id(), after, reply);
        true
    }

    fn has_members(&self, name: &QueueName, now: Nanos) -> bool {
        let there = self.values.get(name, now).and_then(|it| it.collection());
        there.is_some_and(|there| there.kind == CollectionKind::SortedSet)
    }

    /// True if a name has what a command waits for.
    fn has_awaited(&self, name: &QueueName, what: &Awaited, now: Nanos) -> bool {
        match what {
            Awaited::Members(_) => self.has_members(name, now),
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
        let Waits { by_session, members, entries, resumes, last } = &self.waits;
        for wait in by_session.values() {
            assert!(wait.ticket <= *last, "tickets are given in order");
        }
        assert_eq!(!self.waits.may_serve(), resumes.is_none(), "sessions are served soon");
        for (lines, is_entries) in [(members, false), (entries, true)] {
            let mut pairs = BTreeSet::new();
            let is_its = |wait: &Wait| matches!(wait.what, Awaited::Entries(_)) == is_entries;
            for (by, wait) in by_session.iter().filter(|(_, wait)| is_its(wait)) {
                assert!(
                    sessions.at(*by).closing().is_none(),
                    "a closing session waits for nothing"
                );
                pairs.extend(wait.names.iter().map(|name| (name, (wait.ticket, *by))));
            }
            let known = lines.by_name.iter();
            let known = known.flat_map(|(name, all)| all.iter().map(move |it| (name, *it)));
            assert!(known.eq(pairs), "a name knows the sessions that wait for it");
            self.check_lines(lines, store);
        }
        let timers = by_session
            .iter()
            .filter(|(by, wait)| store.check_timer(Timer::WaitForMember(**by), wait.until) == 1);
        timers.count() + store.check_timer(Timer::Members, *resumes)
    }

    /// Verifies that nobody waits for what is there.
    fn check_lines(&self, lines: &Lines, store: &MessageStore) {
        let Lines { by_name, ready } = lines;
        // Nobody has noticed yet that a key is over.
        let is_over = |name: &QueueName| {
            let stored = self.values.stored(name);
            stored.is_some_and(|it| it.at.is_some_and(|at| at <= store.latest))
        };
        for (name, line) in by_name.iter().filter(|(name, _)| !ready.contains_key(*name)) {
            for (_, by) in line.iter().filter(|_| !is_over(name)) {
                let is_served = self.has_awaited(name, self.waits.what(*by), store.latest);
                assert!(!is_served, "{name} has what a session waits for");
            }
        }
    }
}
