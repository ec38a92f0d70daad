//! Errors as Redis words them, and the one place where a refusal of the engine becomes one.

use alloc::borrow::Cow;
use alloc::format;

use model::{Quota, Refusal, StreamRefusal};

use crate::arguments::Arguments;

/// The refusal of a command: its code and the sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) Cow<'static, [u8]>);

impl Fault {
    pub(crate) const SYNTAX: Self = Self::of("ERR syntax error");
    pub(crate) const NOT_INTEGER: Self = Self::of("ERR value is not an integer or out of range");
    pub(crate) const NOT_INT: Self =
        Self::of("ERR value is out of range, value must between -2147483648 and 2147483647");
    pub(crate) const NOT_POSITIVE: Self = Self::of("ERR value is out of range, must be positive");
    pub(crate) const NOT_FLOAT: Self = Self::of("ERR value is not a valid float");
    pub(crate) const CURSOR: Self = Self::of("ERR invalid cursor");
    pub(crate) const NO_SUCH_KEY: Self = Self::of("ERR no such key");
    pub(crate) const DB_INDEX: Self = Self::of("ERR DB index is out of range");
    pub(crate) const IN_TRANSACTION: Self =
        Self::of("ERR Command not allowed inside a transaction");
    pub(crate) const DRAINING: Self =
        Self::of("ERR this server is draining: it stores nothing more until it is started anew");
    pub(crate) const KEY: Self = Self::of(
        "ERR a key is the name of a queue here: 255 bytes at most, 252 in a database above 0, \
         where each that is no text counts as three",
    );
    pub(crate) const CHANNEL: Self = Self::of(
        "ERR a channel is the name of a topic here: 1 to 255 bytes, where each that is no text \
         counts as three",
    );
    pub(crate) const LONG_PATTERN: Self = Self::of("ERR a pattern has 1024 bytes at most here");
    pub(crate) const NO_AUTH: Self = Self::of("NOAUTH Authentication required.");
    pub(crate) const HELLO_WITHOUT_AUTH: Self = Self::of(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
         AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
         protocol version at the same time",
    );
    /// A defect of ours, which tests look for.
    pub(crate) const INTERNAL: Self = Self::of("ERR internal error: please report it");

