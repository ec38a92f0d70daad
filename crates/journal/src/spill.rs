//! The spill keeps bodies of messages that are not persistent: these are in no log when they leave
//! memory. Its files are beside the segments, never synced, and only the process that wrote them
//! reads them; recovery removes their remains.
//!
//! ```text
//! put -> SpillWrite::perform(disk) -> handle_write -> places     fetch -> perform -> handle_fetch
//! free …  poll_removal -> SpillRemoval::perform(disk) -> handle_removal
//! ```
//! A file is written from its begin to its end and removed when everything in it was freed. If
//! files are mostly dead, the caller is told of the one with the least in it ([`Spill::sparse`])
//! and puts that elsewhere. So a body that stays keeps no whole file. It takes descriptors as long.
//! No operation waits for a device: writes go to the page cache, and bodies freed soon never leave
//! it.

mod place;
mod work;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::Arc;

use model::{Nanos, limits};

pub use place::SpillPlace;
pub(crate) use place::is_spill_name;
pub use work::{
    SpillFetch, SpillFetchDone, SpillRemoval, SpillRemovalDone, SpillWrite, SpillWriteDone,
};

use crate::housekeeping::FULL_DEVICE_RETRY;
use crate::{DiskError, DiskErrorKind};
use place::FileNumber;
use work::{Part, record_bytes};

/// The spill of one store. It performs nothing itself.
#[derive(Debug)]
pub struct Spill<F> {
    segment_bytes: u64,
    bytes_max: u64,
    files: BTreeMap<FileNumber, SpillFile<F>>,
    /// Those of these files that take more.
    roomy: Vec<FileNumber>,
    /// In these nothing is needed any more.
    idle: VecDeque<SpillRemoval>,
    next_number: FileNumber,
    /// Set while the device has no room: when to try again.
    retry_at: Option<Nanos>,
    counters: SpillCounters,
}

#[derive(Debug)]
struct SpillFile<F> {
    /// `None`: it is being made, and no other write can use it before.
    file: Option<F>,
    /// The offset of the next record.
    end: u64,
    /// Bodies that are needed.
    live: u64,
    /// Bytes of their records.
    live_bytes: u64,
    /// Writes and fetches that are out.
    out: u32,
}

/// Sums since the start, but for those named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillCounters {
    /// Bodies written.
    pub bodies: u64,
    /// Bytes of them.
    pub body_bytes: u64,
    /// Bodies read back.
    pub fetches: u64,
    /// Bytes of them.
    pub fetched_bytes: u64,
    /// Writes for which the device had no room.
    pub refused: u64,
    /// Those of the bodies for writing that lay in a sparse file.
    pub moved: u64,
    /// Now: bodies that are needed, or are being written.
    pub live: u64,
    /// Now: bytes of their records.
    pub live_bytes: u64,
    /// Now: bytes of all files.
    pub disk_bytes: u64,
}

impl<F: Clone> Spill<F> {
    /// An empty one. It closes files once they have `segment_bytes`; together they have at most
    /// `bytes_max`.
    ///
    /// # Panics
    /// When files are to be larger than 512 MiB.
    #[must_use]
    pub fn new(segment_bytes: u64, bytes_max: u64) -> Self {
        assert!(segment_bytes <= SEGMENT_BYTES_MAX, "offsets in a file have few bits");
        Self {
            segment_bytes,
            bytes_max,
            files: BTreeMap::new(),
            roomy: Vec::new(),
            idle: VecDeque::new(),
            next_number: FileNumber(1),
            retry_at: None,
            counters: SpillCounters::default(),
        }
    }

    /// Finds places for bodies, and gives the write that brings them there; several may be out.
    /// Until [`Spill::handle_write`] tells of success they have to stay in memory. `None`: they
    /// would be too many, or the device was full lately.
    ///
    /// # Panics
    /// When a body is far larger than a message may be.
    pub fn put(&mut self, now: Nanos, bodies: &[Arc<[u8]>]) -> Option<SpillWrite<F>> {
        let reserve = self.segment_bytes.min(self.bytes_max / RESERVE_PART);
        self.put_within(self.bytes_max - reserve, now, bodies)
    }

