//! Resources that a system used: processors, memory and disk, as the kernel counts them, so that
//! all systems are counted alike.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

use crate::Result;

/// Linux counts processor time in hundredths of a second, independent of its own clock.
const TICK_NANOS: u64 = 10_000_000;

/// Sums since the processes began; flushes since the machine did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpu_nanos: u64,
    /// Given to the file system to be stored, in whole pages where it is not direct.
    pub(super) written_bytes: u64,
    /// Flushes of the disk's cache, by any process: one for each sync, if nothing else runs.
    pub(super) flushes: u64,
}

impl Usage {
    /// Of a process with all that it started, and of the disk under `folder`.
    ///
    /// # Errors
    /// When there is no such folder.
    pub(super) fn of(pid: u32, folder: &Path) -> Result<Usage> {
        let mut usage = Usage { flushes: flushes(folder)?, ..Usage::default() };
        for pid in family(pid) {
            let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
            usage.cpu_nanos += TICK_NANOS * ticks(&read("stat").unwrap_or_default());
            usage.written_bytes += number(&read("io").unwrap_or_default(), "write_bytes");
        }
        Ok(usage)
    }

    pub(super) fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_nanos: self.cpu_nanos.saturating_sub(earlier.cpu_nanos),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
        }
    }
}

/// Memory that a process and its descendants hold for themselves, in bytes.
pub(super) fn memory_bytes(pid: u32) -> u64 {
    let kilobytes = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        // Memory shared with others, such as PostgreSQL's buffers, would count for each.
        number(&status, "RssAnon")
    };
    family(pid).into_iter().map(kilobytes).sum::<u64>() << 10
}

/// Bytes of the files in a folder, as its file system stores them.
pub(super) fn stored_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => stored_bytes(&entry.path()),
        Ok(found) => found.st_blocks() * 512,
        // It was removed meanwhile.
        Err(_) => 0,
    };
    entries.filter_map(|entry| entry.ok()).map(size).sum()
}

/// A process and its descendants.
fn family(pid: u32) -> Vec<u32> {
    let mut pairs = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| entry.ok()) {
        let name = entry.file_name();
        let Some(own) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        pairs.push((own, field(&stat, 1) as u32));
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(own, _)| *own));
        next += 1;
    }
    found
}

/// Fields of `/proc/PID/stat` behind the name, which may hold anything: state, parent, …
fn field(stat: &str, place: usize) -> u64 {
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').nth(place).and_then(|field| field.parse().ok()).unwrap_or_default()
}

/// From `/proc/PID/stat` of their parent, which has waited for them.
pub(super) fn ended_children_cpu_nanos(stat: &str) -> u64 {
    TICK_NANOS * (field(stat, 13) + field(stat, 14))
}

/// Of the user and of the system, with those of the children that have ended. The kernel itself
/// adds the bytes that they wrote to their parent's counters.
fn ticks(stat: &str) -> u64 {
    [11, 12, 13, 14].into_iter().map(|place| field(stat, place)).sum()
}

/// The number of a line `name: 123 kB`.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn flushes(folder: &Path) -> Result<u64> {
    let device = fs::metadata(folder)?.st_dev();
    // As the C library takes them apart.
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    Ok(disk_flushes(&fs::read_to_string("/proc/diskstats")?, major, minor))
}

/// The sixteenth of a disk's counters; 0 where the kernel has no such disk.
fn disk_flushes(text: &str, major: u64, minor: u64) -> u64 {
    let find = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = *fields.first()? == major.to_string() && *fields.get(1)? == minor.to_string();
        if is_it { fields.get(18)?.parse().ok() } else { None }
    };
    text.lines().find_map(find).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_are_of_the_right_disk() {
        let text = " 254  0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 77 17\n \
                    254 16 vdb 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 88 17\n";
        assert_eq!(disk_flushes(text, 254, 16), 88);
        assert_eq!(disk_flushes(text, 8, 0), 0);
    }

    #[test]
    fn process_may_have_any_name() {
        let stat = "7 (a) b) S 3 7 7 0 -1 0 1 2 3 4 120 30 7 3 20";
        assert_eq!(field(stat, 1), 3);
        assert_eq!(ticks(stat), 160);
        assert_eq!(ended_children_cpu_nanos(stat), 10 * TICK_NANOS);
    }

    #[test]
    fn this_process_uses_memory_and_processors() {
        assert!(memory_bytes(std::process::id()) > 0);
        assert!(family(std::process::id()).contains(&std::process::id()));
        assert_eq!(number("rchar: 5\nwrite_bytes: 4096\n", "write_bytes"), 4096);
    }

    #[test]
    fn since_counts_the_difference() {
        let earlier = Usage { cpu_nanos: 1, written_bytes: 2, flushes: 3 };
        let later = Usage { cpu_nanos: 11, written_bytes: 22, flushes: 33 };
        let between = Usage { cpu_nanos: 10, written_bytes: 20, flushes: 30 };
        assert_eq!(later.since(earlier), between);
    }
}
