//! The rules of a queue one by one, in the words of operators, and those that a queue was given
//! while the broker ran.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::{DeadLetters, Nanos, QueueName, QueuePolicy, ReleaseOrder, Thousandths, WhenFull};

/// Which rule of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKey {
    /// [`QueuePolicy::release_order`]
    ReleaseOrder,
    /// [`QueuePolicy::max_delivery_attempts`]
    MaxDeliveryAttempts,
    /// [`QueuePolicy::dead_letters`]
    DeadLetters,
    /// [`QueuePolicy::pop_lease`]
    PopLease,
    /// [`crate::QueueBounds::messages_max`]
    MessagesMax,
    /// [`crate::QueueBounds::bytes_max`]
    BytesMax,
    /// [`crate::QueueBounds::when_full`]
    WhenFull,
    /// [`crate::QueueBounds::target_age`]
    TargetAge,
    /// [`crate::Redelivery::delay`]
    RedeliveryDelay,
    /// [`crate::Redelivery::factor`]
    RedeliveryFactor,
    /// [`crate::Redelivery::delay_max`]
    RedeliveryMax,
    /// [`crate::Redelivery::jitter`]
    RedeliveryJitter,
}

impl RuleKey {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ReleaseOrder,
        Self::MaxDeliveryAttempts,
        Self::DeadLetters,
        Self::PopLease,
        Self::MessagesMax,
        Self::BytesMax,
        Self::WhenFull,
        Self::TargetAge,
        Self::RedeliveryDelay,
        Self::RedeliveryFactor,
        Self::RedeliveryMax,
        Self::RedeliveryJitter,
    ];

    /// Its name for operators.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReleaseOrder => "release-order",
            Self::MaxDeliveryAttempts => "max-delivery-attempts",
            Self::DeadLetters => "dead-letters",
            Self::PopLease => "pop-lease",
            Self::MessagesMax => "max-messages",
            Self::BytesMax => "max-bytes",
            Self::WhenFull => "when-full",
            Self::TargetAge => "target-age",
            Self::RedeliveryDelay => "redelivery-delay",
            Self::RedeliveryFactor => "redelivery-factor",
            Self::RedeliveryMax => "redelivery-max",
            Self::RedeliveryJitter => "redelivery-jitter",
        }
    }

    /// The one that they call so.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.word() == word)
    }

    /// Its allowed values, in words.
    #[must_use]
    pub const fn allowed(self) -> &'static str {
        match self {
            Self::ReleaseOrder => "front or back",
            Self::MaxDeliveryAttempts => "a number of attempts, 0 for any number",
            Self::DeadLetters => "park-persistent, park or drop",
            Self::PopLease | Self::TargetAge | Self::RedeliveryDelay | Self::RedeliveryMax => {
                "a duration such as 250ms, 30s, 5m or 2h, of 100 days at most, or none"
            }
            Self::MessagesMax | Self::BytesMax => "a number above 0, or none",
            Self::RedeliveryFactor => "a number from 1 to 1000 with three decimal places at most",
            Self::RedeliveryJitter => "a number from 0 to 1 with three decimal places at most",
            Self::WhenFull => "block, reject, drop-oldest, dead-letter or disconnect",
        }
    }

    /// True if it is a number, where it is anything.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            Self::MaxDeliveryAttempts
                | Self::MessagesMax
                | Self::BytesMax
                | Self::RedeliveryFactor
                | Self::RedeliveryJitter
        )
    }

    /// The name in JSON: with underscores, as all else there.
    #[must_use]
    pub fn json_name(self) -> String {
        self.word().replace('-', "_")
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// One rule of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRule {
    /// [`QueuePolicy::release_order`]
    ReleaseOrder(ReleaseOrder),
    /// [`QueuePolicy::max_delivery_attempts`]
    MaxDeliveryAttempts(u32),
    /// [`QueuePolicy::dead_letters`]
    DeadLetters(DeadLetters),
    /// [`QueuePolicy::pop_lease`]
    PopLease(Option<Nanos>),
    /// [`crate::QueueBounds::messages_max`]
    MessagesMax(Option<u64>),
    /// [`crate::QueueBounds::bytes_max`]
    BytesMax(Option<u64>),
    /// [`crate::QueueBounds::when_full`]
    WhenFull(WhenFull),
    /// [`crate::QueueBounds::target_age`]
    TargetAge(Option<Nanos>),
    /// [`crate::Redelivery::delay`]
    RedeliveryDelay(Option<Nanos>),
    /// [`crate::Redelivery::factor`]
    RedeliveryFactor(Thousandths),
    /// [`crate::Redelivery::delay_max`]
    RedeliveryMax(Option<Nanos>),
    /// [`crate::Redelivery::jitter`]
    RedeliveryJitter(Thousandths),
}

