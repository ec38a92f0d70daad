//! Frames in the making: positions, levels, and the room that is left.

pub(crate) mod claim;
pub(crate) mod effects;
pub(crate) mod usage;

use model::{
    Capacity, DependsOn, Durability, LiveRecords, Lsn, Persistence, Refusal, Reply, StorePolicy,
    limits,
};
use records::{CHANGED_BYTES_MAX, RecordView, encode};

use claim::Claim;

use crate::outcome::Outcome;
use crate::{Effects, FrameEnd};

#[derive(Debug)]
pub(crate) struct FrameWriter {
    policy: StorePolicy,
    /// The last whole frame.
    last: Lsn,
    /// Bytes that puts may still use.
    room: u64,
    /// Bytes that one call may append for messages that are stored already.
    settling_room: usize,
    /// The largest frame that the journal takes.
    frame_bytes_max: usize,
    /// The position that covers all frames that were appended here.
    after_last: DependsOn,
    open: OpenFrame,
    /// The chain that the open frame belongs to.
    chain: Option<Chain>,
    spent: CallUsage,
}

/// The part of the room at the start of a call that the call has used.
#[derive(Clone, Copy, Debug, Default)]
struct CallUsage {
    /// Of the frames that have ended.
    frames_bytes: usize,
    /// Of these and the open one, bytes that no put has used.
    unstored_bytes: u64,
    /// Something was put off to the next call.
    defers: bool,
}

/// Frames that take effect together, with the last.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: Lsn,
    /// How many frames were there before it.
    frames: usize,
    /// The start of the open frame's Chained record, in bytes of [`Effects::records`].
    head: usize,
}

/// The frame that records are being appended to.
#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    records: usize,
    records_max: usize,
    /// The records that may come are known, and there is room for them.
    is_whole: bool,
    /// The most that these come to.
    claimed: Claim,
    bytes: usize,
    level: Durability,
    live: LiveRecords,
}

/// Why a record is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The journal has no room for it until space returns.
    InLog,
    /// The frame would be larger than the journal takes.
    InFrame,
}

impl From<NoRoom> for Refusal {
    fn from(no_room: NoRoom) -> Self {
        match no_room {
            NoRoom::InLog => Self::StoreFull,
            NoRoom::InFrame => Self::BatchTooLarge,
        }
    }
}

/// The state before records that may be taken back were appended.
#[derive(Debug)]
pub(crate) struct Draft {
    open: OpenFrame,
    start: usize,
    frames: usize,
    last: Lsn,
    after_last: DependsOn,
    room: u64,
    spent: CallUsage,
}

/// The place of a record in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) lsn: Lsn,
    pub(crate) bytes: u32,
}

impl FrameWriter {
    pub(crate) fn new(policy: StorePolicy, frame_bytes_max: usize) -> Self {
        Self {
            policy,
            frame_bytes_max,
            last: Lsn::ZERO,
            room: Capacity::UNBOUNDED.room_bytes,
            settling_room: Capacity::UNBOUNDED.settling_bytes,
            after_last: DependsOn::new(Lsn::ZERO, policy.durability(Persistence::Persistent)),
            open: OpenFrame::default(),
            chain: None,
            spent: CallUsage::default(),
        }
    }

    /// How durable a message of this persistence is to be.
    pub(crate) fn durability(&self, persistence: Persistence) -> Durability {
        self.policy.durability(persistence)
    }

    /// True if nothing is journalled.
    pub(crate) fn keeps_nothing(&self) -> bool {
        self.policy == StorePolicy::Memory
    }

    /// The durability of records about keys.
    pub(crate) fn key_level(&self) -> Durability {
        self.durability(Persistence::Persistent)
    }

    /// The last whole frame.
    pub(crate) const fn last(&self) -> Lsn {
        self.last
    }

    /// Recovery has found this to be the last frame.
    pub(crate) fn recover(&mut self, last: Lsn) {
        assert!(self.is_sealed(), "recovery writes nothing");
        assert!(last >= self.last, "frames are numbered once");
        self.last = last;
    }

    /// Bytes that puts may still use, by the capacity that was set last.
    pub(crate) const fn room(&self) -> u64 {
        self.room
    }

