//! Clients that hold bytes which others wait for, and do not go on. While a client waits, these end
//! one after the other, the longest silent first.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

/// All clients that are silent while they hold bytes.
#[derive(Clone, Debug)]
pub(crate) struct SlowClients {
    /// How long a client may be silent while others wait for its bytes.
    most: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    ends: BTreeMap<Key, Arc<Notify>>,
}

/// When the silence began, and a number.
type Key = (Instant, u64);

/// The silence of one client, until it is dropped.
#[derive(Debug)]
pub(crate) struct Silence {
    all: SlowClients,
    key: Key,
}

impl SlowClients {
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, state: Arc::default() }
    }

    /// A client is silent since then. `end` is notified when it has to end.
    pub(crate) fn begin(&self, since: Instant, end: &Arc<Notify>) -> Silence {
        let mut state = self.state();
        state.count += 1;
        let key = (since, state.count);
        state.ends.insert(key, Arc::clone(end));
        drop(state);
        Silence { all: self.clone(), key }
    }

    /// Ends silent clients for as long as the caller polls it, while it waits for their bytes.
    pub(crate) async fn end_them(&self) -> Infallible {
        loop {
            sleep_until(self.next_end()).await;
            self.end_longest();
            // The client frees its bytes, and the caller looks whether it has them.
            yield_now().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("invariant: no thread panics with the list")
    }

    fn next_end(&self) -> Instant {
        let state = self.state();
        state.ends.first_key_value().map_or_else(Instant::now, |((since, _), _)| *since) + self.most
    }

    fn end_longest(&self) {
        let mut state = self.state();
        let Some(longest) = state.ends.first_entry() else { return };
        if longest.key().0.elapsed() >= self.most {
            longest.remove().notify_one();
        }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.all.state().ends.remove(&self.key);
    }
}

/// How long one may be silent while others wait.
pub(crate) const SILENT_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_silent_client_ends_first() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let silent = SlowClients::new(Duration::from_millis(1));
            let [first, second, gone] = [(); 3].map(|()| Arc::new(Notify::new()));
            let now = Instant::now();
            let _second = silent.begin(now, &second);
            let first_silence = silent.begin(now - Duration::from_secs(1), &first);
            drop(silent.begin(now - Duration::from_secs(2), &gone));
            let told = async {
                first.notified().await;
                drop(first_silence);
            };
            tokio::select! {
                biased;
                () = told => {}
                () = second.notified() => panic!("the other first"),
                never = silent.end_them() => match never {},
            }
            tokio::select! {
                biased;
                () = gone.notified() => panic!("it is silent no more"),
                () = second.notified() => {}
                never = silent.end_them() => match never {},
            }
        });
    }
}