impl QueueRule {
    /// The range of [`crate::Redelivery::factor`]: delays do not become shorter, and not more than
    /// a thousand times as long at once.
    pub const FACTORS: RangeInclusive<Thousandths> = Thousandths::ONE..=Thousandths(1_000_000);

    /// The word for no bound, no lease, no delay.
    pub const NONE: &'static str = NONE;

    /// Which one.
    #[must_use]
    pub const fn key(&self) -> RuleKey {
        match self {
            Self::ReleaseOrder(_) => RuleKey::ReleaseOrder,
            Self::MaxDeliveryAttempts(_) => RuleKey::MaxDeliveryAttempts,
            Self::DeadLetters(_) => RuleKey::DeadLetters,
            Self::PopLease(_) => RuleKey::PopLease,
            Self::MessagesMax(_) => RuleKey::MessagesMax,
            Self::BytesMax(_) => RuleKey::BytesMax,
            Self::WhenFull(_) => RuleKey::WhenFull,
            Self::TargetAge(_) => RuleKey::TargetAge,
            Self::RedeliveryDelay(_) => RuleKey::RedeliveryDelay,
            Self::RedeliveryFactor(_) => RuleKey::RedeliveryFactor,
            Self::RedeliveryMax(_) => RuleKey::RedeliveryMax,
            Self::RedeliveryJitter(_) => RuleKey::RedeliveryJitter,
        }
    }

    /// Parses a text; `None`: no allowed value, see [`RuleKey::allowed`].
    #[must_use]
    pub fn parse(key: RuleKey, text: &str) -> Option<Self> {
        Some(match key {
            RuleKey::ReleaseOrder => Self::ReleaseOrder(word(&RELEASE_ORDERS, text)?),
            RuleKey::MaxDeliveryAttempts => Self::MaxDeliveryAttempts(number(text)?),
            RuleKey::DeadLetters => Self::DeadLetters(word(&DEAD_LETTERS, text)?),
            RuleKey::PopLease => Self::PopLease(unless_none(text, Nanos::of_text)?),
            RuleKey::MessagesMax => Self::MessagesMax(unless_none(text, bound)?),
            RuleKey::BytesMax => Self::BytesMax(unless_none(text, bound)?),
            RuleKey::WhenFull => Self::WhenFull(word(&WHEN_FULL, text)?),
            RuleKey::TargetAge => Self::TargetAge(unless_none(text, Nanos::of_text)?),
            RuleKey::RedeliveryDelay => Self::RedeliveryDelay(unless_none(text, Nanos::of_text)?),
            RuleKey::RedeliveryFactor => Self::RedeliveryFactor(factor(text)?),
            RuleKey::RedeliveryMax => Self::RedeliveryMax(unless_none(text, Nanos::of_text)?),
            RuleKey::RedeliveryJitter => Self::RedeliveryJitter(share(text)?),
        })
    }

    /// As it is in these rules.
    #[must_use]
    pub const fn of(key: RuleKey, policy: &QueuePolicy) -> Self {
        match key {
            RuleKey::ReleaseOrder => Self::ReleaseOrder(policy.release_order),
            RuleKey::MaxDeliveryAttempts => Self::MaxDeliveryAttempts(policy.max_delivery_attempts),
            RuleKey::DeadLetters => Self::DeadLetters(policy.dead_letters),
            RuleKey::PopLease => Self::PopLease(policy.pop_lease),
            RuleKey::MessagesMax => Self::MessagesMax(policy.bounds.messages_max),
            RuleKey::BytesMax => Self::BytesMax(policy.bounds.bytes_max),
            RuleKey::WhenFull => Self::WhenFull(policy.bounds.when_full),
            RuleKey::TargetAge => Self::TargetAge(policy.bounds.target_age),
            RuleKey::RedeliveryDelay => Self::RedeliveryDelay(policy.redelivery.delay),
            RuleKey::RedeliveryFactor => Self::RedeliveryFactor(policy.redelivery.factor),
            RuleKey::RedeliveryMax => Self::RedeliveryMax(policy.redelivery.delay_max),
            RuleKey::RedeliveryJitter => Self::RedeliveryJitter(policy.redelivery.jitter),
        }
    }

