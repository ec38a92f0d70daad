//! A budget of bytes that requests and answers of all connections hold in memory.
//!
//! A request for bytes that are not free waits or is refused, as its caller decides. One permit at
//! a time may go beyond the budget. So a request larger than the budget is admitted too, and of
//! requests that hold a part and wait for more, one always goes on.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::memory_gauge::MemoryGauge;
use crate::problem::{Problem, Result};
use crate::slow_clients::SlowClients;

/// The budget. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    permits: Arc<Semaphore>,
    beyond: Arc<Semaphore>,
    held_bytes: Arc<AtomicUsize>,
}

/// A part of a budget, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Permit {
    permits: Option<OwnedSemaphorePermit>,
    /// It may go beyond the budget.
    beyond: Option<OwnedSemaphorePermit>,
    counted: Option<MemoryGauge>,
}

impl ByteBudget {
    /// A budget of so many bytes. `held_bytes` counts those that are taken.
    pub(crate) fn new(bytes_max: usize, held_bytes: &Arc<AtomicUsize>) -> Self {
        let permits = (bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            beyond: Arc::new(Semaphore::new(1)),
            held_bytes: Arc::clone(held_bytes),
        }
    }

    /// Takes so many bytes, at once or not at all.
    pub(crate) fn take(&self, bytes: usize) -> Result<Permit> {
        let mut permit = Permit::default();
        self.extend(&mut permit, bytes)?;
        Ok(permit)
    }

    /// Extends a permit to so many bytes in all, at once or not at all.
    pub(crate) fn extend(&self, permit: &mut Permit, bytes: usize) -> Result<()> {
        let permits = permit.lacks(bytes);
        if let Ok(permits) = Arc::clone(&self.permits).try_acquire_many_owned(permits) {
            permit.add(permits);
        } else {
            let beyond = Arc::clone(&self.beyond).try_acquire_owned();
            permit.beyond = Some(beyond.map_err(|_| Problem::busy())?);
        }
        self.count(permit, bytes);
        Ok(())
    }

    /// Extends a permit to so many bytes in all, once others have freed them; waits for `most`.
    pub(crate) async fn await_more(
        &self,
        permit: &mut Permit,
        bytes: usize,
        most: Duration,
    ) -> Result<()> {
        if self.extend(permit, bytes).is_ok() {
            return Ok(());
        }
        let permits = Arc::clone(&self.permits).acquire_many_owned(permit.lacks(bytes));
        let beyond = Arc::clone(&self.beyond).acquire_owned();
        let either = async {
            tokio::select! {
                Ok(permits) = permits => permit.add(permits),
                Ok(beyond) = beyond => permit.beyond = Some(beyond),
            }
        };
        timeout(most, either).await.map_err(|_| Problem::busy())?;
        self.count(permit, bytes);
        Ok(())
    }

    fn count(&self, permit: &mut Permit, bytes: usize) {
        permit.counted.get_or_insert_with(|| MemoryGauge::new(&self.held_bytes, 0)).set(bytes);
    }

    /// The same bytes, with a permit until their last owner drops them. A permit larger than they
    /// need shrinks. A few bytes need none, so that clients get small answers even if others
    /// leave large ones unread.
    pub(crate) fn hold_in(&self, mut permit: Permit, bytes: Bytes) -> Result<Bytes> {
        if bytes.len() < FEW_BYTES {
            return Ok(bytes);
        }
        permit.shrink(bytes.len());
        self.extend(&mut permit, bytes.len())?;
        Ok(Bytes::from_owner(Held { bytes, _permit: permit }))
    }
}

