//! Answers to operators while the disk of the log hangs: the latest figures that were durable, with
//! their age.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{QueueName, QueueStatistics};
use serde_json::Value as Json;
use tokio::time::{Instant, sleep, timeout};

use crate::app::App;
use crate::gateway::Gateway;
use crate::problem::{Problem, Result};

/// The latest answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latest(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    queues: Option<(Instant, Page)>,
    segments: Option<(Instant, Json)>,
}

/// Queues in the order of their names, and whether there are more.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) queues: Vec<QueueStatistics>,
    pub(crate) more: bool,
}

/// A value and its age: zero if it is current.
#[derive(Debug)]
pub(crate) struct Aged<T> {
    pub(crate) value: T,
    pub(crate) age: Duration,
}

impl<T> Aged<T> {
    fn new(value: T) -> Self {
        Self { value, age: Duration::ZERO }
    }
}

impl Latest {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into the latest sample, if there is one and it goes so far.
    fn page(&self, after: Option<&QueueName>, max: usize) -> Option<Aged<Page>> {
        let kept = self.lock();
        let (taken, sample) = kept.queues.as_ref()?;
        let start = sample.queues.partition_point(|it| after.is_some_and(|name| it.queue <= *name));
        let rest = sample.queues.get(start..)?;
        if rest.len() < max && sample.more {
            return None;
        }
        let queues: Vec<_> = rest.iter().take(max).cloned().collect();
        let more = rest.len() > max || sample.more;
        Some(Aged { value: Page { queues, more }, age: taken.elapsed() })
    }

    fn queue(&self, name: &QueueName) -> Option<Aged<QueueStatistics>> {
        let kept = self.lock();
        let (taken, sample) = kept.queues.as_ref()?;
        let found = sample.queues.iter().find(|it| it.queue == *name)?;
        Some(Aged { value: found.clone(), age: taken.elapsed() })
    }
}

impl<G: Gateway> App<G> {
    /// Takes a sample once a second, until it is dropped. One that has to wait for the log holds
    /// up the next.
    pub(crate) async fn sample(&self) {
        loop {
            let taken = Instant::now();
            if let Ok(page) = self.queue_page(None, SAMPLED_QUEUES_MAX).await {
                self.latest.lock().queues = Some((taken, page));
            }
            sleep(SAMPLE_EVERY).await;
        }
    }

    /// A page of queues; if the log does not answer, as it was last.
    ///
    /// # Errors
    /// 503 if no sample goes so far.
    pub(crate) async fn page_or_latest(
        &self,
        after: Option<QueueName>,
        max: usize,
    ) -> Result<Aged<Page>> {
        match timeout(PATIENCE, self.queue_page(after.clone(), max)).await {
            Ok(page) => page.map(Aged::new),
            Err(_) => {
                let mut page = self.latest.page(after.as_ref(), max);
                if let Some(Aged { value, .. }) = &mut page {
                    value.queues.retain(|it| self.sees(&it.queue));
                }
                page.ok_or_else(Problem::log_hangs)
            }
        }
    }

    /// The answer of `asking` about a queue; if the log does not answer, its latest figures.
    ///
    /// # Errors
    /// As that; 503 if no sample has the queue.
    pub(crate) async fn queue_or_latest<T>(
        &self,
        name: &QueueName,
        asking: impl Future<Output = Result<T>>,
        of_latest: impl FnOnce(&QueueStatistics) -> T,
    ) -> Result<Aged<T>> {
        if let Ok(told) = timeout(PATIENCE, asking).await {
            return told.map(Aged::new);
        }
        let latest = self.latest.queue(name).filter(|_| self.sees(name));
        let Aged { value, age } = latest.ok_or_else(Problem::log_hangs)?;
        Ok(Aged { value: of_latest(&value), age })
    }

    /// The reasons why files of the log are kept, once those are durable. If the log does not
    /// answer, the latest answer.
    ///
    /// # Errors
    /// 503 if there is none.
    pub(crate) async fn segments_or_latest(
        &self,
        told: Json,
        durable: impl Future<Output = Result<()>>,
    ) -> Result<Aged<Json>> {
        let taken = Instant::now();
        if let Ok(durable) = timeout(PATIENCE, durable).await {
            durable?;
            self.latest.lock().segments = Some((taken, told.clone()));
            return Ok(Aged::new(told));
        }
        let kept = self.latest.lock();
        let (taken, value) = kept.segments.as_ref().ok_or_else(Problem::log_hangs)?;
        Ok(Aged { value: value.clone(), age: taken.elapsed() })
    }
}

/// How long an answer may wait for the log before the latest one is given.
const PATIENCE: Duration = Duration::from_secs(1);

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Queues of which figures are kept, the first by name: as many as `/metrics` tells, each in eight
/// lines.
pub(crate) const SAMPLED_QUEUES_MAX: usize = 1_000;
