//! Counts over all queues.

use model::{BrokerStatistics, DeadLetterStatistics, MessageId, Refusal, Reply};

use crate::store::queue::Counts;
use crate::store::{MessageStore, Totals};

impl MessageStore {
    /// All queues together.
    pub(crate) fn statistics(&self) -> BrokerStatistics {
        let Totals { counts, expired, messages, waiting, dead_letters, denied, over_quota, .. } =
            self.totals;
        BrokerStatistics {
            urgent: counts.urgent(),
            ready: counts.ready(),
            leased: counts.leased(),
            delayed: counts.delayed(),
            buried: counts.buried(),
            expired_total: expired,
            messages_total: messages,
            queues: self.queues.count() as u64,
            waiting,
            dead_letters,
            denied_total: denied,
            over_quota_total: over_quota,
        }
    }

    /// Messages by state.
    pub(crate) const fn counts(&self) -> &Counts {
        &self.totals.counts
    }

    /// How many consumers wait, each with credit once and each that receives one by one once.
    pub(crate) const fn waiting(&self) -> u64 {
        self.totals.waiting
    }

    /// The fates of dead messages.
    pub(crate) const fn dead_letter_statistics(&self) -> DeadLetterStatistics {
        self.totals.dead_letters
    }

    /// The most bytes that all journalled messages take in a snapshot, with the records beside
    /// them.
    pub(crate) const fn snapshot_bytes(&self) -> u64 {
        self.totals.snapshot_bytes
    }

    /// The cost of all calls so far.
    pub(crate) const fn steps(&self) -> u64 {
        self.totals.steps
    }

    pub(crate) const fn took_steps(&mut self, count: usize) {
        self.totals.steps += count as u64;
    }

    /// A message was stored.
    pub(crate) const fn count_stored(&mut self) {
        self.totals.messages += 1;
    }

    /// A user had no right to a command.
    pub(crate) const fn count_denied(&mut self) {
        self.totals.denied += 1;
    }

    /// A client hears this: it counts where a quota stood against its command.
    pub(crate) fn count_over_quota(&mut self, reply: &Reply) {
        match reply {
            Reply::Refused(Refusal::QuotaReached(_)) => self.totals.over_quota += 1,
            Reply::Late { reply, .. } => self.count_over_quota(reply),
            Reply::Batch(replies) => replies.iter().for_each(|it| self.count_over_quota(it)),
            _ => {}
        }
    }

    /// A lease has ended by time.
    pub(crate) const fn count_expired_lease(&mut self) {
        self.totals.expired += 1;
    }

    /// A consumer begins to wait.
    pub(crate) const fn count_waiting(&mut self) {
        self.totals.waiting += 1;
    }

    /// A consumer waits no longer.
    pub(crate) const fn uncount_waiting(&mut self) {
        assert!(self.totals.waiting > 0, "a consumer was counted when it began to wait");
        self.totals.waiting -= 1;
    }

    /// A dead message becomes a dead letter.
    pub(crate) const fn count_parked(&mut self) {
        self.totals.dead_letters.parked_total += 1;
    }

    /// A dead message is deleted.
    pub(crate) const fn count_dropped(&mut self) {
        self.totals.dead_letters.dropped_total += 1;
    }

    /// A dead letter goes, since there are too many.
    pub(crate) fn count_evicted(&mut self, id: MessageId) {
        let is_durable = self.message(id).is_journalled();
        let counts = &mut self.totals.dead_letters;
        counts.evicted_total += 1;
        counts.evicted_durable_total += u64::from(is_durable);
        assert!(counts.evicted_durable_total <= counts.evicted_total, "the durable are a part");
    }

    /// Something takes so many bytes in a snapshot now, and took so many before.
    pub(crate) fn change_snapshot_bytes(&mut self, before: u64, now: u64) {
        let others = self.totals.snapshot_bytes.checked_sub(before);
        let others = others.expect("invariant: bytes of a snapshot were counted when they came");
        self.totals.snapshot_bytes = others + now;
    }

    /// Breaks an invariant, to see that the check finds it.
    #[cfg(test)]
    pub(crate) const fn miscount_waiting(&mut self) {
        self.totals.waiting += 1;
    }

    /// The same.
    #[cfg(test)]
    pub(crate) const fn miscount_ready(&mut self) {
        self.totals.counts.miscount();
    }
}
