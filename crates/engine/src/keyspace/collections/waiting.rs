//! Commands that wait for a member of a sorted set.
//!
//! A session waits with one command at a time, for several names. When one of these gets members,
//! the sessions that wait for it are served in the order in which they began, after the command
//! that brought the members has ended.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use model::{CollectionKind, Nanos, QueueName, Refusal, Reply, limits};
use records::FieldsDraft;

use super::{Collection, Work};
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
    /// Names of `by_name` that may have members.
    ready: BTreeSet<QueueName>,
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
    pop: Pop,
    /// When it has waited long enough.
    until: Option<Nanos>,
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
            self.ready.insert(name.clone());
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
    /// A command of a session waits until one of these has a member.
    pub(crate) fn wait_for_member(
        &mut self,
        by: SessionSlot,
        names: &[QueueName],
        pop: Pop,
        wait: Option<Nanos>,
        store: &mut MessageStore,
    ) -> Outcome {
        let until = wait.map(|wait| store.latest + wait);
        let waits = &mut self.waits;
        waits.last += 1;
        let ticket = waits.last;
        for name in names {
            waits.by_name.entry(name.clone()).or_default().insert((ticket, by));
        }
        store.took_steps(names.len());
        store.timers.change(Timer::WaitForMember(by), None, until);
        let wait = Wait { ticket, names: names.to_vec(), pop, until };
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
        while let Some(name) = self.waits.ready.first().cloned() {
            let there = self.collection(&name, CollectionKind::SortedSet, work.store);
            let there = there.ok().flatten();
            let has_members = there.is_some();
            let next = self.waits.by_name.get(&name).and_then(|waiting| waiting.first());
            let Some((_, by)) = next.copied().filter(|_| has_members) else {
                self.waits.ready.remove(&name);
                continue;
            };
            // The rest is served in the next call.
            let bytes = there.map_or(0, |there| self.most_popped_bytes(by, &there));
            let is_late = work.store.steps() >= last_step;
            if is_late || !work.log.makes_way(1, bytes, work.effects) {
                return;
            }
            let wait = self.waits.end(by, work.store);
            let wait = wait.expect("invariant: it stands in the line");
            let reply = match self.pop_scored(&[name], wait.pop, work) {
                Ok(Some(popped)) => Reply::ScoredPopped(Box::new(popped)),
                Ok(None) => unreachable!("invariant: it was just seen that there is a member"),
                Err(refusal) => Reply::Refused(refusal),
            };
            work.store.took_steps(limits::COMMAND_STEPS);
            let after = work.log.after_all();
            work.effects.reply(sessions.at(by).id(), after, reply);
        }
    }

    /// Bytes of the record of what a session that waits takes out of this sorted set.
    fn most_popped_bytes(&self, by: SessionSlot, there: &Collection) -> usize {
        let max = self.waits.by_session.get(&by).map_or(0, |wait| wait.pop.max);
        let count = max.min(there.count);
        let beside = FieldsDraft::ENTRY_BYTES_MAX;
        let longest = count.saturating_mul((limits::FIELD_BYTES_MAX + beside) as u64);
        let all = there.bytes.saturating_add(count.saturating_mul(beside as u64));
        let bytes = usize::try_from(longest.min(all)).unwrap_or(usize::MAX);
        bytes.saturating_add(RECORD_BYTES_MAX + limits::QUEUE_NAME_BYTES_MAX)
    }

    /// Checks that a command may wait for so many names.
    pub(crate) fn may_wait_for(names: &[QueueName]) -> Result<(), Refusal> {
        let are_few = names.len() <= limits::CONSUMER_QUEUES_MAX;
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
        for name in by_name.keys().filter(|name| !ready.contains(*name)) {
            let there = self.values.get(name, store.latest).and_then(|it| it.collection());
            let kind = there.map(|there| there.kind);
            assert_ne!(kind, Some(CollectionKind::SortedSet), "{name} has a member");
        }
        let timers = by_session
            .iter()
            .filter(|(by, wait)| store.check_timer(Timer::WaitForMember(**by), wait.until) == 1);
        timers.count() + store.check_timer(Timer::Members, *resumes)
    }
}
