//! One file as a crash sees it: the page cache, the device, and every sector version between the
//! two.
//!
//! The model is as bad as the contract of `journal::Disk` allows. Until a sync, each 512-byte
//! sector may reach the device in any of the versions it had, or not at all. Neighbours are
//! independent of each other. The same holds for the file's length. A failed sync forgets the bytes
//! that it could not write: the cache still shows them, and no later sync writes them.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Rng;

/// The unit in which a device writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// Content of one file. Clones share the bytes until one of them changes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The bytes that a reading process sees.
    cache: Rc<Vec<u8>>,
    /// The bytes that certainly remain after a power cut.
    device: Rc<Vec<u8>>,
    /// Versions of a sector that were written since the device's, oldest first.
    pending: BTreeMap<usize, Vec<Sector>>,
    /// Lengths that the file had since the device's, oldest first.
    pending_lengths: Vec<usize>,
    /// The length to which it was cut since; the device's bytes behind it may come back.
    cut: Option<usize>,
    /// A sync failed, and the cache shows the bytes that it forgot only as long as the process
    /// lives.
    evicts: bool,
}

type Sector = [u8; SECTOR_BYTES];

/// How much of a call took place before it failed or the machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All.
    Whole,
    /// None.
    Nothing,
    /// Some first sectors of a write.
    Prefix,
    /// Some sectors of a write, in no order.
    Scattered,
}

impl Image {
    /// The bytes that a reader sees.
    #[must_use]
    pub fn cache(&self) -> &[u8] {
        &self.cache
    }

    /// The bytes that surely outlive a power cut.
    #[must_use]
    pub fn device(&self) -> &[u8] {
        &self.device
    }