    /// Something else than a put takes some of that.
    pub(crate) const fn use_room(&mut self, bytes: u64) {
        self.room = self.room.saturating_sub(bytes);
    }

    /// The largest frame that the journal takes.
    pub(crate) const fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    /// Sets the room of the next call.
    pub(crate) fn set_capacity(&mut self, capacity: &Capacity) {
        self.room = capacity.room_bytes;
        self.settling_room = capacity.settling_bytes.min(limits::SETTLED_BYTES_ALWAYS);
    }

    /// A call begins, with the room that was set last.
    pub(crate) fn begin_call(&mut self) {
        assert!(self.is_sealed(), "a call ends what it begins");
        self.spent = CallUsage::default();
    }

    /// Appends a record of something new if there is room for it.
    pub(crate) fn store(
        &mut self,
        record: &RecordView<'_>,
        level: Durability,
        effects: &mut Effects,
    ) -> Result<Placed, NoRoom> {
        self.store_beside(record, 0, level, effects)
    }

    /// The same if there is room for so many bytes more, of another record that follows.
    pub(crate) fn store_beside(
        &mut self,
        record: &RecordView<'_>,
        more_bytes: usize,
        level: Durability,
        effects: &mut Effects,
    ) -> Result<Placed, NoRoom> {
        let bytes = self.write(record, effects);
        // In a chain the other may be in the next frame.
        let needed = if self.chain.is_some() { bytes } else { bytes + more_bytes };
        // For a chain there is room, or it does not begin.
        let no_room = if self.open.bytes + needed > self.frame_bytes_max {
            Some(NoRoom::InFrame)
        } else {
            (self.chain.is_none() && needed as u64 > self.room_left()).then_some(NoRoom::InLog)
        };
        if let Some(no_room) = no_room {
            effects.records.truncate(effects.records.len() - bytes);
            return Err(no_room);
        }
        self.room = self.room.saturating_sub(bytes as u64);
        Ok(self.place(bytes, live(record, bytes), level))
    }

    /// Appends a record of a message that is stored already; puts leave room for these.
    pub(crate) fn append(
        &mut self,
        record: &RecordView<'_>,
        level: Durability,
        effects: &mut Effects,
    ) -> Placed {
        let bytes = self.write(record, effects);
        self.spent.unstored_bytes += bytes as u64;
        self.place(bytes, live(record, bytes), level)
    }

    /// The record's bytes behind those of the frame; in a chain, of the frame that takes it.
    fn write(&mut self, record: &RecordView<'_>, effects: &mut Effects) -> usize {
        self.head(effects);
        let start = effects.records.len();
        encode(record, &mut effects.records);
        let bytes = effects.records.len() - start;
        let is_full = self.open.bytes + bytes > self.chain_frame_bytes();
        if self.chain.is_some() && self.open.records > 0 && is_full {
            effects.records.truncate(start);
            self.cut(effects);
            self.head(effects);
            encode(record, &mut effects.records);
        }
        bytes
    }

    /// Ends the frame, if one has begun.
    pub(crate) fn seal(&mut self, effects: &mut Effects) {
        assert!(self.chain.is_none(), "a chain ends before anything else is done");
        self.end_frame(effects);
    }

    fn end_frame(&mut self, effects: &mut Effects) {
        let OpenFrame { records, level, live, bytes, .. } = core::mem::take(&mut self.open);
        if records == 0 {
            return;
        }
        self.spent.frames_bytes += bytes + FRAME_OVERHEAD_BYTES;
        self.spent.unstored_bytes += FRAME_OVERHEAD_BYTES as u64;
        self.last = self.last.next();
        self.after_last = DependsOn::new(self.last, level);
        let end = effects.records.len();
        effects.frames.push(FrameEnd { end, lsn: self.last, level, live });
    }

    /// The position that an answer waits for if it may reflect any change so far. It is the last
    /// frame, as durable as that frame itself asks. The log grows durable in order, and a frame
    /// counts as written only when it is as durable as it asks. So every frame before is by then as
    /// durable as it has to be.
    pub(crate) fn after_all(&self) -> DependsOn {
        if self.is_sealed() {
            return self.after_last;
        }
        DependsOn::new(self.last.next(), self.open.level)
    }

