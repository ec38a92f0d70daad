//! Limited memory: sends that wait for it, and sends that are refused for want of it. The oracle
//! asserts that none waits or is refused while there is some.
//!
//! Parts of transactions wait apart from other sends: for memory, or for the half of it that open
//! transactions have. Sends keep their order, and parts that of their transaction.
//!
//! The moment at which memory is full depends on bytes of indexes. The oracle does not follow
//! these: it asks for the engine's own count. If queues have bounds as well, no reply tells which
//! of the two a send waits for. Then there must be a reason to wait, and no send is refused before
//! its time.

use model::{Command, Nanos, Refusal, Reply, TransactionId};

use super::places::{Sent, Waiting};
use super::{Oracle, Wish};

/// The limit, and the engine's counts.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    limit: u64,
    /// Bytes that it took at most about the last step, and open transactions of these.
    taken: u64,
    uncommitted: u64,
    /// A waiting send may wait for a place.
    beside_bounds: bool,
    /// When a send that waited went on, and a part of a transaction.
    moved: [Nanos; 2],
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            limit: u64::MAX,
            taken: 0,
            uncommitted: 0,
            beside_bounds: false,
            moved: [Nanos::ZERO; 2],
        }
    }
}

impl Memory {
    pub(super) const fn is_limited(&self) -> bool {
        self.limit < u64::MAX
    }

    /// A waiting send has gone on.
    pub(super) fn moves(&mut self, now: Nanos, sent: &Sent) {
        if let Some(moved) = self.moved.get_mut(usize::from(is_part(sent))) {
            *moved = now;
        }
    }

    /// The process fell.
    pub(super) fn clear(&mut self) {
        self.moved = [Nanos::ZERO; 2];
    }

    /// True if there is none for another subscription beside so many queues.
    pub(super) const fn is_crowded(&self, queues: u64) -> bool {
        queues >= self.limit / 2 / QUEUE_BYTES / 2
    }

    /// True if memory may be short with so many bytes taken besides those of waiting sends.
    const fn may_be_short(&self, taken: u64) -> bool {
        taken >= self.limit / 8 * 7
    }

    /// True if that, or open transactions may have no more for a part of so many bytes.
    fn may_be_short_for(&self, taken: u64, sent: &Sent) -> bool {
        let uncommitted = self.uncommitted + waiting_bytes(sent);
        self.may_be_short(taken) || is_part(sent) && uncommitted > self.limit / 2
    }
}

impl Oracle {
    /// The same, where messages may take so many bytes of memory.
    #[must_use]
    pub fn cramped(mut self, limit: u64, beside_bounds: bool) -> Self {
        (self.memory.limit, self.memory.beside_bounds) = (limit, beside_bounds);
        self
    }

    /// A client of Redis was told to wait: for memory, unless it `lacks` a place. Its elements take
    /// so many bytes while it waits.
    ///
    /// # Panics
    /// When there is memory.
    pub fn elements_wait(&mut self, now: Nanos, client: u64, ticket: u64, bytes: u64, lacks: bool) {
        self.begin_step(now);
        let sent = Sent::Elements(bytes);
        if !lacks {
            self.judge_wait(client, &sent);
        }
        self.note_waiting(now, client, ticket, sent);
    }

    /// The outcome of elements that it brings, at once or with a ticket.
    ///
    /// # Panics
    /// When that must not come of it, or not yet.
    pub fn elements_answered(
        &mut self,
        now: Nanos,
        client: u64,
        ticket: Option<u64>,
        bytes: u64,
        reply: &Reply,
    ) {
        self.begin_step(now);
        let waited = ticket.map(|ticket| {
            let waiting = self.places.waiting.remove(&ticket);
            (ticket, waiting.unwrap_or_else(|| panic!("{client} does not wait with {ticket}")))
        });
        let waited = waited.as_ref().map(|(ticket, waiting)| (*ticket, waiting));
        let sent = Sent::Elements(bytes);
        if let Reply::Refused(_) = reply {
            return self.judge_memory(now, client, &sent, reply, waited);
        }
        self.judge_memory(now, client, &sent, &Reply::Done, waited);
        if waited.is_some() {
            self.places.counted.went_on += 1;
            self.memory.moves(now, &sent);
        }
    }

