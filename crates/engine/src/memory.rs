//! What the engine keeps in memory, and what leaves it.
//!
//! Messages stay; the bodies of journalled ones leave while they need more room than there is, for
//! the log has them. Of the queue that holds the most those go first that are the last to be
//! asked for: the newest, or those that came back for a reader who is far ahead. A body leaves only
//! when its frame can be read back; until then it is in no line, so that it is in nobody's way.
//! Bodies that only memory has stand in the same lines where there is a spill: see `spilling.rs`.
//!
//! Who is given a message whose body is away is given [`model::Away`] instead, and the caller
//! fills that in. Only what looks into bodies itself waits for them here: see `awaited.rs`.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    Away, Body, BodyPlace, Command, KeyCommand, ListCommand, Lsn, MessageId, TransactionId, limits,
};

use crate::awaited::away_of;
use crate::engine::Engine;
use crate::message::{Message, Stored};
use crate::policy::EngineOptions;
use crate::queue::QueueSlot;
use crate::spilling::Spilling;

/// How much there is, and what may leave.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Bytes that everything together may take.
    limit: u64,
    /// And of these, bodies that may leave.
    movable_max: u64,
    /// And of those, what may be here whatever else there is.
    always: u64,
    /// A queue with less than this is not asked to let bodies leave.
    fat_bytes: u64,
    /// Frames up to this one can be read back.
    pub(crate) written: Lsn,
    /// Bytes of bodies that may leave.
    pub(crate) movable: u64,
    /// Bytes of bodies that only memory has, and that do not leave.
    fixed: u64,
    /// Messages whose body has left.
    away: u64,
    /// How often one has begun to be such.
    went: u64,
    /// Queues with bodies in line, by the magnitude of the bytes of all that may leave.
    fat: BTreeSet<(u32, QueueSlot)>,
    /// Messages whose frames could not be read back when they were last looked at, about in the
    /// order of these. Some may be gone, or here twice.
    unwritten: VecDeque<MessageId>,
    /// Bodies whose turn to leave has come, but somebody waits for them and more.
    passed_over: Vec<MessageId>,
    /// Bodies that came since some were last let go.
    came: usize,
    pub(crate) spilling: Spilling,
}

/// The bodies of a queue's messages that are here and may leave.
#[derive(Debug, Default)]
pub(crate) struct Residents {
    /// The last is the first to leave. Some may be gone, or here twice; those are missing that
    /// cannot leave yet.
    line: VecDeque<MessageId>,
    count: usize,
    bytes: u64,
    /// See [`Memory::magnitude`].
    magnitude: u32,
}

impl Residents {
    /// One of the bodies is not here any more. From either end of the queue it leaves an end of the
    /// line, mostly; what is in between stays there until much of the line is gone.
    fn leave_line(&mut self, id: MessageId) {
        if self.line.front() == Some(&id) {
            self.line.pop_front();
        } else if self.line.back() == Some(&id) {
            self.line.pop_back();
        }
        // What a crowd needed is not kept for ever.
        let (capacity, needed) = (self.line.capacity(), 2 * self.line.len());
        if capacity > 2 * (needed + STALE_MAX) {
            self.line.shrink_to(needed);
        }
    }

    /// Too many of the line are gone.
    fn is_stale(&self) -> bool {
        self.line.len() > 2 * self.count + STALE_MAX
    }
}

impl Memory {
    pub(crate) fn new(options: &EngineOptions) -> Self {
        let (limit, movable_max) = (options.memory_limit, options.log_bodies_max);
        Self {
            limit,
            movable_max,
            always: (limit / 8).min(movable_max),
            fat_bytes: (limit.min(movable_max) / 4096).clamp(1, FAT_BYTES_MAX),
            written: Lsn::ZERO,
            movable: 0,
            fixed: 0,
            away: 0,
            went: 0,
            fat: BTreeSet::new(),
            unwritten: VecDeque::new(),
            passed_over: Vec::new(),
            came: 0,
            spilling: Spilling::new(options.spills),
        }
    }