    /// An answer that waits until all is on the device, if this store ever syncs.
    pub(crate) fn synced(&self) -> Outcome {
        let after = self.after_all();
        // Only this policy syncs each frame that is written. By another one the answers before say
        // how durable a client's changes are.
        let is_synced = matches!(self.policy, StorePolicy::Periodic(_));
        let is_logged = after.level != Durability::None;
        let level = if is_synced && is_logged { Durability::Synced } else { after.level };
        Outcome::reply(DependsOn::new(after.lsn, level), Reply::Done)
    }

    /// The position that covers all of the open frame; nothing if there is none.
    pub(crate) fn after_open(&self) -> DependsOn {
        if self.is_sealed() {
            DependsOn::NOTHING
        } else {
            DependsOn::new(self.last.next(), self.open.level)
        }
    }

    /// The position that answers to settlements in the open frame wait for. If a settled message
    /// went with its subscription, the record of that end has to be durable. It is somewhere
    /// before.
    pub(crate) fn after_settling(&self, has_gone: bool) -> DependsOn {
        if has_gone { self.after_all() } else { self.after_open() }
    }

    /// Begins a frame that holds a whole transaction. `reserved_bytes` of it are left for the
    /// records that follow those of stored messages.
    pub(crate) fn begin_transaction(&mut self, reserved_bytes: usize, effects: &Effects) -> Draft {
        assert!(self.is_sealed(), "a transaction is a frame of its own");
        let draft = self.draft(effects);
        self.widen();
        self.open.bytes = reserved_bytes;
        // The messages that it stores may use none of the bytes that it needs for the rest of the
        // frame.
        self.room = self.room.saturating_sub(reserved_bytes as u64);
        draft
    }

    /// Begins the frames of a whole transaction: they take effect together.
    pub(crate) fn begin_chain(&mut self, effects: &Effects) -> Draft {
        assert!(self.is_sealed(), "a chain begins with a frame");
        let draft = self.draft(effects);
        self.widen();
        let frames = effects.frames.len();
        self.chain = Some(Chain { first: self.last.next(), frames, head: 0 });
        draft
    }

    /// Ends the chain that has begun, if one has; tells whether it came to any frame. All frames
    /// are as durable as the most demanding asks, so that an answer that waits for the last waits
    /// for all.
    pub(crate) fn end_chain(&mut self, effects: &mut Effects) -> bool {
        let Some(chain) = self.chain.take() else { return false };
        if self.is_sealed() {
            self.open = OpenFrame::default();
            return false;
        }
        records::end_chain(&mut effects.records, chain.head);
        let level = self.open.level;
        self.end_frame(effects);
        for frame in effects.frames.iter_mut().skip(chain.frames) {
            frame.level = level;
        }
        true
    }

    /// The open frame may hold as many records as that of a transaction.
    pub(crate) fn widen(&mut self) {
        self.open.records_max = limits::TRANSACTION_RECORDS_MAX;
    }

    /// Takes back all that was appended since, in the same frame or in frames of one transaction.
    pub(crate) fn take_back(&mut self, draft: &Draft, effects: &mut Effects) {
        effects.records.truncate(draft.start);
        effects.frames.truncate(draft.frames);
        (self.last, self.after_last, self.room) = (draft.last, draft.after_last, draft.room);
        self.spent = draft.spent;
        self.open = draft.open;
        self.chain = None;
    }

    /// Bytes at which the frames of a chain are cut: a batch's worth, that several can be under way
    /// and little is left over at the end of a segment.
    pub(crate) fn chain_frame_bytes(&self) -> usize {
        self.frame_bytes_max.min(CHAIN_FRAME_BYTES)
    }

    /// How things stand now, outside of a chain.
    pub(crate) fn draft(&self, effects: &Effects) -> Draft {
        assert!(self.chain.is_none(), "frames of a chain go together");
        Draft {
            open: self.open,
            start: effects.records.len(),
            frames: effects.frames.len(),
            last: self.last,
            after_last: self.after_last,
            room: self.room,
            spent: self.spent,
        }
    }