    /// Puts bytes into the cache; the device may get them whenever it likes.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        // Measured by the device: a length that a failed sync forgot comes with new bytes.
        if end > self.length_to_come() {
            remember(&mut self.pending_lengths, end);
        }
        let cache = Rc::make_mut(&mut self.cache);
        grow(cache, end);
        splice(cache, offset, bytes);
        for index in sectors(offset, bytes.len()) {
            let version = sector(cache, index);
            remember(self.pending.entry(index).or_default(), version);
        }
    }

    /// Puts exactly these bytes, and the length that is needed to read them, onto the device.
    pub fn write_synced(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        for content in [&mut self.cache, &mut self.device].map(Rc::make_mut) {
            grow(content, end);
            splice(content, offset, bytes);
        }
        for index in sectors(offset, bytes.len()) {
            self.settle_sector(index, offset, bytes);
        }
        self.pending_lengths.retain(|length| *length > end);
        if let Some(cut) = self.cut {
            // Up to there the file is as long again, and reads as zeros.
            let device = Rc::make_mut(&mut self.device);
            device.get_mut(cut..offset).into_iter().flatten().for_each(|byte| *byte = 0);
            self.cut = Some(cut.max(end));
        }
    }

    /// Cuts the file; the device may hear of it whenever it likes.
    pub fn shorten(&mut self, length: usize) {
        Rc::make_mut(&mut self.cache).truncate(length);
        self.pending.retain(|index, _| index * SECTOR_BYTES < length);
        self.pending_lengths.retain(|pending| *pending <= length);
        if self.device.len() < length {
            remember(&mut self.pending_lengths, length);
        }
        self.cut = Some(self.cut.unwrap_or(length).min(length));
    }

    /// Some of the sectors of a write, as if the rest never happened.
    pub fn write_part(&mut self, offset: usize, bytes: &[u8], extent: Extent, rng: &mut Rng) {
        let pieces = pieces(offset, bytes);
        let kept = match extent {
            Extent::Whole => pieces.len(),
            Extent::Nothing => 0,
            Extent::Prefix | Extent::Scattered => rng.index(pieces.len() + 1),
        };
        for (number, (at, piece)) in pieces.into_iter().enumerate() {
            let happens = if extent == Extent::Scattered { rng.coin() } else { number < kept };
            if happens {
                self.write(at, piece);
            }
        }
    }

    /// A synced write that the device failed. Each sector is untouched, on the device, still on its
    /// way to it, or shown by the cache and forgotten.
    pub fn fail_write_synced(&mut self, offset: usize, bytes: &[u8], rng: &mut Rng) {
        for (at, piece) in pieces(offset, bytes) {
            match rng.below(4) {
                0 => {}
                1 => self.write_synced(at, piece),
                2 => self.write(at, piece),
                _ => {
                    self.write(at, piece);
                    self.pending.remove(&(at / SECTOR_BYTES));
                }
            }
        }
    }

    /// Everything in the cache reaches the device, except for bytes that a failed sync forgot.
    pub fn sync(&mut self) {
        let length = self.length_to_come();
        let device = Rc::make_mut(&mut self.device);
        device.truncate(self.cut.take().unwrap_or(usize::MAX));
        grow(device, length);
        for (index, versions) in std::mem::take(&mut self.pending) {
            let newest = versions.last().expect("invariant: a pending sector has a version");
            splice_sector(device, index, newest);
        }
        self.pending_lengths.clear();
    }

    /// A sync that the device failed: each sector reached it or is forgotten. Like Linux: the
    /// cache keeps showing the forgotten bytes to this process, and perhaps to the next, and calls
    /// them clean.
    pub fn fail_sync(&mut self, rng: &mut Rng) {
        self.evicts |= rng.coin();
        self.lose_pending(rng);
    }

    /// The process has ended: the cache may stop showing the bytes that a failed sync forgot.
    pub fn end_process(&mut self) {
        if std::mem::take(&mut self.evicts) {
            self.cache.clone_from(&self.device);
            let cache = Rc::make_mut(&mut self.cache);
            grow(cache, self.pending_lengths.last().copied().unwrap_or(0));
            for (index, versions) in &self.pending {
                if let Some(latest) = versions.last() {
                    splice_sector(cache, *index, latest);
                }
            }
        }
    }

    /// Leaves the bytes that a power cut leaves; the cache starts anew from them.
    pub fn power_cut(&mut self, rng: &mut Rng) {
        self.lose_pending(rng);
        self.cache.clone_from(&self.device);
        self.evicts = false;
    }

    /// Turns bits of one byte over, in the cache and on the device: rot at rest.
    ///
    /// # Panics
    /// When the file is shorter.
    pub fn rot(&mut self, offset: usize, mask: u8) {
        let cache = Rc::make_mut(&mut self.cache);
        *cache.get_mut(offset).expect("rot lies within the file") ^= mask;
        if let Some(byte) = Rc::make_mut(&mut self.device).get_mut(offset) {
            *byte ^= mask;
        }
    }

    fn settle_sector(&mut self, index: usize, offset: usize, bytes: &[u8]) {
        let start = index * SECTOR_BYTES;
        if offset <= start && start + SECTOR_BYTES <= offset + bytes.len() {
            self.pending.remove(&index);
            return;
        }
        // Only a part of the sector is settled: no version may take that part back.
        for version in self.pending.get_mut(&index).into_iter().flatten() {
            for (at, byte) in version.iter_mut().enumerate() {
                let position = start + at;
                if let Some(new) = position.checked_sub(offset).and_then(|i| bytes.get(i)) {
                    *byte = *new;
                }
            }
        }
    }

    /// The length that a sync gives the device.
    fn length_to_come(&self) -> usize {
        let device = self.cut.map_or(self.device.len(), |cut| self.device.len().min(cut));
        self.pending_lengths.last().copied().unwrap_or(0).max(device)
    }

    fn lose_pending(&mut self, rng: &mut Rng) {
        let device = Rc::make_mut(&mut self.device);
        if let Some(cut) = self.cut.take().filter(|_| rng.coin()) {
            device.truncate(cut);
        }
        let lengths = std::mem::take(&mut self.pending_lengths);
        let chosen = rng.index(lengths.len() + 1);
        let length = chosen.checked_sub(1).and_then(|i| lengths.get(i)).copied();
        grow(device, length.unwrap_or(0));
        let mut chance = Survival::draw(rng);
        for (index, versions) in std::mem::take(&mut self.pending) {
            if let Some(version) = chance.survivor(index, &versions, rng) {
                splice_sector(device, index, version);
            }
        }
    }
}

