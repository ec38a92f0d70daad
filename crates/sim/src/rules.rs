//! Rules that an operator gives queues and topics while a broker runs. They survive crashes like
//! messages: the history knows those of each name by a number above all subscriptions.

use model::{Nanos, OwnPolicy, QueueBounds, QueuePolicy, QueueRule, RuleKey};

use crate::history::RULES;
use crate::registration::TOPICS;
use crate::scenario::ANY_WAY;
use crate::workload::QUEUES;
use crate::{Content, Kept, Rng, Standing};

/// Queues and topics that may have rules of their own.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    QUEUES.into_iter().chain(TOPICS)
}

/// The number of a name's rules in the history.
pub(crate) fn subject(name: &str) -> u64 {
    let index = names().position(|known| known == name);
    RULES + index.expect("invariant: nobody gives others rules") as u64
}

/// Rules as the history keeps them.
pub(crate) fn kept(name: &str, own: &OwnPolicy) -> Kept {
    let says = format!("{:?}", own.iter().collect::<Vec<_>>());
    (Content::plain(name.into(), 0, 0, says.into_bytes().into()), Standing::Ready)
}

/// Bounds that a queue or a topic gets, of any kind, or none of its own.
pub(crate) fn draw(rng: &mut Rng) -> OwnPolicy {
    let mut own = OwnPolicy::default();
    if rng.chance(1, 6) {
        return own;
    }
    own.set(QueueRule::MessagesMax(rng.pick(&[None, Some(1), Some(2), Some(3), Some(8)])));
    own.set(QueueRule::BytesMax(rng.pick(&[None, None, None, Some(300), Some(4000)])));
    own.set(QueueRule::WhenFull(rng.pick(&ANY_WAY)));
    if rng.chance(1, 6) {
        own.set(QueueRule::TargetAge(Some(Nanos::from_millis(rng.pick(&[50, 1000])))));
    }
    if rng.chance(1, 6) {
        own.forget(rng.pick(&RuleKey::ALL));
    }
    own
}

/// These bounds with a name's own rules applied.
pub(crate) fn over(own: Option<&OwnPolicy>, bounds: QueueBounds) -> QueueBounds {
    let policy = QueuePolicy { bounds, ..QueuePolicy::default() };
    own.map_or(bounds, |own| own.over(policy).bounds)
}
