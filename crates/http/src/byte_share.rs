//! A share of the byte budget: its permits, the requests that wait for bytes of it, and the clients
//! that hold some and do not go on.
//!
//! A request for bytes that are not free waits or is refused, as its caller decides. Bodies and
//! answers wait in the order in which they came. One permit of theirs at a time may go beyond the
//! share. So a request larger than the share is admitted too, and of requests that hold a part and
//! wait for more, one always goes on.
//!
//! The follower of a topic that read an event last goes first: so followers that read are served,
//! however many do not. Its event is in memory already, so as many bytes of events may wait as the
//! share has, or a few events of any size. Then the last follower in the line is refused: the one
//! that read an event longest ago. An event larger than the share goes alone.
//!
//! While a request waits, clients that have been silent for [`SILENT_MAX`] end one after the other,
//! the longest silent first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use crate::memory_gauge::MemoryGauge;
use crate::problem::{Problem, Result};

/// The share. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct ByteShare(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes_max: usize,
    /// How long a client may be silent while others wait for its bytes.
    silent_max: Duration,
    held_bytes: Arc<AtomicUsize>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of all permits, without those beyond the share.
    bytes: usize,
    /// A permit goes beyond the share.
    is_exceeded: bool,
    /// A number that grows with each wait, silence and event that was read.
    moments: u64,
    waiting: BTreeMap<Rank, Waiting>,
    /// Bytes that they wait for.
    waiting_bytes: usize,
    /// The clients that are silent, by the beginning of that, and a number.
    silent: BTreeMap<Key, Arc<Notify>>,
}

/// The order of those that wait: the follower that read an event last comes first, and of the
/// others the oldest.
type Rank = (Reverse<u64>, u64);

type Key = (Instant, u64);

/// The place of bytes: within the share, or beyond.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// So many within the share.
    Within(usize),
    /// Any number beyond it.
    Beyond,
}

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    follower: Option<Follower>,
    permit: oneshot::Sender<Permit>,
}

/// Closes a connection.
pub(crate) type Hangup = Arc<Notify>;

/// One follower of a topic.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    share: ByteShare,
    hangup: Hangup,
    /// When it read an event last.
    took: Arc<AtomicU64>,
}

/// Bytes of a share, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    share: ByteShare,
    /// Bytes within the share.
    bytes: usize,
    /// It may go beyond the share.
    is_beyond: bool,
    counted: MemoryGauge,
    /// The follower that is to read the event, and its silence.
    follower: Option<(Follower, Silence)>,
}

/// The silence of one client, until it is dropped.
#[derive(Debug)]
pub(crate) struct Silence {
    share: ByteShare,
    key: Key,
}

impl ByteShare {
    /// A share of so many bytes. `held_bytes` counts those that are taken.
    pub(crate) fn new(bytes_max: usize, held_bytes: &Arc<AtomicUsize>) -> Self {
        Self::with_silence(bytes_max, SILENT_MAX, held_bytes)
    }

    fn with_silence(bytes_max: usize, silent_max: Duration, held_bytes: &Arc<AtomicUsize>) -> Self {
        let (held_bytes, state) = (Arc::clone(held_bytes), Mutex::default());
        Self(Arc::new(Inner { bytes_max, silent_max, held_bytes, state }))
    }

    /// A permit for no bytes yet.
    pub(crate) fn permit(&self) -> Permit {
        let (share, counted) = (self.clone(), MemoryGauge::new(&self.0.held_bytes, 0));
        Permit { share, bytes: 0, is_beyond: false, counted, follower: None }
    }

    /// A new follower. `hangup` is notified when its connection has to end.
    pub(crate) fn follower(&self, hangup: Hangup) -> Follower {
        Follower { share: self.clone(), hangup, took: Arc::default() }
    }