    /// Ends a frame of the chain behind which another follows.
    fn cut(&mut self, effects: &mut Effects) {
        let OpenFrame { records_max, level, .. } = self.open;
        self.end_frame(effects);
        self.open = OpenFrame { records_max, level, ..OpenFrame::default() };
    }

    /// Begins a frame of the chain with the record that says so.
    fn head(&mut self, effects: &mut Effects) {
        let is_begun = self.open.bytes > 0;
        let Some(chain) = self.chain.as_mut().filter(|_| !is_begun) else { return };
        chain.head = effects.records.len();
        encode(&RecordView::Chained { first: chain.first, more: true }, &mut effects.records);
        self.open.bytes = effects.records.len() - chain.head;
    }

    /// Ends the open frame if it could not take one more record of so many bytes. Only for calls
    /// with changes that need not take effect at once.
    pub(crate) fn make_way(&mut self, bytes: usize, effects: &mut Effects) {
        let is_full = self.open.records == self.open.records_max;
        if is_full || self.open.bytes + bytes > self.frame_bytes_max {
            self.seal(effects);
        }
    }

    /// Makes way for so many records of messages that are stored already, of so many bytes. If the
    /// open frame does not take them, they go into a frame of their own. False if this call has no
    /// room for that: they have to wait for the next, in which nothing comes before them.
    pub(crate) fn makes_way(
        &mut self,
        records: usize,
        bytes: usize,
        effects: &mut Effects,
    ) -> bool {
        if self.takes_more(records, bytes) {
            return true;
        }
        let left = self.settling_bytes_max().saturating_sub(self.open.bytes);
        if bytes + FRAME_OVERHEAD_BYTES > left {
            self.defer();
            return false;
        }
        self.seal(effects);
        true
    }

    /// Something is put off to the next call; and so is all else that can be.
    pub(crate) fn defer(&mut self) {
        assert!(!self.is_unspent(), "a call does something");
        self.spent.defers = true;
    }

    /// Nothing was appended in this call.
    pub(crate) fn is_unspent(&self) -> bool {
        self.is_sealed() && self.spent.frames_bytes == 0
    }

    /// Bytes that puts may still use in this call. Bytes of its settlements do not count: they were
    /// to come out of the room that is kept for that.
    pub(crate) fn room_left(&self) -> u64 {
        self.room.saturating_sub(self.spent.unstored_bytes)
    }

    /// True if records of messages that are stored already, so many bytes of them in one command,
    /// surely find room. A full device keeps some for them, but not for any number.
    pub(crate) fn surely_takes(&self, bytes: usize) -> bool {
        let bytes = self.spent.frames_bytes.saturating_add(bytes);
        bytes as u64 <= self.room || bytes <= self.settling_room
    }

    /// True if work that goes on by itself, as time passes or a session ends, may change one more
    /// message in this call. The rest follows in the next calls.
    pub(crate) fn takes_change(&self) -> bool {
        let bytes_max = self.settling_room.min(self.frame_bytes_max);
        let bytes = self.spent.frames_bytes + self.open.bytes + CHANGED_BYTES_MAX;
        let has_room = !self.spent.defers && bytes <= bytes_max;
        self.open.is_whole || has_room && self.open.records < limits::FRAME_RECORDS_MAX
    }

    /// Bytes of another frame that this call may append.
    pub(crate) fn bytes_left_in_call(&self) -> usize {
        let bytes_max = self.settling_room.min(self.frame_bytes_max);
        bytes_max.saturating_sub(self.spent.frames_bytes + self.open.bytes + FRAME_OVERHEAD_BYTES)
    }

    /// True if the open frame takes so many bytes more.
    pub(crate) const fn holds(&self, bytes: usize) -> bool {
        self.open.bytes.saturating_add(bytes) <= self.frame_bytes_max
    }

    /// True if the open frame takes so many more records of messages that are stored already, of so
    /// many bytes together. The first of a call always find their room.
    pub(crate) fn takes_more(&self, records: usize, bytes: usize) -> bool {
        self.is_unspent()
            || self.open.is_whole
            || self.open.records + records <= self.open.records_max
                && self.open.bytes + bytes <= self.settling_bytes_max()
    }