/// How the sectors of one file fare in one crash. Fair coins for single sectors would almost never
/// keep a whole block and lose its neighbour, so runs of sectors share their luck.
struct Survival {
    run_sectors: usize,
    kept_in_16: u64,
    run: Option<(usize, bool)>,
}

impl Survival {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            run_sectors: rng.pick(&[1, 1, 8, 64]),
            kept_in_16: rng.pick(&[0, 1, 8, 15, 16]),
            run: None,
        }
    }

    fn survivor<'a>(
        &mut self,
        index: usize,
        versions: &'a [Sector],
        rng: &mut Rng,
    ) -> Option<&'a Sector> {
        let run = index / self.run_sectors;
        let kept = match self.run {
            Some((number, kept)) if number == run => kept,
            _ => rng.chance(self.kept_in_16, 16),
        };
        self.run = Some((run, kept));
        let newest = if rng.chance(3, 4) { versions.len() - 1 } else { rng.index(versions.len()) };
        versions.get(newest).filter(|_| kept)
    }
}

/// Versions between the first and the newest add little to the possible outcomes of a crash; a few
/// are kept.
fn remember<T>(versions: &mut Vec<T>, version: T) {
    if versions.len() == VERSIONS_MAX {
        versions.remove(VERSIONS_MAX / 2);
    }
    versions.push(version);
}

fn grow(content: &mut Vec<u8>, length: usize) {
    if content.len() < length {
        content.resize(length, 0);
    }
}

fn splice(content: &mut [u8], offset: usize, bytes: &[u8]) {
    content
        .get_mut(offset..offset + bytes.len())
        .expect("invariant: the content was grown to hold the bytes")
        .copy_from_slice(bytes);
}

/// Overwrites one sector as far as the content reaches.
fn splice_sector(content: &mut [u8], index: usize, version: &Sector) {
    let Some(sector) = content.chunks_mut(SECTOR_BYTES).nth(index) else { return };
    sector.copy_from_slice(version.split_at(sector.len()).0);
}

fn sector(content: &[u8], index: usize) -> Sector {
    let mut bytes = [0; SECTOR_BYTES];
    if let Some(source) = content.chunks(SECTOR_BYTES).nth(index) {
        bytes.split_at_mut(source.len()).0.copy_from_slice(source);
    }
    bytes
}

/// The sectors that a range touches.
fn sectors(offset: usize, bytes: usize) -> std::ops::Range<usize> {
    offset / SECTOR_BYTES..(offset + bytes).div_ceil(SECTOR_BYTES)
}

/// A write cut at sector boundaries, with the offset of each piece.
fn pieces(offset: usize, mut bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut pieces = Vec::new();
    let mut at = offset;
    while !bytes.is_empty() {
        let room = SECTOR_BYTES - at % SECTOR_BYTES;
        let (piece, rest) = bytes.split_at(room.min(bytes.len()));
        pieces.push((at, piece));
        at += piece.len();
        bytes = rest;
    }
    pieces
}

