//! Lists that hold no more than their bounds allow. Elements have a place there, or go because of
//! others; clients wait for a place, or are refused for want of one.
//!
//! A move that waited for a place may find nothing to move when its turn comes, and then waits for
//! an element. No reply tells of that: from the moment its list was empty it may wait for either.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{Bound, Nanos, QueueBounds, QueueFull, Refusal, Reply, WhenFull};

use super::KeyOracle;
use super::waiting::Waiting;
use crate::amount::Amount;
use crate::keyspace::text;
use crate::redis_client::{Asked, Meant, Value, Words, summary};
use crate::{Counted, redis_workload};

/// The bounds, and clients that wait for a place, or for memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    bounds: QueueBounds,
    block_timeout: Nanos,
    /// Memory is limited too: a client may wait for that.
    is_cramped: bool,
    /// By ticket: the first to come first.
    lined: BTreeMap<u64, Lined>,
    /// When a waiting client went on, by list.
    moved: BTreeMap<Rc<str>, Nanos>,
    /// Lists that held more than they may when a process began: until something comes nothing
    /// goes for that.
    spared: BTreeSet<Rc<str>>,
    /// The engine's latest reply, until the client reads it.
    latest_reply: Option<LatestReply>,
    counted: Counted,
}

/// A client that waits for a place.
#[derive(Clone, Debug)]
struct Lined {
    client: u64,
    asked: Asked,
    /// The lists in one of which it lined up.
    lists: BTreeSet<Rc<str>>,
    since: Nanos,
    /// It may wait for an element by now.
    may_wait_for_element: bool,
}

#[derive(Clone, Debug)]
struct LatestReply {
    ticket: Option<u64>,
    refusal: Option<Refusal>,
}

/// Elements that go into a list at once.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    stored: Amount,
    /// Bytes of the largest element.
    largest: u64,
}

type Demands = BTreeMap<Rc<str>, Demand>;

impl Places {
    /// A client is gone, and with it its waiting commands.
    pub(super) fn forget(&mut self, client: u64) {
        self.lined.retain(|_, lined| lined.client != client);
    }

    /// The process fell.
    pub(super) fn clear(&mut self) {
        self.lined.clear();
        self.moved.clear();
        self.latest_reply = None;
    }

    fn sheds(&self) -> bool {
        self.bounds.is_bounded() && !self.bounds.holds_off()
    }

    fn blocks(&self) -> bool {
        self.bounds.when_full == WhenFull::Block
    }
}

impl Lined {
    fn commands(&self) -> &[Words] {
        commands(&self.asked)
    }

    fn is_alone(&self) -> bool {
        self.asked.meant == Meant::Command
    }

    /// True if it waits for an element as well.
    fn waits_for_both(&self) -> bool {
        let name = self.asked.words.first().map(|name| &**name);
        self.is_alone() && name == Some(b"BLMOVE")
    }

    fn as_waiting(&self) -> Waiting {
        Waiting::new(self.since, self.client, &self.asked.words)
    }
}

impl KeyOracle {
    /// The same, where lists hold no more than that, and no line stands still for longer.
    #[must_use]
    pub fn bounded(mut self, bounds: QueueBounds, block_timeout: Nanos) -> Self {
        (self.places.bounds, self.places.block_timeout) = (bounds.of_queue(), block_timeout);
        self
    }

    /// The same, with limited memory as well: clients may wait for that, and another oracle judges
    /// it.
    #[must_use]
    pub fn cramped(mut self, is_cramped: bool) -> Self {
        self.places.is_cramped = is_cramped;
        self
    }

