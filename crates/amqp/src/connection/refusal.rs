//! How the engine's refusals are told: the error condition of each (2.8.15 and following).

use alloc::format;
use alloc::string::String;

use model::{QueueFull, Refusal, limits};

use crate::error::{Error, condition};

/// What a producer is told while the server drains: at once, for a link without credit would make
/// it wait for a server that it is to leave.
pub(crate) fn draining() -> Error {
    let why = "the server is draining and stores nothing more until it is started anew";
    Error::new(condition::RESOURCE_LIMIT_EXCEEDED, why)
}

/// What the peer is told when the engine refuses.
pub(crate) fn error(refusal: &Refusal) -> Error {
    let (condition, description) = match refusal {
        Refusal::MemoryFull => {
            (condition::RESOURCE_LIMIT_EXCEEDED, "the broker's memory is full: see --memory-limit")
        }
        Refusal::Draining => return draining(),
        Refusal::StoreFull => (condition::RESOURCE_LIMIT_EXCEEDED, FULL),
        Refusal::QueueFull(full) => {
            return Error::new(condition::RESOURCE_LIMIT_EXCEEDED, format!("{full}"));
        }
        Refusal::TooManyQueues => (condition::RESOURCE_LIMIT_EXCEEDED, "too many queues"),
        Refusal::TooManyWatched => (condition::RESOURCE_LIMIT_EXCEEDED, "too many queues watched"),
        Refusal::TooManySubscriptions => {
            (condition::RESOURCE_LIMIT_EXCEEDED, "too many subscriptions")
        }
        Refusal::TooManySelectors => {
            (condition::RESOURCE_LIMIT_EXCEEDED, "too many different selectors of this queue")
        }
        Refusal::TooManyTransactions => {
            (condition::RESOURCE_LIMIT_EXCEEDED, "too many open transactions")
        }
        // Links are opened before they are used: one that is not lost its destination.
        Refusal::NoSuchDestination | Refusal::NoSuchLink => {
            (condition::NOT_FOUND, "the destination is gone")
        }
        // What Qpid JMS's own check of it says in Java, every other client hears from here.
        Refusal::OfAnotherSession => {
            (condition::NOT_ALLOWED, "the temporary destination is another connection's")
        }
        Refusal::ClientInUse => (condition::INVALID_FIELD, "the container id is in use"),
        Refusal::SubscriptionInUse => (condition::RESOURCE_LOCKED, "the subscription is in use"),
        Refusal::InvalidSelector { position, reason } => return selector(*position, reason),
        Refusal::NoSuchTransaction => (condition::TRANSACTION_UNKNOWN_ID, "no such transaction"),
        Refusal::TransactionTooLarge => return too_large(),
        Refusal::TransactionFailed => {
            (condition::PRECONDITION_FAILED, "a part of the transaction was refused")
        }
        Refusal::SendIdTooLong => (condition::INVALID_FIELD, "the send id is too long"),
        _ => (condition::INTERNAL_ERROR, "refused"),
    };
    Error::new(condition, description)
}

/// What a consumer of a subscription is told that is disconnected for what it left there.
pub(crate) fn cut_off(full: &QueueFull) -> Error {
    let why = format!("messages were not taken in time: {}", full.bound);
    Error::new(condition::RESOURCE_LIMIT_EXCEEDED, why)
}

fn too_large() -> Error {
    let (messages, mib) = (limits::TRANSACTION_RECORDS_MAX, limits::TRANSACTION_BYTES_MAX >> 20);
    let why = format!("a transaction takes at most {messages} messages and {mib} MiB");
    Error::new(condition::RESOURCE_LIMIT_EXCEEDED, why)
}

fn selector(position: usize, reason: &str) -> Error {
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    Error::new(condition::INVALID_FIELD, format!("selector, at byte {position}: {reason}"))
}

/// Which of the two it is, only the journal knows.
const FULL: &str = "the store is full (the device, or --disk-limit)";

/// A refusal has to fit into the smallest frame, with what else stands there.
const REASON_CHARS_MAX: usize = 80;
