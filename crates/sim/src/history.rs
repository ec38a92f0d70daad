//! The history of durable changes, and which part of it a crash may take away.
//!
//! After a crash the recovered messages must equal the state after *some prefix* of the history:
//! nothing is half-applied, nothing comes back, nothing overtakes. The prefix must reach the last
//! change that a client was told of and that the fall of the process spares. A fall spares a change
//! by the durability of its message. Changes behind the prefix are forgotten here too, so that they
//! cannot rise again in a later crash. Changes in memory alone are numbered like the rest and lost
//! in any crash.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use model::{DeadReason, Durability, Nanos, StorePolicy};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fall {
    /// It died, or was shut down; written bytes are there.
    Process,
    /// The machine lost power, or the disk lost unsynced bytes in a failed sync.
    Power,
}

/// The contents and properties of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its queue, or its subscription: see [`crate::registration`].
    pub queue: Rc<str>,
    /// Smaller is more urgent.
    pub priority: u32,
    /// Its lease in seconds.
    pub lease: u32,
    /// Its payload.
    pub body: Rc<[u8]>,
    /// Deliveries that failed.
    pub failed: u32,
    /// From then on no consumer may receive it.
    pub expires: Option<Nanos>,
    /// Why it is a dead letter, if it is.
    pub dead: Option<Dead>,
}

/// Why a message is among the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// Why.
    pub reason: DeadReason,
    /// The queue or topic that it was sent to.
    pub from: Rc<str>,
    /// Deliveries that had failed.
    pub attempts: u32,
}

/// The state of a message, as far as it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Ready, or leased: a lease is not durable.
    Ready,
    /// Hidden until then.
    Delayed(Nanos),
    /// Set aside.
    Buried,
}

/// A message as a change left it or as recovery found it.
pub type Kept = (Content, Standing);

/// A message that recovery found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The part of it that was seen.
    pub kept: Kept,
    /// It could not be delivered. So the facts that only a delivery shows are unknown: failures,
    /// expiry, why it is dead, and which subscription of the topic has it.
    pub is_hidden: bool,
    /// Its place among the deliveries of its queue, the first to come first, if it was delivered.
    pub place: Option<usize>,
}

/// Facts about a message that no recovery shows, and that yet decide its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// The durability of a confirmed change of it.
    pub level: Durability,
    /// Its place among the ready of its priority.
    pub order: u64,
    /// The last that it may have, where a fall has left a doubt.
    pub order_max: u64,
    /// The bytes that its body counts for in bounds.
    pub bytes: u64,
}

impl Nature {
    /// A nature with a known place.
    #[must_use]
    pub const fn new(level: Durability, order: u64, bytes: u64) -> Self {
        Self { level, order, order_max: order, bytes }
    }

    /// The same at another place.
    #[must_use]
    pub const fn at(self, order: u64) -> Self {
        Self { order, order_max: order, ..self }
    }
}

/// The changes that a reply reflects, by their numbers. They may be of several messages.
pub type Changes = Range<usize>;

/// Changes, in the order of the engine's frames.
#[derive(Clone, Debug)]
pub struct History {
    policy: StorePolicy,
    lag: Nanos,
    changes: Vec<Change>,
    /// The highest id that may not be given again.
    spent_id: u64,
    /// The device is full at times.
    may_lack_room: bool,
    /// There may be so many dead letters and no more.
    evicts: bool,
}

#[derive(Clone, Debug)]
struct Change {
    /// Changes of one step are one frame.
    step: u64,
    id: u64,
    nature: Nature,
    /// `None`: deleted.
    left: Option<Kept>,
    /// When a client was first told.
    told: Option<Nanos>,
    /// It was leased since. The journal may or may not have noted that it is hidden no more.
    leased: bool,
    /// It was hidden since, for want of room to become a dead letter, as a snapshot may have noted.
    is_set_aside: bool,
    /// So many more deliveries may have failed, likewise.
    slack: u32,
}