    /// Makes it one of these rules.
    pub const fn apply(self, policy: &mut QueuePolicy) {
        match self {
            Self::ReleaseOrder(order) => policy.release_order = order,
            Self::MaxDeliveryAttempts(attempts) => policy.max_delivery_attempts = attempts,
            Self::DeadLetters(what) => policy.dead_letters = what,
            Self::PopLease(span) => policy.pop_lease = span,
            Self::MessagesMax(count) => policy.bounds.messages_max = count,
            Self::BytesMax(bytes) => policy.bounds.bytes_max = bytes,
            Self::WhenFull(what) => policy.bounds.when_full = what,
            Self::TargetAge(span) => policy.bounds.target_age = span,
            Self::RedeliveryDelay(span) => policy.redelivery.delay = span,
            Self::RedeliveryFactor(factor) => policy.redelivery.factor = factor,
            Self::RedeliveryMax(span) => policy.redelivery.delay_max = span,
            Self::RedeliveryJitter(share) => policy.redelivery.jitter = share,
        }
    }
}

/// The rule's value, as [`QueueRule::parse`] takes it.
impl fmt::Display for QueueRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReleaseOrder(order) => f.write_str(word_of(&RELEASE_ORDERS, *order)),
            Self::MaxDeliveryAttempts(attempts) => attempts.fmt(f),
            Self::DeadLetters(what) => f.write_str(word_of(&DEAD_LETTERS, *what)),
            Self::MessagesMax(Some(number)) | Self::BytesMax(Some(number)) => number.fmt(f),
            Self::WhenFull(what) => f.write_str(word_of(&WHEN_FULL, *what)),
            Self::PopLease(Some(span))
            | Self::TargetAge(Some(span))
            | Self::RedeliveryDelay(Some(span))
            | Self::RedeliveryMax(Some(span)) => span.fmt_text(f),
            Self::RedeliveryFactor(number) | Self::RedeliveryJitter(number) => number.fmt(f),
            Self::PopLease(None)
            | Self::MessagesMax(None)
            | Self::BytesMax(None)
            | Self::TargetAge(None)
            | Self::RedeliveryDelay(None)
            | Self::RedeliveryMax(None) => f.write_str(NONE),
        }
    }
}

/// The rules that a queue was given while the broker ran. They go before those that are configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnPolicy {
    rules: [Option<QueueRule>; RuleKey::ALL.len()],
}

impl OwnPolicy {
    /// True if there is no such rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// This one, if it was given.
    #[must_use]
    pub fn get(&self, key: RuleKey) -> Option<QueueRule> {
        self.rules.get(key.index()).copied().flatten()
    }

    /// All that were given, in the order of [`RuleKey::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = QueueRule> {
        self.rules.iter().copied().flatten()
    }

    /// Sets one, in place of its old value.
    pub fn set(&mut self, rule: QueueRule) {
        if let Some(place) = self.rules.get_mut(rule.key().index()) {
            *place = Some(rule);
        }
    }

    /// Takes one away.
    pub fn forget(&mut self, key: RuleKey) {
        if let Some(place) = self.rules.get_mut(key.index()) {
            *place = None;
        }
    }

    /// All rules of the queue.
    #[must_use]
    pub fn over(&self, configured: QueuePolicy) -> QueuePolicy {
        let mut policy = configured;
        self.iter().for_each(|rule| rule.apply(&mut policy));
        policy
    }
}

/// A change of a queue's own rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyChange {
    /// These go, so that the configured ones hold.
    pub forget: Vec<RuleKey>,
    /// These are given, or changed.
    pub set: OwnPolicy,
}

impl PolicyChange {
    /// It has just these rules of its own from then on.
    #[must_use]
    pub fn to(set: OwnPolicy) -> Self {
        Self { forget: RuleKey::ALL.to_vec(), set }
    }

    /// A queue's own rules after it.
    #[must_use]
    pub fn applied_to(&self, own: OwnPolicy) -> OwnPolicy {
        let mut own = own;
        self.forget.iter().for_each(|key| own.forget(*key));
        self.set.iter().for_each(|rule| own.set(rule));
        own
    }
}

/// The rules of a queue, and where they are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedPolicy {
    /// Those that hold.
    pub holds: QueuePolicy,
    /// Those of these that it was given while the broker ran.
    pub own: OwnPolicy,
    /// The rules that would hold without them.
    pub configured: QueuePolicy,
}

/// Queues, or names of queues that are not there, with rules of their own.
pub type OwnPolicies = Vec<(QueueName, Box<OwnPolicy>)>;

fn word<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

fn unless_none<T>(text: &str, parse: fn(&str) -> Option<T>) -> Option<Option<T>> {
    if text == NONE { Some(None) } else { parse(text).map(Some) }
}

fn factor(text: &str) -> Option<Thousandths> {
    Thousandths::of_text(text).filter(|factor| QueueRule::FACTORS.contains(factor))
}

/// A part of the whole.
fn share(text: &str) -> Option<Thousandths> {
    Thousandths::of_text(text).filter(|share| *share <= Thousandths::ONE)
}

