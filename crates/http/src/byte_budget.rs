//! The byte budget of HTTP: bytes that requests and answers of all connections hold in memory, in
//! five shares. A client that fills one share holds up only requests of that share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::byte_share::{ByteShare, Permit};
use crate::problem::Result;

/// The budget. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    /// Small bodies of sends do not wait for large bodies that come slowly.
    small_sends: ByteShare,
    large_sends: ByteShare,
    /// All other bodies: a settlement does not wait for sends, which may wait for that settlement.
    other_bodies: ByteShare,
    /// Large answers that were not read yet.
    pub(crate) answers: ByteShare,
    /// Events that were not read yet: their readers may be silent for long and hold up no other
    /// client.
    pub(crate) events: ByteShare,
    /// How long a body waits for bytes.
    wait_max: Duration,
}

/// The purpose of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Send,
    Other,
}

impl ByteBudget {
    /// A budget of so many bytes. `held_bytes` counts those that are taken.
    pub(crate) fn new(bytes_max: usize, wait_max: Duration, held_bytes: &Arc<AtomicUsize>) -> Self {
        let share = |eighths| ByteShare::new(eighths * (bytes_max / 8), held_bytes);
        Self {
            small_sends: share(1),
            large_sends: share(3),
            other_bodies: share(1),
            answers: share(2),
            events: share(1),
            wait_max,
        }
    }

    /// A permit for a body of which nothing has come.
    pub(crate) fn body(&self, kind: BodyKind) -> Permit {
        self.share(kind, 0).permit()
    }

    /// Takes bytes for a body, at once or not at all.
    ///
    /// # Errors
    /// 503 if they are not free.
    pub(crate) fn take(&self, kind: BodyKind, bytes: usize) -> Result<Permit> {
        let mut permit = self.share(kind, bytes).permit();
        permit.take(bytes)?;
        Ok(permit)
    }

    /// Extends the permit of a body to so many bytes in all. It waits for them.
    ///
    /// # Errors
    /// 503 if they do not come free in time.
    pub(crate) async fn extend(
        &self,
        permit: &mut Permit,
        kind: BodyKind,
        bytes: usize,
    ) -> Result<()> {
        let share = self.share(kind, bytes);
        if permit.share().is(share) {
            return permit.await_more(bytes, self.wait_max).await;
        }
        let mut other = share.permit();
        other.await_more(bytes, self.wait_max).await?;
        *permit = other;
        Ok(())
    }

    const fn share(&self, kind: BodyKind, bytes: usize) -> &ByteShare {
        match kind {
            BodyKind::Send if bytes <= SMALL_BYTES => &self.small_sends,
            BodyKind::Send => &self.large_sends,
            BodyKind::Other => &self.other_bodies,
        }
    }
}

/// A larger body is a large one.
const SMALL_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    #[test]
    fn small_bodies_pass_large_ones() {
        let mut budget = ByteBudget::new(0, Duration::ZERO, &Arc::default());
        for share in [&mut budget.small_sends, &mut budget.large_sends] {
            *share = ByteShare::new(2 * SMALL_BYTES, &Arc::default());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let permit = |bytes: &[usize]| {
            let mut permit = budget.body(BodyKind::Send);
            let extended = runtime.block_on(async {
                for bytes in bytes {
                    budget.extend(&mut permit, BodyKind::Send, *bytes).await?;
                }
                Ok(permit)
            });
            extended.map_err(|problem: Problem| problem.kind)
        };
        let growing = [1, SMALL_BYTES, 2 * SMALL_BYTES];
        let (_first, _beyond) = (permit(&growing).unwrap(), permit(&growing).unwrap());
        assert_eq!(permit(&growing).unwrap_err(), "busy");
        assert_eq!(budget.take(BodyKind::Send, SMALL_BYTES + 1).unwrap_err().kind, "busy");
        let _small = [permit(&[1, SMALL_BYTES]).unwrap(), permit(&[SMALL_BYTES]).unwrap()];
        let _beyond = budget.take(BodyKind::Send, 1).unwrap();
        assert!(budget.take(BodyKind::Send, 1).is_err(), "and that is all");
    }
}
