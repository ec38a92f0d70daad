//! A session's subscriptions.

use alloc::vec::Vec;

use model::{Command, Delivery, LinkId, Reply};

use super::{Awaited, FollowUp, Session, Step};
use crate::arguments::topic;
use crate::clients::Subscribed;
use crate::fault::Fault;
use crate::shared::ListenerState;
use crate::subscriptions::{Target, settle};
use crate::words::Words;

impl Session {
    pub(super) fn begin_subscribing(
        &mut self,
        pattern: bool,
        words: &Words,
    ) -> Result<Step, Fault> {
        let target = |word| topic(word).map(|name| FollowUp::Subscribe(Target { pattern, name }));
        let follow_ups: Vec<_> = words.from(1).map(target).collect::<Result<_, _>>()?;
        self.follow_ups.extend(follow_ups);
        Ok(Step::GoOn)
    }

    pub(super) fn subscribe(
        &mut self,
        target: Target,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        if self.subscriptions.contains(&target) {
            let left = self.subscriptions.subscribed();
            target.confirm(true, left, &mut self.context(shared, out).answer());
            return Step::GoOn;
        }
        let link = self.subscriptions.next_link();
        let command = target.subscribe(link);
        self.awaited = Awaited::Subscribe(link, target);
        Step::Ask(command)
    }

    pub(super) fn finish_subscribing(
        &mut self,
        link: LinkId,
        target: Target,
        reply: &Reply,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) {
        match reply {
            Reply::Done => {
                if target.pattern {
                    shared.count_pattern(&target.name);
                }
                let credit = self.subscriptions.insert(link, target.clone());
                self.follow_ups.push_front(FollowUp::Unanswered(credit));
                let left = self.count_subscriptions(shared);
                target.confirm(true, left, &mut self.context(shared, out).answer());
            }
            Reply::Refused(refusal) => {
                self.context(shared, out).refuse(&Fault::refused(refusal));
            }
            _ => self.context(shared, out).refuse(&Fault::INTERNAL),
        }
    }

    pub(super) fn begin_unsubscribing(
        &mut self,
        pattern: bool,
        words: &Words,
    ) -> Result<Step, Fault> {
        let targets: Vec<_> = if words.len() == 1 {
            self.subscriptions.targets(pattern)
        } else {
            let target = |word| topic(word).map(|name| Target { pattern, name });
            words.from(1).map(target).collect::<Result<_, _>>()?
        };
        if targets.is_empty() {
            self.follow_ups.push_back(FollowUp::ConfirmNone { pattern });
        }
        self.follow_ups.extend(targets.into_iter().map(FollowUp::Unsubscribe));
        Ok(Step::GoOn)
    }

    pub(super) fn unsubscribe(
        &mut self,
        target: Target,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        match self.leave(&target, shared) {
            Some(command) => {
                self.awaited = Awaited::Unsubscribe(target);
                Step::Ask(command)
            }
            None => {
                let left = self.subscriptions.subscribed();
                target.confirm(false, left, &mut self.context(shared, out).answer());
                Step::GoOn
            }
        }
    }

    /// Ends a subscription, if there is one; gives the engine's command for it.
    pub(super) fn leave(&mut self, target: &Target, shared: &mut ListenerState) -> Option<Command> {
        let command = self.subscriptions.remove(target)?;
        if target.pattern {
            shared.uncount_pattern(&target.name);
        }
        self.count_subscriptions(shared);
        Some(command)
    }

    pub(super) fn count_subscriptions(&self, shared: &mut ListenerState) -> Subscribed {
        let subscribed = self.subscriptions.subscribed();
        shared.clients.at_mut(self.slot).subscribed = subscribed;
        subscribed
    }

    /// A message has come. It is done with once it was told, or no client is there to be told.
    pub(super) fn deliver(
        &mut self,
        delivery: &Delivery,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) {
        let mut context = self.context(shared, out);
        let credit = self.subscriptions.deliver(delivery, &mut context.answer());
        self.follow_ups.push_back(FollowUp::Quiet(settle(delivery.message)));
        self.follow_ups.extend(credit.map(FollowUp::Unanswered));
    }

    /// Messages of a subscription were not taken in time: as in Redis, where a client's buffer
    /// grows too large, it is closed without a word.
    pub(super) fn cut_off(&mut self, link: LinkId, shared: &mut ListenerState) {
        self.forget(link, shared);
        self.closing = true;
        self.is_cut_off = true;
    }

    pub(super) fn forget(&mut self, link: LinkId, shared: &mut ListenerState) {
        if let Some(target) = self.subscriptions.forget(link)
            && target.pattern
        {
            shared.uncount_pattern(&target.name);
        }
        self.count_subscriptions(shared);
    }
}
