//! How other threads wake a sleeping reactor, and how no wake is lost or sent for nothing.
//!
//! Before it sleeps a reactor says what may wake it ([`Post::sleep`]) and only then looks once
//! more whether something has come. Who brings something first brings it and then looks whether
//! the reactor sleeps. Both in sequentially consistent order: one of the two sees the other.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, retry_on_intr, write};
use tokio::sync::Notify;

use crate::config::Protocol;
use crate::seats::Seat;

/// One reactor's letter box.
#[derive(Debug)]
pub(crate) struct Post {
    bell: Bell,
    state: AtomicU8,
    mail: AtomicBool,
    arrivals: Mutex<Vec<Arrival>>,
}

/// What wakes whom a post belongs to.
#[derive(Debug)]
enum Bell {
    /// Readable when the reactor shall wake; part of its epoll set.
    Event(OwnedFd),
    /// Of the gateway, which is a task.
    Task(Arc<Notify>),
}

/// A connection that was accepted, and what is to be spoken on it.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) protocol: Protocol,
    pub(crate) seat: Seat,
}

/// What a sleeping reactor may be woken for.
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

impl Post {
    pub(crate) fn new() -> Result<Self, Errno> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self::with_bell(Bell::Event(event)))
    }

    /// The letter box of a task, which waits for this bell.
    pub(crate) fn of_task(bell: Arc<Notify>) -> Self {
        Self::with_bell(Bell::Task(bell))
    }

    fn with_bell(bell: Bell) -> Self {
        Self {
            bell,
            state: AtomicU8::new(AWAKE),
            mail: AtomicBool::new(false),
            arrivals: Mutex::new(Vec::new()),
        }
    }

    /// The bell of a reactor.
    pub(crate) fn event(&self) -> Option<&OwnedFd> {
        match &self.bell {
            Bell::Event(event) => Some(event),
            Bell::Task(_) => None,
        }
    }

    /// The reactor is about to sleep. False when mail has come meanwhile: then it must not.
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

    /// The bell was heard.
    pub(crate) fn silence(&self) {
        if let Some(event) = self.event() {
            // Only an error when it does not ring, which is as well.
            let _ = read(event, &mut [0; 8]);
        }
    }

    /// Something for this reactor lies in the core's mailbox or among the arrivals, or it shall
    /// look at the phase.
    pub(crate) fn notify_mail(&self) {
        self.mail.store(true, Ordering::SeqCst);
        if self.state.swap(AWAKE, Ordering::SeqCst) != AWAKE {
            self.ring();
        }
    }

    /// A write was completed. Tells whether the reactor slept and waited for one.
    pub(crate) fn notify_write(&self) -> bool {
        let waits =
            self.state.compare_exchange(FOR_WRITES, AWAKE, Ordering::SeqCst, Ordering::SeqCst);
        if waits.is_ok() {
            self.ring();
        }
        waits.is_ok()
    }

    /// Whether there is mail; the reactor looks through all of it next.
    pub(crate) fn take_mail(&self) -> bool {
        self.mail.load(Ordering::Relaxed) && self.mail.swap(false, Ordering::SeqCst)
    }

    /// Hands over a connection that another reactor accepted.
    pub(crate) fn deliver(&self, arrival: Arrival) {
        self.arrivals.lock().expect("invariant: nobody panics with the arrivals").push(arrival);
        self.notify_mail();
    }

    /// The connections that were handed over.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals =
            self.arrivals.lock().expect("invariant: nobody panics with the arrivals");
        std::mem::take(&mut *arrivals)
    }

    fn ring(&self) {
        match &self.bell {
            // Fails only when 2^64 - 1 rings are unheard.
            Bell::Event(event) => {
                let _ = retry_on_intr(|| write(event, &1_u64.to_ne_bytes()));
            }
            Bell::Task(bell) => bell.notify_one(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(post: &Post) -> bool {
        read(post.event().unwrap(), &mut [0; 8]).is_ok()
    }

    #[test]
    fn who_is_awake_is_not_rung() {
        let post = Post::new().unwrap();
        post.notify_mail();
        post.notify_write();
        assert!(!rung(&post));
        assert!(post.take_mail());
        assert!(!post.take_mail());
    }

    #[test]
    fn mail_that_came_before_keeps_awake() {
        let post = Post::new().unwrap();
        post.notify_mail();
        assert!(!post.sleep(Sleep::ForMail));
    }

    #[test]
    fn a_sleeper_is_rung_once_and_only_for_what_it_waits_for() {
        let post = Post::new().unwrap();
        assert!(post.sleep(Sleep::ForMail));
        post.notify_write();
        assert!(!rung(&post));
        post.notify_mail();
        post.notify_mail();
        assert!(rung(&post));
        assert!(!rung(&post));
        post.awake();
        assert!(post.take_mail());
        assert!(post.sleep(Sleep::ForWrites));
        post.notify_write();
        assert!(rung(&post));
    }

    #[test]
    fn a_heard_bell_is_silent() {
        let post = Post::new().unwrap();
        assert!(post.sleep(Sleep::ForMail));
        post.notify_mail();
        post.awake();
        post.silence();
        assert!(!rung(&post));
    }
}
