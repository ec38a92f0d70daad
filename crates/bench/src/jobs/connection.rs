//! One client of the measured phases: a non-blocking socket, the bytes that it has yet to write and
//! the commands that wait for a reply.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::dialogue::is_transient;
use super::reply::parse;
use super::work::{Verb, Work};

/// A connection; the index by which messages name it is the fleet's.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    written: usize,
    /// The beginning of a reply that has not come as a whole.
    kept: Vec<u8>,
    unanswered: VecDeque<(Verb, Instant)>,
    /// How many of the unanswered commands are not on their way yet.
    queued: usize,
    is_blocked: bool,
    pipeline: usize,
}

/// Why a connection cannot go on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Closed by the server, or with an error.
    Lost(Option<io::Error>),
    /// No reply, or not one to the command that waits first.
    Garbage(Vec<u8>),
}

impl Connection {
    /// Takes over a connection on which nothing is outstanding.
    pub(crate) fn new(stream: TcpStream, pipeline: usize) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            out: Vec::new(),
            written: 0,
            kept: Vec::new(),
            unanswered: VecDeque::with_capacity(pipeline),
            queued: 0,
            is_blocked: false,
            pipeline,
        })
    }

    /// Starts as many jobs as may be outstanding and writes, in one write when the socket takes it.
    ///
    /// Waits until half the pipeline is to be written, or nothing is on its way: a server that
    /// answers one by one would else get its next commands one by one, and there were no pipeline.
    pub(crate) fn send(&mut self, work: &mut Work<'_>, now: Instant) -> Result<(), Broken> {
        loop {
            self.fill(work, now);
            if self.out.is_empty() || !(self.is_blocked || self.is_worth_a_write()) {
                return Ok(());
            }
            self.stamp(now);
            if !self.flush().map_err(|error| Broken::Lost(Some(error)))? {
                return Ok(());
            }
        }
    }

    /// Reads the bytes that have come and takes every whole reply. `scratch` is longer than any
    /// reply; one for all connections keeps their own memory small and the cache warm.
    pub(crate) fn receive(
        &mut self,
        scratch: &mut [u8],
        work: &mut Work<'_>,
        now: Instant,
    ) -> Result<(), Broken> {
        loop {
            let (before, space) = scratch.split_at_mut(self.kept.len());
            before.copy_from_slice(&self.kept);
            let Some(bytes) = self.read(space)? else { return Ok(()) };
            let drained = bytes < space.len();
            let filled = self.kept.len() + bytes;
            let input = scratch.get(..filled).unwrap_or_default();
            let taken = self.take_replies(input, work, now)?;
            self.kept.clear();
            self.kept.extend_from_slice(input.get(taken..).unwrap_or_default());
            if drained {
                return Ok(());
            }
        }
    }

    /// True if the socket did not take everything; it must then be watched for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// The oldest command, and how long it has waited.
    pub(crate) fn oldest(&self, now: Instant) -> Option<(Verb, Duration)> {
        let (verb, sent) = self.unanswered.front()?;
        Some((*verb, now.saturating_duration_since(*sent)))
    }

    fn fill(&mut self, work: &mut Work<'_>, now: Instant) {
        while self.unanswered.len() < self.pipeline && self.out.len() < OUT_BYTES_FULL {
            let Some(verb) = work.start(&mut self.out) else { return };
            self.unanswered.push_back((verb, now));
            self.queued += 1;
        }
    }

    fn is_worth_a_write(&self) -> bool {
        2 * self.queued >= self.pipeline
            || self.queued == self.unanswered.len()
            || self.out.len() >= OUT_BYTES_FULL
    }

    /// Latency counts from when a command leaves.
    fn stamp(&mut self, now: Instant) {
        let queued = self.unanswered.iter_mut().rev().take(self.queued);
        queued.for_each(|(_, sent)| *sent = now);
        self.queued = 0;
    }

    /// False if the socket took only a part.
    fn flush(&mut self) -> io::Result<bool> {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        self.is_blocked = false;
        Ok(true)
    }

    /// `None` if nothing has come.
    fn read(&mut self, space: &mut [u8]) -> Result<Option<usize>, Broken> {
        match self.stream.read(space) {
            Ok(0) if self.kept.is_empty() => Err(Broken::Lost(None)),
            Ok(0) => Err(Broken::Garbage(std::mem::take(&mut self.kept))),
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(Broken::Lost(Some(error))),
        }
    }

    /// Returns how many bytes the whole replies took.
    fn take_replies(
        &mut self,
        input: &[u8],
        work: &mut Work<'_>,
        now: Instant,
    ) -> Result<usize, Broken> {
        let mut rest = input;
        loop {
            let garbage = || Broken::Garbage(rest.to_vec());
            let (reply, bytes) = match parse(rest, work.body_bytes_max()) {
                Ok(None) => return Ok(input.len() - rest.len()),
                Ok(Some(parsed)) => parsed,
                Err(_) => return Err(garbage()),
            };
            if self.queued == self.unanswered.len() {
                // A reply to nothing that was sent.
                return Err(garbage());
            }
            let (verb, sent) = self.unanswered.pop_front().ok_or_else(garbage)?;
            let next = work.answer(verb, reply, (sent, now), &mut self.out);
            if let Some(verb) = next.map_err(|_| garbage())? {
                self.unanswered.push_back((verb, now));
                self.queued += 1;
            }
            rest = rest.get(bytes..).unwrap_or_default();
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// No more jobs are started on a connection that has so much to write: deep pipelines of large
/// bodies would otherwise fill the memory before the first byte leaves.
const OUT_BYTES_FULL: usize = 256 * 1024;
