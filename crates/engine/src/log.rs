//! Frames in the making: positions, levels, and the room that is left.

use model::{After, Durability, LiveRecords, Lsn, StorePolicy, limits};

use crate::codec::encode;
use crate::record::RecordView;
use crate::{Effects, FrameEnd};

#[derive(Debug)]
pub(crate) struct Log {
    /// The last whole frame.
    pub(crate) last: Lsn,
    /// Bytes that puts may still use.
    pub(crate) room: u64,
    /// Bytes that one call may append of what is stored already.
    pub(crate) settling_room: usize,
    /// The largest frame that the journal takes.
    pub(crate) frame_bytes_max: usize,
    /// What waits for all frames that were appended here.
    after_last: After,
    open: OpenFrame,
}

/// The frame whose records are being appended.
#[derive(Debug)]
struct OpenFrame {
    records: usize,
    records_max: usize,
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

/// Where the frame of a transaction began.
#[derive(Debug)]
pub(crate) struct Draft {
    start: usize,
    room: u64,
}

/// Where a record went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) lsn: Lsn,
    pub(crate) bytes: u32,
}

impl Log {
    pub(crate) fn new(policy: StorePolicy, frame_bytes_max: usize) -> Self {
        Self {
            frame_bytes_max,
            last: Lsn::ZERO,
            room: u64::MAX,
            settling_room: limits::SETTLED_BYTES_ALWAYS,
            after_last: After::new(Lsn::ZERO, policy.durability(model::Persistence::Persistent)),
            open: OpenFrame::default(),
        }
    }

    /// Appends a record of something new if there is room for it.
    pub(crate) fn store(
        &mut self,
        record: &RecordView<'_>,
        level: Durability,
        effects: &mut Effects,
    ) -> Result<Placed, NoRoom> {
        let start = effects.records.len();
        encode(record, &mut effects.records);
        let bytes = effects.records.len() - start;
        let no_room = if self.open.bytes + bytes > self.frame_bytes_max {
            Some(NoRoom::InFrame)
        } else {
            (bytes as u64 > self.room).then_some(NoRoom::InLog)
        };
        if let Some(no_room) = no_room {
            effects.records.truncate(start);
            return Err(no_room);
        }
        self.room -= bytes as u64;
        Ok(self.place(bytes, live(record, bytes), level))
    }

    /// Appends a record of what is stored already; puts leave room for these.
    pub(crate) fn append(
        &mut self,
        record: &RecordView<'_>,
        level: Durability,
        effects: &mut Effects,
    ) -> Placed {
        let start = effects.records.len();
        encode(record, &mut effects.records);
        let bytes = effects.records.len() - start;
        self.place(bytes, live(record, bytes), level)
    }

    /// Ends the frame, if one has begun.
    pub(crate) fn seal(&mut self, effects: &mut Effects) {
        let OpenFrame { records, level, live, .. } = core::mem::take(&mut self.open);
        if records == 0 {
            return;
        }
        self.last = self.last.next();
        self.after_last = After::new(self.last, level);
        let end = effects.records.len();
        effects.frames.push(FrameEnd { end, lsn: self.last, level, live });
    }

    /// What an answer waits for that may reflect any change so far: the last frame, as durable as
    /// that frame itself asks. The log grows durable in order, and a frame counts as written only
    /// when it is as durable as it asks; so every frame before is by then what it has to be.
    pub(crate) fn after_all(&self) -> After {
        if self.is_sealed() {
            return self.after_last;
        }
        After::new(self.last.next(), self.open.level)
    }

    /// What waits for all of the open frame; nothing where there is none.
    pub(crate) fn after_open(&self) -> After {
        if self.is_sealed() {
            After::NOTHING
        } else {
            After::new(self.last.next(), self.open.level)
        }
    }

    /// What waits for settlements in the open frame. Where one is of a message that went with its
    /// subscription, it is the record of that end, somewhere before, that has to be durable.
    pub(crate) fn after_settling(&self, has_gone: bool) -> After {
        if has_gone { self.after_all() } else { self.after_open() }
    }

    /// The frame that begins now holds all of a transaction. So many of its bytes are left for what
    /// is appended to it after all that is stored.
    pub(crate) fn begin_transaction(&mut self, reserved_bytes: usize, effects: &Effects) -> Draft {
        assert!(self.is_sealed(), "a transaction is a frame of its own");
        self.open.records_max = limits::TRANSACTION_RECORDS_MAX;
        self.open.bytes = reserved_bytes;
        Draft { start: effects.records.len(), room: self.room }
    }

    /// Takes back all that was appended since the transaction's frame began.
    pub(crate) fn take_back(&mut self, draft: &Draft, effects: &mut Effects) {
        effects.records.truncate(draft.start);
        self.room = draft.room;
        self.open = OpenFrame::default();
    }

    /// Ends the open frame if it could not take one more record of so many bytes. Only where what
    /// one call does need not be one frame.
    pub(crate) fn make_way(&mut self, bytes: usize, effects: &mut Effects) {
        let is_full = self.open.records == self.open.records_max;
        if is_full || self.open.bytes + bytes > self.frame_bytes_max {
            self.seal(effects);
        }
    }

    /// Whether records of what is stored already, so many bytes of them in one command, surely
    /// find room: a full device keeps some for them, but not for any number.
    pub(crate) fn surely_takes(&self, bytes: usize) -> bool {
        bytes as u64 <= self.room || bytes <= self.settling_room
    }

    /// Whether what goes on by itself, as time passes or a session ends, may change one more
    /// message in this call. The rest follows in the next calls.
    pub(crate) fn takes_change(&self) -> bool {
        let bytes_max = self.settling_room.min(self.frame_bytes_max);
        self.open.records < limits::FRAME_RECORDS_MAX
            && self.open.bytes + CHANGED_BYTES_MAX <= bytes_max
    }

    /// The device is full, or about to be: what can wait waits. Where it is not, the room has no
    /// bound that a call could come near to.
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
        Self { records: 0, records_max, bytes: 0, level, live }
    }
}

/// A Changed record, with two names of queues.
pub(crate) const CHANGED_BYTES_MAX: usize = 128 + 2 * limits::QUEUE_NAME_BYTES_MAX;

/// What of a record lives until it is freed.
fn live(record: &RecordView<'_>, bytes: usize) -> LiveRecords {
    match record {
        RecordView::Message { .. } => LiveRecords::one(bytes as u64),
        RecordView::Shared { copies, .. } => {
            LiveRecords::one(bytes as u64 + unrecorded_bytes_max(copies.count()))
        }
        _ => LiveRecords::NONE,
    }
}

/// What may add to a record of so many messages without being recorded, beyond what may to one.
pub(crate) fn unrecorded_bytes_max(copies: u32) -> u64 {
    u64::from(copies.saturating_sub(1)) * limits::UNRECORDED_BYTES_MAX as u64
}