    /// A client that holds bytes is silent since then. `end` is notified when it has to end.
    pub(crate) fn silence(&self, since: Instant, end: &Arc<Notify>) -> Silence {
        let mut state = self.state();
        let key = (since, state.next_moment());
        state.silent.insert(key, Arc::clone(end));
        drop(state);
        Silence { share: self.clone(), key }
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("invariant: no thread panics with the share")
    }

    /// Waits in its turn until so many bytes are free. Ends silent clients meanwhile.
    ///
    /// # Errors
    /// 503 for the last follower in a line that is too long.
    async fn wait(&self, bytes: usize, follower: Option<&Follower>) -> Result<Permit> {
        let mut line = self.line_up(bytes, follower);
        tokio::select! {
            biased;
            permit = &mut line.permit => permit.map_err(|_| Problem::busy()),
            never = self.end_silent() => match never {},
        }
    }

    fn line_up(&self, bytes: usize, follower: Option<&Follower>) -> Line<'_> {
        let (to, permit) = oneshot::channel();
        let took = follower.map_or(0, |follower| follower.took.load(Ordering::Relaxed));
        let mut state = self.state();
        let rank = (Reverse(took), state.next_moment());
        let waiting = Waiting { bytes, follower: follower.cloned(), permit: to };
        state.waiting.insert(rank, waiting);
        state.waiting_bytes += bytes;
        drop(state);
        self.grant();
        if follower.is_some() {
            self.state().refuse_last(self.0.bytes_max);
        }
        Line { share: self, rank, permit }
    }

    /// Gives permits in the order of the line, while bytes are free.
    fn grant(&self) {
        while let Some((to, permit)) = self.next_permit() {
            // A wait leaves the line before it drops the receiver of this.
            let _ = to.send(permit);
        }
    }

    fn next_permit(&self) -> Option<(oneshot::Sender<Permit>, Permit)> {
        let mut state = self.state();
        let rank = *state.waiting.first_key_value()?.0;
        let waiting = state.waiting.get(&rank)?;
        let place = state.place(waiting.bytes, waiting.follower.is_some(), self.0.bytes_max)?;
        let Waiting { bytes, follower, permit: to } = state.leave(rank)?;
        state.add(place);
        drop(state);
        let mut permit = self.permit();
        permit.add(place);
        permit.counted.set(bytes);
        permit.follower = follower.map(|follower| {
            let silence = self.silence(Instant::now(), &follower.hangup);
            (follower, silence)
        });
        Some((to, permit))
    }

    /// Ends silent clients for as long as the caller polls it.
    async fn end_silent(&self) -> Infallible {
        loop {
            sleep_until(self.next_end()).await;
            self.end_longest_silent();
            // The client frees its bytes, and the caller looks whether it has them.
            yield_now().await;
        }
    }

    fn next_end(&self) -> Instant {
        let state = self.state();
        let longest = state.silent.first_key_value().map(|((since, _), _)| *since);
        longest.unwrap_or_else(Instant::now) + self.0.silent_max
    }

    fn end_longest_silent(&self) {
        let mut state = self.state();
        let Some(longest) = state.silent.first_entry() else { return };
        if longest.key().0.elapsed() >= self.0.silent_max {
            longest.remove().notify_one();
        }
    }
}

impl State {
    const fn next_moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }

    /// The place for so many more bytes; `None` if there is none.
    const fn place(&self, bytes: usize, is_event: bool, bytes_max: usize) -> Option<Place> {
        let is_alone = is_event && self.bytes == 0;
        if is_alone || self.bytes + bytes <= bytes_max {
            return Some(Place::Within(bytes));
        }
        if is_event || self.is_exceeded { None } else { Some(Place::Beyond) }
    }

    const fn add(&mut self, place: Place) {
        match place {
            Place::Within(bytes) => self.bytes += bytes,
            Place::Beyond => self.is_exceeded = true,
        }
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
    ///
    /// # Errors
    /// 503 if it read an event longest ago, and too many wait.
    pub(crate) async fn permit(&self, bytes: usize) -> Result<Option<Permit>> {
        if bytes < FEW_BYTES {
            return Ok(None);
        }
        self.share.wait(bytes, Some(self)).await.map(Some)
    }
}

