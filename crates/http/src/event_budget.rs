//! A budget of bytes for events that followers of topics have not read yet, of all followers.
//!
//! An event waits for bytes. The follower that read an event last goes first: so followers that
//! read are served, however many do not. While an event waits, a follower that has left one unread
//! for [`SILENT_MAX`] is closed, with its connection: the event is in its buffers.
//!
//! Events that wait take memory too. As many bytes may wait as may be unread, or a few events of
//! any size. Then the last follower in the line is refused: the one that read an event longest ago.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::byte_budget::FEW_BYTES;
use crate::memory_gauge::MemoryGauge;
use crate::slow_clients::{SILENT_MAX, Silence, SlowClients};

/// The budget. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct EventBudget {
    state: Arc<Mutex<State>>,
    bytes_max: usize,
    /// Followers that have an event unread.
    silent: SlowClients,
    held_bytes: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of unread events.
    bytes: usize,
    /// A number that grows with each event.
    moments: u64,
    waiting: BTreeMap<Rank, Waiting>,
    /// Bytes of their events.
    waiting_bytes: usize,
}

/// The order of those that wait: the follower that read an event last comes first, and of those
/// that never did the oldest.
type Rank = (Reverse<u64>, u64);

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    follower: Follower,
    permit: oneshot::Sender<EventPermit>,
}

/// Too many bytes wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Crowded;

/// Closes a connection.
pub(crate) type Hangup = Arc<Notify>;

/// One follower.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    all: EventBudget,
    hangup: Hangup,
    /// When it read an event last.
    took: Arc<AtomicU64>,
}

/// The permit of one event, until the event is read.
#[derive(Debug)]
pub(crate) struct EventPermit {
    follower: Follower,
    bytes: usize,
    counted: MemoryGauge,
    _silence: Silence,
}

impl EventBudget {
    /// A budget of so many bytes. `held_bytes` counts those that are taken.
    pub(crate) fn new(bytes_max: usize, held_bytes: &Arc<AtomicUsize>) -> Self {
        let held_bytes = Arc::clone(held_bytes);
        Self { state: Arc::default(), bytes_max, silent: SlowClients::new(SILENT_MAX), held_bytes }
    }

    /// A new follower. `hangup` is notified when its connection has to end.
    pub(crate) fn follower(&self, hangup: Hangup) -> Follower {
        Follower { all: self.clone(), hangup, took: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("invariant: no thread panics with the budget")
    }

    /// Gives permits in the order of the line, while bytes are free.
    fn grant(&self) {
        while let Some((to, permit)) = self.next_permit() {
            // A waiting event leaves the line before it drops the receiver of this.
            let _ = to.send(permit);
        }
    }

    /// The next permit. An event larger than the budget goes alone.
    fn next_permit(&self) -> Option<(oneshot::Sender<EventPermit>, EventPermit)> {
        let mut state = self.state();
        let first = state.waiting.first_entry()?;
        let bytes = first.get().bytes;
        if state.bytes > 0 && state.bytes + bytes > self.bytes_max {
            return None;
        }
        let Waiting { follower, permit: to, .. } = state.waiting.pop_first()?.1;
        state.waiting_bytes -= bytes;
        state.bytes += bytes;
        let silence = self.silent.begin(Instant::now(), &follower.hangup);
        let counted = MemoryGauge::new(&self.held_bytes, bytes);
        Some((to, EventPermit { follower, bytes, counted, _silence: silence }))
    }
}

impl State {
    const fn next_moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }

    fn line_up(&mut self, rank: Rank, waiting: Waiting) {
        self.waiting_bytes += waiting.bytes;
        self.waiting.insert(rank, waiting);
    }

    fn leave(&mut self, rank: Rank) -> Option<Waiting> {
        let waiting = self.waiting.remove(&rank)?;
        self.waiting_bytes -= waiting.bytes;
        Some(waiting)
    }

    /// Refuses the last waiters while more than `bytes_max` bytes wait. `WAITING_MIN` waiters may
    /// always stay.
    fn refuse_last(&mut self, bytes_max: usize) {
        while self.waiting.len() > WAITING_MIN && self.waiting_bytes > bytes_max {
            let Some(last) = self.waiting.last_key_value().map(|(rank, _)| *rank) else { return };
            // Its channel ends, which refuses it.
            self.leave(last);
        }
    }
}

impl Follower {
    /// A permit for an event of so many bytes, once they are free. A few bytes need none.
    pub(crate) async fn permit(&self, bytes: usize) -> Result<Option<EventPermit>, Crowded> {
        if bytes < FEW_BYTES {
            return Ok(None);
        }
        let mut line = self.line_up(bytes);
        tokio::select! {
            biased;
            permit = &mut line.permit => permit.map(Some).map_err(|_| Crowded),
            never = self.all.silent.end_them() => match never {},
        }
    }

    fn line_up(&self, bytes: usize) -> Line<'_> {
        let (to, permit) = oneshot::channel();
        let mut state = self.all.state();
        let rank = (Reverse(self.took.load(Ordering::Relaxed)), state.next_moment());
        let waiting = Waiting { bytes, follower: self.clone(), permit: to };
        state.line_up(rank, waiting);
        drop(state);
        self.all.grant();
        self.all.state().refuse_last(self.all.bytes_max);
        Line { all: &self.all, rank, permit }
    }
}

/// A wait, which ends when it is dropped.
struct Line<'f> {
    all: &'f EventBudget,
    rank: Rank,
    permit: oneshot::Receiver<EventPermit>,
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let waited = self.all.state().leave(self.rank);
        if waited.is_some() {
            self.all.grant();
        }
    }
}