    /// Bytes of records of stored messages that the open frame surely has room for.
    pub(crate) fn settling_bytes_max(&self) -> usize {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let call_bytes = self.frame_bytes_max.min(room.max(self.settling_room));
        call_bytes.saturating_sub(self.spent.frames_bytes)
    }

    /// The open frame has room for all of a batch.
    pub(crate) fn is_whole(&self) -> bool {
        self.open.is_whole
    }

    /// Begins a frame that holds a whole batch: the batch has checked that it fits.
    pub(crate) fn begin_batch(&mut self) {
        assert!(self.is_sealed() && !self.is_whole(), "a batch is a frame of its own");
        self.widen();
        self.open.is_whole = true;
    }

    /// The records that may follow in the frame are not of the batch.
    pub(crate) fn end_batch(&mut self) {
        let Claim { stored_bytes, settled_bytes, records, .. } = self.open.claimed;
        let claimed = stored_bytes.saturating_add(settled_bytes);
        // A command that is a frame of its own has not claimed it.
        let is_within = self.open.records <= records && self.open.bytes <= claimed;
        debug_assert!(records == 0 || is_within, "a batch comes to no more than it claims");
        self.open.is_whole = false;
        self.open.claimed = Claim::default();
    }

    /// Commands of the batch may come to so much more.
    pub(crate) fn add_claim(&mut self, claim: Claim) {
        assert!(self.is_whole(), "only a batch claims");
        self.open.claimed = self.open.claimed.and(claim);
    }

    /// The most that the commands of the batch come to.
    pub(crate) const fn claimed(&self) -> Claim {
        self.open.claimed
    }

    /// The device is full, or about to be: work that can wait waits. If it is not full, the room
    /// has no bound that a call could come near to.
    pub(crate) fn is_scarce(&self) -> bool {
        self.room < u64::MAX / 2
    }

    /// True between commands.
    pub(crate) fn is_sealed(&self) -> bool {
        self.open.records == 0
    }

    fn place(&mut self, bytes: usize, live: LiveRecords, level: Durability) -> Placed {
        assert!(level != Durability::None, "what memory keeps has no record");
        let lsn = self.last.next();
        self.open.bytes += bytes;
        let bytes = u32::try_from(bytes).expect("invariant: bodies are far below 4 GiB");
        self.open.records += 1;
        self.open.level = self.open.level.max(level);
        self.open.live += live;
        assert!(self.open.records <= self.open.records_max, "a command fits into one frame");
        Placed { lsn, bytes }
    }
}

impl Default for OpenFrame {
    fn default() -> Self {
        let records_max = limits::FRAME_RECORDS_MAX;
        let (level, live) = (Durability::None, LiveRecords::NONE);
        let claimed = Claim::default();
        Self { records: 0, records_max, is_whole: false, claimed, bytes: 0, level, live }
    }
}

/// Bytes that a frame may take in the journal beside its records: a batch of its own, which is
/// padded.
const FRAME_OVERHEAD_BYTES: usize = 8 * 1024;

/// A Deleted record.
pub(crate) const DELETED_BYTES_MAX: usize = 16;

/// A batch of the journal without its mark and padding.
const CHAIN_FRAME_BYTES: usize = 1024 * 1024 - 4096;

/// The part of a record that lives until it is freed.
fn live(record: &RecordView<'_>, bytes: usize) -> LiveRecords {
    match record {
        RecordView::Message { .. } => LiveRecords::one(bytes as u64),
        RecordView::Shared { copies, .. } => {
            LiveRecords::one(bytes as u64 + unrecorded_bytes_max(copies.count()))
        }
        _ => LiveRecords::NONE,
    }
}

/// Bytes that may add to a record of so many messages without being recorded, beyond those of one.
pub(crate) fn unrecorded_bytes_max(copies: u32) -> u64 {
    u64::from(copies.saturating_sub(1)) * limits::UNRECORDED_BYTES_MAX as u64
}
