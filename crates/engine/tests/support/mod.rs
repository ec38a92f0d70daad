//! Helpers that the engine's integration tests share.
#![allow(dead_code, reason = "each test uses its part of it")]

pub(crate) mod keying;
pub(crate) mod listing;
pub(crate) mod lists;
pub(crate) mod log;
pub(crate) mod naive;
pub(crate) mod naive_keys;
pub(crate) mod operating;
pub(crate) mod paging;
pub(crate) mod script;

/// Bytes that this process has in memory.
#[cfg(target_os = "linux")]
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}
