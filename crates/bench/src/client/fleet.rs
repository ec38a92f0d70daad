//! All clients of a phase, driven by one thread over epoll.
//!
//! One thread for the same reason as with `jobs`: client and broker mostly share the cores of one
//! machine, and processor time of clients is missing from the broker.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::{Event, Wrong};
use rustix::event::{Timespec, epoll};

use super::connection::{self, Connection};
use super::field::Field;
use super::target::Target;
use super::work::Work;
use crate::Progress;
use crate::error::BenchError;

/// The broker on which phases run, and the observer of their progress.
pub(crate) struct Stage<'a> {
    pub(crate) target: Target,
    /// Set when the run is called off.
    pub(crate) cancel: &'a AtomicBool,
    /// Told some ten times a second how far a phase is.
    pub(crate) watch: &'a mut dyn FnMut(&Progress),
}

impl Stage<'_> {
    /// True if the run was called off.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Lets each of the workers do its part, on a connection of its own, until all are done. When
    /// the run is called off, no worker begins anything more; begun transactions are ended, and
    /// sent messages are taken away.
    ///
    /// # Errors
    /// Any that leaves no figures. Faults of the broker are in the field.
    pub(crate) fn run(
        &mut self,
        label: &str,
        workers: Vec<Box<dyn Work + '_>>,
        field: &mut Field,
    ) -> Result<(), BenchError> {
        let mut fleet = Fleet::connect(&self.target, label, workers)?;
        // Sent messages are taken away, also when the run was called off.
        let is_clearing = field.producing == 0;
        fleet.prepare(|| self.is_cancelled() && !is_clearing)?;
        field.start(Instant::now());
        for index in 0..fleet.clients.len() {
            fleet.turn(index, epoll::EventFlags::OUT, Some(field))?;
        }
        fleet.drive(self, field)?;
        fleet.close();
        Ok(())
    }
}

/// The clients, and the epoll that watches them.
struct Fleet<'w> {
    clients: Vec<Client<'w>>,
    epoll: OwnedFd,
    scratch: Vec<u8>,
    target: Target,
    label: String,
    heard: Instant,
}

struct Client<'w> {
    connection: Connection,
    work: Box<dyn Work + 'w>,
    is_watched_for_room: bool,
}

/// Why a client cannot go on.
enum Broken {
    Socket(io::Error),
    Protocol(Wrong),
}

impl Client<'_> {
    /// Reads if something came, works, and writes as many bytes as the socket takes. True if the
    /// broker sent something that matters: a sign of life does not.
    fn turn(
        &mut self,
        something_came: bool,
        scratch: &mut [u8],
        mut field: Option<&mut Field>,
        now: Instant,
    ) -> Result<bool, Broken> {
        let (mut more, mut heard) = (something_came, false);
        loop {
            if more {
                more = self.connection.read(scratch).map_err(Broken::Socket)?;
            }
            heard |= self.hear(field.as_deref_mut(), now).map_err(Broken::Protocol)?;
            if let Some(field) = field.as_deref_mut() {
                self.work.turn(&mut self.connection.session, field, now);
            }
            if !more {
                return self.connection.flush(now).map(|()| heard).map_err(Broken::Socket);
            }
        }
    }

    /// Works on everything that came; whether that was anything.
    fn hear(&mut self, mut field: Option<&mut Field>, now: Instant) -> Result<bool, Wrong> {
        let (session, work) = (&mut self.connection.session, &mut self.work);
        let mut heard = false;
        while let Some(event) = session.poll_event()? {
            match (event, field.as_deref_mut()) {
                (Event::Opened, _) => work.attach(session),
                (event, Some(field)) => work.handle(event, session, field, now),
                (_, None) => {}
            }
            heard = true;
        }
        Ok(heard)
    }
}

impl Broken {
    /// As an error for the user.
    fn explain(self, target: &Target, label: &str) -> BenchError {
        match self {
            Broken::Protocol(wrong) => connection::explain(wrong, target, label),
            Broken::Socket(error) => {
                let is_end = error.kind() == io::ErrorKind::UnexpectedEof;
                BenchError::Lost { doing: label.to_owned(), cause: (!is_end).then_some(error) }
            }
        }
    }
}