    /// The engine decided the next answer while messages took at most `bytes` of memory, and open
    /// transactions `uncommitted` of these.
    pub fn see_memory(&mut self, bytes: u64, uncommitted: u64) {
        (self.memory.taken, self.memory.uncommitted) = (bytes, uncommitted);
    }

    /// Asserts that no send waits for memory that is there.
    ///
    /// # Panics When one does.
    pub fn assert_kept_in_mind(&self, taken: u64) {
        if self.memory.beside_bounds {
            return;
        }
        let beside = taken.saturating_sub(self.waiting_bytes());
        for parts in [false, true] {
            let mut waiting = self.places.waiting.iter();
            let Some((ticket, first)) = waiting.find(|(_, it)| is_part(&it.sent) == parts) else {
                continue;
            };
            let memory = &self.memory;
            let is_short = !memory.is_limited() || memory.may_be_short_for(beside, &first.sent);
            assert!(is_short, "{ticket} waits though {beside} are taken: {first:?}");
        }
    }

    /// A client is told to wait for memory.
    pub(super) fn judge_wait(&self, client: u64, sent: &Sent) {
        if let Sent::Command(Command::Commit { transaction }) = sent {
            assert!(self.awaits_parts(client, *transaction), "{client} commits what is there");
            return;
        }
        assert!(brings(sent), "{client} need not wait: {sent:?}");
        let others_wait = self.others_wait_like(sent);
        let taken = self.memory.taken;
        let is_short = others_wait || self.memory.may_be_short_for(taken, sent);
        assert!(is_short, "{client} waits though {taken} are taken: {sent:?}");
        let bytes = self.waiting_bytes() + waiting_bytes(sent);
        let may_wait = self.memory.beside_bounds || self.may_all_wait(sent, bytes);
        assert!(may_wait, "{bytes} bytes wait, with {sent:?}");
    }

    /// Judges a refusal or an answer by the memory that there was for the send.
    pub(super) fn judge_memory(
        &mut self,
        now: Nanos,
        client: u64,
        sent: &Sent,
        reply: &Reply,
        waited: Option<(u64, &Waiting)>,
    ) {
        match (reply, waited) {
            (Reply::Refused(Refusal::MemoryFull), _) => {
                assert!(self.memory.is_limited() && brings(sent), "memory is full for {sent:?}");
                self.places.counted.held_off += 1;
                match waited {
                    Some((ticket, waiting)) => self.judge_giving_up(now, ticket, waiting),
                    None => self.judge_too_many(sent),
                }
            }
            (Reply::Stored { .. } | Reply::Done, _) if self.memory.is_limited() => {
                self.judge_turn_for_memory(client, sent, waited.map(|(ticket, _)| ticket));
            }
            _ => {}
        }
    }

    /// A waiting send is refused: its line stood still for so long, and there is no memory.
    fn judge_giving_up(&self, now: Nanos, ticket: u64, waiting: &Waiting) {
        if waiting.is_given_up {
            return;
        }
        let [moved, parts_moved] = self.memory.moved;
        let moved = if is_part(&waiting.sent) { parts_moved } else { moved };
        let moved = if self.memory.beside_bounds { Nanos::ZERO } else { moved };
        let since = waiting.since.max(moved);
        let until = since + self.places.block_timeout;
        assert!(now >= until, "{ticket} has no memory at {now}, and waits since {since}");
        let all = self.waiting_bytes() + waiting_bytes(&waiting.sent);
        // The bytes of sends that wait for a place count as taken.
        let all = if self.memory.beside_bounds { 0 } else { all };
        let beside = self.memory.taken.saturating_sub(all);
        let is_short = self.memory.may_be_short_for(beside, &waiting.sent);
        assert!(is_short, "{ticket} is refused, though {beside} are taken");
    }

