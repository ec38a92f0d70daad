//! The channels and patterns to which a client is subscribed, and its news of them.
//!
//! Each is a consumer of its own with a window of credit. So a client that does not read costs a
//! bounded number of messages a subscription beyond those that the engine keeps.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::{Command, Delivery, LinkId, MessageId, QueueName, Settlement, Subscription};

use crate::answer::Answer;
use crate::clients::Subscribed;
use crate::key_names::channel_of;

/// Messages of one subscription that may be on their way to a client.
const WINDOW: u64 = 64;

/// Bytes of them, beyond which one more is the last.
const WINDOW_BYTES: u64 = 1024 * 1024;

/// All subscriptions of one client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    links: BTreeMap<Target, LinkId>,
    active: BTreeMap<LinkId, ActiveSubscription>,
    patterns: usize,
    next: u32,
}

/// The target of a subscription. Channels come before patterns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) pattern: bool,
    pub(crate) name: QueueName,
}

/// How far one subscription has come.
#[derive(Debug)]
struct ActiveSubscription {
    target: Target,
    delivered: u64,
    limit: u64,
    bytes: u64,
    bytes_limit: u64,
}

impl Target {
    /// The engine's command to subscribe to it.
    pub(crate) fn subscribe(&self, link: LinkId) -> Command {
        let name = self.name.clone();
        let subscription =
            if self.pattern { Subscription::of_glob(name) } else { Subscription::new(name) };
        Command::Subscribe { link, subscription: Box::new(subscription) }
    }

    /// Confirms a subscription or its end to the client, with the number that is left.
    pub(crate) fn confirm(&self, subscribed: bool, left: Subscribed, answer: &mut Answer<'_>) {
        let word = confirmation(subscribed, self.pattern);
        say_change(word, Some(&self.name), left, answer);
    }
}

/// The confirmation for a client that ends all its subscriptions and has none.
pub(crate) fn confirm_none(pattern: bool, left: Subscribed, answer: &mut Answer<'_>) {
    say_change(confirmation(false, pattern), None, left, answer);
}

const fn confirmation(subscribed: bool, pattern: bool) -> &'static str {
    match (subscribed, pattern) {
        (true, false) => "subscribe",
        (true, true) => "psubscribe",
        (false, false) => "unsubscribe",
        (false, true) => "punsubscribe",
    }
}

fn say_change(word: &str, name: Option<&QueueName>, left: Subscribed, answer: &mut Answer<'_>) {
    answer.push(3);
    answer.bulk(word.as_bytes());
    match name {
        Some(name) => answer.bulk(&channel_of(name)),
        None => answer.null(),
    }
    answer.count(left.count() as u64);
}

impl Subscriptions {
    /// A number for a new subscription, which none has that lasts.
    pub(crate) fn next_link(&mut self) -> LinkId {
        loop {
            // A connection that lives for years may have used all of them once.
            self.next = (self.next + 1) % u32::MAX;
            let link = LinkId(self.next);
            if !self.active.contains_key(&link) {
                return link;
            }
        }
    }

    pub(crate) fn contains(&self, target: &Target) -> bool {
        self.links.contains_key(target)
    }

    /// The engine has subscribed; gives the first credit.
    pub(crate) fn insert(&mut self, link: LinkId, target: Target) -> Command {
        self.patterns += usize::from(target.pattern);
        self.links.insert(target.clone(), link);
        let subscription = ActiveSubscription {
            target,
            delivered: 0,
            limit: WINDOW,
            bytes: 0,
            bytes_limit: WINDOW_BYTES,
        };
        let credit = subscription.credit(link);
        self.active.insert(link, subscription);
        credit
    }

    /// Ends a subscription; gives the engine's command for it.
    pub(crate) fn remove(&mut self, target: &Target) -> Option<Command> {
        let link = self.links.remove(target)?;
        self.patterns -= usize::from(target.pattern);
        self.active.remove(&link);
        Some(Command::CloseConsumer { link })
    }

    /// All targets of one kind.
    pub(crate) fn targets(&self, pattern: bool) -> Vec<Target> {
        self.links.keys().filter(|target| target.pattern == pattern).cloned().collect()
    }

    /// How many there are.
    pub(crate) fn subscribed(&self) -> Subscribed {
        let patterns = self.patterns;
        Subscribed { channels: self.links.len() - patterns, patterns }
    }

    /// The engine has ended a subscription.
    pub(crate) fn forget(&mut self, link: LinkId) -> Option<Target> {
        let subscription = self.active.remove(&link)?;
        self.links.remove(&subscription.target);
        self.patterns -= usize::from(subscription.target.pattern);
        Some(subscription.target)
    }

    /// Tells a client of a message, unless its subscription has ended; gives more credit when half
    /// of it is used up.
    pub(crate) fn deliver(
        &mut self,
        delivery: &Delivery,
        answer: &mut Answer<'_>,
    ) -> Option<Command> {
        let link = delivery.link?;
        let subscription = self.active.get_mut(&link)?;
        subscription.delivered += 1;
        subscription.bytes += delivery.charge;
        subscription.say(delivery, answer);
        subscription.renew().then(|| subscription.credit(link))
    }
}

impl ActiveSubscription {
    /// Allows more when half of the credit is used up. Gives whether it was.
    fn renew(&mut self) -> bool {
        let left_bytes = self.bytes_limit.saturating_sub(self.bytes);
        let due = self.limit - self.delivered <= WINDOW / 2 || left_bytes <= WINDOW_BYTES / 2;
        if due {
            self.limit = self.delivered + WINDOW;
            self.bytes_limit = self.bytes + WINDOW_BYTES;
        }
        due
    }

    const fn credit(&self, link: LinkId) -> Command {
        let Self { limit, bytes_limit: bytes, .. } = *self;
        Command::Credit { link, limit, bytes, drain: false }
    }

    fn say(&self, delivery: &Delivery, answer: &mut Answer<'_>) {
        let topic = delivery.topic.as_ref().unwrap_or(&self.target.name);
        if self.target.pattern {
            answer.push(4);
            answer.bulk(b"pmessage");
            answer.bulk(&channel_of(&self.target.name));
        } else {
            answer.push(3);
            answer.bulk(b"message");
        }
        answer.bulk(&channel_of(topic));
        answer.bulk(delivery.payload());
    }
}

/// A message that was told is done with.
pub(crate) const fn settle(message: MessageId) -> Command {
    Command::Settle { message, settlement: Settlement::Accept, transaction: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_numbers_wrap_skipping_used_ones() {
        let mut subscriptions = Subscriptions { next: u32::MAX - 2, ..Subscriptions::default() };
        let target = Target { pattern: false, name: QueueName::new("a").unwrap() };
        subscriptions.insert(LinkId(0), target);
        assert_eq!(subscriptions.next_link(), LinkId(u32::MAX - 1));
        assert_eq!(subscriptions.next_link(), LinkId(1));
    }
}
