//! Subscriptions and messages as operators see them. The commands are in `commands/operate.rs`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{BrowsedMessage, Page, PageEnd, Reply, SubscriptionStatistics};

use crate::directory::Directory;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::acting::Sight;
use crate::store::MessageStore;

impl FrameWriter {
    pub(crate) fn reply_page(
        &self,
        messages: Vec<BrowsedMessage>,
        next: Option<PageEnd>,
    ) -> Outcome {
        let page = Box::new(Page { messages, next });
        Outcome::reply(self.after_all(), Reply::Page(page))
    }
}

impl Directory {
    pub(crate) fn list_subscriptions(
        &self,
        sight: Sight<'_>,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        store.took_steps((1 + sight.steps()) * self.subscriptions.len());
        let all =
            self.subscriptions.iter_from(0).filter(|(_, entry)| sight.sees(&entry.asks.topic));
        let listed = all.filter(|(_, entry)| self.owner_of_source(entry.source).is_none());
        let mut all: Vec<_> = listed.collect();
        all.sort_by(|(_, a), (_, b)| {
            (&a.asks.topic, &a.asks.name).cmp(&(&b.asks.topic, &b.asks.name))
        });
        let all = all.into_iter().map(|(number, entry)| {
            let queue = store.queues.at(entry.queue);
            SubscriptionStatistics {
                subscription: entry.asks.clone(),
                number,
                ready: queue.counts().ready(),
                leased: queue.counts().leased(),
                consumers: queue.delivery.consumers.len() as u64,
            }
        });
        Outcome::reply(log.after_all(), Reply::Subscriptions(all.collect()))
    }
}