    /// The same for bodies of a file that is sparse: for them there is room of their own.
    ///
    /// # Panics
    /// When a body is far larger than a message may be.
    pub fn put_again(&mut self, now: Nanos, bodies: &[Arc<[u8]>]) -> Option<SpillWrite<F>> {
        let write = self.put_within(self.bytes_max, now, bodies)?;
        self.counters.moved += bodies.len() as u64;
        Some(write)
    }

    fn put_within(
        &mut self,
        bytes_max: u64,
        now: Nanos,
        bodies: &[Arc<[u8]>],
    ) -> Option<SpillWrite<F>> {
        let needed: u64 = bodies.iter().map(|body| record_bytes(body.len())).sum();
        let fits = self.counters.disk_bytes.saturating_add(needed) <= bytes_max;
        if bodies.is_empty() || !fits || !self.has_room(now) {
            return None;
        }
        let mut write = SpillWrite { parts: Vec::new(), places: Vec::with_capacity(bodies.len()) };
        let mut rest = bodies;
        while !rest.is_empty() {
            let (part, left) = self.fill_file(rest);
            write.places.extend(part.records.iter().map(|(place, _)| *place));
            write.parts.push(part);
            rest = left;
        }
        assert_eq!(write.places.len(), bodies.len(), "each body has a place");
        assert!(self.counters.disk_bytes <= bytes_max, "files stay below their limit");
        Some(write)
    }

    /// Takes a performed write back: from now on the bodies lie at these places, each until it is
    /// freed.
    ///
    /// # Errors
    /// The disk's: then none of the bodies is taken, they stay in memory. A full device is no
    /// failure; [`Spill::put`] takes nothing for a while.
    pub fn handle_write(
        &mut self,
        now: Nanos,
        done: SpillWriteDone<F>,
    ) -> Result<Vec<SpillPlace>, DiskError> {
        let SpillWrite { parts, places } = done.write;
        match done.result {
            Ok(made) => {
                self.retry_at = None;
                let wanted = parts.iter().filter(|part| part.file.is_none()).count();
                assert_eq!(made.len(), wanted, "each file was made that was to be");
                self.take_in(made);
                parts.iter().for_each(|part| self.finish_part(part));
                Ok(places)
            }
            Err(error) => {
                if error.kind == DiskErrorKind::Full {
                    self.retry_at = Some(now + FULL_DEVICE_RETRY);
                    self.counters.refused += 1;
                }
                parts.iter().for_each(|part| self.give_part_up(part));
                Err(error)
            }
        }
    }

    /// Begins to read the body back that lies there; its file stays until
    /// [`Spill::handle_fetch`], even when the body is freed meanwhile.
    ///
    /// # Panics
    /// When nothing can lie there.
    pub fn fetch(&mut self, place: SpillPlace) -> SpillFetch<F> {
        let found = self.holding(place.number());
        assert!(found.live > 0, "what is fetched was not freed");
        assert!(place.offset() < found.end, "bodies lie before the end of a file");
        found.out += 1;
        let file = found.file.clone();
        SpillFetch { place, file: file.expect("invariant: places are given once they are written") }
    }

    /// Takes a performed fetch back, and gives the body.
    ///
    /// # Errors
    /// The disk's, or if the bytes read are not the bytes written: the body is lost.
    pub fn handle_fetch(&mut self, done: SpillFetchDone) -> Result<Arc<[u8]>, DiskError> {
        self.come_back(done.place.number());
        let body = done.result?;
        self.counters.fetches += 1;
        self.counters.fetched_bytes += body.len() as u64;
        Ok(body)
    }

    /// The body at that place, of so many bytes, is not needed any more. Each is freed once, and
    /// only places that [`Spill::handle_write`] gave.
    ///
    /// # Panics
    /// If no body lies there.
    pub fn free(&mut self, place: SpillPlace, bytes: usize) {
        let end = self.holding(place.number()).end;
        assert!(place.offset() + record_bytes(bytes) <= end, "bodies lie before the end of a file");
        self.forget(place.number(), 1, record_bytes(bytes));
        self.remove_if_idle(place.number());
    }

