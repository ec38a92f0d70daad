//! How the engine's refusals are told: the error condition of each (2.8.15 and following), and its
//! own words.

use alloc::format;
use alloc::string::{String, ToString};

use model::{QueueFull, QuotaReached, Refusal, Right};

use crate::error::{Error, condition};

/// The refusal for a producer while the server drains. It comes at once, for a link without credit
/// would make the producer wait for a server that it is to leave.
pub(crate) fn draining() -> Error {
    error(&Refusal::Draining)
}

/// The error for the peer when the engine refuses.
pub(crate) fn error(refusal: &Refusal) -> Error {
    let condition = match refusal {
        Refusal::MemoryFull
        | Refusal::Draining
        | Refusal::StoreFull
        | Refusal::QueueFull(_)
        | Refusal::TooManyQueues { .. }
        | Refusal::TooManyTemporary
        | Refusal::TooManyWatched
        | Refusal::TooManySubscriptions
        | Refusal::TooManySelectors
        | Refusal::TooManyTransactions
        | Refusal::TooManyValues
        | Refusal::TransactionTooLarge => condition::RESOURCE_LIMIT_EXCEEDED,
        // Links are opened before they are used: one that is not lost its destination.
        Refusal::NoSuchDestination | Refusal::NoSuchLink => condition::NOT_FOUND,
        // Qpid JMS checks this itself and says it in Java; every other client hears it from here.
        Refusal::OfAnotherSession => condition::NOT_ALLOWED,
        Refusal::ClientInUse | Refusal::SendIdTooLong => condition::INVALID_FIELD,
        Refusal::SendIdReused | Refusal::TableConflict { .. } => condition::PRECONDITION_FAILED,
        Refusal::WrongKind => condition::NOT_ALLOWED,
        Refusal::NotAnInteger | Refusal::Overflow | Refusal::FieldTooLong => {
            condition::INVALID_FIELD
        }
        Refusal::SubscriptionInUse => condition::RESOURCE_LOCKED,
        Refusal::InvalidSelector { position, reason } => return selector(*position, reason),
        Refusal::NoSuchTransaction => condition::TRANSACTION_UNKNOWN_ID,
        Refusal::TransactionFailed => condition::PRECONDITION_FAILED,
        Refusal::QuotaReached(reached) => return quota_reached(reached),
        Refusal::NotPermitted(lack) => return not_permitted(lack.user.as_deref(), lack.right),
        _ => condition::INTERNAL_ERROR,
    };
    Error::new(condition, refusal.to_string())
}

/// The error for a peer whose user lacks a right at the end of this link.
pub(crate) fn not_permitted(user: Option<&str>, right: Right) -> Error {
    let user = shortened(user.unwrap_or_default());
    let why = format!(
        "user {user} may not {} here: an operator can allow it (dunlin user grant)",
        right.word()
    );
    Error::new(condition::UNAUTHORIZED_ACCESS, why)
}

/// The error for a peer whose user has as much as it may.
pub(crate) fn quota_reached(reached: &QuotaReached) -> Error {
    let reached = QuotaReached { user: shortened(&reached.user).into(), ..*reached };
    Error::new(condition::RESOURCE_LIMIT_EXCEEDED, reached.to_string())
}

fn shortened(user: &str) -> String {
    user.chars().take(USER_CHARS_MAX).collect()
}

/// The error for a consumer of a subscription that is disconnected for the messages it left there.
pub(crate) fn cut_off(full: &QueueFull) -> Error {
    let why = format!("messages were not taken in time: {}", full.bound);
    Error::new(condition::RESOURCE_LIMIT_EXCEEDED, why)
}

fn selector(position: usize, reason: &str) -> Error {
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    Error::new(condition::INVALID_FIELD, format!("selector, at byte {position}: {reason}"))
}

/// A refusal has to fit into the smallest frame, with the other fields there.
const REASON_CHARS_MAX: usize = 80;

/// The same of the name of a user, which is longer in no users file.
const USER_CHARS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use model::{Bound, NotPermitted, QueueName, Quota, limits};

    use super::*;

    /// Every refusal fits into the smallest frame, behind the words that stand before it when a
    /// transaction is rolled back.
    #[test]
    fn limit_refusals_fit_any_frame() {
        let queue = QueueName::new(&"q".repeat(limits::QUEUE_NAME_BYTES_MAX)).unwrap();
        let full = QueueFull { queue, bound: Bound::Bytes(u64::MAX) };
        let (quota, max) = (Quota::TransactionMessages, u64::MAX);
        let reached = QuotaReached { user: "\u{1f98a}".repeat(128).into(), quota, max };
        let refusals = [
            Refusal::StoreFull,
            Refusal::MemoryFull,
            Refusal::QueueFull(Box::new(full)),
            Refusal::TooManyQueues { max: limits::QUEUES_MAX },
            Refusal::TooManyQueues { max: limits::QUEUES_MAX - 1 },
            Refusal::TooManyTemporary,
            Refusal::TooManySubscriptions,
            Refusal::TooManySelectors,
            Refusal::TooManyTransactions,
            Refusal::TransactionTooLarge,
            Refusal::QuotaReached(Box::new(reached)),
        ];
        for refusal in refusals {
            let error = error(&refusal);
            assert_eq!(error.condition, condition::RESOURCE_LIMIT_EXCEEDED, "{refusal}");
            let length = error.description.unwrap().len();
            assert!(length <= DESCRIPTION_BYTES_MAX, "{length} bytes: {refusal}");
        }
    }

    #[test]
    fn denials_fit_any_frame() {
        let name = QueueName::new(&"q".repeat(limits::QUEUE_NAME_BYTES_MAX)).ok();
        let user = Some("\u{1f98a}".repeat(128).into());
        let lack = NotPermitted { user, right: Right::Operate, name };
        let error = error(&Refusal::NotPermitted(Box::new(lack)));
        assert_eq!(error.condition, condition::UNAUTHORIZED_ACCESS);
        let length = error.description.unwrap().len();
        assert!(length <= DESCRIPTION_BYTES_MAX, "{length} bytes");
    }

    /// The smallest frame has 512 bytes; all beside the description takes less than 112.
    const DESCRIPTION_BYTES_MAX: usize = 400;
}
