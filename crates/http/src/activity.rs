//! The activity of a connection: it has a request open, has begun one, or neither, and since when.
//! The last two have a timeout each. By HTTP/2 only open requests count: `half_sent` times its
//! frames.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The activity of one connection.
#[derive(Debug)]
pub(crate) struct Activity {
    phase: Mutex<Phase>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No request and no answer since then.
    Idle(Instant),
    /// A part of a request's head came then.
    Arriving(Instant),
    /// Requests that are open.
    Busy(usize),
}

/// The timeout that a connection has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// It has no request open.
    Idle,
    /// It does not complete the head of a request.
    HalfSent,
}

/// An open request, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Self {
        Self { phase: Mutex::new(Phase::Idle(Instant::now())), changed: Notify::new() }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().expect("invariant: no panic while a connection's phase is locked")
    }

    /// The head of a request has come.
    pub(crate) fn open(self: &Arc<Self>) -> OpenRequest {
        let mut phase = self.phase();
        *phase = match *phase {
            Phase::Busy(count) => Phase::Busy(count + 1),
            Phase::Idle(_) | Phase::Arriving(_) => Phase::Busy(1),
        };
        OpenRequest(Arc::clone(self))
    }

    /// Bytes have come. They begin a request if none is open.
    pub(crate) fn note_read(&self) {
        let mut phase = self.phase();
        if let Phase::Idle(_) = *phase {
            *phase = Phase::Arriving(Instant::now());
            self.changed.notify_one();
        }
    }

    /// The client has taken bytes of an answer.
    pub(crate) fn note_written(&self) {
        let mut phase = self.phase();
        if let Phase::Idle(since) = &mut *phase {
            *since = Instant::now();
        }
    }

    fn close(&self) {
        let mut phase = self.phase();
        *phase = match *phase {
            Phase::Busy(count) if count > 1 => Phase::Busy(count - 1),
            _ => Phase::Idle(Instant::now()),
        };
        self.changed.notify_one();
    }

    /// Waits until the connection is idle, or has a head half sent, for so long. `None`: for ever.
    pub(crate) async fn overdue(
        &self,
        idle: Option<Duration>,
        half_sent: Option<Duration>,
    ) -> Overdue {
        loop {
            let phase = *self.phase();
            let (since, most, overdue) = match phase {
                Phase::Idle(since) => (since, idle, Overdue::Idle),
                Phase::Arriving(since) => (since, half_sent, Overdue::HalfSent),
                Phase::Busy(_) => {
                    self.changed.notified().await;
                    continue;
                }
            };
            let Some(end) = most.and_then(|most| since.checked_add(most)) else {
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

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Option<Duration> = Some(Duration::from_secs(75));
    const HALF_SENT: Option<Duration> = Some(Duration::from_secs(60));

    /// The seconds of virtual time after which a connection is overdue, and its timeout.
    async fn overdue(activity: &Activity) -> (u64, Overdue) {
        let begin = Instant::now();
        let overdue = activity.overdue(IDLE, HALF_SENT).await;
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
            let requests = [activity.open(), activity.open()];
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
            assert_eq!(found, (74 + 60, Overdue::HalfSent));
        });
    }

    #[test]
    fn unlimited_time_is_for_ever() {
        run(async {
            let activity = Activity::new();
            tokio::select! {
                _ = activity.overdue(None, HALF_SENT) => panic!("it may be idle for ever"),
                () = tokio::time::sleep(Duration::from_secs(1_000_000)) => {}
            }
        });
    }
}