    /// A new send is refused at once: waiting sends take all that they may. One may always wait.
    fn judge_too_many(&self, sent: &Sent) {
        let bytes = self.waiting_bytes() + waiting_bytes(sent);
        assert!(!self.may_all_wait(sent, bytes), "{bytes} bytes wait, and {sent:?} may not");
    }

    /// True if the waiting sends and the new one may take so much.
    fn may_all_wait(&self, sent: &Sent, bytes: u64) -> bool {
        !self.others_wait_like(sent) || bytes <= self.memory.limit / 16
    }

    /// True if others wait where this would.
    fn others_wait_like(&self, sent: &Sent) -> bool {
        self.places.waiting.values().any(|it| is_part(&it.sent) == is_part(sent))
    }

    /// No send overtakes another that waits for memory, no part one of its transaction, and no
    /// commit its parts.
    fn judge_turn_for_memory(&self, client: u64, sent: &Sent, ticket: Option<u64>) {
        if let Sent::Command(Command::Commit { transaction }) = sent {
            let is_whole = !self.awaits_parts(client, *transaction);
            assert!(is_whole, "{client} commits a transaction of which parts wait");
        }
        if self.memory.beside_bounds {
            return;
        }
        let mut earlier = self.places.waiting.range(..ticket.unwrap_or(u64::MAX));
        let keeps_order = |waiting: &Waiting| {
            let is_of_same = waiting.client == client
                && waiting.sent.transaction().is_some()
                && waiting.sent.transaction() == sent.transaction();
            is_of_same || !is_part(sent) && !is_part(&waiting.sent)
        };
        let passed = earlier.find(|(_, waiting)| keeps_order(waiting)).filter(|_| brings(sent));
        assert!(passed.is_none(), "{passed:?} waits longer than {sent:?}");
    }

    /// True if something that is to be a part of a transaction waits.
    fn awaits_parts(&self, client: u64, id: TransactionId) -> bool {
        let mut own = self.places.waiting.values().filter(|waiting| waiting.client == client);
        own.any(|waiting| waiting.sent.transaction() == Some(id))
    }

    /// Bytes that waiting sends take in memory.
    fn waiting_bytes(&self) -> u64 {
        self.places.waiting.values().map(|waiting| waiting_bytes(&waiting.sent)).sum()
    }
}

/// True if it is a part of a transaction, or its commit.
pub(super) fn is_part(sent: &Sent) -> bool {
    let commits = matches!(sent, Sent::Command(Command::Commit { .. }));
    commits || sent.transaction().is_some()
}

/// True if it brings something that memory is to keep.
pub(super) const fn brings(sent: &Sent) -> bool {
    let elements = matches!(sent, Sent::Elements(_));
    elements || matches!(sent, Sent::Wish(Wish::Put { .. }) | Sent::Command(Command::PutTo { .. }))
}

/// Bytes of memory that it takes while it waits: see docs/reference/memory.md.
fn waiting_bytes(sent: &Sent) -> u64 {
    let body = match sent {
        Sent::Elements(bytes) => return *bytes,
        Sent::Wish(Wish::Put { body, .. }) => Some(body.len()),
        Sent::Command(Command::PutTo { message, .. }) => Some(message.body.len()),
        _ => None,
    };
    WAITING_BYTES + body.map_or(0, |bytes| bytes as u64 + BODY_BYTES_BESIDE)
}

/// These and [`BODY_BYTES_BESIDE`] are those of the engine.
pub(crate) const WAITING_BYTES: u64 = 512;

const QUEUE_BYTES: u64 = 1_280;

/// The allocator's share of a body.
pub(crate) const BODY_BYTES_BESIDE: u64 = 32;