/// None of it would make a queue useless.
fn bound(text: &str) -> Option<u64> {
    number(text).filter(|number| *number > 0)
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

const NONE: &str = "none";

const RELEASE_ORDERS: [(&str, ReleaseOrder); 2] =
    [("front", ReleaseOrder::Front), ("back", ReleaseOrder::Back)];

const DEAD_LETTERS: [(&str, DeadLetters); 3] = [
    ("park-persistent", DeadLetters::ParkPersistent),
    ("park", DeadLetters::Park),
    ("drop", DeadLetters::Drop),
];

const WHEN_FULL: [(&str, WhenFull); 5] = [
    ("block", WhenFull::Block),
    ("reject", WhenFull::Reject),
    ("drop-oldest", WhenFull::DropOldest),
    ("dead-letter", WhenFull::DeadLetter),
    ("disconnect", WhenFull::Disconnect),
];

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn queue_rules_text_round_trips() {
        let texts = [
            (RuleKey::ReleaseOrder, ["front", "back"]),
            (RuleKey::MaxDeliveryAttempts, ["0", "4294967295"]),
            (RuleKey::DeadLetters, ["park-persistent", "park"]),
            (RuleKey::DeadLetters, ["park", "drop"]),
            (RuleKey::PopLease, ["none", "1500ms"]),
            (RuleKey::MessagesMax, ["none", "1"]),
            (RuleKey::BytesMax, ["none", "18446744073709551615"]),
            (RuleKey::WhenFull, ["drop-oldest", "dead-letter"]),
            (RuleKey::TargetAge, ["36h", "100d"]),
            (RuleKey::RedeliveryDelay, ["none", "250ms"]),
            (RuleKey::RedeliveryFactor, ["1", "1.5"]),
            (RuleKey::RedeliveryMax, ["none", "1h"]),
            (RuleKey::RedeliveryJitter, ["0", "0.15"]),
        ];
        for (key, texts) in texts {
            assert_eq!(RuleKey::named(key.word()), Some(key));
            for text in texts {
                let rule = QueueRule::parse(key, text).unwrap();
                assert_eq!((rule.key(), rule.to_string().as_str()), (key, text));
                let mut policy = QueuePolicy::default();
                rule.apply(&mut policy);
                assert_eq!(QueueRule::of(key, &policy), rule);
            }
        }
        let wrong = [
            (RuleKey::ReleaseOrder, "middle"),
            (RuleKey::MaxDeliveryAttempts, "-1"),
            (RuleKey::MaxDeliveryAttempts, "4294967296"),
            (RuleKey::MaxDeliveryAttempts, "none"),
            (RuleKey::DeadLetters, ""),
            (RuleKey::PopLease, "0s"),
            (RuleKey::MessagesMax, "0"),
            (RuleKey::MessagesMax, "+1"),
            (RuleKey::BytesMax, "18446744073709551616"),
            (RuleKey::WhenFull, "none"),
            (RuleKey::TargetAge, "2401h"),
            (RuleKey::RedeliveryDelay, "0s"),
            (RuleKey::RedeliveryDelay, "1"),
            (RuleKey::RedeliveryFactor, "0.5"),
            (RuleKey::RedeliveryFactor, "1000.001"),
            (RuleKey::RedeliveryFactor, "none"),
            (RuleKey::RedeliveryMax, "101d"),
            (RuleKey::RedeliveryJitter, "1.001"),
            (RuleKey::RedeliveryJitter, "20%"),
        ];
        for (key, text) in wrong {
            assert_eq!(QueueRule::parse(key, text), None, "{} {text}", key.word());
        }
    }

    #[test]
    fn own_rules_precede_configured_ones() {
        let configured = QueuePolicy { max_delivery_attempts: 3, ..QueuePolicy::default() };
        let mut own = OwnPolicy::default();
        assert!(own.is_empty());
        assert_eq!(own.over(configured), configured);
        own.set(QueueRule::MessagesMax(Some(7)));
        own.set(QueueRule::MaxDeliveryAttempts(0));
        let policy = own.over(configured);
        assert_eq!((policy.max_delivery_attempts, policy.bounds.messages_max), (0, Some(7)));
        let mut set = OwnPolicy::default();
        set.set(QueueRule::PopLease(None));
        let change = PolicyChange { forget: alloc::vec![RuleKey::MaxDeliveryAttempts], set };
        let own = change.applied_to(own);
        let rules: Vec<_> = own.iter().collect();
        assert_eq!(rules, [QueueRule::PopLease(None), QueueRule::MessagesMax(Some(7))]);
        assert_eq!(PolicyChange::to(set).applied_to(own), set);
    }
}