impl History {
    /// Nothing happened yet. A periodic sync may be late by `lag`.
    #[must_use]
    pub const fn new(policy: StorePolicy, lag: Nanos) -> Self {
        Self { policy, lag, changes: Vec::new(), spent_id: 0, may_lack_room: false, evicts: false }
    }

    /// The device is full at times, or never.
    pub fn lack_room(&mut self, at_times: bool) {
        self.may_lack_room = at_times;
    }

    /// Dead letters may go for others, as a process begins too, or never.
    pub fn evict_dead_letters(&mut self, at_times: bool) {
        self.evicts = at_times;
    }

    /// Notes the state that a step left of a message; returns the number of the change.
    pub fn push(&mut self, step: u64, id: u64, nature: Nature, left: Option<Kept>) -> usize {
        let (told, leased, is_set_aside, slack) = (None, false, false, 0);
        self.changes.push(Change { step, id, nature, left, told, leased, is_set_aside, slack });
        if is_message(&id) {
            self.spent_id = self.spent_id.max(id);
        }
        self.changes.len() - 1
    }

    /// A client has read a reply that reflects these changes.
    pub fn told(&mut self, now: Nanos, changes: Changes) {
        changes.for_each(|change| _ = self.change(change).told.get_or_insert(now));
    }

    /// The message that this change left was leased.
    pub fn leased(&mut self, change: usize) {
        self.change(change).leased = true;
    }

    /// So many more deliveries may have failed of the message that this change left.
    pub fn allow(&mut self, change: usize, failures: u32) {
        self.change(change).slack += failures;
    }

    /// How many more may have.
    #[must_use]
    pub fn slack(&self, change: usize) -> u32 {
        self.changes.get(change).map_or(0, |change| change.slack)
    }

    /// The message that this change left was hidden for want of room.
    pub fn set_aside(&mut self, change: usize) {
        self.change(change).is_set_aside = true;
    }

    /// How many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if nothing happened yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The nature of the message that this change left.
    #[must_use]
    pub fn nature(&self, change: usize) -> Option<Nature> {
        self.changes.get(change).map(|change| change.nature)
    }

    /// The newest change of a message.
    #[must_use]
    pub fn last_change(&self, id: u64) -> Option<usize> {
        self.changes.iter().rposition(|change| change.id == id)
    }

    /// True if a message was deleted.
    #[must_use]
    pub fn is_deleted(&self, id: u64) -> bool {
        let last = self.changes.iter().rfind(|change| change.id == id);
        last.is_some_and(|change| change.left.is_none())
    }

    /// The highest id that occurs.
    #[must_use]
    pub fn last_id(&self) -> u64 {
        self.changes.iter().map(|change| change.id).filter(is_message).max().unwrap_or(0)
    }

    /// The highest id that must not be given again. A crash may take back higher ids if no client
    /// was told of them for certain.
    #[must_use]
    pub const fn spent_id(&self) -> u64 {
        self.spent_id
    }

    /// The process fell at `fell`, and a new one found these messages: forgets the changes that are
    /// gone. Returns how many changes are there for certain.
    ///
    /// # Panics When no prefix explains the found messages, or none that keeps the changes that had
    /// to survive.
    pub fn recover(
        &mut self,
        fall: Fall,
        fell: Nanos,
        now: Nanos,
        found: &BTreeMap<u64, Found>,
    ) -> usize {
        let spared = |change: &Change| {
            change.told.is_some_and(|told| self.spares(fall, change.nature.level, told, fell))
        };
        let floor = self.changes.iter().rposition(spared).map_or(0, |last| last + 1);
        let cuts = (floor..=self.len()).filter(|cut| self.is_between_steps(*cut));
        let fits = |cut: &usize| self.misfits(*cut, now, found).is_empty();
        let fitting: Vec<_> = cuts.filter(fits).collect();
        // Of several prefixes with the same outcome the shortest: changes behind it may be lost. A
        // change that shows only in the order of messages is told by that order.
        let ordered = fitting.iter().find(|cut| self.explains_order(**cut, found));
        let Some(&cut) = ordered.or(fitting.first()) else {
            panic!("{}", self.complaint(floor, fall, now, found));
        };
        let certain = self.changes.iter().take(floor);
        let certain = certain.filter(|change| change.is_journalled()).map(|change| change.id);
        self.spent_id = certain.chain(found.keys().copied()).filter(is_message).max().unwrap_or(0);
        self.doubt_order(cut, &fitting);
        self.changes.truncate(cut);
        self.changes.retain(Change::is_journalled);
        self.adopt(found);
        cut
    }

