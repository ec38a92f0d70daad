//! Quotas of users that the server keeps: connections, and what comes in a second.
//!
//! A user has a place for each connection. What a connection reads is charged to its user, and a
//! user that is ahead of its rate is not read from until the time has made up for it. Each
//! connection waits for what it has itself brought, so none of them is passed over. A second's
//! worth may come at once.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::{Nanos, Quota, QuotaReached, Rights};

/// The connections and rates of the users of a server.
#[derive(Debug, Default)]
pub(crate) struct UserQuotas(Mutex<BTreeMap<Arc<str>, Arc<Usage>>>);

/// The connections of one user, and the bytes and commands that came by all of them.
#[derive(Debug, Default)]
struct Usage {
    connections: AtomicU64,
    bytes: RateClock,
    commands: RateClock,
}

/// When the time will have made up for all that has come.
#[derive(Debug, Default)]
struct RateClock {
    at: AtomicU64,
    /// The rate that it goes by.
    rate: AtomicU64,
}

/// The place of a connection among those of its user.
#[derive(Debug)]
pub(crate) struct Seat {
    usage: Arc<Usage>,
    rights: Arc<Rights>,
}

impl UserQuotas {
    /// A place for one more connection of a user.
    ///
    /// # Errors
    /// The user has as many as it may.
    pub(crate) fn seat(&self, rights: &Arc<Rights>) -> Result<Seat, QuotaReached> {
        self.seat_unless(rights, |count| rights.allow(Quota::Connections, count))
    }

    /// A place for a connection that is a user's again without a word, so that it can be told
    /// nothing: also beyond the quota. It counts, and is held to the rates.
    pub(crate) fn seat_again(&self, rights: &Arc<Rights>) -> Seat {
        let Ok(seat) = self.seat_unless(rights, |_| Ok::<_, Infallible>(()));
        seat
    }

    fn seat_unless<E>(
        &self,
        rights: &Arc<Rights>,
        allow: impl FnOnce(u64) -> Result<(), E>,
    ) -> Result<Seat, E> {
        let mut users = self.0.lock().expect("invariant: no thread panics with the quotas");
        if users.len() >= IDLE_USERS_MAX {
            users.retain(|_, usage| Arc::strong_count(usage) > 1);
        }
        let usage = users.entry(Arc::clone(rights.user())).or_default();
        let count = usage.connections.load(Ordering::Relaxed) + 1;
        allow(count)?;
        // All seats are given under the lock.
        usage.connections.store(count, Ordering::Relaxed);
        Ok(Seat { usage: Arc::clone(usage), rights: Arc::clone(rights) })
    }
}

impl Seat {
    /// The user's rights have changed. True if its rates have: no connection goes on waiting by
    /// the former ones.
    pub(crate) fn set_rights(&mut self, rights: Arc<Rights>) -> bool {
        debug_assert!(rights.user() == self.rights.user(), "a seat is one user's");
        let before = std::mem::replace(&mut self.rights, rights);
        let differs = |quota| before.quotas().of(quota) != self.rights.quotas().of(quota);
        differs(Quota::ByteRate) || differs(Quota::CommandRate)
    }

    /// The rights of its user.
    pub(crate) const fn rights(&self) -> &Arc<Rights> {
        &self.rights
    }

    /// So many bytes have come. Gives the moment until which nothing more is to be read.
    pub(crate) fn charge_bytes(&self, now: Nanos, bytes: u64) -> Option<Nanos> {
        self.charge(&self.usage.bytes, Quota::ByteRate, now, bytes)
    }

    /// So many commands were given. Gives the moment until which no more are to be.
    pub(crate) fn charge_commands(&self, now: Nanos, commands: u64) -> Option<Nanos> {
        self.charge(&self.usage.commands, Quota::CommandRate, now, commands)
    }

    fn charge(&self, clock: &RateClock, quota: Quota, now: Nanos, units: u64) -> Option<Nanos> {
        let rate = self.rights.quotas().of(quota)?;
        wait(clock.charge(now, units, rate).1, now)
    }

