//! Quotas: how much of the broker one user may take.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use core::fmt;

/// Something that a user may take only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quota {
    /// Connections at a time; of HTTP, requests at a time.
    Connections,
    /// AMQP sessions of one connection.
    Sessions,
    /// Producers and consumers of one connection.
    Links,
    /// Queues that the user made by using their names first.
    Queues,
    /// Durable subscriptions.
    Subscriptions,
    /// Messages that the user has stored in queues and that are there.
    Messages,
    /// Bytes of the bodies of these.
    Bytes,
    /// Messages that one transaction stores.
    TransactionMessages,
    /// Bytes that one transaction takes.
    TransactionBytes,
    /// Bytes a second that the user's clients send.
    ByteRate,
    /// Commands a second that they give: a message sent, received or settled is one.
    CommandRate,
}

/// The quotas of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas([Option<u64>; Quota::ALL.len()]);

/// The quota that a user has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaReached {
    /// The user.
    pub user: Arc<str>,
    /// The quota that it has reached.
    pub quota: Quota,
    /// So much may be taken.
    pub max: u64,
}

/// A text that is no amount of a quota, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaError(Box<str>);

impl Quota {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Connections,
        Self::Sessions,
        Self::Links,
        Self::Queues,
        Self::Subscriptions,
        Self::Messages,
        Self::Bytes,
        Self::TransactionMessages,
        Self::TransactionBytes,
        Self::ByteRate,
        Self::CommandRate,
    ];

    /// The word for it in a users file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Sessions => "sessions",
            Self::Links => "links",
            Self::Queues => "queues",
            Self::Subscriptions => "subscriptions",
            Self::Messages => "messages",
            Self::Bytes => "bytes",
            Self::TransactionMessages => "transaction-messages",
            Self::TransactionBytes => "transaction-bytes",
            Self::ByteRate => "byte-rate",
            Self::CommandRate => "command-rate",
        }
    }

    /// The quota of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quota| quota.word() == word)
    }

    /// Reads an amount of it: a number, of bytes also with `K`, `M`, `G` or `T` behind it.
    ///
    /// # Errors
    /// [`QuotaError`] says what is wrong with it.
    pub fn parse_max(self, text: &str) -> Result<u64, QuotaError> {
        let takes_units = matches!(self, Self::Bytes | Self::TransactionBytes | Self::ByteRate);
        let bits = |unit: char| Some(10 * (1 + "KMGT".find(unit.to_ascii_uppercase())?));
        let shift = text.chars().next_back().and_then(bits).filter(|_| takes_units);
        let digits = text.get(..text.len() - usize::from(shift.is_some())).unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<u64>().ok().filter(|_| is_number);
        let max = number.and_then(|number| number.checked_mul(1 << shift.unwrap_or(0)));
        let max = max.filter(|max| i64::try_from(*max).is_ok());
        let units = if takes_units { ", also with K, M, G or T behind it" } else { "" };
        let word = self.word();
        max.ok_or_else(|| QuotaError(format!("{text:?}: {word} is a number{units}").into()))
    }
}

impl Quotas {
    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The most that the user may take of it; `None`: as much as there is.
    #[must_use]
    pub fn of(&self, quota: Quota) -> Option<u64> {
        self.0.get(quota as usize).copied().flatten()
    }

    /// Sets or removes one.
    pub fn set(&mut self, quota: Quota, max: Option<u64>) {
        if let Some(place) = self.0.get_mut(quota as usize) {
            *place = max;
        }
    }

    /// These, and where there are none, those.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        let mut all = self.clone();
        for quota in Quota::ALL {
            all.set(quota, self.of(quota).or(others.of(quota)));
        }
        all
    }

    /// Those that there are.
    pub fn iter(&self) -> impl Iterator<Item = (Quota, u64)> + '_ {
        Quota::ALL.into_iter().filter_map(|quota| Some((quota, self.of(quota)?)))
    }
}

impl fmt::Display for QuotaReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, quota, max } = self;
        let mend = match quota {
            Quota::Connections => "close some",
            Quota::Sessions | Quota::Links => "end some, or use another connection",
            Quota::Queues => "let some go, which a queue does with its last message",
            Quota::Subscriptions => "unsubscribe some",
            Quota::Messages | Quota::Bytes => "have some received and settled",
            Quota::TransactionMessages | Quota::TransactionBytes => "send it in parts",
            Quota::ByteRate | Quota::CommandRate => "send more slowly",
        };
        write!(
            f,
            "user {user} has reached the quota {}={max}: {mend}, or an operator can raise it \
             (dunlin user limit)",
            quota.word()
        )
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for QuotaError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn quotas_have_one_word_each() {
        for quota in Quota::ALL {
            assert_eq!(Quota::of_word(quota.word()), Some(quota));
            let mut quotas = Quotas::default();
            quotas.set(quota, Some(7));
            assert_eq!(quotas.iter().collect::<alloc::vec::Vec<_>>(), [(quota, 7)]);
        }
        assert_eq!(Quota::of_word("speed"), None);
    }

    #[test]
    fn quota_amounts_have_units_for_bytes_only() {
        assert_eq!(Quota::Bytes.parse_max("2G"), Ok(2 << 30));
        assert_eq!(Quota::ByteRate.parse_max("64k"), Ok(64 << 10));
        assert_eq!(Quota::Messages.parse_max("1000"), Ok(1000));
        assert_eq!(Quota::Links.parse_max("0"), Ok(0));
        for wrong in ["", "K", "-1", "+1", "1.5", "1 K", "2KK", "9000000T", "ä", "1ä"] {
            let error = Quota::Bytes.parse_max(wrong).unwrap_err().to_string();
            assert!(error.contains("bytes is a number"), "{error}");
        }
        assert!(Quota::Messages.parse_max("1K").is_err());
    }

    #[test]
    fn quotas_fall_back_one_by_one() {
        let (mut own, mut others) = (Quotas::default(), Quotas::default());
        own.set(Quota::Links, Some(1));
        others.set(Quota::Links, Some(2));
        others.set(Quota::Bytes, Some(3));
        let all = own.or(&others);
        assert_eq!((all.of(Quota::Links), all.of(Quota::Bytes)), (Some(1), Some(3)));
        assert_eq!(all.of(Quota::Queues), None);
        assert!(!all.is_empty() && Quotas::default().is_empty());
    }
}