    pub(crate) const fn of(text: &'static str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }

    /// A sentence with something of the peer's in it.
    pub(crate) fn about(before: &str, word: &[u8], after: &str) -> Self {
        Self(Cow::Owned([before.as_bytes(), word, after.as_bytes()].concat()))
    }

    pub(crate) fn arity(name: &str) -> Self {
        Self::about("ERR wrong number of arguments for '", name.as_bytes(), "' command")
    }

    /// The words of a subcommand are too many, too few, or wrong.
    pub(crate) fn subcommand(arguments: Arguments<'_>, of: &str) -> Self {
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        let behind = format!("'. Try {of} HELP.");
        Self::about(before, printed(arguments.word(1), 128), &behind)
    }

    pub(crate) fn expire_time(name: &str) -> Self {
        Self::about("ERR invalid expire time in '", name.as_bytes(), "' command")
    }

    /// The refusal's own words behind a code.
    fn said(code: &str, refusal: &Refusal) -> Self {
        Self(Cow::Owned(format!("{code} {refusal}").into_bytes()))
    }

    pub(crate) fn refused(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::WrongKind => {
                Self::of("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Refusal::StoreFull => Self::of(
                "OOM command not allowed when used memory > 'maxmemory': the journal is full \
                 (the device, --disk-limit, or open files by `ulimit -n`), and takes only what \
                 deletes",
            ),
            Refusal::QueueFull(_) => Self::said("OOM", refusal),
            Refusal::MemoryFull => Self::of(
                "OOM command not allowed when used memory > 'maxmemory': see --memory-limit; take \
                 or delete messages",
            ),
            Refusal::Draining => Self::DRAINING,
            Refusal::NotPermitted(_) => Self::said("NOPERM", refusal),
            Refusal::QuotaReached(reached) => match reached.quota {
                Quota::Messages | Quota::Bytes => Self::said("OOM", refusal),
                _ => Self::said("ERR", refusal),
            },
            Refusal::NotInBatch => Self::of("ERR This Redis command is not allowed from script"),
            Refusal::NoSuchPlace => Self::of("ERR index out of range"),
            Refusal::NotAnInteger => Self::NOT_INTEGER,
            Refusal::Overflow => Self::of("ERR increment or decrement would overflow"),
            Refusal::NotADecimal => Self::NOT_FLOAT,
            Refusal::ScoreNotANumber => Self::of("ERR resulting score is not a number (NaN)"),
            Refusal::NotFinite => Self::of("ERR increment would produce NaN or Infinity"),
            Refusal::Stream(refusal) => stream_refused(refusal),
            Refusal::NoSuchDestination | Refusal::OfAnotherSession => Self::of(
                "ERR names that begin with temporary/ belong to connections of another protocol",
            ),
            Refusal::TooManyQueues { .. }
            | Refusal::TooManySubscriptions
            | Refusal::ListTooLong
            | Refusal::TooManyBytes { .. }
            | Refusal::BatchTooLarge
            | Refusal::TooManyValues
            | Refusal::FieldTooLong
            | Refusal::TooManyWatched
            | Refusal::TooManyObserved => Self::said("ERR", refusal),
            _ => Self::INTERNAL,
        }
    }
}

fn stream_refused(refusal: &StreamRefusal) -> Fault {
    Fault::of(match refusal {
        StreamRefusal::IdTooSmall => {
            "ERR The ID specified in XADD is equal or smaller than the target stream top item"
        }
        StreamRefusal::IdsExhausted => {
            "ERR The stream has exhausted the last possible ID, unable to add more items"
        }
        StreamRefusal::NoSuchStream => {
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may \
             want to use the MKSTREAM option to create an empty stream automatically."
        }
        StreamRefusal::GroupExists => "BUSYGROUP Consumer Group name already exists",
        StreamRefusal::BeforeLastEntry => {
            "ERR The ID specified in XSETID is smaller than the target stream top item"
        }
        StreamRefusal::BeforeRemoved => {
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
        }
        StreamRefusal::FewerThanThere => {
            "ERR The entries_added specified in XSETID is smaller than the target stream length"
        }
        StreamRefusal::NoSuchGroup(_)
        | StreamRefusal::TooManyGroups
        | StreamRefusal::NameTooLong => return Fault::said("ERR", &refusal.clone().into()),
    })
}

/// 128 bytes of a word, up to a NUL, as C prints it.
pub(crate) fn printed(word: &[u8], most: usize) -> &[u8] {
    let end = word.iter().take(most).position(|byte| *byte == 0);
    word.get(..end.unwrap_or(most.min(word.len()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_printed_as_c_does() {
        assert_eq!(printed(b"abc", 128), b"abc");
        assert_eq!(printed(b"abc", 2), b"ab");
        assert_eq!(printed(b"a\0c", 128), b"a");
    }

    #[test]
    fn refusals_have_known_redis_codes() {
        let starts = |refusal: Refusal, code: &str| {
            assert!(Fault::refused(&refusal).0.starts_with(code.as_bytes()), "{refusal:?}");
        };
        starts(Refusal::WrongKind, "WRONGTYPE Operation against a key holding");
        starts(Refusal::StoreFull, "OOM command not allowed");
        let queue = model::QueueName::new("jobs").unwrap();
        let full = model::QueueFull { queue, bound: model::Bound::Messages(7) };
        starts(
            Refusal::QueueFull(alloc::boxed::Box::new(full)),
            "OOM queue jobs is full: max-messages=7",
        );
        starts(Refusal::MemoryFull, "OOM command not allowed");
        starts(Refusal::NoSuchPlace, "ERR index out of range");
        starts(Refusal::NotAnInteger, "ERR value is not an integer or out of range");
        starts(Refusal::Overflow, "ERR increment or decrement would overflow");
        starts(Refusal::NotADecimal, "ERR value is not a valid float");
        starts(Refusal::NotFinite, "ERR increment would produce NaN or Infinity");
        starts(Refusal::ScoreNotANumber, "ERR resulting score is not a number (NaN)");
        starts(Refusal::FieldTooLong, "ERR ");
        starts(Refusal::ListTooLong, "ERR the list is too long");
        starts(Refusal::BatchTooLarge, "ERR too much at once");
        starts(Refusal::TooManyQueues { max: 9 }, "ERR there are 9 queues");
        starts(Refusal::TooManySubscriptions, "ERR there are 100000 subscriptions at most");
        starts(Refusal::TooManyBytes { max: 9 }, "ERR too large for one reply");
        starts(Refusal::TooManyValues, "ERR no room for this value");
        starts(Refusal::TooManyWatched, "ERR one consumer waits for 10000 queues at most");
        let reached = |quota| model::QuotaReached { user: "ann".into(), quota, max: 5 };
        let reached = |quota| Refusal::QuotaReached(alloc::boxed::Box::new(reached(quota)));
        starts(reached(Quota::Bytes), "OOM user ann has reached the quota bytes=5");
        starts(reached(Quota::Queues), "ERR user ann has reached the quota queues=5");
        starts(Refusal::TooManyObserved, "ERR a connection watches 1024 keys at most");
    }
}