    /// A request has come. Gives the moment until which it waits for what came before it.
    ///
    /// # Errors
    /// It would wait for longer than [`WAIT_MAX`], and is not charged.
    pub(crate) fn charge_request(
        &self,
        now: Nanos,
        commands: u64,
        bytes: u64,
    ) -> Result<Option<Nanos>, QuotaReached> {
        let clocks = [
            (Quota::ByteRate, &self.usage.bytes, bytes),
            (Quota::CommandRate, &self.usage.commands, commands),
        ];
        let rates = clocks.iter().filter_map(|(quota, clock, units)| {
            Some((*quota, *clock, *units, self.rights.quotas().of(*quota)?))
        });
        for (quota, clock, _, max) in rates.clone() {
            clock.set_rate(max);
            if clock.is_far_ahead(now) {
                return Err(QuotaReached { user: Arc::clone(self.rights.user()), quota, max });
            }
        }
        let waits = rates.filter_map(|(_, clock, units, rate)| {
            let (before, _) = clock.charge(now, units, rate);
            wait(before, now)
        });
        Ok(waits.max())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.usage.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RateClock {
    /// By another rate than before nothing has come yet.
    fn set_rate(&self, rate: u64) {
        if self.rate.swap(rate, Ordering::Relaxed) != rate {
            self.at.store(0, Ordering::Relaxed);
        }
    }

    /// Gives where it stood, and where it stands now.
    fn charge(&self, now: Nanos, units: u64, rate: u64) -> (Nanos, Nanos) {
        self.set_rate(rate);
        let span = u128::from(units) * u128::from(Nanos::SECOND.0) / u128::from(rate.max(1));
        let span = u64::try_from(span).unwrap_or(u64::MAX);
        let ahead = |before: u64| before.max(now.0).saturating_add(span);
        let (order, read) = (Ordering::Relaxed, Ordering::Relaxed);
        let before = self.at.fetch_update(order, read, |before| Some(ahead(before)));
        let before = before.unwrap_or_else(|before| before);
        (Nanos(before), Nanos(ahead(before)))
    }

    fn is_far_ahead(&self, now: Nanos) -> bool {
        Nanos(self.at.load(Ordering::Relaxed)).since(now) > BURST + WAIT_MAX
    }
}

/// The moment when the next may come, by a clock that stands there; none: now.
fn wait(clock: Nanos, now: Nanos) -> Option<Nanos> {
    let next = Nanos(clock.0.saturating_sub(BURST.0));
    (next > now).then_some(next)
}

/// As much as comes in this time may come at once.
const BURST: Nanos = Nanos::SECOND;

/// A request that would have to wait longer is refused.
const WAIT_MAX: Nanos = Nanos::from_secs(10);

/// Users without a connection are forgotten when there are so many.
const IDLE_USERS_MAX: usize = 20_000;

#[cfg(test)]
mod tests {
    use model::{Quotas, Rule};

    use super::*;

    fn rights(quotas: &[(Quota, u64)]) -> Arc<Rights> {
        let mut all = Quotas::default();
        quotas.iter().for_each(|(quota, max)| all.set(*quota, Some(*max)));
        Arc::new(Rights::new("ann".into(), [&Rule::everything()], []).within(all))
    }

    #[test]
    fn seats_are_given_back() {
        let (quotas, rights) = (UserQuotas::default(), rights(&[(Quota::Connections, 2)]));
        let seats: Vec<_> = (0..2).map(|_| quotas.seat(&rights).unwrap()).collect();
        let reached = quotas.seat(&rights).unwrap_err();
        assert_eq!((reached.quota, reached.max), (Quota::Connections, 2));
        drop(seats);
        assert!(quotas.seat(&rights).is_ok());
    }

    #[test]
    fn seats_again_are_counted() {
        let (quotas, rights) = (UserQuotas::default(), rights(&[(Quota::Connections, 1)]));
        let seats = [quotas.seat_again(&rights), quotas.seat_again(&rights)];
        assert!(quotas.seat(&rights).is_err());
        drop(seats);
        assert!(quotas.seat(&rights).is_ok());
    }

    #[test]
    fn rate_holds_over_many_seats() {
        let (quotas, rights) = (UserQuotas::default(), rights(&[(Quota::ByteRate, 1000)]));
        let seats = [(); 2].map(|()| quotas.seat(&rights).unwrap());
        let now = Nanos::from_secs(100);
        assert_eq!(seats[0].charge_bytes(now, 1000), None, "a second's worth at once");
        assert_eq!(seats[1].charge_bytes(now, 500), Some(now + Nanos::from_millis(500)));
        assert_eq!(seats[0].charge_bytes(now, 500), Some(now + Nanos::SECOND));
        let later = now + Nanos::from_secs(2);
        assert_eq!(seats[0].charge_bytes(later, 1000), None);
        assert_eq!(seats[0].charge_commands(later, 1_000_000), None, "it has no such quota");
    }

    #[test]
    fn long_waits_are_refused() {
        let (quotas, rights) = (UserQuotas::default(), rights(&[(Quota::CommandRate, 10)]));
        let (seat, now) = (quotas.seat(&rights).unwrap(), Nanos::from_secs(100));
        assert_eq!(seat.charge_request(now, 100, 0), Ok(None), "it waits for nothing before it");
        let wait = Some(now + Nanos::from_secs(9));
        assert_eq!(seat.charge_request(now, 11, 0), Ok(wait));
        let refused = seat.charge_request(now, 1, 0).unwrap_err();
        assert_eq!((refused.quota, refused.max), (Quota::CommandRate, 10));
        assert!(seat.charge_request(now + Nanos::SECOND, 1, 0).is_ok(), "none was charged");
    }

    #[test]
    fn other_rate_begins_anew() {
        let (quotas, low) = (UserQuotas::default(), rights(&[(Quota::ByteRate, 1)]));
        let seat = quotas.seat(&low).unwrap();
        assert_eq!(seat.charge_request(Nanos::SECOND, 1, 1_000_000), Ok(None));
        assert!(seat.charge_request(Nanos::SECOND, 1, 1).is_err());
        drop(seat);
        let raised = rights(&[(Quota::ByteRate, 1_000)]);
        let seat = quotas.seat(&raised).unwrap();
        assert_eq!(seat.charge_request(Nanos::SECOND, 1, 1), Ok(None));
    }

    #[test]
    fn huge_charges_overflow_nothing() {
        let (quotas, rights) = (UserQuotas::default(), rights(&[(Quota::ByteRate, 0)]));
        let seat = quotas.seat(&rights).unwrap();
        assert!(seat.charge_bytes(Nanos::SECOND, u64::MAX).is_some());
        assert!(seat.charge_bytes(Nanos::SECOND, u64::MAX).is_some());
    }

    #[test]
    fn idle_users_are_forgotten() {
        let quotas = UserQuotas::default();
        for number in 0..IDLE_USERS_MAX + 10 {
            let rights = Rights::new(format!("user{number}").into(), [], []);
            assert!(quotas.seat(&Arc::new(rights)).is_ok());
        }
        assert!(quotas.0.lock().unwrap().len() <= IDLE_USERS_MAX);
    }
}