    /// The places in the file with the least needed bytes, if more than half of the bytes of all
    /// files is not needed, beside two files. The caller puts these bodies elsewhere, with
    /// [`Spill::put_again`]. It frees more than it takes.
    #[must_use]
    pub fn sparse(&self, now: Nanos) -> Option<RangeInclusive<NonZeroU64>> {
        let SpillCounters { live_bytes, disk_bytes, .. } = self.counters;
        if disk_bytes <= 2 * (live_bytes + self.segment_bytes) || !self.has_room(now) {
            return None;
        }
        let is_closed = |(number, file): &(&FileNumber, &SpillFile<F>)| {
            file.out == 0 && !self.roomy.contains(number)
        };
        let closed = self.files.iter().filter(is_closed);
        let (number, file) = closed.min_by_key(|(_, file)| file.live_bytes)?;
        let fits = disk_bytes + file.live_bytes <= self.bytes_max;
        (fits && 2 * file.live_bytes <= file.end).then(|| SpillPlace::all_in(*number))
    }

    fn has_room(&self, now: Nanos) -> bool {
        self.retry_at.is_none_or(|retry_at| now >= retry_at)
    }

    /// The next file that can be removed; several may be out.
    pub fn poll_removal(&mut self) -> Option<SpillRemoval> {
        self.idle.pop_front()
    }

    /// Takes a performed removal back.
    ///
    /// # Errors
    /// The disk's.
    pub fn handle_removal(&mut self, done: SpillRemovalDone) -> Result<(), DiskError> {
        done.result?;
        self.give_back(done.bytes);
        Ok(())
    }

    /// The counts so far, and the present figures.
    #[must_use]
    pub fn counters(&self) -> SpillCounters {
        self.counters
    }

    /// Every invariant of the spill.
    ///
    /// # Panics
    /// When one is broken.
    pub fn check(&self) {
        let live: u64 = self.files.values().map(|file| file.live).sum();
        let live_bytes: u64 = self.files.values().map(|file| file.live_bytes).sum();
        let counted = (self.counters.live, self.counters.live_bytes);
        assert_eq!((live, live_bytes), counted, "every body lies in a file");
        let ends = self.files.values().map(|file| file.end);
        let idle = self.idle.iter().map(|removal| removal.bytes);
        let bytes: u64 = ends.chain(idle).sum();
        assert!(bytes <= self.counters.disk_bytes, "beside what is being removed");
        assert!(self.counters.disk_bytes <= self.bytes_max, "files stay below their limit");
        for file in self.files.values() {
            assert!(file.live > 0 || file.out > 0, "a file without use is removed");
            assert!(file.live_bytes <= file.end, "what is needed lies before the end");
            assert_eq!(file.live == 0, file.live_bytes == 0, "every record has some bytes");
            assert!(file.file.is_some() || file.out == 1, "only who makes a file uses it before");
        }
        for number in &self.roomy {
            let file = self.files.get(number).expect("what takes more is there");
            assert!(file.file.is_some() && file.end < self.segment_bytes, "it takes more");
        }
    }

