//! A disk with calls that go wrong, over the one in memory.

use std::cell::Cell;

use journal::{Disk, DiskError, DiskErrorKind, WriteMode};

use super::{MemoryDisk, MemoryFile};

/// The disk calls that reads of frames and bodies need, and writes of bodies; without sync.
pub struct FaultyDisk<'a> {
    disk: &'a MemoryDisk,
    fault: Fault,
    /// The end of the furthest byte that was to be read.
    pub end: Cell<u64>,
}

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    None,
    /// The device refuses to read and to write.
    Refused,
    /// It gives only the first so many bytes.
    Short(usize),
    /// It flips that bit of the read bytes, if there are so many.
    Flipped(usize),
}

impl<'a> FaultyDisk<'a> {
    pub fn new(disk: &'a MemoryDisk, fault: Fault) -> Self {
        Self { disk, fault, end: Cell::new(0) }
    }

    fn refuse(&self, operation: &'static str) -> Result<(), DiskError> {
        let cause = "input/output error".into();
        let file = "a file".into();
        match self.fault {
            Fault::Refused => {
                Err(DiskError { kind: DiskErrorKind::Failed, operation, file, cause })
            }
            Fault::None | Fault::Short(_) | Fault::Flipped(_) => Ok(()),
        }
    }
}

impl Disk for FaultyDisk<'_> {
    type File = MemoryFile;

    fn read(&self, file: &MemoryFile, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.refuse("read")?;
        self.end.set(self.end.get().max(offset + buffer.len() as u64));
        let read = self.disk.read(file, offset, buffer)?;
        match self.fault {
            Fault::Short(bytes) => return Ok(read.min(bytes)),
            Fault::Flipped(bit) if bit / 8 < read => buffer[bit / 8] ^= 1 << (bit % 8),
            Fault::Flipped(_) | Fault::None | Fault::Refused => {}
        }
        Ok(read)
    }

    fn create(&self, name: &str) -> Result<MemoryFile, DiskError> {
        self.disk.create(name)
    }

    fn write(
        &self,
        file: &MemoryFile,
        offset: u64,
        buffer: &[u8],
        mode: WriteMode,
    ) -> Result<(), DiskError> {
        self.refuse("write")?;
        self.disk.write(file, offset, buffer, mode)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.disk.remove(name)
    }

    fn salt(&self) -> u64 {
        unreachable!("nothing here asks for it")
    }

    fn names(&self) -> Result<Vec<String>, DiskError> {
        unreachable!("nothing here asks for it")
    }

    fn open(&self, _: &str) -> Result<MemoryFile, DiskError> {
        unreachable!("nothing here asks for it")
    }

    fn length(&self, _: &MemoryFile) -> Result<u64, DiskError> {
        unreachable!("nothing here asks for it")
    }

    fn shorten(&self, _: &MemoryFile, _: u64) -> Result<(), DiskError> {
        unreachable!("nothing here asks for it")
    }

    fn sync(&self, _: &MemoryFile) -> Result<(), DiskError> {
        unreachable!("nothing here asks for it")
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        unreachable!("nothing here asks for it")
    }

    fn rename(&self, _: &str, _: &str) -> Result<(), DiskError> {
        unreachable!("nothing here asks for it")
    }
}