    /// What those may take who wait for memory, beside what all else may.
    pub(crate) const fn awaiting_bytes_max(&self) -> u64 {
        self.limit / 16
    }

    /// Bytes of bodies that may be here beside so many that do not leave.
    fn movable_beside(&self, resting: u64) -> u64 {
        self.limit.saturating_sub(resting).max(self.limit / 8).min(self.movable_max)
    }

    /// Whether any body has left.
    pub(crate) const fn has_away(&self) -> bool {
        self.away > 0
    }

    /// Zero where nothing is in line, or too little to look for: queues come and go with a few
    /// messages all the time.
    fn magnitude(&self, residents: &Residents) -> u32 {
        let bytes = if residents.line.is_empty() { 0 } else { residents.bytes };
        u64::BITS - (bytes / self.fat_bytes).leading_zeros()
    }

    /// What may leave of a queue has changed.
    fn weigh(&mut self, slot: QueueSlot, residents: &mut Residents) {
        let magnitude = self.magnitude(residents);
        let before = core::mem::replace(&mut residents.magnitude, magnitude);
        if before != magnitude {
            self.fat.remove(&(before, slot));
            if magnitude > 0 {
                self.fat.insert((magnitude, slot));
            }
        }
    }
}

/// Whether a command brings something that memory is to keep.
pub(crate) fn adds(command: &Command) -> bool {
    match command {
        Command::Put { .. } | Command::PutTo { .. } | Command::Publish { .. } => true,
        Command::List(command) => matches!(
            command,
            ListCommand::Push { .. }
                | ListCommand::PushEach { .. }
                | ListCommand::Insert { .. }
                | ListCommand::Replace { .. }
        ),
        Command::Key(command) => matches!(command, KeyCommand::SetValue { .. }),
        Command::Batch { commands } => commands.iter().any(adds),
        _ => false,
    }
}

/// The transaction that it is a part of.
pub(crate) const fn transaction_of(command: &Command) -> Option<TransactionId> {
    match command {
        Command::Put { transaction, .. } | Command::PutTo { transaction, .. } => *transaction,
        _ => None,
    }
}

/// What a command takes while it waits for a place. A commit has its messages in a transaction,
/// which counts them.
pub(crate) fn waiting_bytes(command: &Command) -> u64 {
    let bodies = match command {
        Command::Put { message, .. }
        | Command::PutTo { message, .. }
        | Command::Publish { message, .. } => charge(message.body.len()),
        Command::List(command) => match command {
            ListCommand::Push { elements, .. } | ListCommand::PushEach { elements, .. } => {
                elements.iter().map(|it| charge(it.len())).sum()
            }
            ListCommand::Insert { pivot, element, .. } => {
                charge(pivot.len()) + charge(element.len())
            }
            ListCommand::Replace { element, .. } => charge(element.len()),
            _ => 0,
        },
        Command::Key(command) => charge(command.value_bytes()),
        Command::Batch { commands } => commands.iter().map(waiting_bytes).sum(),
        _ => 0,
    };
    WAITING_BYTES + bodies
}

/// What a body in memory takes, with what the allocator adds.
pub(crate) const fn charge(bytes: usize) -> u64 {
    bytes as u64 + BODY_BYTES_BESIDE
}

impl Engine {
    /// Tells up to which frame the log can be read back. Bodies leave memory now, where it is too
    /// full.
    pub fn set_written(&mut self, written: Lsn) {
        if written > self.memory.written {
            self.memory.written = written;
            self.line_up_written();
        }
        self.trim();
    }

