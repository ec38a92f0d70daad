//! CPU time and memory, of this thread and of a server on this machine.

use std::fs;
use std::time::Duration;

use crate::processor;

/// The server's process, as far as this machine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProcess {
    /// Its number.
    pub pid: u32,
    /// Its command, to let a reader see that the number means the server.
    pub name: String,
}

/// Resources that a server used during one phase.
#[derive(Clone, Copy, Debug)]
pub struct ServerUsage {
    /// CPU time over all its threads.
    pub cpu: Duration,
    /// Resident memory at the end; with an embedded server that of the whole process.
    pub resident_bytes: u64,
}

/// Takes the CPU time of this thread and of a server from one moment to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    client_cpu: Duration,
    server: Option<ServerUsage>,
}

impl Meter {
    pub(crate) fn start(server: Option<&ServerProcess>) -> Self {
        Self { client_cpu: processor::of_thread(), server: server.and_then(ServerProcess::usage) }
    }

    /// Resources that this thread and the same server used since the start.
    pub(crate) fn read(&self, server: Option<&ServerProcess>) -> (Duration, Option<ServerUsage>) {
        let now = Self::start(server);
        let used = self.server.zip(now.server).map(|(before, after)| ServerUsage {
            cpu: after.cpu.saturating_sub(before.cpu),
            resident_bytes: after.resident_bytes,
        });
        (now.client_cpu.saturating_sub(self.client_cpu), used)
    }
}

impl ServerProcess {
    /// `None` if there is no such process here.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned();
        Some(Self { pid, name })
    }

    /// Up to now; `None` once the process is gone. An embedded server shares its process with the
    /// thread that asks; the CPU time of that is not the server's.
    fn usage(&self) -> Option<ServerUsage> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
        let cpu = cpu_of(&stat)?;
        let own =
            if self.pid == std::process::id() { processor::of_thread() } else { Duration::ZERO };
        Some(ServerUsage {
            cpu: cpu.saturating_sub(own),
            resident_bytes: pages * rustix::param::page_size() as u64,
        })
    }
}

/// User and system time from `/proc/PID/stat`; the name in front may hold anything, also brackets.
fn cpu_of(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_times_parse_behind_any_name() {
        let stat = "7 (a) b) (c) S 1 7 7 0 -1 4194560 1 0 0 0 300 200 0 0 20 0 1 0 5 6 7";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_of(stat), Some(Duration::from_secs_f64(500.0 / ticks)));
        assert_eq!(cpu_of("nonsense"), None);
    }

    #[test]
    fn process_is_found_by_its_id() {
        let this = ServerProcess::find(std::process::id()).unwrap();
        assert!(this.usage().unwrap().resident_bytes > 0);
        assert_eq!(ServerProcess::find(u32::MAX), None);
    }
}
