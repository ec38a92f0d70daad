//! The state behind the one lock: the broker, the state that its connections share, and the data on
//! its way from one thread to another.

use std::collections::VecDeque;

use broker::{
    Broker, Chore, ChoreDone, Fetch, FetchDone, JournalFailed, ScheduledWrite, WriteScheduler,
};
use disk::File;
use journal::DiskError;
use model::{Nanos, Output};

use crate::connections::reactor_of;
use crate::counters::{Latencies, Span};
use crate::evictions::Evictions;
use crate::mailbox::Mailbox;
use crate::peer::ProtocolState;

/// Everything behind the one lock. A reactor takes it once a turn, a committer twice a write.
pub(crate) struct Core {
    pub(crate) broker: Broker<File>,
    pub(crate) commons: ProtocolState,
    /// The broker's outputs; drained by the thread that stepped the broker.
    pub(crate) outputs: Vec<Output>,
    pub(crate) latencies: Latencies,
    pub(crate) evictions: Evictions,
    /// Per reactor: replies for its sessions that others caused.
    mail: Vec<VecDeque<Output>>,
    /// Writes that were taken from the broker for the committers.
    handed: VecDeque<Transfer>,
    /// Committers that wait for something to write.
    pub(crate) committers_idle: usize,
    chore: Option<Chore<File>>,
    chore_in_flight: bool,
    /// Decides when writes begin.
    pub(crate) scheduler: WriteScheduler,
    /// A reactor was woken since the lock was taken, and sees that a write is due.
    pub(crate) reactor_woken: bool,
}

/// One write on its way to the disk.
pub(crate) type Transfer = ScheduledWrite<File>;

impl Core {
    pub(crate) fn new(broker: Broker<File>, commons: ProtocolState, reactors: usize) -> Self {
        Self {
            broker,
            commons,
            outputs: Vec::new(),
            latencies: Latencies::new(),
            evictions: Evictions::default(),
            mail: std::iter::repeat_with(VecDeque::new).take(reactors).collect(),
            handed: VecDeque::new(),
            committers_idle: 0,
            chore: None,
            chore_in_flight: false,
            scheduler: WriteScheduler::default(),
            reactor_woken: false,
        }
    }

    /// The next reply for the sessions of this reactor that others caused.
    pub(crate) fn next_mail(&mut self, reactor: usize) -> Option<Output> {
        self.mail.get_mut(reactor)?.pop_front()
    }

    /// True if there is mail for a reactor.
    pub(crate) fn has_mail(&self, reactor: usize) -> bool {
        self.mail.get(reactor).is_some_and(|mail| !mail.is_empty())
    }

    /// Mails the broker's outputs to the threads of its sessions, and wakes them, but for the
    /// reactor `own`, which looks anyway.
    pub(crate) fn mail_outputs(&mut self, own: usize, mailboxes: &[Mailbox]) {
        for output in self.outputs.drain(..) {
            let reactor = reactor_of(output.session);
            let addressee = self.mail.get_mut(reactor).zip(mailboxes.get(reactor));
            let (mail, mailbox) = addressee.expect("invariant: every session has a reactor");
            mail.push_back(output);
            if reactor != own {
                mailbox.notify_mail();
            }
        }
    }

    /// The write that begins at once: see [`WriteScheduler::poll_eager`].
    pub(crate) fn eager_write(&mut self, now: Nanos) -> Option<Transfer> {
        self.scheduler.poll_eager(&mut self.broker, now)
    }

    /// The write that begins when the reactors are idle: see [`WriteScheduler::poll_idle`].
    pub(crate) fn idle_write(&mut self, now: Nanos) -> Option<Transfer> {
        self.scheduler.poll_idle(&mut self.broker, now)
    }

    /// True if a write is to begin as soon as the reactors are idle.
    pub(crate) fn is_write_due(&self, now: Nanos) -> bool {
        self.scheduler.is_due(&self.broker, now)
    }

    /// When something is to be done even if nothing happens.
    pub(crate) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        let write = self.scheduler.deadline(&self.broker, now);
        write.into_iter().chain(self.broker.poll_timeout()).min()
    }

    /// Leaves a write to the committers.
    pub(crate) fn hand_over(&mut self, transfer: Transfer) {
        self.handed.push_back(transfer);
    }

    /// A write that was left to the committers.
    pub(crate) fn take_handed(&mut self) -> Option<Transfer> {
        self.handed.pop_front()
    }

    /// Hands a performed write back to the broker.
    pub(crate) fn complete(
        &mut self,
        now: Nanos,
        transfer: Transfer,
        result: Result<(), DiskError>,
    ) -> Result<(), JournalFailed> {
        self.latencies.record(Span {
            queued: transfer.queued(),
            performed: transfer.performed(now),
            syncs: transfer.write.syncs(),
        });
        self.scheduler.complete(&mut self.broker, now, transfer, result)
    }

    /// Asks the broker for a chore unless one is under way; tells whether there is a new one.
    pub(crate) fn poll_chore(&mut self, now: Nanos) -> bool {
        if self.chore_in_flight {
            return false;
        }
        self.chore = self.broker.poll_chore(now);
        self.chore_in_flight = self.chore.is_some();
        self.chore_in_flight
    }

    pub(crate) const fn take_chore(&mut self) -> Option<Chore<File>> {
        self.chore.take()
    }

    /// The next piece of the log that is to be read back, unless one is.
    pub(crate) fn poll_fetch(&mut self) -> Option<Fetch<File>> {
        self.broker.poll_fetch()
    }

    /// True if there is something to be read back.
    pub(crate) fn wants_fetch(&mut self) -> bool {
        self.broker.wants_fetch()
    }

    /// Hands the bodies read back to the broker; the outputs that waited for them go out.
    pub(crate) fn complete_fetch(
        &mut self,
        done: FetchDone<File>,
        mailboxes: &[Mailbox],
    ) -> Result<(), JournalFailed> {
        self.broker.handle_fetch(done, &mut self.outputs)?;
        self.mail_outputs(usize::MAX, mailboxes);
        Ok(())
    }

    /// Hands a performed chore back to the broker.
    pub(crate) fn complete_chore(
        &mut self,
        now: Nanos,
        done: ChoreDone<File>,
    ) -> Result<(), JournalFailed> {
        self.chore_in_flight = false;
        self.broker.handle_chore(now, done)
    }
}
