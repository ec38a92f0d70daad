//! The housekeeping that keeps the log going and small: spares ahead, snapshots, recycling.
//!
//! Disk space: two sizes call for a snapshot, the log since the last one and the dead bytes of the
//! log. Both must reach two segments and half of the live bytes; a log that only grew is as fast to
//! replay. Then every segment without live records is used again. The live rest of nearly dead ones
//! is copied: see `compaction.rs`.

use model::{ChainRoom, Lsn, Nanos};

use crate::chore::{LogChore, LogChoreDone, Product, Work};
use crate::compaction::{Compacting, OldFrames};
use crate::format::{Life, SegmentNumber};
use crate::room::padded_batch_bytes;
use crate::segments::Spare;
use crate::snapshot::{Slot, SnapshotHeader, encode_chunk};
use crate::{BLOCK_BYTES, DiskErrorKind, Journal, JournalFailed};

/// The state of everything beside the traffic. One chore is outstanding at most.
#[derive(Debug)]
pub(crate) struct Housekeeping<F> {
    busy: bool,
    device: Device,
    slots: [SlotFile<F>; 2],
    /// The most bytes of a snapshot taken now.
    snapshot_bytes_needed: u64,
    /// The newest whole snapshot; number 0 is none.
    snapshot: SnapshotHeader,
    snapshot_slot: Slot,
    stage: Stage,
    /// Bytes of batches since the newest snapshot began.
    bytes_since_snapshot: u64,
    pub(crate) compacting: Compacting,
    shutting_down: bool,
    /// The room that a chain waits for: see `chain.rs`.
    wanted: Option<ChainRoom>,
    /// Segments that others have begun meanwhile.
    overtaken: u32,
}

/// The room on the device, as far as the last attempts to get some tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Device {
    HasRoom,
    Full {
        /// When to try again.
        retry_at: Nanos,
        /// The last snapshot found no room: none begins before the next attempt.
        snapshot_gave_up: bool,
    },
}

/// The file of a snapshot slot.
#[derive(Debug)]
pub(crate) struct SlotFile<F> {
    pub(crate) file: F,
    pub(crate) bytes: u64,
}

/// How far a snapshot has come.
#[derive(Debug)]
enum Stage {
    Idle,
    /// Chunks are being written.
    Writing {
        /// With the bytes of the chunks so far.
        header: SnapshotHeader,
        bytes_at_begin: u64,
    },
    /// All chunks are written; the log must be synced through `end`.
    AwaitingLog {
        header: SnapshotHeader,
        bytes_at_begin: u64,
    },
}

impl<F> Housekeeping<F> {
    /// The newest whole snapshot lies in `slot`; `bytes_since` of log were read after it.
    pub(crate) fn new(
        slots: [SlotFile<F>; 2],
        snapshot: SnapshotHeader,
        slot: Slot,
        bytes_since: u64,
    ) -> Self {
        Self {
            busy: false,
            device: Device::HasRoom,
            slots,
            snapshot_bytes_needed: 0,
            snapshot,
            snapshot_slot: slot,
            stage: Stage::Idle,
            bytes_since_snapshot: bytes_since,
            compacting: Compacting::default(),
            shutting_down: false,
            wanted: None,
            overtaken: 0,
        }
    }

    pub(crate) fn device_is_full(&self) -> bool {
        self.retry_at().is_some()
    }

    /// While the device has no room: when to try again.
    pub(crate) const fn retry_at(&self) -> Option<Nanos> {
        match self.device {
            Device::HasRoom => None,
            Device::Full { retry_at, .. } => Some(retry_at),
        }
    }

    /// The slot of the next snapshot: the newest stays whole meanwhile.
    pub(crate) fn next_slot(&self) -> Slot {
        self.snapshot_slot.other()
    }

    /// True if a snapshot is being written, or waits for the log.
    pub(crate) fn is_in_snapshot(&self) -> bool {
        !matches!(self.stage, Stage::Idle)
    }

    /// Returns true if a snapshot of the present state would find its room.
    pub(crate) fn slots_suffice(&self) -> bool {
        self.slots_have(0)
    }

    /// The same of so many bytes more.
    pub(crate) fn slots_have(&self, more_bytes: u64) -> bool {
        let needed = self.snapshot_bytes_needed + more_bytes;
        self.slots.iter().all(|slot| slot.bytes >= needed)
    }