    /// The counts of failed deliveries become those that were found.
    fn adopt(&mut self, found: &BTreeMap<u64, Found>) {
        for (id, found) in found.iter().filter(|(_, found)| !found.is_hidden) {
            let last = self.changes.iter_mut().rfind(|change| change.id == *id);
            let Some(Change { left: Some((left, _)), slack, .. }) = last else { continue };
            if left.may_be(&found.kept.0, *slack) {
                *left = found.kept.0.clone();
                *slack = 0;
            }
        }
    }

    /// A message that expired until `now` and was found among the dead letters is there from here
    /// on. A dead letter that went for others is not.
    pub fn age(&mut self, step: u64, now: Nanos, found: &BTreeMap<u64, Found>) {
        let evicted = self.state().into_iter().filter(|(id, _)| !found.contains_key(id));
        let evicted: Vec<_> = evicted.map(|(id, (number, _))| (id, number)).collect();
        for (id, number) in evicted {
            let nature = self.change(number).nature;
            self.push(step, id, nature, None);
        }
        let aged = |(id, (number, kept)): (u64, (usize, &Kept))| {
            let Change { nature, slack, .. } = self.changes.get(number)?;
            let aged = kept.0.aged(now)?;
            let found = found.get(&id).filter(|found| found.shows(&aged, *slack))?;
            let aged = if found.is_hidden { aged } else { found.kept.0.clone() };
            Some((id, *nature, (aged, Standing::Ready)))
        };
        let all: Vec<_> = self.state().into_iter().filter_map(aged).collect();
        for (id, nature, kept) in all {
            self.push(step, id, nature, Some(kept));
        }
    }

    /// The state after the whole history, each with its newest change.
    #[must_use]
    pub fn state(&self) -> BTreeMap<u64, (usize, &Kept)> {
        self.state_at(self.len())
    }

    /// True if a change of that level survives the fall that a client was told of at `told`.
    fn spares(&self, fall: Fall, level: Durability, told: Nanos, fell: Nanos) -> bool {
        match (level, fall, self.policy) {
            (Durability::None, ..) => false,
            (Durability::Synced, ..) | (Durability::Written, Fall::Process, _) => true,
            (Durability::Written, Fall::Power, StorePolicy::Periodic(period)) => {
                told + period + self.lag < fell
            }
            (Durability::Written, Fall::Power, _) => false,
        }
    }

    fn is_between_steps(&self, cut: usize) -> bool {
        let before = cut.checked_sub(1).and_then(|last| self.changes.get(last));
        let behind = self.changes.get(cut);
        before.is_none_or(|before| behind.is_none_or(|behind| before.step != behind.step))
    }

    fn state_at(&self, cut: usize) -> BTreeMap<u64, (usize, &Kept)> {
        let mut state = BTreeMap::new();
        let changes = self.changes.iter().take(cut).enumerate();
        for (number, change) in changes.filter(|(_, change)| change.is_journalled()) {
            match &change.left {
                Some(left) => state.insert(change.id, (number, left)),
                None => state.remove(&change.id),
            };
        }
        state
    }

