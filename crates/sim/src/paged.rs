//! A broker that reads bodies back at once. An observer sees its outputs in their order, even if
//! the broker reads bodies back for some.
//!
//! The reads are never disturbed. Tests beside the journal and the broker cover failed reads and
//! replies that wait.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use broker::{Broker, Fetch, FetchDone};
use model::{Command, MessageId, Nanos, Output, SessionId};

/// Reads from a disk that does as it is told.
pub type Reader<F> = Rc<dyn Fn(Fetch<F>) -> FetchDone<F>>;

/// See the module.
pub struct Paged<F> {
    broker: Broker<F>,
    reader: Reader<F>,
    /// Bodies that were read back.
    pub fetches: u64,
}

impl<F: Clone> Paged<F> {
    /// A broker with a log that this reader reads.
    pub fn new(mut broker: Broker<F>, reader: Reader<F>) -> Self {
        broker.keep_order();
        Self { broker, reader, fetches: 0 }
    }

    /// See [`Broker::handle`].
    pub fn handle(
        &mut self,
        now: Nanos,
        session: SessionId,
        command: Command,
        outputs: &mut Vec<Output>,
    ) {
        self.broker.handle(now, session, command, outputs);
        self.settle(now, outputs);
    }

    /// See [`Broker::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Nanos, outputs: &mut Vec<Output>) {
        self.broker.handle_timeout(now, outputs);
        self.settle(now, outputs);
    }

    /// See [`Broker::note_begun`].
    pub fn note_begun(&mut self, session: SessionId, begun: BTreeSet<MessageId>) {
        self.broker.note_begun(session, begun);
    }

    /// See [`Broker::close_session`].
    pub fn close_session(&mut self, now: Nanos, session: SessionId, outputs: &mut Vec<Output>) {
        self.broker.close_session(now, session, outputs);
        self.settle(now, outputs);
    }

    /// See [`Broker::dismiss_session`].
    pub fn dismiss_session(&mut self, now: Nanos, session: SessionId, outputs: &mut Vec<Output>) {
        self.broker.dismiss_session(now, session, outputs);
        self.settle(now, outputs);
    }

    fn settle(&mut self, now: Nanos, outputs: &mut Vec<Output>) {
        for _ in 0..ROUNDS_MAX {
            if let Some(fetch) = self.broker.poll_fetch() {
                self.fetches += 1;
                let done = (self.reader)(fetch);
                let taken = self.broker.handle_fetch(done, outputs);
                taken.expect("what was written is read back");
            } else if self.broker.goes_on() {
                self.broker.handle_timeout(now, outputs);
            } else {
                return;
            }
        }
        panic!("bodies come back again and again, and nobody goes on");
    }
}

impl<F> Deref for Paged<F> {
    type Target = Broker<F>;

    fn deref(&self) -> &Broker<F> {
        &self.broker
    }
}

impl<F> DerefMut for Paged<F> {
    fn deref_mut(&mut self) -> &mut Broker<F> {
        &mut self.broker
    }
}

impl<F> fmt::Debug for Paged<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paged")
    }
}

/// More rounds than all commands that wait for bodies need.
const ROUNDS_MAX: usize = 10_000;
