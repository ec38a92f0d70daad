//! Seats: how many connections there may be, and who gives way where all seats are taken.
//!
//! A connection that has sent no command costs its peer nothing, and kept for long it keeps others
//! out. So, where no seat is free, the oldest of these gives way to one that comes, of the address
//! that has the most of them; who has sent a command keeps the seat. Ten more seats are there for
//! operators: for HTTP from this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use rustix::net::{Shutdown, shutdown};
use tokio::sync::Notify;

/// All seats of a server.
#[derive(Debug)]
pub(crate) struct Seats {
    seats_max: usize,
    /// Connections that are open.
    open: AtomicUsize,
    silent: Mutex<Silent>,
}

/// A connection's; dropping it leaves it to others.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    /// Until its first command.
    silence: Option<(Origin, u64)>,
}

/// Where a connection comes from, as far as it counts: of IPv6 a network of 64 bits is one peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A socket in the file system.
    Local,
    V4(Ipv4Addr),
    V6([u16; 4]),
}

/// How a connection is asked to end.
#[derive(Debug)]
pub(crate) enum Exit {
    Socket(Weak<OwnedFd>),
    Task(Weak<Notify>),
}

/// Connections that have sent no command, oldest first.
#[derive(Debug, Default)]
struct Silent {
    next: u64,
    by_origin: BTreeMap<Origin, BTreeMap<u64, Exit>>,
    /// How many each origin has.
    counts: BTreeSet<(usize, Origin)>,
    /// Those that were asked to end and have not yet.
    leaving: usize,
}

/// Who is let in, and who had to give way.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) seat: Seat,
    pub(crate) gave_way: Option<Origin>,
}

impl Seats {
    pub(crate) fn new(seats_max: usize) -> Arc<Self> {
        Arc::new(Self { seats_max, open: AtomicUsize::new(0), silent: Mutex::default() })
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// So many there may be, beside those of operators.
    pub(crate) const fn seats_max(&self) -> usize {
        self.seats_max
    }

    /// A seat for one more connection; `None`: all are taken by those who have sent commands.
    pub(crate) fn admit(
        self: &Arc<Self>,
        origin: Origin,
        exit: Exit,
        is_operator: bool,
    ) -> Option<Admission> {
        let mut silent = self.silent();
        let open = self.open.load(Ordering::Relaxed);
        let mut gave_way = None;
        if open >= self.seats_max {
            gave_way = silent.dismiss_one();
            let most = self.seats_max + if is_operator { OPERATOR_SEATS } else { 0 };
            if gave_way.is_none() && open >= most {
                return None;
            }
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        let silence = Some((origin, silent.insert(origin, exit)));
        drop(silent);
        Some(Admission { seat: Seat { seats: Arc::clone(self), silence }, gave_way })
    }

    fn silent(&self) -> MutexGuard<'_, Silent> {
        self.silent.lock().expect("invariant: nobody panics with the seats")
    }
}

impl Seat {
    /// It has sent a command.
    pub(crate) fn speak(&mut self) {
        if let Some((origin, number)) = self.silence.take() {
            self.seats.silent().remove(origin, number);
        }
    }

