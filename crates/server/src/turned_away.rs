//! Connections that a listener did not take: their count and the log lines about them.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use input::ProxyFault;
use model::Nanos;

use crate::Logger;
use crate::log::Complaint;

/// Connections that listeners did not take: counted, and logged once a second at most.
#[derive(Debug, Default)]
pub(crate) struct TurnedAway {
    count: AtomicU64,
    strangers: Mutex<Complaint>,
    users: Mutex<Complaint>,
    proxies: Mutex<Complaint>,
}

impl TurnedAway {
    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// A client connected from an address that the listener does not take.
    pub(crate) fn note_stranger(
        &self,
        log: Logger,
        now: Nanos,
        scheme: &str,
        client: Option<SocketAddr>,
    ) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let client = client.map(|client| client.to_string()).unwrap_or_default();
        let mut complaint = self.strangers.lock().expect(POISONED);
        let why = format_args!("its address is in no from= of the listener");
        complaint.line(log, now, format_args!("closed {scheme} {client}: {why}"));
    }

    /// A proxy did not tell where its client is.
    pub(crate) fn note_proxy(
        &self,
        log: Logger,
        now: Nanos,
        scheme: &str,
        proxy: SocketAddr,
        fault: Option<ProxyFault>,
    ) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let late = || "its PROXY header did not come in ten seconds".to_owned();
        let why = fault.map_or_else(late, |fault| fault.to_string());
        let mut complaint = self.proxies.lock().expect(POISONED);
        complaint.line(log, now, format_args!("closed {scheme} {proxy}, a proxy: {why}"));
    }

    /// The user of a listener may not log in.
    pub(crate) fn note_user(&self, log: Logger, now: Nanos, protocol: &str, user: &str) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut complaint = self.users.lock().expect(POISONED);
        complaint.line(
            log,
            now,
            format_args!(
                "closed a connection by {protocol}: the user of its listener, {user}, is not in \
                 the users file, or disabled, or has expired"
            ),
        );
    }
}

const POISONED: &str = "invariant: no thread panics while it complains";
