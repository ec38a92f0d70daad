//! Rules of queues and topics, those that an operator gives while the broker runs before those that
//! are configured.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{Nanos, OwnPolicy, Persistence, PolicyChange, QueueBounds, QueueName, Refusal, Reply};

use super::places::sheds;
use super::{NOTHING, Oracle, one};
use crate::history::{Changes, destination};
use crate::registration::{TOPICS, is_subscription};
use crate::workload::QUEUES;
use crate::{Nature, rules};

/// The rules that hold for each name.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    queues: QueueBounds,
    topics: QueueBounds,
    /// Rules that were given, by name.
    own: BTreeMap<Rc<str>, OwnPolicy>,
    /// Something was given once, so that anything may be there.
    were_given: bool,
}

impl Rules {
    pub(super) fn new(queues: QueueBounds, topics: QueueBounds) -> Self {
        Self { queues, topics, ..Self::default() }
    }

    /// How much a queue or a subscription may hold.
    pub(super) fn bounds_of(&self, queue: &str) -> QueueBounds {
        let bounds = self.named(destination(queue));
        if is_subscription(queue) { bounds } else { bounds.of_queue() }
    }

    /// True if any queue may have bounds.
    pub(super) const fn are_bounded(&self) -> bool {
        self.were_given || self.queues.is_bounded() || self.topics.is_bounded()
    }

    /// True if messages may go because of others that come.
    pub(super) fn may_shed(&self) -> bool {
        let given = self.own.keys().map(|name| self.named(name));
        given.chain([self.queues, self.topics]).any(|bounds| sheds(&bounds))
    }

    /// True if a queue never held more than it may.
    pub(super) fn have_held_off(&self, queue: &str) -> bool {
        !self.were_given && self.bounds_of(queue).holds_off()
    }

    fn named(&self, name: &str) -> QueueBounds {
        let configured = if TOPICS.contains(&name) {
            self.topics
        } else if QUEUES.contains(&name) {
            self.queues
        } else {
            QueueBounds::default()
        };
        rules::over(self.own.get(name), configured)
    }

    fn set(&mut self, name: &str, own: OwnPolicy) {
        self.were_given = true;
        if own.is_empty() {
            self.own.remove(name);
        } else {
            self.own.insert(name.into(), own);
        }
    }
}

impl Oracle {
    /// An operator gave a name just these rules of its own. Returns the changes that the reply
    /// reflects.
    ///
    /// # Panics
    /// When that must not be answered so.
    pub fn ruled(
        &mut self,
        now: Nanos,
        name: &QueueName,
        change: &PolicyChange,
        reply: &Reply,
    ) -> Changes {
        self.begin_step(now);
        let name = name.as_str();
        let rules = &self.places.rules;
        let before = rules.own.get(name).copied().unwrap_or_default();
        let own = change.applied_to(before);
        let mut then = rules.clone();
        then.set(name, own);
        let is_at_odds = !own.is_empty() && own != before && then.named(name).are_at_odds();
        match reply {
            Reply::Refused(Refusal::PolicyAtOdds) => {
                assert!(is_at_odds, "{own:?} may be given to {name}");
                return NOTHING;
            }
            Reply::Refused(Refusal::StoreFull) => return NOTHING,
            Reply::Policy(stated) => {
                assert!(!is_at_odds, "{own:?} may not be given to {name}");
                let said = (stated.own, stated.holds.bounds);
                assert_eq!(said, (own, then.named(name)), "the rules of {name}");
            }
            _ => panic!("{reply:?} to {own:?} for {name}"),
        }
        if own == before {
            return self.everything();
        }
        self.places.rules = then;
        for queue in self.queues().into_iter().filter(|queue| destination(queue) == name) {
            if self.is_beyond(&queue) {
                self.places.spared.insert(queue);
            } else {
                self.places.spared.remove(&queue);
            }
        }
        let level = self.policy.durability(Persistence::Persistent);
        let nature = Nature::new(level, 0, 0);
        let kept = (!own.is_empty()).then(|| rules::kept(name, &own));
        one(self.history.push(self.step, rules::subject(name), nature, kept))
    }

    /// A process found these.
    pub(super) fn restore_rules(&mut self, found: &BTreeMap<Rc<str>, OwnPolicy>) {
        self.places.rules.own.clone_from(found);
        self.places.rules.were_given |= !found.is_empty();
    }
}