    /// Whether it has sent none.
    pub(crate) const fn is_silent(&self) -> bool {
        self.silence.is_some()
    }
}

#[cfg(test)]
impl Seat {
    /// The only one.
    pub(crate) fn of_test() -> Self {
        let admission = Seats::new(1).admit(Origin::Local, Exit::Socket(Weak::new()), false);
        admission.unwrap().seat
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.speak();
        self.seats.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Silent {
    fn insert(&mut self, origin: Origin, exit: Exit) -> u64 {
        let number = self.next;
        self.next += 1;
        let own = self.by_origin.entry(origin).or_default();
        self.counts.remove(&(own.len(), origin));
        own.insert(number, exit);
        self.counts.insert((own.len(), origin));
        number
    }

    /// It is silent no longer, or gone.
    fn remove(&mut self, origin: Origin, number: u64) {
        if self.take(origin, Some(number)).is_none() {
            self.leaving = self.leaving.saturating_sub(1);
        }
    }

    /// Takes this one, or the oldest, of an origin.
    fn take(&mut self, origin: Origin, number: Option<u64>) -> Option<Exit> {
        let own = self.by_origin.get_mut(&origin)?;
        let number = number.or_else(|| own.keys().next().copied())?;
        let count = own.len();
        let exit = own.remove(&number)?;
        self.counts.remove(&(count, origin));
        if count > 1 {
            self.counts.insert((count - 1, origin));
        } else {
            self.by_origin.remove(&origin);
        }
        Some(exit)
    }

    /// Asks one to end. It ends soon; until then so many may sit beside those who came for them.
    fn dismiss_one(&mut self) -> Option<Origin> {
        if self.leaving >= LEAVING_MAX {
            return None;
        }
        let (_, origin) = *self.counts.last()?;
        self.take(origin, None)?.ask();
        self.leaving += 1;
        Some(origin)
    }
}

impl Exit {
    fn ask(&self) {
        match self {
            // One that is gone meanwhile has left.
            Self::Socket(socket) => {
                if let Some(socket) = socket.upgrade() {
                    let _ = shutdown(socket, Shutdown::Both);
                }
            }
            Self::Task(task) => {
                if let Some(task) = task.upgrade() {
                    task.notify_one();
                }
            }
        }
    }
}

impl Origin {
    pub(crate) fn of(peer: Option<SocketAddr>) -> Self {
        match peer.map(|peer| peer.ip().to_canonical()) {
            None => Self::Local,
            Some(IpAddr::V4(address)) => Self::V4(address),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("a Unix socket"),
            Self::V4(address) => address.fmt(f),
            Self::V6([a, b, c, d]) => write!(f, "{a:x}:{b:x}:{c:x}:{d:x}::/64"),
        }
    }
}

/// Seats beside the others, for those who have to find out why these are taken.
pub(crate) const OPERATOR_SEATS: usize = 10;

/// Connections that were asked to end and may not have yet.
const LEAVING_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    /// One that is told by a bell when it has to go.
    fn admit(seats: &Arc<Seats>, last: u8) -> Option<(Seat, Arc<Notify>)> {
        let bell = Arc::new(Notify::new());
        let exit = Exit::Task(Arc::downgrade(&bell));
        Some((seats.admit(origin(last), exit, false)?.seat, bell))
    }

    fn was_asked(bell: &Notify) -> bool {
        use std::task::{Context, Poll, Waker};
        let rung = std::pin::pin!(bell.notified());
        rung.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn silent_connections_give_way_by_address() {
        let seats = Seats::new(6);
        let mut few: Vec<_> = (0..2).map(|_| admit(&seats, 1).unwrap()).collect();
        let many: Vec<_> = (0..4).map(|_| admit(&seats, 2).unwrap()).collect();
        few.push(admit(&seats, 3).unwrap());
        assert!(was_asked(&many[0].1), "the oldest of those who have the most");
        assert!(many[1..].iter().chain(&few).all(|(_, bell)| !was_asked(bell)));
        drop(many);
        assert_eq!(seats.open(), 3);
        assert_eq!(seats.silent().leaving, 0);
    }

    #[test]
    fn commands_keep_their_seats() {
        let seats = Seats::new(3);
        let mut all: Vec<_> = (0..3).map(|last| admit(&seats, last).unwrap()).collect();
        all.iter_mut().for_each(|(seat, _)| seat.speak());
        assert!(admit(&seats, 9).is_none());
        assert!(all.iter().all(|(seat, bell)| !seat.is_silent() && !was_asked(bell)));
        all.pop();
        assert!(admit(&seats, 9).is_some());
        assert_eq!(seats.open(), 2);
    }

    #[test]
    fn seats_are_kept_for_operators() {
        let seats = Seats::new(1);
        let (mut first, _bell) = admit(&seats, 1).unwrap();
        first.speak();
        let operator = || seats.admit(Origin::Local, Exit::Task(Weak::new()), true);
        let mut operators: Vec<_> = (0..OPERATOR_SEATS).map(|_| operator().unwrap()).collect();
        operators.iter_mut().for_each(|it| it.seat.speak());
        assert!(operator().is_none());
        operators.clear();
        assert!(admit(&seats, 2).is_none());
        drop(first);
        assert!(admit(&seats, 2).is_some());
    }

    #[test]
    fn connections_that_do_not_end_hold_their_seats() {
        let seats = Seats::new(100);
        let all: Vec<_> = (0..100 + LEAVING_MAX).map(|_| admit(&seats, 1).unwrap()).collect();
        assert!(admit(&seats, 1).is_none(), "until one has ended");
        drop(all);
        assert_eq!((seats.open(), seats.silent().leaving), (0, 0));
        assert!(seats.silent().by_origin.is_empty() && seats.silent().counts.is_empty());
    }

    #[test]
    fn networks_of_ipv6_are_one_origin() {
        let of = |text: &str| Origin::of(Some(text.parse().unwrap()));
        assert_eq!(of("[2001:db8::1]:5"), of("[2001:db8::ffff:1]:6"));
        assert_ne!(of("[2001:db8::1]:5"), of("[2001:db8:0:1::1]:5"));
        assert_eq!(of("[::ffff:10.0.0.1]:5"), origin(1));
        assert_eq!(of("[2001:db8::1]:5").to_string(), "2001:db8:0:0::/64");
        assert_eq!(Origin::of(None), Origin::Local);
    }
}