    /// So many bytes of batches came to the log.
    pub(crate) fn log_grows(&mut self, bytes: u64) {
        self.bytes_since_snapshot += bytes;
    }

    /// The log goes on in another segment.
    pub(crate) fn segment_begins(&mut self) {
        self.overtaken += u32::from(self.wanted.is_some());
    }

    /// See [`Journal::want_room`].
    pub(crate) fn want_room(&mut self, wanted: Option<ChainRoom>) {
        if wanted.is_none() {
            self.overtaken = 0;
        }
        self.wanted = wanted;
    }

    /// The room that a chain waits for.
    pub(crate) const fn wanted(&self) -> Option<ChainRoom> {
        self.wanted
    }

    /// Segments that others have begun meanwhile.
    pub(crate) const fn overtaken(&self) -> u32 {
        self.overtaken
    }

    /// The chain that waited for room was appended.
    pub(crate) fn end_chain(&mut self) {
        self.overtaken = 0;
    }

    pub(crate) fn slot_bytes(&self) -> u64 {
        self.slots.iter().map(|slot| slot.bytes).sum()
    }

    /// The newest whole snapshot holds the effect of every frame up to here.
    pub(crate) fn snapshot_begin(&self) -> Lsn {
        self.snapshot.begin
    }

    pub(crate) fn is_compacting(&self) -> bool {
        self.compacting.current().is_some()
    }

    fn found_room(&mut self) {
        self.device = Device::HasRoom;
    }

    /// The device had no room for a piece of work, a snapshot's if `for_snapshot`.
    fn found_full(&mut self, retry_at: Nanos, for_snapshot: bool) {
        let snapshot_gave_up = for_snapshot || self.has_given_snapshot_up();
        self.device = Device::Full { retry_at, snapshot_gave_up };
    }

    /// Messages settled meanwhile may have made the snapshot small enough.
    fn allow_snapshot(&mut self) {
        if let Device::Full { snapshot_gave_up, .. } = &mut self.device {
            *snapshot_gave_up = false;
        }
    }

    fn has_given_snapshot_up(&self) -> bool {
        matches!(self.device, Device::Full { snapshot_gave_up: true, .. })
    }

    pub(crate) fn slot(&self, slot: Slot) -> &SlotFile<F> {
        let [a, b] = &self.slots;
        match slot {
            Slot::A => a,
            Slot::B => b,
        }
    }

    fn slot_mut(&mut self, slot: Slot) -> &mut SlotFile<F> {
        let [a, b] = &mut self.slots;
        match slot {
            Slot::A => a,
            Slot::B => b,
        }
    }

    /// Every invariant of the state beside the traffic, in a log of `last` frames that is durable
    /// as far as `synced`.
    ///
    /// # Panics
    /// When one is broken.
    pub(crate) fn check(&self, synced: Lsn, last: Lsn) {
        assert!(self.snapshot.begin <= self.snapshot.end, "a snapshot begins before it ends");
        assert!(self.snapshot.end <= synced, "a whole snapshot is of a synced log");
        assert!(self.compacting.restated() <= last, "what was restated was appended");
        if let Stage::Writing { header, bytes_at_begin }
        | Stage::AwaitingLog { header, bytes_at_begin } = &self.stage
        {
            assert_eq!(header.number, self.snapshot.number + 1, "snapshots are numbered");
            assert!(self.snapshot.begin < header.begin, "a later snapshot covers more");
            assert!(header.begin <= header.end, "a snapshot begins before it ends");
            assert!(header.end <= last, "a snapshot is of frames that were appended");
            assert!(*bytes_at_begin <= self.bytes_since_snapshot, "the log only grows meanwhile");
        }
    }
}

impl<F: Clone> Journal<F> {
    /// The next piece of housekeeping, `None` while one is outstanding or nothing is to do. Beside
    /// it, the caller provides a snapshot's chunks: see [`Journal::wants_snapshot`].
    pub fn poll_chore(&mut self, now: Nanos) -> Option<LogChore<F>> {
        if self.house.busy || self.has_failed() {
            return None;
        }
        let may_allocate = self.house.retry_at().is_none_or(|retry_at| now >= retry_at);
        if may_allocate {
            self.house.allow_snapshot();
        }
        let work = if self.house.shutting_down {
            self.seal_work()
        } else {
            self.note_work()
                .or_else(|| self.label_work())
                .or_else(|| self.recycle_work())
                .or_else(|| may_allocate.then(|| self.allocate_work()).flatten())
                .or_else(|| self.seal_work())
                .or_else(|| self.compact_work())
                .or_else(|| self.remove_work())
        };
        if work.is_none() && may_allocate {
            self.house.found_room();
        }
        Some(self.start(work?))
    }