    /// The messages that are not as they were after the first `cut` changes.
    fn misfits(&self, cut: usize, now: Nanos, found: &BTreeMap<u64, Found>) -> Vec<u64> {
        let state = self.state_at(cut);
        let may_go = |content: &Content| {
            self.evicts && (content.dead.is_some() || content.aged(now).is_some())
        };
        let lost =
            state.iter().filter(|(id, (_, left))| !found.contains_key(id) && !may_go(&left.0));
        let lost = lost.map(|(id, _)| *id);
        let fits = |id: &u64, found: &Found| {
            let (number, left) = state.get(id)?;
            let Change { leased, is_set_aside, slack, .. } = *self.changes.get(*number)?;
            // An expired message may not have gone yet: a broker that has no room does nothing by
            // time.
            let aged = left.0.aged(now).is_some_and(|aged| found.shows(&aged, slack));
            let stands = stands_as(left.1, leased, now, found.kept.1);
            // On a full device an expired message is hidden, by this process or by one before it.
            let may_hide = is_set_aside || self.may_lack_room && left.0.aged(now).is_some();
            let is_hidden = |until: Nanos| may_hide && until <= now + SCARCE_RETRY;
            let hides = matches!(found.kept.1, Standing::Delayed(until) if is_hidden(until));
            let same = found.shows(&left.0, slack) && (stands || hides);
            (same || aged && found.kept.1 == Standing::Ready).then_some(())
        };
        let wrong = found.iter().filter(|(id, found)| fits(id, found).is_none()).map(|(id, _)| *id);
        lost.chain(wrong).collect()
    }

    /// A change after the first `cut` ones may have given a message another place, and left no
    /// other trace.
    fn doubt_order(&mut self, cut: usize, fitting: &[usize]) {
        let last = fitting.iter().copied().fold(cut, usize::max);
        let state = self.state_at(cut).into_iter();
        let numbers: BTreeMap<u64, usize> = state.map(|(id, (number, _))| (id, number)).collect();
        for later in cut..last {
            let Some(Change { id, nature, .. }) = self.changes.get(later) else { continue };
            let (order, known) = (nature.order, numbers.get(id));
            if let Some(change) = known.and_then(|number| self.changes.get_mut(*number)) {
                change.nature.order_max = change.nature.order_max.max(order);
            }
        }
    }

    /// True if messages of one queue were delivered in the order that they have after the first
    /// `cut` changes.
    fn explains_order(&self, cut: usize, found: &BTreeMap<u64, Found>) -> bool {
        let state = self.state_at(cut);
        let ranked = found.iter().filter_map(|(id, found)| {
            let (number, (content, _)) = state.get(id)?;
            let rank = (content.priority, self.nature(*number)?.order);
            Some(((&content.queue, found.place?), rank))
        });
        let ranked: BTreeMap<_, _> = ranked.collect();
        let ranks: Vec<_> = ranked.iter().map(|((queue, _), rank)| (queue, rank)).collect();
        ranks.is_sorted()
    }

    fn complaint(
        &self,
        floor: usize,
        fall: Fall,
        now: Nanos,
        found: &BTreeMap<u64, Found>,
    ) -> String {
        let misfits = |cut: &usize| self.misfits(*cut, now, found).len();
        let nearest = (floor..=self.len()).min_by_key(misfits).unwrap_or(floor);
        let any = (0..floor).rev().find(|cut| misfits(cut) == 0);
        let mut text = format!(
            "after {fall:?} no prefix of {} changes fits that keeps the first {floor}; {}",
            self.len(),
            any.map_or("nor a shorter one".to_owned(), |cut| format!("the first {cut} would fit")),
        );
        let state = self.state_at(nearest);
        for id in self.misfits(nearest, now, found).iter().take(5) {
            let kept = |kept: Option<&Kept>| {
                kept.map(|(c, s)| {
                    let Content { queue, priority, failed, dead, expires, .. } = c;
                    format!("{queue} {priority} {s:?} failed={failed} {dead:?} {expires:?}")
                })
            };
            let expected = state.get(id).map(|(_, kept)| *kept);
            let seen = found.get(id).map(|found| &found.kept);
            text += &format!("\n  {id}: expected {:?}, found {:?}", kept(expected), kept(seen));
        }
        text
    }