    /// Bytes of memory that messages take, with those of transactions that are open.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.movable + self.resting_bytes()
    }

    /// How often a body has left memory, or come into a queue from elsewhere without being in it.
    #[must_use]
    pub fn went_away(&self) -> u64 {
        self.memory.went
    }

    /// Whether any message's body has left memory: an answer may then name it in place of its
    /// bytes.
    #[must_use]
    pub const fn has_away(&self) -> bool {
        self.memory.has_away()
    }

    /// How many bodies have left memory.
    #[must_use]
    pub const fn away(&self) -> u64 {
        self.memory.away
    }

    /// Whether who waits for memory goes on waiting: for what is taken, or for what leaves.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.is_memory_full() || self.waits_for_spill()
    }

    /// Whether nothing new is taken: all that may leave memory could not make room for it. Those
    /// who wait for it do not count.
    pub(crate) fn is_memory_full(&self) -> bool {
        let limit = self.memory.limit;
        let stuck = self.stuck_bytes();
        // What may leave does so in steps, each larger than what one command brings.
        let is_stuck = (stuck > limit / 4 && self.memory.fat.is_empty()) || stuck > limit / 2;
        let resting = self.resting_bytes() - self.pacing.for_memory_bytes;
        resting + self.memory.spilling.stuck_bytes() >= limit / 8 * 7 || is_stuck
    }

    /// Whether memory surely takes all of these one by one, and is not full before the last.
    pub(crate) fn surely_keeps(&self, bodies: &[Arc<[u8]>]) -> bool {
        let limit = self.memory.limit;
        let bytes: u64 = bodies.iter().map(|body| MESSAGE_BYTES + charge(body.len())).sum();
        let resting = self.resting_bytes() + self.memory.spilling.stuck_bytes();
        resting + bytes < limit / 8 * 7 && self.stuck_bytes() + bytes <= limit / 4
    }

    /// Whether much of what should have left is here.
    pub(crate) fn is_crowded(&self) -> bool {
        self.stuck_bytes() > self.memory.limit / 8
    }

    /// Bytes that should have left, but for the sake of those who wait for memory: these would
    /// wait for themselves.
    fn stuck_bytes(&self) -> u64 {
        let resting = self.resting_bytes() - self.pacing.for_memory_bytes;
        self.memory.movable.saturating_sub(self.memory.movable_beside(resting))
    }

    /// What does not leave.
    fn resting_bytes(&self) -> u64 {
        let messages = self.messages.len() as u64 * MESSAGE_BYTES;
        let beside = self.pacing.memory_bytes + self.queues.memory_bytes();
        let places = self.memory.spilling.places_bytes();
        self.memory.fixed + messages + places + beside + self.totals.uncommitted_bytes as u64
    }

    /// A message comes into its queue.
    pub(crate) fn settle_in(&mut self, id: MessageId, message: &Message) {
        self.settle_at(id, message, VecDeque::push_back);
    }

    fn settle_at(&mut self, id: MessageId, message: &Message, push: Push) {
        let Stored::Here(body) = &message.body else {
            self.memory.away += 1;
            self.memory.went += 1;
            if let Some(BodyPlace::Spill(place)) = message.place() {
                self.memory.spilling.lies(place, id);
            }
            return;
        };
        let bytes = charge(body.len());
        if !self.may_leave(message) {
            self.memory.fixed += bytes;
            return;
        }
        let slot = message.queue;
        self.memory.movable += bytes;
        self.memory.came += 1;
        let is_written = self.is_written(message);
        if !message.is_journalled() {
            self.memory.spilling.settle(id, bytes);
        }
        let is_in_line = is_written && !self.memory.spilling.is_leaving(id);
        self.change_residents(slot, |residents| {
            residents.bytes += bytes;
            residents.count += 1;
            if is_in_line {
                push(&mut residents.line, id);
            }
        });
        if !is_written {
            self.memory.unwritten.push_back(id);
        }
    }

    /// Whether its body may be elsewhere one day.
    fn may_leave(&self, message: &Message) -> bool {
        message.is_journalled() || self.memory.spilling.is_there()
    }

    /// Whether the log has nothing to write before its body may leave.
    fn is_written(&self, message: &Message) -> bool {
        !message.is_journalled() || message.location <= self.memory.written
    }

    /// A message goes out of its queue.
    pub(crate) fn move_out(&mut self, id: MessageId, message: &Message) {
        let Stored::Here(body) = &message.body else {
            self.memory.away -= 1;
            self.awaited.has_left(away_of(id, message));
            if let Some(BodyPlace::Spill(place)) = message.place() {
                self.memory.spilling.lies_no_more(place);
            }
            return;
        };
        let bytes = charge(body.len());
        if !self.may_leave(message) {
            self.memory.fixed -= bytes;
            return;
        }
        if !message.is_journalled() {
            self.memory.spilling.move_out(id, bytes);
        }
        self.memory.movable -= bytes;
        self.change_residents(message.queue, |residents| {
            residents.bytes -= bytes;
            residents.count -= 1;
            residents.leave_line(id);
        });
    }

    fn change_residents(&mut self, slot: QueueSlot, change: impl FnOnce(&mut Residents)) {
        let Self { queues, memory, .. } = self;
        let residents = &mut queues.at_mut(slot).residents;
        change(residents);
        memory.weigh(slot, residents);
        if residents.is_stale() {
            self.drop_stale(slot);
        }
    }

    /// A body that was here already gets its place in line.
    fn line_up_to_leave(&mut self, id: MessageId) {
        let Some(message) = self.messages.get(id.0) else { return };
        let slot = message.queue;
        if self.is_at_home(message) {
            self.line_up_at(slot, id);
        }
    }

    fn line_up_at(&mut self, slot: QueueSlot, id: MessageId) {
        let Self { queues, memory, .. } = self;
        let residents = &mut queues.at_mut(slot).residents;
        residents.line.push_back(id);
        if residents.line.len() == 1 {
            memory.weigh(slot, residents);
        }
        if residents.is_stale() {
            self.drop_stale(slot);
        }
    }

    /// Whether its body is here, and may leave.
    fn is_at_home(&self, message: &Message) -> bool {
        self.may_leave(message) && message.body.here().is_some()
    }

    /// What has been written since may leave now.
    fn line_up_written(&mut self) {
        while let Some(id) = self.memory.unwritten.front().copied() {
            let message = self.messages.get(id.0);
            if message.is_some_and(|message| !self.is_written(message)) {
                break;
            }
            let slot = message.filter(|message| self.is_at_home(message)).map(|it| it.queue);
            self.memory.unwritten.pop_front();
            if let Some(slot) = slot {
                self.line_up_at(slot, id);
            }
        }
    }

    /// What nobody waits for any more may leave.
    pub(crate) fn let_go(&mut self) {
        let passed_over = core::mem::take(&mut self.memory.passed_over);
        let (kept, free): (Vec<_>, Vec<_>) =
            passed_over.into_iter().partition(|id| self.awaited.keeps(*id));
        self.memory.passed_over = kept;
        for id in free.into_iter().rev() {
            self.line_up_to_leave(id);
        }
    }

    /// What a reader gets for the body of a message.
    pub(crate) fn body_of(id: MessageId, message: &Message) -> Body {
        match &message.body {
            Stored::Here(body) => Body::Here(Arc::clone(body)),
            Stored::Away { bytes } => {
                let (place, message) = away_of(id, message);
                Body::Away(Away { place, message, bytes: *bytes })
            }
        }
    }

    /// The body of a message that is away has come.
    pub(crate) fn bring(&mut self, id: MessageId, body: Arc<[u8]>) {
        // Whoever reads on asks for it before others.
        self.bring_to(id, body, VecDeque::push_front);
    }

    /// It is known whether its body is here, where nobody reads yet: the log has it.
    pub(crate) fn replace_body(&mut self, id: MessageId, body: Stored) {
        self.with_body(id, VecDeque::push_back, |message| message.body = body);
    }

    fn bring_to(&mut self, id: MessageId, body: Arc<[u8]>, push: Push) {
        let mut vacated = None;
        self.with_body(id, push, |message| {
            message.body = Stored::Here(body);
            if !message.is_journalled() {
                vacated = message.set_spilled(None);
            }
        });
        self.memory.spilling.vacate(vacated);
    }

    /// Lets bodies leave until the rest fits, as far as they can be read back: more than came, and
    /// no more than do not hold up others.
    pub(crate) fn trim(&mut self) {
        let came = core::mem::take(&mut self.memory.came);
        if self.memory.movable <= self.memory.always && !self.memory.spilling.keeps_back() {
            return;
        }
        let most = BODIES_PER_TRIM + 2 * came;
        for id in self.memory.spilling.take_kept_back(most) {
            self.line_up_to_leave(id);
        }
        let mut passed = 0;
        while self.is_beyond_movable()
            && passed < most
            && let Some((_, slot)) = self.memory.fat.last().copied()
        {
            passed += 1;
            self.put_away_last(slot);
        }
        self.took_steps(passed);
    }

    /// Whether there are bodies to leave, and they are in line.
    pub(crate) fn may_trim(&self) -> bool {
        self.is_beyond_movable() && !self.memory.fat.is_empty()
    }

    fn is_beyond_movable(&self) -> bool {
        self.memory.movable - self.memory.spilling.leaving_bytes > self.movable_max()
    }

    /// Bytes of bodies that may be here: what the rest leaves, and never nothing.
    pub(crate) fn movable_max(&self) -> u64 {
        self.memory.movable_beside(self.resting_bytes())
    }

    /// The last of a queue's bodies leaves, or waits elsewhere until it can: its frame may have
    /// been stored anew, or somebody waits for it.
    fn put_away_last(&mut self, slot: QueueSlot) {
        let mut last = None;
        self.change_residents(slot, |residents| last = residents.line.pop_back());
        let id = last.expect("invariant: a queue that is asked has bodies in line");
        if !self.is_resident(slot, id) {
            return;
        }
        let message = self.living(id);
        let bytes = message.body.len();
        if !self.is_written(message) {
            self.memory.unwritten.push_back(id);
        } else if self.awaited.keeps(id) {
            self.memory.passed_over.push(id);
        } else if message.is_journalled() {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            let leave = |message: &mut Message| message.body = Stored::Away { bytes };
            self.with_body(id, VecDeque::push_back, leave);
        } else {
            self.memory.spilling.begin(id, charge(bytes));
        }
    }

    /// Gives a message its body in another form.
    pub(crate) fn with_body(
        &mut self,
        id: MessageId,
        push: Push,
        change: impl FnOnce(&mut Message),
    ) {
        let Some(mut message) = self.messages.remove(id.0) else { return };
        self.move_out(id, &message);
        change(&mut message);
        self.settle_at(id, &message, push);
        self.messages.insert(id.0, message);
    }

    fn is_resident(&self, slot: QueueSlot, id: MessageId) -> bool {
        let message = self.messages.get(id.0);
        message.is_some_and(|message| message.queue == slot && self.is_at_home(message))
    }

    /// Whoever is gone is in line no more.
    fn drop_stale(&mut self, slot: QueueSlot) {
        let residents = &mut self.queues.at_mut(slot).residents;
        let line = core::mem::take(&mut residents.line);
        let mut seen = BTreeSet::new();
        let mut kept: VecDeque<_> =
            line.into_iter().filter(|id| self.is_resident(slot, *id) && seen.insert(*id)).collect();
        kept.shrink_to(2 * kept.len() + STALE_MAX);
        self.took_steps(kept.len() / 16);
        let Self { queues, memory, .. } = self;
        let residents = &mut queues.at_mut(slot).residents;
        residents.line = kept;
        memory.weigh(slot, residents);
    }

    /// What is counted is what is there.
    ///
    /// # Panics
    /// When it is not.
    pub(crate) fn check_memory(&self) {
        let (mut away, mut fixed) = (0, 0);
        let mut residents = alloc::collections::BTreeMap::<QueueSlot, (usize, u64)>::new();
        for (_, message) in self.messages.iter_from(0) {
            match &message.body {
                Stored::Away { .. } => away += 1,
                Stored::Here(body) if self.may_leave(message) => {
                    let (count, bytes) = residents.entry(message.queue).or_default();
                    *count += 1;
                    *bytes += charge(body.len());
                }
                Stored::Here(body) => fixed += charge(body.len()),
            }
        }
        assert_eq!((away, fixed), (self.memory.away, self.memory.fixed), "bodies are counted");
        let all: u64 = residents.values().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, self.memory.movable, "bodies that may leave are counted");
        let mut lined: BTreeSet<_> = self.memory.unwritten.iter().copied().collect();
        lined.extend(&self.memory.passed_over);
        lined.extend(self.queues.iter().flat_map(|(_, queue)| &queue.residents.line));
        for (id, message) in self.messages.iter_from(0) {
            let may_leave = self.may_leave(message) && message.body.here().is_some();
            let id = MessageId(id);
            let is_known = || lined.contains(&id) || self.memory.spilling.knows(id);
            assert!(!may_leave || is_known(), "no body stays for good");
        }
        for (slot, queue) in self.queues.iter() {
            let Residents { line, count, bytes, magnitude: weighed } = &queue.residents;
            let found = residents.remove(&slot).unwrap_or_default();
            assert_eq!((*count, *bytes), found, "bodies of {} are counted", queue.name);
            assert!(line.len() <= 2 * count + STALE_MAX, "lines are short");
            let magnitude = self.memory.magnitude(&queue.residents);
            assert_eq!(magnitude, *weighed, "queues are weighed");
            let is_fat = self.memory.fat.contains(&(magnitude, slot));
            assert_eq!(is_fat, magnitude > 0, "queues with bodies are known");
        }
        assert!(residents.is_empty(), "bodies are of queues");
        self.check_spilling();
    }
}

