//! A file read through a window, although some of its blocks may be unreadable.

use std::collections::BTreeSet;

use crate::{BLOCK_BYTES, Disk};

/// Bytes that the window reads at least.
const WINDOW_BYTES: usize = 1024 * 1024;
const _: () = assert!(WINDOW_BYTES.is_multiple_of(BLOCK_BYTES), "unreadable is a whole block");

/// A file and the part of it that is in memory. A block that the device cannot read counts as
/// zeros, which no checksum fits.
pub(super) struct Window<'a, D: Disk> {
    disk: &'a D,
    file: D::File,
    /// Length of the file.
    bytes: u64,
    /// The offset of `loaded` in the file.
    from: u64,
    loaded: Vec<u8>,
    /// The begins of the blocks that could not be read.
    unreadable: BTreeSet<u64>,
}

impl<'a, D: Disk> Window<'a, D> {
    /// A file of so many bytes.
    pub(super) fn new(disk: &'a D, file: D::File, bytes: u64) -> Self {
        Self { disk, file, bytes, from: 0, loaded: Vec::new(), unreadable: BTreeSet::new() }
    }

    /// Length of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Blocks that the device could not read so far.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable.len() as u64
    }

    /// `bytes` bytes from `offset` on, fewer if the file ends.
    pub(super) fn part(&mut self, offset: u64, bytes: usize) -> &[u8] {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        let here = offset.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
        let here = here.filter(|at| at.saturating_add(bytes) <= self.loaded.len());
        let at = match here {
            Some(at) => at,
            None => self.move_to(offset, bytes, left),
        };
        self.loaded.get(at..at.saturating_add(bytes)).unwrap_or_default()
    }

    /// Reads from `offset` on; returns where in `loaded` that is. Reading begins at a block, so
    /// that an unreadable block costs only itself.
    fn move_to(&mut self, offset: u64, bytes: usize, left: usize) -> usize {
        let into_block = (offset % BLOCK_BYTES as u64) as usize;
        self.from = offset - into_block as u64;
        let wanted = bytes.max(WINDOW_BYTES).min(left) + into_block;
        self.loaded.clear();
        self.loaded.resize(wanted, 0);
        match self.disk.read(&self.file, self.from, &mut self.loaded) {
            Ok(read) => self.loaded.truncate(read),
            Err(_) => self.read_by_block(),
        }
        into_block
    }

    fn read_by_block(&mut self) {
        let mut at = self.from;
        for block in self.loaded.chunks_mut(BLOCK_BYTES) {
            if self.disk.read(&self.file, at, block).is_err() {
                block.fill(0);
                self.unreadable.insert(at);
            }
            at += BLOCK_BYTES as u64;
        }
    }
}