    fn change(&mut self, number: usize) -> &mut Change {
        self.changes.get_mut(number).expect("invariant: changes are numbered by this history")
    }
}

impl Content {
    /// A message as a protocol sends it that knows no more than this.
    #[must_use]
    pub const fn plain(queue: Rc<str>, priority: u32, lease: u32, body: Rc<[u8]>) -> Self {
        Self { queue, priority, lease, body, failed: 0, expires: None, dead: None }
    }

    /// The queue, or the topic of the subscription.
    #[must_use]
    pub fn destination(&self) -> &str {
        destination(&self.queue)
    }

    /// This message as a dead letter.
    #[must_use]
    pub fn dead(&self, reason: DeadReason) -> Self {
        let dead = Dead { reason, from: self.destination().into(), attempts: self.failed };
        let queue = DEAD_LETTERS.into();
        Self { queue, failed: 0, expires: None, dead: Some(dead), ..self.clone() }
    }

    /// True if it may be this, where so many more deliveries may have failed than are known.
    #[must_use]
    pub fn may_be(&self, seen: &Self, slack: u32) -> bool {
        let may_be = |known: u32, seen: u32| (known..=known + slack).contains(&seen);
        let attempts = |content: &Self| content.dead.as_ref().map_or(0, |dead| dead.attempts);
        let (known, of_seen) = (attempts(self), attempts(seen));
        let mut same = Self { failed: self.failed, ..seen.clone() };
        same.dead.iter_mut().for_each(|dead| dead.attempts = known);
        may_be(self.failed, seen.failed) && may_be(known, of_seen) && same == *self
    }

    /// This message as its expiry has changed it by now, if it has.
    fn aged(&self, now: Nanos) -> Option<Self> {
        let is_over = self.expires.is_some_and(|at| at <= now);
        is_over.then(|| self.dead(DeadReason::Expired))
    }
}

impl Found {
    /// True if it may be this, of which so many more deliveries may have failed.
    fn shows(&self, content: &Content, slack: u32) -> bool {
        let seen = &self.kept.0;
        if !self.is_hidden {
            return content.may_be(seen, slack);
        }
        let known = (content.priority, content.lease, &content.body);
        *seen.queue == *content.destination() && (seen.priority, seen.lease, &seen.body) == known
    }
}

impl From<Kept> for Found {
    fn from(kept: Kept) -> Self {
        Self { kept, is_hidden: false, place: None }
    }
}

/// The queue, or the topic of the subscription.
pub(crate) fn destination(queue: &str) -> &str {
    queue.split_once(SUBSCRIBED).map_or(queue, |(topic, _)| topic)
}

/// The separator between a topic and a subscription of it.
pub(crate) const SUBSCRIBED: char = '|';

/// The queue of dead letters.
pub(crate) const DEAD_LETTERS: &str = "DLQ";

/// How long a message without room to become a dead letter is hidden: as in the engine.
pub(crate) const SCARCE_RETRY: Nanos = Nanos::from_secs(30);

/// Numbers from here on are of durable subscriptions, which are kept like messages.
pub(crate) const SUBSCRIPTIONS: u64 = 1 << 63;

/// Numbers from here on are of rules, likewise.
pub(crate) const RULES: u64 = SUBSCRIPTIONS + (1 << 32);

const fn is_message(id: &u64) -> bool {
    *id < SUBSCRIPTIONS
}

impl Change {
    fn is_journalled(&self) -> bool {
        self.nature.level > Durability::None
    }
}

/// True if a message that was left like this may be found like that.
fn stands_as(left: Standing, leased: bool, now: Nanos, found: Standing) -> bool {
    match (left, found) {
        (Standing::Delayed(until), Standing::Ready) => leased || until <= now,
        (Standing::Buried, Standing::Ready) => leased,
        _ => left == found,
    }
}

#[cfg(test)]
#[path = "history_test.rs"]
mod tests;
