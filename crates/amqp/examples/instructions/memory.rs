//! Files in memory: the cost of a log without the cost of a disk.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use journal::{Disk, DiskError, WriteMode};

/// A directory of files in memory.
#[derive(Default)]
pub(crate) struct Memory {
    files: RefCell<BTreeMap<String, File>>,
}

/// Its content.
pub(crate) type File = Rc<RefCell<Vec<u8>>>;

impl Disk for Memory {
    type File = File;

    fn salt(&self) -> u64 {
        1
    }

    fn names(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.files.borrow().keys().cloned().collect())
    }

    fn create(&self, name: &str) -> Result<File, DiskError> {
        let file = File::default();
        self.files.borrow_mut().insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> Result<File, DiskError> {
        Ok(self.files.borrow()[name].clone())
    }

    fn length(&self, file: &File) -> Result<u64, DiskError> {
        Ok(file.borrow().len() as u64)
    }

    fn read(&self, file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let bytes = file.borrow();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = buffer.len().min(rest.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: &[u8],
        _mode: WriteMode,
    ) -> Result<(), DiskError> {
        let (start, end) = (offset as usize, offset as usize + buffer.len());
        let mut bytes = file.borrow_mut();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(buffer);
        Ok(())
    }

    fn shorten(&self, file: &File, to: u64) -> Result<(), DiskError> {
        file.borrow_mut().truncate(to as usize);
        Ok(())
    }

    fn sync(&self, _file: &File) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut files = self.files.borrow_mut();
        let file = files.remove(from).unwrap();
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.files.borrow_mut().remove(name);
        Ok(())
    }
}
