//! Bytes that Dunlin has written and its syncs, from the counters that it writes to its log when
//! asked.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::server::Server;

/// A server that is asked answers at once, or has ended.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// For so long nothing was flushed: then nothing is being prepared.
const REST_SPAN: Duration = Duration::from_millis(500);

/// A slow disk may be measured before its files are ready.
const REST_MAX: Duration = Duration::from_secs(10);

/// Bytes and syncs of the disk since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) bytes: u64,
    pub(crate) syncs: u64,
}

/// How often the disk was synced since the start; nothing where there is none, or no answer.
pub(crate) fn syncs(server: &Server, log: &Path) -> Result<Option<u64>> {
    Ok(disk(server, log)?.map(|disk| disk.syncs))
}

/// Bytes and syncs of the disk since the start; `None` without a disk or an answer.
pub(crate) fn disk(server: &Server, log: &Path) -> Result<Option<Disk>> {
    let answers = |text: &str| text.matches("  disk: ").count();
    let earlier = answers(&fs::read_to_string(log)?);
    server.ask_counters()?;
    let end = Instant::now() + ANSWER_MAX;
    while Instant::now() < end {
        let text = fs::read_to_string(log)?;
        if answers(&text) > earlier && text.ends_with('\n') {
            return Ok(last(&text));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(None)
}

/// Waits until a new broker has prepared its files: its flushes for that belong to no message.
pub(crate) fn await_rest(server: &Server, log: &Path) -> Result<()> {
    let end = Instant::now() + REST_MAX;
    let mut before = syncs(server, log)?;
    while before.is_some() && Instant::now() < end {
        thread::sleep(REST_SPAN);
        let now = syncs(server, log)?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(())
}

/// The last `disk: 9 writes (99 bytes), 9 syncs`. A broker that keeps nothing has no disk.
fn last(log: &str) -> Option<Disk> {
    let line = log.lines().rev().find(|line| line.starts_with("  disk: "))?;
    let (bytes, syncs) = line.split_once('(')?.1.split_once(" bytes), ")?;
    let syncs = syncs.strip_suffix(" syncs")?;
    Some(Disk { bytes: bytes.parse().ok()?, syncs: syncs.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_count_is_read() {
        let log = "  disk: 1 writes (4096 bytes), 1 syncs\n  queued:  1 writes\n\
                   counters: 0 connections\n  disk: 9559 writes (120508424 bytes), 9286 syncs\n";
        assert_eq!(last(log), Some(Disk { bytes: 120_508_424, syncs: 9286 }));
    }

    #[test]
    fn other_lines_have_no_count() {
        assert_eq!(last("  log: 3 frames, 9 syncs\n"), None);
    }
}
