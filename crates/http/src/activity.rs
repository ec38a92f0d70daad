//! The activity of a connection, and its timeouts. It has requests open, has begun one, or has
//! none; a frame is half sent, or the peer leaves parts of answers unread; and since when.
//! `half_sent` and `send_timeout` tell it. `body` times bodies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::open::{Admitted, Open};

/// The activity of one connection.
#[derive(Debug)]
pub(crate) struct Activity {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Since when the first bytes of the connection, or a frame of HTTP/2, are half sent.
    half_sent: Option<Instant>,
    /// Since when parts of answers wait for the peer, in the order in which they came.
    unread: BTreeMap<u64, Instant>,
    /// Parts that have waited.
    unread_count: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No request and no answer since then.
    Idle(Instant),
    /// A part of a request's head came then, by HTTP/1.1.
    Arriving(Instant),
    /// Requests that are open.
    Busy(usize),
}

/// How long a connection may stay as it is. `None`: for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Without a request.
    pub(crate) idle: Option<Duration>,
    /// With a head or a frame half sent.
    pub(crate) head: Option<Duration>,
    /// With a part of an answer unread.
    pub(crate) send: Option<Duration>,
}

impl Timeouts {
    /// Those of a connection by which no request has logged in.
    pub(crate) fn of_stranger(self) -> Self {
        let shorter = |span: Option<Duration>| span.map_or(STRANGER_MAX, |it| it.min(STRANGER_MAX));
        Self { idle: Some(shorter(self.idle)), head: Some(shorter(self.head)), ..self }
    }
}

/// How long a connection may be without a request, or with half of one, before one has logged in.
const STRANGER_MAX: Duration = Duration::from_secs(10);

/// The timeout that a connection has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// It has no request open.
    Idle,
    /// It does not complete the head of a request, or a frame.
    Head,
    /// It does not take an answer.
    Send,
}

/// An open request, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    connection: Arc<Activity>,
    admitted: Option<Admitted>,
}

/// A part of an answer that waits for the peer, until it is dropped.
#[derive(Debug)]
pub(crate) struct Unread {
    connection: Arc<Activity>,
    number: u64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        let (phase, unread) = (Phase::Idle(Instant::now()), BTreeMap::new());
        let state = State { phase, half_sent: None, unread, unread_count: 0 };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("invariant: no panic while a connection's activity is locked")
    }

    /// The head of a request has come. `all` decides whether it is admitted.
    pub(crate) fn open(self: &Arc<Self>, all: &Open) -> OpenRequest {
        let mut state = self.state();
        let own = state.phase.requests();
        state.phase = Phase::Busy(own + 1);
        OpenRequest { connection: Arc::clone(self), admitted: all.admit(own) }
    }

    /// Bytes have come by HTTP/1.1. They begin a request if none is open.
    pub(crate) fn note_read(&self) {
        let mut state = self.state();
        if let Phase::Idle(_) = state.phase {
            state.phase = Phase::Arriving(Instant::now());
            self.changed.notify_one();
        }
    }

    /// The peer has sent a part of something, and a read waits for the rest.
    pub(crate) fn note_half_sent(&self) {
        let mut state = self.state();
        if state.half_sent.is_none() {
            state.half_sent = Some(Instant::now());
            self.changed.notify_one();
        }
    }

    /// The peer has completed it.
    pub(crate) fn note_completed(&self) {
        self.state().half_sent = None;
    }

    /// The client has taken bytes of an answer.
    pub(crate) fn note_written(&self) {
        if let Phase::Idle(since) = &mut self.state().phase {
            *since = Instant::now();
        }
    }

    /// A part of an answer waits for the peer from now on.
    pub(crate) fn unread(self: &Arc<Self>) -> Unread {
        let mut state = self.state();
        state.unread_count += 1;
        let number = state.unread_count;
        if state.unread.is_empty() {
            self.changed.notify_one();
        }
        state.unread.insert(number, Instant::now());
        Unread { connection: Arc::clone(self), number }
    }

    /// Waits until the connection has exceeded a timeout.
    pub(crate) async fn overdue(&self, timeouts: Timeouts) -> Overdue {
        loop {
            let Some((end, overdue)) = self.state().next_end(timeouts) else {
                self.changed.notified().await;
                continue;
            };
            if end <= Instant::now() {
                return overdue;
            }
            tokio::select! {
                () = sleep_until(end) => {}
                () = self.changed.notified() => {}
            }
        }
    }
}

impl State {
    /// The first timeout that ends, and when.
    fn next_end(&self, timeouts: Timeouts) -> Option<(Instant, Overdue)> {
        let Timeouts { idle, head, send } = timeouts;
        let phase = match self.phase {
            Phase::Idle(since) => Some((since, idle, Overdue::Idle)),
            Phase::Arriving(since) => Some((since, head, Overdue::Head)),
            Phase::Busy(_) => None,
        };
        let half_sent = self.half_sent.map(|since| (since, head, Overdue::Head));
        let unread = self.unread.first_key_value();
        let unread = unread.map(|(_, since)| (*since, send, Overdue::Send));
        let ends = [half_sent, unread, phase].into_iter().flatten();
        let ends = ends.filter_map(|(since, most, of)| Some((since.checked_add(most?)?, of)));
        ends.min_by_key(|(end, _)| *end)
    }
}

