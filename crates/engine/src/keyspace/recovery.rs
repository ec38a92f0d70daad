//! Keys in recovery, and in snapshots.
//!
//! A snapshot shows each value, and the lifetime of each list that has one, as it is when its turn
//! comes. Frames from after the snapshot's begin say the whole of each again, so the last holds.

use model::QueueName;
use records::ExpiredList;

use crate::keyspace::Keyspace;
use crate::store::MessageStore;
use crate::store::queue::{ListLifetime, Role};

/// How far a snapshot has come with the keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyCursor {
    pub(crate) value: Option<QueueName>,
    pub(crate) list: Option<QueueName>,
    pub(crate) values_done: bool,
    pub(crate) done: bool,
}

impl KeyCursor {
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }
}

impl Keyspace {
    /// Gives the lists that recovery found their lifetimes.
    pub(crate) fn recover_lifetimes(&mut self, store: &mut MessageStore) {
        for (name, stated) in core::mem::take(&mut self.recovered) {
            if self.recover_lifetime(&name, stated, store) != stated {
                self.stale.insert(name);
            }
        }
        self.unstated.clear();
    }

    /// The part of a lifetime in the log that still holds.
    fn recover_lifetime(
        &mut self,
        name: &QueueName,
        stated: ListLifetime,
        store: &mut MessageStore,
    ) -> ListLifetime {
        let slot = store.queues.find(name.as_str());
        let Some(slot) = slot.filter(|slot| store.queues.at(*slot).role == Role::Named) else {
            return ListLifetime::default();
        };
        let reached = stated.at.filter(|at| *at <= store.latest);
        let (above, below) = store.places_given_out();
        let reached = reached.map(|at| ExpiredList { at, above, below });
        for over in stated.over.into_iter().chain(reached) {
            self.expire_again(slot, over, store);
        }
        let over = stated.over.max(reached);
        let queue = store.queues.at(slot);
        let at = stated.at.filter(|_| reached.is_none() && queue.is_list());
        let over = over.filter(|_| queue.counts().expired_members() > 0);
        self.change_lifetime(slot, ListLifetime { at, over }, store);
        ListLifetime { at, over }
    }
}