/// Where in a line.
pub(crate) type Push = fn(&mut VecDeque<MessageId>, MessageId);

/// The most that is left to a queue without asking it.
const FAT_BYTES_MAX: u64 = 4096;

/// A message in memory, with its places in the indexes, but for its body.
const MESSAGE_BYTES: u64 = 128;

/// A command that waits for a place, with its places in lines, but for bodies.
const WAITING_BYTES: u64 = 512;

/// The allocator's share of a body, and its counts.
const BODY_BYTES_BESIDE: u64 = 32;

/// Bodies that one call lets leave, beside twice as many as came since the call before: some 0.2
/// ms.
const BODIES_PER_TRIM: usize = 1024;

/// Entries of a line that may be stale, beside as many as are not.
const STALE_MAX: usize = 64;

const _: () = assert!(limits::MESSAGE_BYTES_MAX <= u32::MAX as usize, "a length fits");

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever takes from an end takes the end of the line along, and its memory in time.
    #[test]
    fn what_leaves_in_order_leaves_nothing_in_line() {
        let mut residents = Residents::default();
        residents.line.extend((1..=10_000).map(MessageId));
        for id in 1..=4_000 {
            residents.leave_line(MessageId(id));
            residents.leave_line(MessageId(10_001 - id));
        }
        assert_eq!(residents.line, (4_001..=6_000).map(MessageId).collect::<VecDeque<_>>());
        assert!(residents.line.capacity() <= 4 * 2_000 + 2 * STALE_MAX);
        residents.leave_line(MessageId(5_000));
        assert_eq!(residents.line.len(), 2_000, "it is in between");
    }
}
