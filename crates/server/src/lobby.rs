//! Connections of proxies that have not told yet where their clients are.
//!
//! The reactor that accepts reads their headers, and no byte more: what follows is of the client. A
//! connection leaves with its header, by a fault, or after ten seconds.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use input::{PROXY_HEADER_BYTES_MAX, Proxied, ProxyFault, ProxyReader};
use model::{Nanos, SessionId};
use rustix::io::{Errno, read, retry_on_intr};

use crate::connection::LOGIN_SPAN_MAX;
use crate::connection_permits::ConnectionPermit;
use crate::events::{Event, EventSet, Events};

/// The connections that wait for their headers.
pub(crate) struct Lobby {
    event_set: EventSet,
    /// By the order in which they came.
    waiting: BTreeMap<u64, Newcomer>,
    next: u64,
}

/// A connection of a proxy.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) socket: Arc<OwnedFd>,
    /// The index of its listener.
    pub(crate) listener: usize,
    pub(crate) proxy: SocketAddr,
    pub(crate) permit: ConnectionPermit,
    /// When it was accepted.
    pub(crate) since: Nanos,
    reader: ProxyReader,
}

/// Why a connection left without a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// The proxy has closed it, as some do to see whether the server listens.
    Gone,
    /// It sent something else.
    Fault(ProxyFault),
    /// The header did not come in time.
    Late,
}

/// A connection that leaves, with the end of its wait.
pub(crate) type Leaving = (Newcomer, Result<Proxied, Farewell>);

impl Newcomer {
    pub(crate) fn new(
        socket: Arc<OwnedFd>,
        listener: usize,
        proxy: SocketAddr,
        permit: ConnectionPermit,
        now: Nanos,
    ) -> Self {
        Self { socket, listener, proxy, permit, since: now, reader: ProxyReader::default() }
    }

    /// Reads what is there of the header. `None`: more has to come.
    fn read(&mut self) -> Option<Result<Proxied, Farewell>> {
        let mut buffer = [0; PROXY_HEADER_BYTES_MAX];
        loop {
            let wanted = buffer.get_mut(..self.reader.wanted()).unwrap_or_default();
            let count = match retry_on_intr(|| read(&self.socket, &mut *wanted)) {
                Ok(0) => return Some(Err(Farewell::Gone)),
                Ok(count) => count,
                Err(Errno::AGAIN) => return None,
                Err(_) => return Some(Err(Farewell::Gone)),
            };
            match self.reader.append(wanted.get(..count).unwrap_or_default()) {
                Ok(None) => {}
                Ok(Some(told)) => return Some(Ok(told)),
                Err(fault) => return Some(Err(Farewell::Fault(fault))),
            }
        }
    }
}

impl Lobby {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        Ok(Self { event_set: EventSet::bare()?, waiting: BTreeMap::new(), next: 0 })
    }

    /// Readable when a header may have come.
    pub(crate) const fn event_set(&self) -> &EventSet {
        &self.event_set
    }

    /// Lets a connection wait. One that cannot be watched, for want of memory, is closed.
    pub(crate) fn enter(&mut self, newcomer: Newcomer) {
        let number = self.next;
        self.next += 1;
        if self.event_set.watch_socket(&newcomer.socket, SessionId(number)).is_ok() {
            self.waiting.insert(number, newcomer);
        }
    }

    /// When the first of them has waited for too long.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let (_, first) = self.waiting.first_key_value()?;
        Some(first.since + LOGIN_SPAN_MAX)
    }

    /// Reads the headers that have come. The connections that leave are watched no more.
    pub(crate) fn serve(&mut self, now: Nanos) -> Vec<Leaving> {
        let mut leaving = Vec::new();
        if self.waiting.is_empty() {
            return leaving;
        }
        let mut events = Events::new();
        events.wait(&self.event_set, Some(Nanos::ZERO));
        while let Some(event) = events.pop_front() {
            let Event::Socket { session: SessionId(number), .. } = event else { continue };
            let end = self.waiting.get_mut(&number).and_then(Newcomer::read);
            leaving.extend(end.and_then(|end| self.leave(number, end)));
        }
        while let Some((&number, first)) = self.waiting.first_key_value()
            && now.since(first.since) >= LOGIN_SPAN_MAX
        {
            leaving.extend(self.leave(number, Err(Farewell::Late)));
        }
        leaving
    }

    fn leave(&mut self, number: u64, end: Result<Proxied, Farewell>) -> Option<Leaving> {
        let newcomer = self.waiting.remove(&number)?;
        self.event_set.forget(&newcomer.socket);
        Some((newcomer, end))
    }
}