const VERSIONS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(byte: u8) -> Vec<u8> {
        vec![byte; SECTOR_BYTES]
    }

    /// Every outcome that many crashes of the same image have.
    fn outcomes(image: &Image) -> std::collections::BTreeSet<Vec<u8>> {
        (0..400)
            .map(|seed| {
                let mut crashed = image.clone();
                crashed.power_cut(&mut Rng::new(seed));
                assert_eq!(crashed.cache, crashed.device);
                // One letter a sector is enough to tell the outcomes apart.
                crashed.device.iter().step_by(SECTOR_BYTES).copied().collect()
            })
            .collect()
    }

    #[test]
    fn unsynced_sectors_keep_or_lose_writes() {
        let mut image = Image::default();
        image.write_synced(0, &filled(1).repeat(2));
        image.write(0, &filled(2));
        image.write(0, &filled(3));
        image.write(SECTOR_BYTES, &filled(4));
        let all: Vec<Vec<u8>> =
            [1, 2, 3].iter().flat_map(|a| [1, 4].map(|b| vec![*a, b])).collect();
        assert_eq!(outcomes(&image), all.into_iter().collect());
    }

    #[test]
    fn synced_write_settles_only_its_bytes() {
        let mut image = Image::default();
        image.write(0, &filled(1).repeat(3));
        image.write_synced(SECTOR_BYTES, &filled(2));
        let outcomes = outcomes(&image);
        assert!(outcomes.iter().all(|left| left.get(1) == Some(&2)), "{outcomes:?}");
        assert!(outcomes.contains(&vec![0, 2]), "length and neighbours are free: {outcomes:?}");
        assert!(outcomes.contains(&vec![1, 2, 1]), "{outcomes:?}");
    }

    #[test]
    fn synced_part_of_sector_stays() {
        let mut image = Image::default();
        image.write(0, &filled(1));
        image.write_synced(0, &[9, 9]);
        for seed in 0..100 {
            let mut crashed = image.clone();
            crashed.power_cut(&mut Rng::new(seed));
            assert_eq!(crashed.device[..2], [9, 9]);
        }
    }

    #[test]
    fn sync_leaves_nothing_to_lose() {
        let mut image = Image::default();
        image.write(0, &filled(1));
        image.write(SECTOR_BYTES, &[2; 10]);
        image.sync();
        assert_eq!(image.device().len(), SECTOR_BYTES + 10);
        assert_eq!(outcomes(&image), [vec![1, 2]].into());
    }

    #[test]
    fn shortened_file_returns_until_synced() {
        let mut image = Image::default();
        image.write_synced(0, &filled(1).repeat(3));
        image.shorten(SECTOR_BYTES);
        assert_eq!(image.cache().len(), SECTOR_BYTES);
        assert_eq!(outcomes(&image), [vec![1], vec![1, 1, 1]].into());
        let mut longer = image.clone();
        longer.write(SECTOR_BYTES, &filled(2));
        assert_eq!(longer.cache().len(), 2 * SECTOR_BYTES);
        assert!(outcomes(&longer).contains(&vec![1, 2, 1]), "{:?}", outcomes(&longer));
        longer.sync();
        assert_eq!(outcomes(&longer), [vec![1, 2]].into());
        let mut apart = image.clone();
        image.write_synced(SECTOR_BYTES, &filled(2));
        image.sync();
        assert_eq!(outcomes(&image), [vec![1, 2]].into());
        apart.write_synced(2 * SECTOR_BYTES, &filled(2));
        apart.sync();
        assert_eq!(apart.device(), apart.cache());
        let mut unsynced = Image::default();
        unsynced.write(0, &filled(1).repeat(3));
        unsynced.shorten(SECTOR_BYTES);
        unsynced.sync();
        assert_eq!(outcomes(&unsynced), [vec![1]].into());
    }

    #[test]
    fn failed_sync_makes_later_one_lie() {
        let lost_for_good = (0..100).any(|seed| {
            let mut image = Image::default();
            image.write_synced(0, &filled(1));
            image.write(0, &filled(2));
            image.fail_sync(&mut Rng::new(seed));
            let shown = image.cache[0] == 2;
            image.sync();
            image.power_cut(&mut Rng::new(seed));
            shown && image.cache[0] == 1
        });
        assert!(lost_for_good, "the cache showed it, the sync succeeded, the device never had it");
    }

    #[test]
    fn partial_write_is_cut_at_sectors() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut image = Image::default();
            image.write(0, &filled(0).repeat(3));
            let bytes = filled(1).repeat(3);
            image.write_part(0, &bytes, Extent::Prefix, &mut Rng::new(seed));
            seen.insert(image.cache.iter().step_by(SECTOR_BYTES).copied().collect::<Vec<u8>>());
        }
        let prefixes = [vec![0, 0, 0], vec![1, 0, 0], vec![1, 1, 0], vec![1, 1, 1]];
        assert_eq!(seen, prefixes.into());
    }
}