    /// Lays bodies out in one file until it is full.
    fn fill_file<'b>(&mut self, bodies: &'b [Arc<[u8]>]) -> (Part<F>, &'b [Arc<[u8]>]) {
        let number = self.roomy.pop().unwrap_or_else(|| self.begin_file());
        let segment_bytes = self.segment_bytes;
        let found = self.holding(number);
        let (begin, file) = (found.end, found.file.clone());
        let mut records = Vec::new();
        for body in bodies {
            if found.end >= segment_bytes {
                break;
            }
            assert!(body.len() <= BODY_BYTES_MAX, "a body is bounded");
            records.push((SpillPlace::new(number, found.end), Arc::clone(body)));
            found.end += record_bytes(body.len());
        }
        assert!(!records.is_empty(), "what is roomy takes one more");
        let (_, rest) = bodies.split_at(records.len());
        found.live += records.len() as u64;
        found.live_bytes += found.end - begin;
        found.out += 1;
        assert!(found.live_bytes <= found.end, "what is needed lies before the end");
        let bytes = found.end - begin;
        let is_roomy = found.end < segment_bytes && file.is_some();
        self.counters.disk_bytes += bytes;
        self.counters.live_bytes += bytes;
        self.counters.live += records.len() as u64;
        if is_roomy {
            self.takes_more(number);
        }
        (Part { number, file, records }, rest)
    }

    fn begin_file(&mut self) -> FileNumber {
        let number = self.next_number;
        self.next_number = FileNumber(number.0 + 1);
        let empty = SpillFile { file: None, end: 0, live: 0, live_bytes: 0, out: 0 };
        assert!(self.files.insert(number, empty).is_none(), "a number is given once");
        number
    }

    /// The next bodies may go into that file.
    fn takes_more(&mut self, number: FileNumber) {
        assert!(!self.roomy.contains(&number), "a file is offered once");
        self.roomy.push(number);
    }

    /// So many bytes of files are gone.
    fn give_back(&mut self, bytes: u64) {
        assert!(self.counters.disk_bytes >= bytes, "only bytes that were counted are given back");
        self.counters.disk_bytes -= bytes;
    }

    /// Files were made: others may use them.
    fn take_in(&mut self, made: Vec<(FileNumber, F)>) {
        for (number, file) in made {
            let segment_bytes = self.segment_bytes;
            let found = self.holding(number);
            assert!(found.file.is_none(), "a file is made once");
            assert_eq!(found.out, 1, "no other write or fetch uses a file that is being made");
            found.file = Some(file);
            if found.end < segment_bytes {
                self.takes_more(number);
            }
        }
    }

    fn finish_part(&mut self, part: &Part<F>) {
        self.counters.bodies += part.records.len() as u64;
        let bytes = part.records.iter().map(|(_, body)| body.len() as u64);
        self.counters.body_bytes += bytes.sum::<u64>();
        self.come_back(part.number);
    }

    /// None of it was written, or an unknown part. Its place in the file stays unused.
    fn give_part_up(&mut self, part: &Part<F>) {
        let bytes = part.records.iter().map(|(_, body)| record_bytes(body.len()));
        self.forget(part.number, part.records.len() as u64, bytes.sum());
        self.roomy.retain(|number| *number != part.number);
        if part.file.is_some() {
            self.come_back(part.number);
            return;
        }
        // The file was not made, or was removed again.
        let file = self.files.remove(&part.number);
        let file = file.expect("invariant: it was begun for this part");
        assert_eq!(file.live, 0, "no other write has used it");
        assert_eq!(file.out, 1, "only its own write is out");
        self.give_back(file.end);
    }

    /// Bodies in that file are not needed any more.
    fn forget(&mut self, number: FileNumber, bodies: u64, bytes: u64) {
        let file = self.holding(number);
        assert!(file.live >= bodies && file.live_bytes >= bytes, "a body is freed once");
        file.live -= bodies;
        file.live_bytes -= bytes;
        assert_eq!(file.live == 0, file.live_bytes == 0, "a body is freed with its own bytes");
        assert!(self.counters.live >= bodies, "the counters are over all files");
        assert!(self.counters.live_bytes >= bytes, "the counters are over all files");
        self.counters.live -= bodies;
        self.counters.live_bytes -= bytes;
    }

    /// A write or a fetch of that file is not out any more.
    fn come_back(&mut self, number: FileNumber) {
        let file = self.holding(number);
        assert!(file.out > 0, "only what was handed out comes back");
        file.out -= 1;
        self.remove_if_idle(number);
    }

    fn remove_if_idle(&mut self, number: FileNumber) {
        let idle = |file: &SpillFile<F>| file.live == 0 && file.out == 0;
        if !self.files.get(&number).is_some_and(idle) {
            return;
        }
        let file = self.files.remove(&number).expect("invariant: it was just found");
        assert!(file.file.is_some(), "what was made is removed");
        self.roomy.retain(|roomy| *roomy != number);
        self.idle.push_back(SpillRemoval { number, bytes: file.end });
    }

    fn holding(&mut self, number: FileNumber) -> &mut SpillFile<F> {
        self.files.get_mut(&number).expect("invariant: what is live or out lies in a file")
    }
}

/// Even with one more body offsets fit into a place.
const SEGMENT_BYTES_MAX: u64 = 512 * 1024 * 1024;
const _: () = assert!(SEGMENT_BYTES_MAX + record_bytes(BODY_BYTES_MAX) <= place::FILE_BYTES_END);

/// One part in so many of the files' limit, at most, is kept for bodies that are put elsewhere.
const RESERVE_PART: u64 = 16;

/// The most bytes of a body: the largest message, and the bytes a protocol may keep with it.
pub(crate) const BODY_BYTES_MAX: usize = 2 * limits::MESSAGE_BYTES_MAX;