impl EventPermit {
    /// The same bytes, with this permit until the connection drops them, however many they became.
    pub(crate) fn hold(mut self, bytes: Bytes) -> Bytes {
        let mut state = self.follower.all.state();
        state.bytes = state.bytes - self.bytes + bytes.len();
        drop(state);
        self.bytes = bytes.len();
        self.counted.set(bytes.len());
        Bytes::from_owner(Held { bytes, _permit: self })
    }
}

impl Drop for EventPermit {
    fn drop(&mut self) {
        let all = &self.follower.all;
        let mut state = all.state();
        state.bytes -= self.bytes;
        let now = state.next_moment();
        drop(state);
        self.follower.took.store(now, Ordering::Relaxed);
        all.grant();
    }
}

struct Held {
    bytes: Bytes,
    _permit: EventPermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Events that may always wait, of any size.
const WAITING_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::*;

    const ALL: usize = 2 * FEW_BYTES;

    fn followed(silent_max: Duration) -> EventBudget {
        EventBudget {
            silent: SlowClients::new(silent_max),
            ..EventBudget::new(ALL, &Arc::default())
        }
    }

    /// Runs a test in a runtime, without a wait for its timers.
    fn patiently(test: impl FnOnce(EventBudget)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        test(followed(Duration::from_secs(3600)));
    }

    fn now<F: Future>(future: F) -> Option<F::Output> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn permit(follower: &Follower, bytes: usize) -> Option<EventPermit> {
        now(follower.permit(bytes)).and_then(|permit| permit.unwrap())
    }

    fn held(followed: &EventBudget) -> usize {
        let held = followed.held_bytes.load(Ordering::Relaxed);
        assert_eq!(held, followed.state().bytes);
        held
    }

    #[test]
    fn events_hold_permits_until_read() {
        patiently(|followed| {
            let follower = followed.follower(Hangup::default());
            assert_eq!(
                now(follower.permit(FEW_BYTES - 1)).map(|it| it.is_ok_and(|it| it.is_none())),
                Some(true)
            );
            let first = permit(&follower, FEW_BYTES).unwrap();
            assert!(now(follower.permit(FEW_BYTES + 1)).is_none());
            let event = first.hold(vec![b'x'; 3 * ALL].into());
            assert_eq!(held(&followed), 3 * ALL, "it is as long as it became");
            assert!(now(follower.permit(FEW_BYTES)).is_none());
            drop(event);
            assert_eq!(held(&followed), 0);
            let larger_than_all = permit(&follower, 2 * ALL).unwrap();
            assert!(now(follower.permit(FEW_BYTES)).is_none());
            drop(larger_than_all);
            assert_eq!(held(&followed), 0);
            assert!(followed.state().waiting.is_empty());
        });
    }

    #[test]
    fn latest_reader_goes_first() {
        patiently(|followed| {
            let [never, first, last] = [(); 3].map(|()| followed.follower(Hangup::default()));
            drop(permit(&first, ALL));
            drop(permit(&last, ALL));
            let all = permit(&never, ALL).unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let mut lines = [&never, &first, &last].map(|it| Box::pin(it.permit(ALL)));
            let mut asked = || lines.each_mut().map(|it| it.as_mut().poll(&mut context));
            assert!(asked().iter().all(Poll::is_pending));
            drop(all);
            let granted = asked();
            assert_eq!(granted.each_ref().map(Poll::is_ready), [false, false, true]);
        });
    }

    #[test]
    fn slowest_reader_is_refused_first() {
        patiently(|followed| {
            let [reader, other] = [(); 2].map(|()| followed.follower(Hangup::default()));
            drop(permit(&reader, ALL));
            let all = permit(&other, ALL).unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let mut others: Vec<_> =
                (0..WAITING_MIN).map(|_| Box::pin(other.permit(ALL))).collect();
            for other in &mut others {
                assert!(other.as_mut().poll(&mut context).is_pending());
            }
            assert_eq!(now(other.permit(ALL)).map(|permit| permit.is_err()), Some(true));
            let mut reading = Box::pin(reader.permit(ALL));
            assert!(reading.as_mut().poll(&mut context).is_pending());
            let asked = others.iter_mut().map(|it| it.as_mut().poll(&mut context));
            assert_eq!(asked.map(|it| it.is_ready()).collect::<Vec<_>>(), {
                let mut refused = vec![false; WAITING_MIN];
                refused[WAITING_MIN - 1] = true;
                refused
            });
            drop(all);
            assert!(matches!(reading.as_mut().poll(&mut context), Poll::Ready(Ok(Some(_)))));
            drop((others, reading));
            assert_eq!((held(&followed), followed.state().waiting_bytes), (0, 0));
        });
    }

    #[test]
    fn dropped_wait_leaves_the_line() {
        patiently(|followed| {
            let follower = followed.follower(Hangup::default());
            let half = permit(&follower, FEW_BYTES).unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let mut large = Box::pin(follower.permit(ALL));
            assert!(large.as_mut().poll(&mut context).is_pending());
            let mut small = Box::pin(follower.permit(FEW_BYTES));
            assert!(small.as_mut().poll(&mut context).is_pending(), "it would pass by");
            drop(large);
            assert!(small.as_mut().poll(&mut context).is_ready());
            drop(half);
        });
    }

    #[test]
    fn longest_unread_event_closes_its_connection() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let followed = followed(Duration::ZERO);
            let [first, second, reader] = [(); 3].map(|()| followed.follower(Hangup::default()));
            let left = first.permit(FEW_BYTES).await.unwrap().unwrap();
            let _left = second.permit(FEW_BYTES).await.unwrap().unwrap();
            let closed = async {
                first.hangup.notified().await;
                drop(left);
            };
            let (permit, ()) = tokio::join!(reader.permit(FEW_BYTES), closed);
            assert!(permit.unwrap().is_some());
        });
    }
}