impl Permit {
    /// How many bytes of the budget it has.
    fn bytes(&self) -> usize {
        self.permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) * PERMIT_BYTES
    }

    /// How many permits of the semaphore it is short of for so many bytes.
    fn lacks(&self, bytes: usize) -> u32 {
        if self.beyond.is_some() {
            return 0;
        }
        let more = bytes.saturating_sub(self.bytes()).div_ceil(PERMIT_BYTES);
        u32::try_from(more).unwrap_or(u32::MAX)
    }

    fn shrink(&mut self, bytes: usize) {
        let needed = bytes.div_ceil(PERMIT_BYTES);
        if let Some(permits) = &mut self.permits {
            drop(permits.split(permits.num_permits().saturating_sub(needed)));
        }
    }

    fn add(&mut self, permits: OwnedSemaphorePermit) {
        match &mut self.permits {
            Some(own) => own.merge(permits),
            None => self.permits = Some(permits),
        }
    }
}

/// The budgets for bodies of requests, which wait for bytes. Small bodies have a budget of their
/// own: they do not wait for large bodies that come slowly.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudgets {
    pub(crate) small: ByteBudget,
    pub(crate) large: ByteBudget,
    pub(crate) wait_max: Duration,
    /// Clients that have a part of it and do not send on.
    pub(crate) silent: SlowClients,
}

/// The part of a body in them, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct BodyPermit {
    small: Permit,
    large: Permit,
}

impl ByteBudgets {
    /// Extends a permit to so many bytes in all. It waits for them.
    pub(crate) async fn extend(&self, permit: &mut BodyPermit, bytes: usize) -> Result<()> {
        tokio::select! {
            biased;
            extended = self.extend_in_turn(permit, bytes) => extended,
            never = self.silent.end_them() => match never {},
        }
    }

    async fn extend_in_turn(&self, permit: &mut BodyPermit, bytes: usize) -> Result<()> {
        if bytes <= SMALL_BYTES {
            return self.small.await_more(&mut permit.small, bytes, self.wait_max).await;
        }
        self.large.await_more(&mut permit.large, bytes, self.wait_max).await?;
        permit.small = Permit::default();
        Ok(())
    }

    /// Takes so many bytes, at once or not at all.
    pub(crate) fn take(&self, bytes: usize) -> Result<Permit> {
        if bytes <= SMALL_BYTES { self.small.take(bytes) } else { self.large.take(bytes) }
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

const PERMIT_BYTES: usize = 512;

/// A larger body is a large one.
const SMALL_BYTES: usize = 64 * 1024;

/// Fewer bytes need no permit.
pub(crate) const FEW_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes_max: usize) -> ByteBudget {
        ByteBudget::new(bytes_max, &Arc::default())
    }

    const LARGE: usize = 10 * PERMIT_BYTES;

