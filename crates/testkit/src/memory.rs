//! The memory of a test's own process.

/// Bytes that this process has in memory. A test that compares them needs a process of its own.
///
/// # Panics
/// On systems other than Linux.
#[must_use]
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}