    /// Takes a performed chore back. Frames that come with it are to be restated at once.
    ///
    /// # Errors
    /// When the disk failed otherwise than by being full: nothing more is confirmed.
    pub fn handle_chore(
        &mut self,
        now: Nanos,
        done: LogChoreDone<F>,
    ) -> Result<OldFrames, JournalFailed> {
        assert!(self.house.busy, "only what was handed out comes back");
        self.house.busy = false;
        self.refuse_when_failed()?;
        match done.result {
            Ok(product) => self.finish(done.work, product),
            Err(error) if error.kind == DiskErrorKind::Full => {
                self.give_up(now, done.work);
                Ok(OldFrames::default())
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Tells how many bytes a snapshot of the present state may take; its room is kept free.
    pub fn need_for_snapshot(&mut self, bytes: u64) {
        self.house.snapshot_bytes_needed = bytes + BLOCK_BYTES as u64;
    }

    /// True if a snapshot should begin now: then call [`Journal::begin_snapshot`].
    #[must_use]
    pub fn wants_snapshot(&self) -> bool {
        let idle = !self.house.is_in_snapshot() && !self.house.busy;
        let news = self.house.snapshot.begin < self.last() && !self.house.has_given_snapshot_up();
        if !idle || !news || self.has_failed() {
            return false;
        }
        if self.house.shutting_down {
            return true;
        }
        let live = self.segments.live_bytes();
        let dead = self.segments.held_bytes().saturating_sub(live);
        let due = (self.options.segment_bytes * 2).max(live / 2);
        // A snapshot that frees less than it takes to write it would go on and on.
        let frees_much = self.segments.dead_bytes() >= self.house.snapshot_bytes_needed;
        let pressed = self.house.device_is_full() || (self.holds_too_much() && frees_much);
        let many_to_replay = self.house.bytes_since_snapshot >= due && dead >= due;
        many_to_replay || (pressed && self.segments.has_dead())
    }

    /// A snapshot begins: the caller's state is the result of all frames appended so far.
    pub fn begin_snapshot(&mut self, now: Nanos) {
        assert!(self.wants_snapshot(), "a snapshot begins where one is wanted");
        let header = SnapshotHeader {
            epoch: self.opening.epoch,
            directory: Some(self.opening.directory),
            number: self.house.snapshot.number + 1,
            begin: self.last(),
            end: self.last(),
            body_bytes: 0,
            time: now,
        };
        self.house.stage =
            Stage::Writing { header, bytes_at_begin: self.house.bytes_since_snapshot };
    }

    /// True if the snapshot that began waits for its next chunk.
    #[must_use]
    pub fn takes_snapshot_chunk(&self) -> bool {
        let writing = matches!(self.house.stage, Stage::Writing { .. });
        writing && !self.house.busy && !self.has_failed()
    }

    /// The next chunk of the snapshot that began, as of now; `last` ends it.
    ///
    /// # Panics
    /// When no chunk was asked for by [`Journal::takes_snapshot_chunk`].
    pub fn snapshot_chunk(&mut self, chunk: &[u8], last: bool) -> LogChore<F> {
        assert!(self.takes_snapshot_chunk(), "chunks are given when they are asked for");
        let end = self.last();
        let file = self.house.slot(self.house.next_slot()).file.clone();
        let Stage::Writing { header, .. } = &mut self.house.stage else {
            unreachable!("checked above")
        };
        let bytes = encode_chunk(header.number, chunk);
        assert!(end >= header.end, "a snapshot sees later and later frames");
        let offset = header.file_bytes();
        header.body_bytes += bytes.len() as u64;
        header.end = end;
        self.start(Work::WriteChunk { file, offset, bytes, last })
    }

    /// From now on does only the work that ends the process well: everything synced, and a last
    /// snapshot. The next start makes room for later frames.
    pub fn begin_shutdown(&mut self) {
        self.house.shutting_down = true;
        self.ask_for_sync(Lsn(u64::MAX));
    }

    /// Returns true if the last snapshot is done and no chore is outstanding. A full device may
    /// make the snapshot impossible; then the next process recovers from the log alone.
    #[must_use]
    pub fn is_tidy(&self) -> bool {
        let covered = self.house.snapshot.begin >= self.last() || self.house.device_is_full();
        !self.house.busy && !self.house.is_in_snapshot() && covered
    }

    fn start(&mut self, work: Work<F>) -> LogChore<F> {
        assert!(!self.house.busy, "one chore at a time");
        self.house.busy = true;
        let refused = self.exceeds_limit(&work);
        LogChore { work, refused }
    }

    /// A spare out of a file at hand needs no room on the device.
    fn recycle_work(&mut self) -> Option<Work<F>> {
        if self.segments.spares() > self.spares_set_aside() {
            return None;
        }
        let old = self.segments.take_retired(self.reach.number())?;
        Some(self.prepare_work(Some(old), self.options.segment_bytes))
    }

    pub(crate) fn prepare_work(&mut self, old: Option<Spare<F>>, bytes: u64) -> Work<F> {
        let number = self.segments.take_number();
        let (life, directory) = (Life::new(number, self.opening), self.opening.directory);
        Work::Prepare { life, directory, old, bytes }
    }

    fn allocate_work(&mut self) -> Option<Work<F>> {
        // On a full device messages get nothing anyway, and of the reserve a start fills the least.
        let full = self.house.device_is_full();
        let reserve = full.then(|| self.extend_reserve_work()).flatten();
        reserve
            .or_else(|| self.extend_active_work())
            .or_else(|| self.extend_reserve_work())
            .or_else(|| {
                let few = self.segments.spares() <= self.spares_set_aside();
                few.then(|| self.prepare_work(None, self.reserve_part_bytes()))
            })
            .or_else(|| self.grow_slot_work(Slot::A))
            .or_else(|| self.grow_slot_work(Slot::B))
            .or_else(|| self.extend_spare_work())
            .or_else(|| self.chain_work())
    }

    /// Bytes to be ready beyond the written ones: for traffic, and for a large batch that is to be
    /// compacted.
    fn ahead_bytes(&self) -> u64 {
        let large = self.house.compacting.current().and_then(|compaction| {
            let live = self.segments.numbered(compaction.number())?.live;
            Some(padded_batch_bytes(self.restated_piece_bytes(compaction, live)))
        });
        self.options.ahead_bytes().max(large.unwrap_or(0))
    }

    fn extend_active_work(&self) -> Option<Work<F>> {
        let active = self.segments.active();
        let rest = self.segments.active_rest(self.planned_end());
        if rest >= self.ahead_bytes() {
            return None;
        }
        // The segment may be of a time when segments were larger, and there may be no other room.
        let own = if self.house.device_is_full() { active.file_bytes } else { 0 };
        let most = self.options.segment_bytes.max(own / BLOCK_BYTES as u64 * BLOCK_BYTES as u64);
        self.extend_up_to(most, active.life.number, &active.file, active.initialised)
    }

    /// Once the active segment is near its end, the next one is made as ready.
    fn extend_spare_work(&self) -> Option<Work<F>> {
        let spare = self.segments.next_spare()?;
        let near = self.options.ahead_bytes().max(self.options.segment_bytes / 2);
        let near_end = self.segments.active_rest(self.planned_end()) < near;
        if !near_end || self.segments.next_spare_rest() >= self.ahead_bytes() {
            return None;
        }
        self.extend_work(spare.life.number, &spare.file, spare.initialised)
    }

    /// Bytes that each part of the reserve offers: half a segment, or a twentieth of a log that is
    /// short. On a full device scattered deletes give room back once the live rest of a segment can
    /// be copied there. A part is made with so many bytes at once. Otherwise messages, for which
    /// the log goes on in the first part once another is there, could have the last of the room.
    fn reserve_part_bytes(&self) -> u64 {
        let part = (self.options.segment_bytes / 2).min(self.segments.file_bytes() / 20);
        self.options.reserve_bytes.max(part / BLOCK_BYTES as u64 * BLOCK_BYTES as u64)
    }

    /// Makes a part longer that was made while the log was shorter, or that a start filled again. A
    /// log that grows gets a little more than it needs, one that stays empty no more than it needs.
    fn extend_reserve_work(&self) -> Option<Work<F>> {
        let wanted = self.reserve_part_bytes();
        let mut spares = self.segments.iter_spares().take(self.spares_set_aside());
        let spare = spares.find(|spare| spare.initialised < wanted)?;
        let most = wanted.next_multiple_of(self.small_step()).min(self.options.segment_bytes);
        let work = self.extend_up_to(most, spare.life.number, &spare.file, spare.initialised)?;
        (!self.exceeds_limit(&work)).then_some(work)
    }

    /// The step by which a small file grows, in whole blocks.
    fn small_step(&self) -> u64 {
        (self.options.extent_bytes / 4).next_multiple_of(BLOCK_BYTES as u64)
    }

    pub(crate) fn extend_work(
        &self,
        number: SegmentNumber,
        file: &F,
        from: u64,
    ) -> Option<Work<F>> {
        self.extend_up_to(self.options.segment_bytes, number, file, from)
    }

    fn extend_up_to(
        &self,
        most: u64,
        number: SegmentNumber,
        file: &F,
        from: u64,
    ) -> Option<Work<F>> {
        let to = (from + self.options.extent_bytes).min(most);
        (from < to).then(|| Work::Extend { number, file: file.clone(), from, to })
    }

    fn grow_slot_work(&self, slot: Slot) -> Option<Work<F>> {
        let SlotFile { file, bytes } = self.house.slot(slot);
        let needed = self.house.snapshot_bytes_needed;
        // A quarter more, and never little, so that growing is seldom waited for.
        let first = self.small_step();
        let chain = self.house.wanted.map_or(0, |wanted| wanted.snapshot_bytes);
        let wanted = needed + (needed / 4).max(first / 2).max(chain);
        if *bytes >= wanted {
            return None;
        }
        // A log that stays empty needs no more.
        let step = if *bytes == 0 { first } else { self.options.extent_bytes.max(wanted / 8) };
        let to = (*bytes + step).next_multiple_of(BLOCK_BYTES as u64);
        Some(Work::GrowSlot { slot, file: file.clone(), from: *bytes, to })
    }

    fn seal_work(&mut self) -> Option<Work<F>> {
        let Stage::AwaitingLog { header, .. } = &self.house.stage else { return None };
        if self.durable().synced < header.end {
            let end = header.end;
            self.ask_for_sync(end);
            return None;
        }
        assert!(header.begin <= header.end, "a snapshot begins before it ends");
        assert_eq!(header.number, self.house.snapshot.number + 1, "snapshots are numbered");
        let slot = self.house.next_slot();
        let SlotFile { file, bytes } = self.house.slot(slot);
        assert!(header.file_bytes() <= *bytes, "its file holds all chunks");
        Some(Work::Seal { slot, file: file.clone(), header: *header })
    }

    fn remove_work(&mut self) -> Option<Work<F>> {
        // On a full device others may need the room: a snapshot's file, say.
        let is_pressed = self.house.device_is_full() || self.is_over_limit();
        let (spares, retired) = if is_pressed { (1, 0) } else { (SPARES_KEPT, RETIRED_KEPT) };
        // Spares made for a chain that did not come.
        if self.house.wanted.is_none() && self.segments.spares() > self.spares_set_aside() + spares
        {
            return self.segments.take_last_spare().map(|spare| Work::Remove { spare });
        }
        // One of a time when segments were larger is kept for no use of today's.
        let most = self.options.segment_bytes;
        let is_large = self.segments.iter_retired().any(|spare| spare.file_bytes > most);
        let many = self.segments.retired() > if is_large { 0 } else { retired };
        let noted = self.reach.number();
        let spare = many.then(|| self.segments.take_retired(noted)).flatten()?;
        Some(Work::Remove { spare })
    }

    fn finish(&mut self, work: Work<F>, product: Product<F>) -> Result<OldFrames, JournalFailed> {
        match (work, product) {
            (Work::Prepare { life, old, bytes, .. }, Product::File(file)) => {
                self.finish_prepare(life, file, old, bytes);
            }
            (Work::Extend { number, to, .. }, _) => {
                self.segments.extended(number, to);
                self.house.found_room();
            }
            (Work::GrowSlot { slot, to, .. }, _) => {
                let slot = self.house.slot_mut(slot);
                assert!(to > slot.bytes, "what is kept for a snapshot stays kept");
                slot.bytes = to;
                self.house.found_room();
            }
            (Work::WriteChunk { offset, bytes, last, .. }, _) => {
                self.finish_chunk(offset + bytes.len() as u64, last);
            }
            (Work::Seal { slot, header, .. }, _) => self.finish_snapshot(slot, header),
            (Work::Read { number, offset, expected, .. }, Product::Bytes(bytes)) => {
                return self.finish_read(number, offset, expected, &bytes);
            }
            (Work::Note(note), _) => self.finish_note(&note),
            (Work::Label { life, made, .. }, _) => self.finish_label(life.number, made),
            // If the device was full it is not any more.
            (Work::Remove { .. }, _) => self.house.found_room(),
            (Work::Prepare { .. }, _) => unreachable!("a segment is made with its file"),
            (Work::Read { .. }, _) => unreachable!("what is read has bytes"),
        }
        Ok(OldFrames::default())
    }

    fn finish_prepare(&mut self, life: Life, file: F, old: Option<Spare<F>>, bytes: u64) {
        if old.is_some() {
            self.counters.segments_recycled += 1;
        }
        let (initialised, file_bytes) = old.map_or((bytes, bytes), |old| old.cut(bytes));
        self.segments.add_spare(Spare { life, file, initialised, made: initialised, file_bytes });
        self.house.found_room();
    }

    fn finish_chunk(&mut self, end: u64, last: bool) {
        let Stage::Writing { header, bytes_at_begin } = self.house.stage else {
            unreachable!("chunks are of a snapshot that is being written")
        };
        assert_eq!(end, header.file_bytes(), "the chunk that was handed out comes back");
        let slot = self.house.slot_mut(self.house.next_slot());
        slot.bytes = slot.bytes.max(end);
        if last {
            self.house.stage = Stage::AwaitingLog { header, bytes_at_begin };
        }
    }

    fn finish_snapshot(&mut self, slot: Slot, header: SnapshotHeader) {
        let Stage::AwaitingLog { bytes_at_begin, .. } = self.house.stage else {
            unreachable!("only a snapshot that awaited the log is sealed")
        };
        assert!(header.begin <= header.end, "a snapshot begins before it ends");
        assert!(header.end <= self.durable().synced, "the log is synced through its end");
        assert_eq!(header.number, self.house.snapshot.number + 1, "snapshots are numbered");
        assert_eq!(slot, self.house.next_slot(), "the newest stays whole meanwhile");
        assert!(header.begin > self.house.snapshot.begin, "a later snapshot covers more");
        assert!(self.house.bytes_since_snapshot >= bytes_at_begin, "the log only grew meanwhile");
        self.house.stage = Stage::Idle;
        self.house.bytes_since_snapshot -= bytes_at_begin;
        self.house.snapshot = header;
        self.house.snapshot_slot = slot;
        self.segments.retire(header.begin, self.durable().synced);
        self.counters.snapshots += 1;
        self.counters.snapshot_bytes += header.body_bytes;
    }

    /// The device is full: undoes the begun work, to be tried again later.
    fn give_up(&mut self, now: Nanos, work: Work<F>) {
        let for_snapshot = matches!(work, Work::WriteChunk { .. });
        self.house.found_full(now + FULL_DEVICE_RETRY, for_snapshot);
        match work {
            Work::WriteChunk { .. } => {
                assert!(matches!(self.house.stage, Stage::Writing { .. }), "its chunk was out");
                self.house.stage = Stage::Idle;
            }
            Work::Prepare { .. }
            | Work::Extend { .. }
            | Work::GrowSlot { .. }
            | Work::Read { .. }
            | Work::Remove { .. } => {}
            Work::Seal { .. } | Work::Note(_) | Work::Label { .. } => {
                unreachable!("what is written over is never full")
            }
        }
    }
}

/// Files of segments that are kept to be used again, beyond the spares.
const RETIRED_KEPT: usize = 2;

/// Spares that are kept beyond the reserved ones.
const SPARES_KEPT: usize = 2;

/// How long a full device is left alone.
pub(crate) const FULL_DEVICE_RETRY: Nanos = Nanos::from_millis(250);