    #[test]
    fn budget_lets_one_permit_exceed_it() {
        let budget = budget(LARGE);
        let mut first = budget.take(8 * PERMIT_BYTES - 1).unwrap();
        assert_eq!(first.bytes(), 8 * PERMIT_BYTES);
        let beyond = budget.take(3 * PERMIT_BYTES).unwrap();
        assert_eq!(beyond.bytes(), 0);
        assert_eq!(budget.take(3 * PERMIT_BYTES).unwrap_err().kind, "busy");
        assert_eq!(budget.extend(&mut first, 2 * LARGE).unwrap_err().kind, "busy");
        assert!(budget.extend(&mut first, LARGE).is_ok());
        assert_eq!(budget.take(1).unwrap_err().kind, "busy");
        drop(beyond);
        assert!(budget.extend(&mut first, 2 * LARGE).is_ok(), "it is its turn");
        assert!(budget.extend(&mut first, 9 * LARGE).is_ok(), "and stays so");
        drop(first);
        assert!(budget.take(LARGE).unwrap().beyond.is_none());
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn waiting_permits_never_deadlock() {
        let budget = budget(LARGE);
        let work = |budget: ByteBudget| async move {
            let mut permit = Permit::default();
            for part in 1..=8 {
                let most = Duration::from_secs(3600);
                budget.await_more(&mut permit, part * PERMIT_BYTES, most).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        runtime().block_on(async {
            let works: Vec<_> = (0..20).map(|_| tokio::spawn(work(budget.clone()))).collect();
            for work in works {
                work.await.unwrap();
            }
        });
        assert!(budget.take(LARGE).unwrap().beyond.is_none());
    }

    #[test]
    fn small_bodies_pass_large_ones() {
        let budgets = ByteBudgets {
            small: budget(2 * SMALL_BYTES),
            large: budget(2 * SMALL_BYTES),
            wait_max: Duration::ZERO,
            silent: SlowClients::new(Duration::from_secs(3600)),
        };
        let permit = |bytes: &[usize]| {
            let mut permit = BodyPermit::default();
            let extended = runtime().block_on(async {
                for bytes in bytes {
                    budgets.extend(&mut permit, *bytes).await?;
                }
                Ok(permit)
            });
            extended.map_err(|problem: Problem| problem.kind)
        };
        let growing = [1, SMALL_BYTES, 2 * SMALL_BYTES];
        let (_first, _beyond) = (permit(&growing).unwrap(), permit(&growing).unwrap());
        assert_eq!(permit(&growing).unwrap_err(), "busy");
        assert_eq!(budgets.take(SMALL_BYTES + 1).unwrap_err().kind, "busy");
        let _small = [permit(&[1, SMALL_BYTES]).unwrap(), permit(&[SMALL_BYTES]).unwrap()];
        assert!(budgets.take(1).unwrap().beyond.is_some(), "and that is all");
    }

    #[test]
    fn taken_bytes_are_counted() {
        let all = Arc::new(AtomicUsize::new(0));
        let budget = ByteBudget::new(LARGE, &all);
        let held = || all.load(std::sync::atomic::Ordering::Relaxed);
        let mut first = budget.take(100).unwrap();
        budget.extend(&mut first, 1_000).unwrap();
        let beyond = budget.take(10 * LARGE).unwrap();
        assert_eq!(held(), 1_000 + 10 * LARGE);
        assert_eq!(budget.take(LARGE).unwrap_err().kind, "busy");
        assert_eq!(held(), 1_000 + 10 * LARGE, "nothing was taken");
        drop((first, beyond));
        assert_eq!(held(), 0);
        let bytes = Bytes::from(vec![b'x'; FEW_BYTES]);
        let bytes = budget.hold_in(budget.take(LARGE).unwrap(), bytes).unwrap();
        assert_eq!(held(), FEW_BYTES);
        drop(bytes);
        assert_eq!(held(), 0);
    }

    #[test]
    fn long_wait_for_bytes_is_refused() {
        let budget = budget(LARGE);
        let (_all, _beyond) = (budget.take(LARGE).unwrap(), budget.take(1).unwrap());
        let mut permit = Permit::default();
        let waited = budget.await_more(&mut permit, 1, Duration::from_millis(1));
        let waited = runtime().block_on(waited);
        assert_eq!(waited.unwrap_err().kind, "busy");
    }

    #[test]
    fn bytes_hold_their_permit_until_dropped() {
        let budget = budget(FEW_BYTES);
        let _beyond = budget.take(2 * FEW_BYTES).unwrap();
        let large = Bytes::from(vec![b'x'; FEW_BYTES]);
        let held = budget.hold_in(Permit::default(), large.clone()).unwrap();
        assert_eq!(held, large);
        let part = held.slice(1..2);
        drop(held);
        assert_eq!(budget.hold_in(Permit::default(), large.clone()).unwrap_err().kind, "busy");
        assert!(budget.hold_in(Permit::default(), Bytes::from_static(b"few")).is_ok());
        drop(part);
        assert!(budget.hold_in(Permit::default(), large).is_ok());
    }

    #[test]
    fn excess_of_a_permit_is_freed() {
        let budget = budget(4 * FEW_BYTES);
        let large = Bytes::from(vec![b'x'; FEW_BYTES]);
        let held = budget.hold_in(budget.take(4 * FEW_BYTES).unwrap(), large.clone()).unwrap();
        let others = budget.take(3 * FEW_BYTES).unwrap();
        assert!(others.beyond.is_none());
        let _beyond = budget.take(1).unwrap();
        assert_eq!(budget.hold_in(Permit::default(), large).unwrap_err().kind, "busy");
        drop(held);
        assert!(budget.take(FEW_BYTES).is_ok());
    }
}
