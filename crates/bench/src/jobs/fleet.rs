//! All clients of a run, driven by one thread over epoll.
//!
//! One thread, because client and server mostly share the cores of one machine: processor time of
//! the client is missing from the server. A turn reads a socket until it is empty, takes every
//! reply and writes everything that follows from them at once.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};

use super::connection::{Broken, Connection};
use super::dialogue::Dialogue;
use super::options::Options;
use super::work::Work;
use crate::error::BenchError;

/// The connections, and the epoll that watches them.
#[derive(Debug)]
pub(crate) struct Fleet {
    connections: Vec<Connection>,
    epoll: OwnedFd,
    scratch: Vec<u8>,
    reply_timeout: Duration,
}

impl Fleet {
    /// Connects all clients to the tube.
    pub(crate) fn connect(
        options: &Options,
        tube: &str,
        cancel: &AtomicBool,
    ) -> Result<Self, BenchError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(watch)?;
        let mut connections = Vec::with_capacity(options.clients);
        for index in 0..options.clients {
            let mut dialogue = Dialogue::connect(&options.target, options.reply_timeout, cancel)?;
            dialogue.move_to(tube)?;
            let connection = Connection::new(dialogue.into_stream(), options.pipeline)
                .map_err(BenchError::io("make a socket non-blocking"))?;
            let index = epoll::EventData::new_u64(index as u64);
            epoll::add(&epoll, &connection, index, epoll::EventFlags::IN).map_err(watch)?;
            connections.push(connection);
        }
        let scratch = vec![0; SCRATCH_BYTES.max(2 * options.body_bytes)];
        Ok(Self { connections, epoll, scratch, reply_timeout: options.reply_timeout })
    }

    /// Drives the work to its end, or until `cancel` is set; calls `tick` ten times a second.
    pub(crate) fn drive(
        &mut self,
        work: &mut Work<'_>,
        cancel: &AtomicBool,
        tick: &mut dyn FnMut(&Work<'_>),
    ) -> Result<(), BenchError> {
        for index in 0..self.connections.len() {
            self.turn(index, epoll::EventFlags::OUT, work)?;
        }
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut ticked = Instant::now();
        while !work.is_finished() && !cancel.load(Ordering::Relaxed) {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                self.turn(event.data.u64() as usize, event.flags, work)?;
            }
            let now = Instant::now();
            if now - ticked >= TICK {
                ticked = now;
                self.check_silence(work, now)?;
                tick(work);
            }
        }
        Ok(())
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> Result<(), BenchError> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        let buffer = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, buffer, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(watch(error)),
        }
    }

    /// Reads if something came, and writes as many bytes as the socket takes.
    fn turn(
        &mut self,
        index: usize,
        ready: epoll::EventFlags,
        work: &mut Work<'_>,
    ) -> Result<(), BenchError> {
        let Some(connection) = self.connections.get_mut(index) else { return Ok(()) };
        let was_blocked = connection.is_blocked();
        let now = Instant::now();
        let received = match ready == epoll::EventFlags::OUT {
            true => Ok(()),
            // An error or a hang-up shows itself when read.
            false => connection.receive(&mut self.scratch, work, now),
        };
        received
            .and_then(|()| connection.send(work, now))
            .map_err(|broken| explain(broken, index, work))?;
        if connection.is_blocked() == was_blocked {
            return Ok(());
        }
        let room = if was_blocked { epoll::EventFlags::empty() } else { epoll::EventFlags::OUT };
        let data = epoll::EventData::new_u64(index as u64);
        epoll::modify(&self.epoll, connection, data, epoll::EventFlags::IN | room).map_err(watch)
    }

    fn check_silence(&self, work: &Work<'_>, now: Instant) -> Result<(), BenchError> {
        for (index, connection) in self.connections.iter().enumerate() {
            let Some((verb, waited)) = connection.oldest(now) else { continue };
            if waited >= self.reply_timeout {
                let doing = format!("{}, waiting for {}", doing(index, work), verb.name());
                return Err(BenchError::Silent { doing, waited });
            }
        }
        Ok(())
    }
}

fn explain(broken: Broken, index: usize, work: &Work<'_>) -> BenchError {
    let doing = doing(index, work);
    match broken {
        Broken::Lost(cause) => BenchError::Lost { doing, cause },
        Broken::Garbage(bytes) => BenchError::garbage(doing, &bytes),
    }
}

fn doing(index: usize, work: &Work<'_>) -> String {
    let (step, tally) = (work.step().name(), work.tally());
    format!("in {step} ({} of {} jobs done, client {index})", tally.done(), tally.total())
}

fn watch(error: rustix::io::Errno) -> BenchError {
    BenchError::Io { doing: "watch the connections".to_owned(), cause: error.into() }
}

const EVENTS_MAX: usize = 256;
const TICK: Duration = Duration::from_millis(100);
/// Takes a burst of replies from a deep pipeline in one read; a body of 128 KiB and more gets
/// twice its length.
const SCRATCH_BYTES: usize = 256 * 1024;