    /// Outcomes of commands that store elements, over all crashes.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.places.counted
    }

    /// A client was told to wait for a place, but where it has another reason.
    ///
    /// # Panics
    /// When there is one.
    pub fn lines_up(
        &mut self,
        now: Nanos,
        client: u64,
        ticket: u64,
        asked: &Asked,
        has_reason: bool,
    ) {
        if !has_reason {
            let lacks = self.shortage_of_place(now, asked);
            assert!(lacks, "{client} need not wait with {}", summary(&asked.words));
            self.places.counted.waits += 1;
        }
        let lists = self.demands(commands(asked)).into_keys().collect();
        let asked = asked.clone();
        let lined = Lined { client, asked, lists, since: now, may_wait_for_element: false };
        let before = self.places.lined.insert(ticket, lined);
        assert!(before.is_none(), "ticket {ticket} is given once");
    }

    /// Bytes of all elements of lists: one command may look into so many.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        redis_workload::LISTS.into_iter().map(|list| self.keyspace.amount(list).bytes).sum()
    }

    /// True if memory is limited.
    #[must_use]
    pub const fn is_cramped(&self) -> bool {
        self.places.is_cramped
    }

    /// True if a command may have to wait for a place, and will have one.
    pub fn shortage_of_place(&mut self, now: Nanos, asked: &Asked) -> bool {
        self.pass(now);
        let bounds = &self.places.bounds;
        let demands = self.demands(commands(asked));
        let lacks = |(list, demand): (&Rc<str>, &Demand)| {
            self.lack(list, *demand).is_some() || self.may_be_slow(list) || self.is_awaited(list)
        };
        asked.meant == Meant::Command
            && self.places.blocks()
            && demands.values().all(|demand| demand.stored.exceeds(bounds).is_none())
            && demands.iter().any(lacks)
    }

    /// The engine says this to the session of a client, and the client reads it next.
    pub fn hears(&mut self, reply: &Reply) {
        let (ticket, reply) = match reply {
            Reply::Late { ticket, reply } => (Some(*ticket), &**reply),
            reply => (None, reply),
        };
        let refusal = match reply {
            Reply::Refused(refusal) => Some(refusal.clone()),
            _ => None,
        };
        self.places.latest_reply = Some(LatestReply { ticket, refusal });
    }

    /// The client has read the engine's reply.
    pub fn has_heard(&mut self) {
        self.places.latest_reply = None;
    }

    /// Asserts that no client waits for a place that is there.
    ///
    /// # Panics When a client does.
    pub fn assert_placed(&mut self, now: Nanos) {
        let Places { bounds, is_cramped, lined, .. } = &self.places;
        if !bounds.is_bounded() || bounds.target_age.is_some() || *is_cramped || lined.is_empty() {
            return;
        }
        self.pass(now);
        for list in redis_workload::LISTS {
            if let Some((ticket, Some(demand))) = self.first_in_line(list) {
                assert!(self.lack(list, demand).is_some(), "{ticket} has a place in {list}");
            }
        }
    }

    /// The first client that may wait for a place in a list, and its demand there; no demand if it
    /// may wait for an element by now.
    fn first_in_line(&self, list: &str) -> Option<(u64, Option<Demand>)> {
        self.places.lined.iter().find_map(|(ticket, lined)| {
            if lined.may_wait_for_element {
                return lined.lists.contains(list).then_some((*ticket, None));
            }
            let demand = self.demands(lined.commands()).get(list).copied();
            Some((*ticket, Some(demand?)))
        })
    }

    /// Judges if there was a place for the elements sent, if that decided the reply. True if the
    /// client's time to wait was over, for a place or for an element since.
    pub(super) fn judge_place(
        &mut self,
        now: Nanos,
        client: u64,
        asked: &Asked,
        value: &Value,
    ) -> bool {
        let Some(LatestReply { ticket, refusal }) = self.places.latest_reply.take() else {
            return false;
        };
        let waited = match ticket {
            Some(ticket) => self.places.lined.remove(&ticket).map(|lined| (ticket, lined)),
            None => self.take_lined(client),
        };
        if let Some((ticket, lined)) = &waited {
            assert_eq!(lined.client, client, "who waited with {ticket} is answered");
            if *value == Value::Nil && lined.waits_for_both() {
                lined.as_waiting().assert_over(now, value);
                return true;
            }
        }
        assert!(waited.is_some() || ticket.is_none(), "{client} does not wait with {ticket:?}");
        if ticket.is_none() && waited.is_some() {
            // It waited for an element, and takes more than there is a place for.
            return false;
        }
        self.judge(now, asked, value, refusal.as_ref(), waited.as_ref());
        false
    }

    /// A queue's list may have become empty, or not.
    pub(super) fn notice_moves(&mut self) {
        let Self { places, keyspace, .. } = self;
        for lined in places.lined.values_mut().filter(|lined| lined.waits_for_both()) {
            let from = lined.asked.words.get(1);
            lined.may_wait_for_element |= from.is_some_and(|from| !keyspace.is_list(from));
        }
    }

    /// Elements for which lists have no place go, if that is the lists' rule.
    pub(super) fn shed(&mut self) {
        let bounds = self.places.bounds;
        for list in
            redis_workload::LISTS.into_iter().filter(|_| self.places.sheds()).collect::<Vec<_>>()
        {
            while !self.places.spared.contains(list)
                && self.keyspace.amount(list).exceeds(&bounds).is_some()
                && let Some(number) = self.keyspace.least_needed(list, bounds.bytes_max)
            {
                self.places.counted.shed += 1;
                self.change(|keyspace| match bounds.when_full {
                    WhenFull::DeadLetter => keyspace.park_element(list, number),
                    _ => drop(keyspace.drop_element(list, number)),
                });
            }
        }
    }

    /// A process begins: a list that already holds more than it may loses nothing for that.
    pub(super) fn spare_what_is_there(&mut self) {
        let bounds = self.places.bounds;
        let is_beyond = |list: &&str| self.keyspace.amount(list).exceeds(&bounds).is_some();
        self.places.spared =
            redis_workload::LISTS.into_iter().filter(is_beyond).map(Rc::from).collect();
    }

    /// Something came into these lists.
    pub(super) fn spare_no_more(&mut self, words: &Words) {
        if self.places.spared.is_empty() {
            return;
        }
        let renamed = words.first().filter(|name| &***name == b"RENAME").and_then(|_| words.get(2));
        let renamed = renamed.map(|name| Rc::from(text(name)));
        for list in self.demands(std::slice::from_ref(words)).into_keys().chain(renamed) {
            self.places.spared.remove(&list);
        }
    }

    fn judge(
        &mut self,
        now: Nanos,
        asked: &Asked,
        value: &Value,
        refusal: Option<&Refusal>,
        waited: Option<&(u64, Lined)>,
    ) {
        let demands = self.demands(commands(asked));
        match refusal {
            Some(Refusal::QueueFull(full)) => {
                self.places.counted.held_off += 1;
                self.judge_refusal(now, asked, &demands, full, waited);
            }
            Some(_) => {}
            // A batch that is not performed, since keys that its client observes have changed.
            None if *value == Value::Nil && asked.meant != Meant::Command => {}
            None => {
                for (list, demand) in &demands {
                    assert_eq!(
                        self.lack(list, *demand),
                        None,
                        "{list} has no place: {}",
                        summary(&asked.words)
                    );
                }
                self.judge_turn(&demands, waited.map_or(u64::MAX, |(ticket, _)| *ticket), asked);
                if waited.is_some() {
                    self.places.counted.went_on += u64::from(!self.places.is_cramped);
                    self.places.moved.extend(demands.into_keys().map(|list| (list, now)));
                }
            }
        }
    }

    fn judge_refusal(
        &self,
        now: Nanos,
        asked: &Asked,
        demands: &Demands,
        full: &QueueFull,
        waited: Option<&(u64, Lined)>,
    ) {
        let Places { bounds, block_timeout, moved, .. } = &self.places;
        let (list, said) = (full.queue.as_str(), summary(&asked.words));
        let demand = demands.get(list).unwrap_or_else(|| panic!("{full} is none of {said}"));
        if demand.stored.exceeds(bounds) == Some(full.bound) {
            return;
        }
        let lack = self.lack(list, *demand);
        let is_slow = bounds.target_age.map(Bound::Age) == Some(full.bound);
        let is_behind = || self.is_awaited(list) && bounds.first() == Some(full.bound);
        let is_named = lack == Some(full.bound) || is_slow && self.may_be_slow(list) || is_behind();
        assert!(is_named, "{full} to {said}, though it lacks {lack:?}");
        if !self.places.blocks() || asked.meant != Meant::Command {
            return;
        }
        let (ticket, lined) = waited.unwrap_or_else(|| panic!("{full} to who could wait: {said}"));
        let moved = moved.get(list).copied().filter(|_| !self.places.is_cramped);
        let since = lined.since.max(moved.unwrap_or_default());
        assert!(now >= since + *block_timeout, "{full} to {ticket}, who waits since {since}");
    }

    /// A client that waits for a place goes on before all that came later.
    fn judge_turn(&self, demands: &Demands, ticket: u64, asked: &Asked) {
        let stores_nothing = |words: &Words| {
            let is_move = words.first().is_some_and(|name| name.ends_with(b"MOVE"));
            is_move || self.demands(std::slice::from_ref(words)).is_empty()
        };
        let needs_no_memory = match &asked.meant {
            Meant::Batch(all) => all.iter().all(stores_nothing),
            Meant::Command | Meant::Queued => stores_nothing(&asked.words),
        };
        if self.places.is_cramped && needs_no_memory {
            // It passes by clients that wait for memory.
            return;
        }
        for (earlier, lined) in self.places.lined.range(..ticket) {
            let is_passed = lined.lists.iter().any(|list| demands.contains_key(list));
            let may_be_passed = lined.may_wait_for_element || !lined.is_alone();
            assert!(
                !is_passed || may_be_passed,
                "{earlier} waits longer than {}",
                summary(&asked.words)
            );
        }
    }

    /// The command that a client has waiting.
    fn take_lined(&mut self, client: u64) -> Option<(u64, Lined)> {
        let mut all = self.places.lined.iter();
        let ticket = *all.find(|(_, lined)| lined.client == client)?.0;
        let lined = self.places.lined.remove(&ticket)?;
        assert!(lined.may_wait_for_element, "{client} is answered out of its line: {lined:?}");
        Some((ticket, lined))
    }

    /// The bound that is in the way. A list that sheds has a place for every element that could
    /// ever have one.
    fn lack(&self, list: &str, demand: Demand) -> Option<Bound> {
        let bounds = &self.places.bounds;
        if self.places.sheds() {
            return Amount { messages: 0, bytes: demand.largest }.exceeds(bounds);
        }
        self.keyspace.amount(list).and(demand.stored).exceeds(bounds)
    }

    /// True if a client may wait for a place in a list.
    fn is_awaited(&self, list: &str) -> bool {
        self.places.lined.values().any(|lined| lined.lists.contains(list))
    }

    /// True if elements may wait for longer than they should. How fast they leave is not followed.
    fn may_be_slow(&self, list: &str) -> bool {
        self.places.bounds.target_age.is_some() && self.keyspace.amount(list).messages > 0
    }

    /// Elements that go into bounded lists.
    fn demands(&self, commands: &[Words]) -> Demands {
        let mut demands = Demands::new();
        if self.places.bounds.is_bounded() {
            commands.iter().for_each(|words| self.add_words(words, &mut demands));
        }
        demands
    }

    fn add_words(&self, words: &Words, demands: &mut Demands) {
        let words: Vec<&[u8]> = words.iter().map(|word| &**word).collect();
        match *words.as_slice() {
            [b"LPUSH" | b"RPUSH", list, ref all @ ..] => {
                all.iter().for_each(|bytes| add(demands, list, 1, bytes));
            }
            [b"LPUSHX" | b"RPUSHX", list, ref all @ ..] if self.keyspace.is_list(list) => {
                all.iter().for_each(|bytes| add(demands, list, 1, bytes));
            }
            [b"LINSERT", list, _, _, bytes] => add(demands, list, 1, bytes),
            [b"LSET", list, _, bytes] => add(demands, list, 0, bytes),
            [b"LMOVE" | b"BLMOVE", from, to, side, ..] if from != to => {
                if let Some(bytes) = self.keyspace.outermost(from, side) {
                    add(demands, to, 1, &bytes);
                }
            }
            _ => {}
        }
    }
}

fn commands(asked: &Asked) -> &[Words] {
    match &asked.meant {
        Meant::Command => std::slice::from_ref(&asked.words),
        Meant::Batch(all) => all,
        Meant::Queued => &[],
    }
}

fn add(demands: &mut Demands, list: &[u8], messages: u64, bytes: &[u8]) {
    if redis_workload::LISTS.contains(&text(list)) {
        let demand: &mut Demand = demands.entry(text(list).into()).or_default();
        demand.stored = demand.stored.and(Amount { messages, bytes: bytes.len() as u64 });
        demand.largest = demand.largest.max(bytes.len() as u64);
    }
}
