//! The events a reactor waits for: an epoll set, and their meaning here.

use std::os::fd::{AsFd, OwnedFd};

use model::{Nanos, SessionId};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{
    CreateFlags, Event as Raw, EventData, EventFlags, add, create, delete, modify, wait,
};
use rustix::io::Result;
use rustix::time::Timespec;

/// One reactor's epoll set: the events it hears.
#[derive(Debug)]
pub(crate) struct EventSet {
    epoll: OwnedFd,
}

/// The events of one turn, in the order in which they came.
pub(crate) struct Events {
    raw: Vec<Raw>,
    /// How many of them were taken.
    taken: usize,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Another thread has woken this one.
    Waker,
    /// A connection waits to be accepted.
    Listener,
    /// A socket has changed.
    Socket {
        session: SessionId,
        readable: bool,
        writable: bool,
        /// The peer sends no more, or the connection broke, which reading tells.
        half_closed: bool,
    },
}

impl EventSet {
    /// A set that has the waker in it.
    pub(crate) fn new(waker: &OwnedFd) -> Result<Self> {
        let epoll = create(CreateFlags::CLOEXEC)?;
        add(&epoll, waker, EventData::new_u64(WAKER), EventFlags::IN)?;
        Ok(Self { epoll })
    }

    /// A set that no other thread wakes. Another set may watch it.
    pub(crate) fn bare() -> Result<Self> {
        Ok(Self { epoll: create(CreateFlags::CLOEXEC)? })
    }

    /// Hears another set as a listener, as long as it has events.
    pub(crate) fn watch_set(&self, other: &Self) -> Result<()> {
        add(&self.epoll, &other.epoll, EventData::new_u64(LISTENER), EventFlags::IN)
    }

    /// Hears a socket no more.
    pub(crate) fn forget(&self, socket: &OwnedFd) {
        // It is watched, so this cannot fail.
        let _ = delete(&self.epoll, socket);
    }

    /// Hears a listener once for each connection that comes: one that cannot be accepted, for want
    /// of descriptors, would else be heard without end.
    pub(crate) fn watch_listener(&self, listener: impl AsFd) -> Result<()> {
        let flags = EventFlags::IN | EventFlags::ET;
        add(&self.epoll, listener, EventData::new_u64(LISTENER), flags)
    }

    /// Hears a socket once for each time that bytes come, and when its peer sends no more.
    pub(crate) fn watch_socket(&self, socket: &OwnedFd, session: SessionId) -> Result<()> {
        assert!(session.0 < LISTENER, "invariant: ids do not reach the marks");
        add(&self.epoll, socket, EventData::new_u64(session.0), FOR_INPUT)
    }

    /// Starts or stops hearing also when the socket takes bytes again. Only for a socket that was
    /// full: any other would be heard at each read of its peer, in the place of its later input.
    pub(crate) fn watch_room(
        &self,
        socket: &OwnedFd,
        session: SessionId,
        watch: bool,
    ) -> Result<()> {
        let flags = if watch { FOR_INPUT | EventFlags::OUT } else { FOR_INPUT };
        modify(&self.epoll, socket, EventData::new_u64(session.0), flags)
    }
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { raw: Vec::with_capacity(EVENTS_PER_TURN), taken: 0 }
    }

    /// Waits for something to happen, for so long at most; `None`: for ever.
    pub(crate) fn wait(&mut self, set: &EventSet, span: Option<Nanos>) {
        self.raw.clear();
        self.taken = 0;
        let timeout = span.map(timespec);
        // Only a signal can end the waiting with an error, and nothing has happened then.
        let _ = wait(&set.epoll, spare_capacity(&mut self.raw), timeout.as_ref());
    }

    /// True if nothing has happened that was not taken yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.raw.len()
    }

    /// The next event, each once. The first comes first: clients that ask one after another are
    /// served in that order.
    pub(crate) fn pop_front(&mut self) -> Option<Event> {
        let raw = self.raw.get(self.taken)?;
        self.taken += 1;
        let flags = raw.flags;
        Some(match raw.data.u64() {
            WAKER => Event::Waker,
            LISTENER => Event::Listener,
            session => Event::Socket {
                session: SessionId(session),
                readable: flags.intersects(EventFlags::IN),
                writable: flags.intersects(EventFlags::OUT),
                half_closed: flags
                    .intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
            },
        })
    }
}

fn timespec(span: Nanos) -> Timespec {
    let secs = span.as_secs();
    Timespec {
        // A day is as good as for ever and fits into every system call.
        tv_sec: i64::try_from(secs.min(86_400)).unwrap_or(86_400),
        tv_nsec: (span.0 % Nanos::SECOND.0).cast_signed(),
    }
}

const FOR_INPUT: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// Events taken in one turn: bounds how long the lock is held for them.
const EVENTS_PER_TURN: usize = 256;

const WAKER: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