impl<'w> Fleet<'w> {
    fn connect(
        target: &Target,
        label: &str,
        workers: Vec<Box<dyn Work + 'w>>,
    ) -> Result<Self, BenchError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(watching)?;
        let mut clients = Vec::with_capacity(workers.len());
        for (index, work) in workers.into_iter().enumerate() {
            let connection = Connection::open(target, &container())?;
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&epoll, &connection, data, epoll::EventFlags::IN).map_err(watching)?;
            clients.push(Client { connection, work, is_watched_for_room: false });
        }
        Ok(Self {
            clients,
            epoll,
            scratch: vec![0; SCRATCH_BYTES],
            target: target.clone(),
            label: label.to_owned(),
            heard: Instant::now(),
        })
    }

    /// Until every client has its links.
    fn prepare(&mut self, is_called_off: impl Fn() -> bool) -> Result<(), BenchError> {
        for index in 0..self.clients.len() {
            self.turn(index, epoll::EventFlags::OUT, None)?;
        }
        while !self.clients.iter().all(|client| client.connection.session.is_ready()) {
            if is_called_off() {
                return Err(BenchError::Cancelled);
            }
            self.wait(None)?;
            self.check_silence("opening; is it a listener of AMQP 1.0?", OPENING_MAX)?;
        }
        Ok(())
    }

    /// Until every worker is done, or only waits for messages that do not come.
    fn drive(&mut self, stage: &mut Stage<'_>, field: &mut Field) -> Result<(), BenchError> {
        let mut ticked = Instant::now();
        let mut cancelled = None;
        while !self.clients.iter().all(|client| client.work.is_done()) {
            self.wait(Some(field))?;
            let now = Instant::now();
            if stage.is_cancelled() {
                field.stop();
                let since = *cancelled.get_or_insert(now);
                if now - since > CLEARING_MAX {
                    return Ok(());
                }
            }
            if now - ticked < TICK {
                continue;
            }
            ticked = now;
            self.tick(field)?;
            let (done, total) = field.progress(now);
            (stage.watch)(&Progress { phase: &self.label, done, total });
            let is_quiet = now.saturating_duration_since(self.heard) > SILENCE_MAX;
            if is_quiet && field.producing == 0 {
                // Missing messages are lost, as the ledger will tell.
                return Ok(());
            }
            self.check_silence("waiting for answers", SILENCE_MAX)?;
        }
        Ok(())
    }

    /// Performs the work that is due by the clock.
    fn tick(&mut self, field: &mut Field) -> Result<(), BenchError> {
        for index in 0..self.clients.len() {
            self.turn(index, epoll::EventFlags::OUT, Some(field))?;
        }
        let now = Instant::now();
        for client in &mut self.clients {
            let stayed = client.connection.stay_alive(now).map_err(Broken::Socket);
            stayed.map_err(|broken| broken.explain(&self.target, &self.label))?;
        }
        Ok(())
    }

    fn wait(&mut self, mut field: Option<&mut Field>) -> Result<(), BenchError> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        let buffer = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, buffer, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(watching(error)),
        }
        for event in &events {
            self.turn(event.data.u64() as usize, event.flags, field.as_deref_mut())?;
        }
        Ok(())
    }

    /// Lets a client work as far as it can; without a field it only gets ready.
    fn turn(
        &mut self,
        index: usize,
        ready: epoll::EventFlags,
        field: Option<&mut Field>,
    ) -> Result<(), BenchError> {
        let Some(client) = self.clients.get_mut(index) else { return Ok(()) };
        let now = Instant::now();
        // An error or a hang-up shows itself when read.
        let something_came = ready != epoll::EventFlags::OUT;
        let turned = client.turn(something_came, &mut self.scratch, field, now);
        let heard = turned.map_err(|broken| broken.explain(&self.target, &self.label))?;
        if heard {
            self.heard = now;
        }
        self.watch_for_room(index)
    }

    fn watch_for_room(&mut self, index: usize) -> Result<(), BenchError> {
        let Some(client) = self.clients.get_mut(index) else { return Ok(()) };
        let is_blocked = client.connection.is_blocked();
        if is_blocked == client.is_watched_for_room {
            return Ok(());
        }
        client.is_watched_for_room = is_blocked;
        let room = if is_blocked { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let data = epoll::EventData::new_u64(index as u64);
        let flags = epoll::EventFlags::IN | room;
        epoll::modify(&self.epoll, &client.connection, data, flags).map_err(watching)
    }

    fn check_silence(&self, doing: &str, most: Duration) -> Result<(), BenchError> {
        let waited = self.heard.elapsed();
        if waited <= most {
            return Ok(());
        }
        Err(BenchError::Silent { doing: format!("in {}, {doing}", self.label), waited })
    }

    /// Says goodbye. The broker's answer to that no longer matters.
    fn close(mut self) {
        let now = Instant::now();
        for client in &mut self.clients {
            client.connection.session.close();
            // The figures are complete; a broker that hangs up first changes nothing.
            let _ = client.connection.flush(now);
        }
    }
}

/// A name that no other connection has: brokers may take two of one name for one client.
fn container() -> String {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let opened = OPENED.fetch_add(1, Ordering::Relaxed);
    format!("dunlin-bench-{}-{opened}", std::process::id())
}

fn watching(error: rustix::io::Errno) -> BenchError {
    BenchError::Io { doing: "watch the connections".to_owned(), cause: error.into() }
}

const EVENTS_MAX: usize = 256;
const SCRATCH_BYTES: usize = 256 * 1024;
const TICK: Duration = Duration::from_millis(100);
/// How long nothing at all may come before the first answer.
const OPENING_MAX: Duration = Duration::from_secs(10);
/// How long nothing at all may come before the run is given up.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long a run that was called off goes on taking away its sent messages.
const CLEARING_MAX: Duration = Duration::from_secs(5);