/// A wait, which ends when it is dropped.
struct Line<'s> {
    share: &'s ByteShare,
    rank: Rank,
    permit: oneshot::Receiver<Permit>,
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let waited = self.share.state().leave(self.rank);
        if waited.is_some() {
            self.share.grant();
        }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.share.state().silent.remove(&self.key);
    }
}

impl Permit {
    pub(crate) const fn share(&self) -> &ByteShare {
        &self.share
    }

    /// Extends it to so many bytes in all, at once or not at all.
    ///
    /// # Errors
    /// 503 if they are not free, or others wait for them.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<()> {
        let more = self.lacks(bytes);
        if more > 0 {
            let mut state = self.share.state();
            let place = state.place(more, false, self.share.0.bytes_max);
            let place = place.filter(|_| state.waiting.is_empty()).ok_or_else(Problem::busy)?;
            state.add(place);
            drop(state);
            self.add(place);
        }
        self.counted.set(bytes);
        Ok(())
    }

    /// Extends it to so many bytes in all, once others have freed them.
    ///
    /// # Errors
    /// 503 after a wait of `most`.
    pub(crate) async fn await_more(&mut self, bytes: usize, most: Duration) -> Result<()> {
        if self.take(bytes).is_ok() {
            return Ok(());
        }
        let wait = self.share.wait(self.lacks(bytes), None);
        let mut more = timeout(most, wait).await.map_err(|_| Problem::busy())??;
        self.bytes += std::mem::take(&mut more.bytes);
        self.is_beyond |= std::mem::take(&mut more.is_beyond);
        self.counted.set(bytes);
        Ok(())
    }

    const fn add(&mut self, place: Place) {
        match place {
            Place::Within(bytes) => self.bytes += bytes,
            Place::Beyond => self.is_beyond = true,
        }
    }

    /// Bytes that it lacks to have so many in all.
    const fn lacks(&self, bytes: usize) -> usize {
        if self.is_beyond { 0 } else { bytes.saturating_sub(self.bytes) }
    }

    /// The same bytes, with this permit until their last owner drops them. A permit larger than
    /// they need shrinks, a smaller one grows beyond the share: the bytes are there already.
    pub(crate) fn hold(mut self, bytes: Bytes) -> Bytes {
        let mut state = self.share.state();
        let now = if self.is_beyond { self.bytes.min(bytes.len()) } else { bytes.len() };
        state.bytes = state.bytes - self.bytes + now;
        drop(state);
        self.bytes = now;
        self.counted.set(bytes.len());
        self.share.grant();
        Bytes::from_owner(Held { bytes, _permit: self })
    }

    /// As [`Self::hold`], if the share has room for the bytes. A few bytes need no permit, so that
    /// clients get small answers even if others leave large ones unread.
    ///
    /// # Errors
    /// 503 if there is no room.
    pub(crate) fn hold_within(mut self, bytes: Bytes) -> Result<Bytes> {
        if bytes.len() < FEW_BYTES {
            return Ok(bytes);
        }
        if self.bytes < bytes.len() {
            self.take(bytes.len())?;
        }
        Ok(self.hold(bytes))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.share.state();
        state.bytes -= self.bytes;
        state.is_exceeded &= !self.is_beyond;
        let now = state.next_moment();
        drop(state);
        if let Some((follower, _)) = &self.follower {
            follower.took.store(now, Ordering::Relaxed);
        }
        self.share.grant();
    }
}

struct Held {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Fewer bytes need no permit.
pub(crate) const FEW_BYTES: usize = 4096;

/// Events that may always wait, of any size.
const WAITING_MIN: usize = 8;

/// How long a client may be silent while others wait.
const SILENT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
#[path = "byte_share_test.rs"]
mod tests;
