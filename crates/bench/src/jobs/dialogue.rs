//! One command, one reply, blocking: for the time before, between and after the measured phases.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::options::Target;
use super::reply::{Reply, parse};
use crate::error::BenchError;

/// A connection with one outstanding command at most.
#[derive(Debug)]
pub(crate) struct Dialogue<'a> {
    stream: TcpStream,
    input: Vec<u8>,
    reply_timeout: Duration,
    cancel: &'a AtomicBool,
}

impl<'a> Dialogue<'a> {
    /// No reply is waited for longer than the timeout, and none that is not there already once
    /// `cancel` is set.
    pub(crate) fn connect(
        target: &Target,
        reply_timeout: Duration,
        cancel: &'a AtomicBool,
    ) -> Result<Self, BenchError> {
        let stream = connect(target, reply_timeout.min(CONNECT_TIMEOUT))
            .map_err(|cause| BenchError::Connect { address: target.to_string(), cause })?;
        Ok(Self { stream, input: Vec::new(), reply_timeout, cancel })
    }

    /// Puts to this tube and reserves from no other.
    pub(crate) fn move_to(&mut self, tube: &str) -> Result<(), BenchError> {
        self.ask(&format!("use {tube}"), is_tube)?;
        self.ask(&format!("watch {tube}"), is_tube)?;
        if tube != "default" {
            self.ask("ignore default", is_tube)?;
        }
        Ok(())
    }

    /// The server's counters, as text by key.
    pub(crate) fn stats(&mut self) -> Result<BTreeMap<String, String>, BenchError> {
        self.ask("stats", yaml_map)
    }

    /// How many jobs the tube holds in every state; a tube that is not there holds none.
    pub(crate) fn tube_jobs(&mut self, tube: &str) -> Result<TubeJobs, BenchError> {
        self.ask(&format!("stats-tube {tube}"), |reply| {
            if reply == Reply::Refused("NOT_FOUND") {
                return Some(TubeJobs { ready: 0, others: 0 });
            }
            let stats = yaml_map(reply)?;
            let count = |state| stats.get(&format!("current-jobs-{state}"))?.parse::<u64>().ok();
            Some(TubeJobs {
                ready: count("ready")?,
                others: count("reserved")? + count("delayed")? + count("buried")?,
            })
        })
    }

    /// The address of the server.
    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// The bare connection, on which nothing is outstanding.
    pub(crate) fn into_stream(self) -> TcpStream {
        assert!(self.input.is_empty(), "invariant: ask() takes the whole reply");
        self.stream
    }

    /// Sends a command and hands its reply to `take`, which gives `None` for a reply that does not
    /// fit.
    fn ask<T>(
        &mut self,
        command: &str,
        take: impl FnOnce(Reply<'_>) -> Option<T>,
    ) -> Result<T, BenchError> {
        let lost = |cause| BenchError::Lost { doing: asking(command), cause: Some(cause) };
        self.stream.write_all(format!("{command}\r\n").as_bytes()).map_err(lost)?;
        let deadline = Instant::now() + self.reply_timeout;
        loop {
            match parse(&self.input, STATS_BYTES_MAX) {
                Ok(None) => self.read_before(deadline, command)?,
                Ok(Some((reply, bytes))) if bytes == self.input.len() => {
                    let refused = refusal(reply);
                    let taken = take(reply);
                    let answer = taken.ok_or_else(|| misfit(command, refused, &self.input));
                    self.input.clear();
                    return answer;
                }
                _ => return Err(BenchError::garbage(asking(command), &self.input)),
            }
        }
    }

    fn read_before(&mut self, deadline: Instant, command: &str) -> Result<(), BenchError> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) if self.input.is_empty() => {
                Err(BenchError::Lost { doing: asking(command), cause: None })
            }
            Ok(0) => Err(BenchError::garbage(asking(command), &self.input)),
            Ok(bytes) => {
                self.input.extend(chunk.get(..bytes).unwrap_or_default());
                Ok(())
            }
            Err(error) if is_transient(&error) => self.check_wait(deadline, command),
            Err(error) => Err(BenchError::Lost { doing: asking(command), cause: Some(error) }),
        }
    }

    fn check_wait(&self, deadline: Instant, command: &str) -> Result<(), BenchError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(BenchError::Cancelled);
        }
        if Instant::now() < deadline {
            return Ok(());
        }
        Err(BenchError::Silent { doing: asking(command), waited: self.reply_timeout })
    }
}

/// Counts of the jobs in a tube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TubeJobs {
    /// Ready to be reserved.
    pub(crate) ready: u64,
    /// Reserved, delayed or buried.
    pub(crate) others: u64,
}

fn connect(target: &Target, timeout: Duration) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in target.host_and_port().to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A blocking read gives up with `WouldBlock` when its time is over.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn asking(command: &str) -> String {
    format!("asking \"{command}\"")
}

fn is_tube(reply: Reply<'_>) -> Option<()> {
    (reply == Reply::Tube).then_some(())
}

fn refusal(reply: Reply<'_>) -> Option<&'static str> {
    match reply {
        Reply::Refused(word) => Some(word),
        _ => None,
    }
}

fn misfit(command: &str, refused: Option<&'static str>, input: &[u8]) -> BenchError {
    match refused {
        Some(reply) => BenchError::Refused { doing: asking(command), reply },
        None => BenchError::garbage(asking(command), input),
    }
}

/// A flat YAML map as beanstalkd servers write it: `key: value` lines, values perhaps quoted.
fn yaml_map(reply: Reply<'_>) -> Option<BTreeMap<String, String>> {
    let Reply::Ok(text) = reply else { return None };
    let pairs = std::str::from_utf8(text).ok()?.lines().filter_map(|line| line.split_once(": "));
    Some(pairs.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned())).collect())
}

/// Between two looks at the clock and at whether the run was called off.
const PATIENCE: Duration = Duration::from_millis(100);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Far above the 1.5 KiB of any server seen.
const STATS_BYTES_MAX: usize = 64 * 1024;