impl Phase {
    const fn requests(self) -> usize {
        match self {
            Self::Idle(_) | Self::Arriving(_) => 0,
            Self::Busy(count) => count,
        }
    }
}

impl OpenRequest {
    /// True if the limits of open requests let it in.
    pub(crate) const fn is_admitted(&self) -> bool {
        self.admitted.is_some()
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.connection.state();
        state.phase = match state.phase.requests() {
            0 | 1 => Phase::Idle(Instant::now()),
            more => Phase::Busy(more - 1),
        };
        self.connection.changed.notify_one();
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.connection.state().unread.remove(&self.number);
    }
}

#[cfg(test)]
impl Activity {
    /// Parts of answers that the peer has not taken.
    pub(crate) fn unread_parts(&self) -> usize {
        self.state().unread.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        idle: Some(Duration::from_secs(75)),
        head: Some(Duration::from_secs(60)),
        send: Some(Duration::from_secs(50)),
    };

    /// The seconds of virtual time after which a connection is overdue, and its timeout.
    async fn overdue(activity: &Activity) -> (u64, Overdue) {
        let begin = Instant::now();
        let overdue = activity.overdue(TIMEOUTS).await;
        ((Instant::now() - begin).as_secs(), overdue)
    }

    fn run<F: Future>(test: F) -> F::Output {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(test)
    }

    #[test]
    fn idle_begins_after_last_answer() {
        run(async {
            let activity = Arc::new(Activity::new());
            let all = Open::new(1 << 20);
            let requests = [activity.open(&all), activity.open(&all)];
            let ask = async {
                for request in requests {
                    tokio::time::sleep(Duration::from_secs(500)).await;
                    activity.note_read();
                    drop(request);
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
                activity.note_written();
            };
            let (found, ()) = tokio::join!(overdue(&activity), ask);
            assert_eq!(found, (500 + 500 + 5 + 75, Overdue::Idle));
        });
    }

    #[test]
    fn half_sent_head_has_own_timeout() {
        run(async {
            let activity = Arc::new(Activity::new());
            let ask = async {
                tokio::time::sleep(Duration::from_secs(74)).await;
                activity.note_read();
                tokio::time::sleep(Duration::from_secs(30)).await;
                activity.note_read();
            };
            let (found, ()) = tokio::join!(overdue(&activity), ask);
            assert_eq!(found, (74 + 60, Overdue::Head));
        });
    }

    #[test]
    fn strangers_have_ten_seconds() {
        run(async {
            let activity = Activity::new();
            for limit in [TIMEOUTS.idle, None] {
                let timeouts = Timeouts { idle: limit, head: limit, send: limit }.of_stranger();
                for overdue in [Overdue::Idle, Overdue::Head] {
                    let begin = Instant::now();
                    activity.note_written();
                    if overdue == Overdue::Head {
                        activity.note_half_sent();
                    }
                    assert_eq!(activity.overdue(timeouts).await, overdue);
                    assert_eq!((Instant::now() - begin).as_secs(), 10);
                }
                activity.note_completed();
            }
        });
    }

    #[test]
    fn unlimited_time_is_for_ever() {
        run(async {
            let activity = Activity::new();
            let timeouts = Timeouts { idle: None, ..TIMEOUTS };
            tokio::select! {
                _ = activity.overdue(timeouts) => panic!("it may be idle for ever"),
                () = tokio::time::sleep(Duration::from_secs(1_000_000)) => {}
            }
        });
    }

    #[test]
    fn half_sent_frame_ends_busy_connection() {
        run(async {
            let activity = Arc::new(Activity::new());
            let _request = activity.open(&Open::new(1 << 20));
            let send = async {
                activity.note_half_sent();
                tokio::time::sleep(Duration::from_secs(59)).await;
                activity.note_completed();
                tokio::time::sleep(Duration::from_secs(59)).await;
                activity.note_half_sent();
                tokio::time::sleep(Duration::from_secs(59)).await;
                activity.note_half_sent();
            };
            let (found, ()) = tokio::join!(overdue(&activity), send);
            assert_eq!(found, (59 + 59 + 60, Overdue::Head));
        });
    }

    #[test]
    fn oldest_unread_part_is_overdue() {
        run(async {
            let activity = Arc::new(Activity::new());
            let _request = activity.open(&Open::new(1 << 20));
            let leave = async {
                for _ in 0..3 {
                    let read = activity.unread();
                    tokio::time::sleep(Duration::from_secs(49)).await;
                    drop(read);
                }
                let _first = activity.unread();
                tokio::time::sleep(Duration::from_secs(49)).await;
                let _second = activity.unread();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                found = overdue(&activity) => assert_eq!(found, (3 * 49 + 50, Overdue::Send)),
                () = leave => {}
            }
        });
    }
}
