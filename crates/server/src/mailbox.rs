//! How other threads wake a sleeping reactor, and how no wake is lost or sent for nothing.
//!
//! Before it sleeps, a reactor states its wakers ([`Mailbox::sleep`]) and then looks once more
//! whether mail has come. A thread first leaves its mail and then looks whether the reactor sleeps.
//! Both use sequentially consistent order, so one of the two sees the other.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use model::{LoginAnswer, LoginOffer, Nanos, SessionId};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, retry_on_intr, write};
use rustls::ServerConfig;
use tokio::sync::Notify;

use crate::client::Client;
use crate::config::Protocol;
use crate::connection_permits::ConnectionPermit;

/// The mailbox of one reactor, or of the gateway.
#[derive(Debug)]
pub(crate) struct Mailbox {
    waker: Waker,
    state: AtomicU8,
    mail: AtomicBool,
    arrivals: Mutex<Vec<Arrival>>,
    logins: Mutex<Vec<(SessionId, LoginAnswer)>>,
}

/// Wakes the owner of a mailbox.
#[derive(Debug)]
enum Waker {
    /// The waker of a reactor. Readable when it has to wake; part of its epoll set.
    Event(OwnedFd),
    /// The waker of the gateway, which is a task.
    Task(Arc<Notify>),
}

/// An accepted connection, and the protocol of its listener.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) client: Client,
    pub(crate) protocol: Protocol,
    /// The configuration of TLS, if its listener speaks that.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// How its peer may log in; `None`: there are no users.
    pub(crate) offer: Option<LoginOffer>,
    pub(crate) permit: ConnectionPermit,
    /// When it was accepted.
    pub(crate) since: Nanos,
}

/// The events that wake a sleeping reactor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// Mail only.
    ForMail,
    /// Mail and completed writes: it holds replies that wait for one.
    ForWrites,
}

const AWAKE: u8 = 0;
const FOR_MAIL: u8 = 1;
const FOR_WRITES: u8 = 2;

impl Mailbox {
    pub(crate) fn new() -> Result<Self, Errno> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self::with_waker(Waker::Event(event)))
    }

    /// The mailbox of a task, which waits for this waker.
    pub(crate) fn of_task(waker: Arc<Notify>) -> Self {
        Self::with_waker(Waker::Task(waker))
    }

    fn with_waker(waker: Waker) -> Self {
        Self {
            waker,
            state: AtomicU8::new(AWAKE),
            mail: AtomicBool::new(false),
            arrivals: Mutex::new(Vec::new()),
            logins: Mutex::new(Vec::new()),
        }
    }

    /// The event of a reactor's waker.
    pub(crate) fn event(&self) -> Option<&OwnedFd> {
        match &self.waker {
            Waker::Event(event) => Some(event),
            Waker::Task(_) => None,
        }
    }

    /// The reactor is about to sleep. `false`: mail has come meanwhile, and it must not.
    pub(crate) fn sleep(&self, sleep: Sleep) -> bool {
        let state = match sleep {
            Sleep::ForMail => FOR_MAIL,
            Sleep::ForWrites => FOR_WRITES,
        };
        self.state.store(state, Ordering::SeqCst);
        !self.mail.load(Ordering::SeqCst)
    }

    /// The reactor is awake again, or did not sleep after all.
    pub(crate) fn awake(&self) {
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    /// The reactor has seen its waker's event.
    pub(crate) fn reset_waker(&self) {
        if let Some(event) = self.event() {
            // It fails if the event is not readable, which is the aim.
            let _ = read(event, &mut [0; 8]);
        }
    }

    /// The core has mail for this reactor, a connection has arrived, or the phase has changed.
    pub(crate) fn notify_mail(&self) {
        self.mail.store(true, Ordering::SeqCst);
        if self.state.swap(AWAKE, Ordering::SeqCst) != AWAKE {
            self.wake();
        }
    }

    /// A write has completed. Tells whether the reactor slept and waited for one.
    pub(crate) fn notify_write(&self) -> bool {
        let waits =
            self.state.compare_exchange(FOR_WRITES, AWAKE, Ordering::SeqCst, Ordering::SeqCst);
        if waits.is_ok() {
            self.wake();
        }
        waits.is_ok()
    }

    /// True if mail has come. The reactor takes in all of it next.
    pub(crate) fn take_mail(&self) -> bool {
        self.mail.load(Ordering::Relaxed) && self.mail.swap(false, Ordering::SeqCst)
    }

    /// Hands over a connection that another thread accepted.
    pub(crate) fn deliver(&self, arrival: Arrival) {
        self.arrivals.lock().expect("invariant: no thread panics with the arrivals").push(arrival);
        self.notify_mail();
    }

    /// Takes the connections that were handed over.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals =
            self.arrivals.lock().expect("invariant: no thread panics with the arrivals");
        std::mem::take(&mut *arrivals)
    }

    /// Hands over the answer to a step of a login.
    pub(crate) fn deliver_login(&self, session: SessionId, answer: LoginAnswer) {
        let mut logins = self.logins.lock().expect("invariant: no thread panics with the logins");
        logins.push((session, answer));
        drop(logins);
        self.notify_mail();
    }

    /// Takes the answers to logins that were handed over.
    pub(crate) fn logins(&self) -> Vec<(SessionId, LoginAnswer)> {
        let mut logins = self.logins.lock().expect("invariant: no thread panics with the logins");
        std::mem::take(&mut *logins)
    }

    fn wake(&self) {
        match &self.waker {
            // It fails only if 2^64 - 1 events are unread.
            Waker::Event(event) => {
                let _ = retry_on_intr(|| write(event, &1_u64.to_ne_bytes()));
            }
            Waker::Task(waker) => waker.notify_one(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_woken(mailbox: &Mailbox) -> bool {
        read(mailbox.event().unwrap(), &mut [0; 8]).is_ok()
    }

    #[test]
    fn awake_reactor_is_not_woken() {
        let mailbox = Mailbox::new().unwrap();
        mailbox.notify_mail();
        mailbox.notify_write();
        assert!(!is_woken(&mailbox));
        assert!(mailbox.take_mail());
        assert!(!mailbox.take_mail());
    }

    #[test]
    fn earlier_mail_prevents_sleep() {
        let mailbox = Mailbox::new().unwrap();
        mailbox.notify_mail();
        assert!(!mailbox.sleep(Sleep::ForMail));
    }

    #[test]
    fn sleeper_wakes_once_by_awaited_events() {
        let mailbox = Mailbox::new().unwrap();
        assert!(mailbox.sleep(Sleep::ForMail));
        mailbox.notify_write();
        assert!(!is_woken(&mailbox));
        mailbox.notify_mail();
        mailbox.notify_mail();
        assert!(is_woken(&mailbox));
        assert!(!is_woken(&mailbox));
        mailbox.awake();
        assert!(mailbox.take_mail());
        assert!(mailbox.sleep(Sleep::ForWrites));
        mailbox.notify_write();
        assert!(is_woken(&mailbox));
    }

    #[test]
    fn reset_waker_is_unreadable() {
        let mailbox = Mailbox::new().unwrap();
        assert!(mailbox.sleep(Sleep::ForMail));
        mailbox.notify_mail();
        mailbox.awake();
        mailbox.reset_waker();
        assert!(!is_woken(&mailbox));
    }
}
