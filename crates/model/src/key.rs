//! Keys: a name stands for a queue with ready messages (a list) or for a small value.
//!
//! A queue that holds no ready message is no key. A value hides the list of the same name, which
//! can only come to be there through another protocol; commands on lists refuse such a name
//! (`WrongKind`).

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{Nanos, QueueName, Refusal};

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A queue with ready messages.
    List,
    /// A small value.
    Value,
}

/// When a key is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// After so long.
    After(Nanos),
    /// At that moment; one that has passed: now.
    At(Nanos),
}

/// Under which condition a deadline is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineRule {
    /// Always.
    Always,
    /// Only if there is none.
    IfNone,
    /// Only if there is one.
    IfSome,
    /// Only if there is one, and it is earlier.
    IfLater,
    /// Only if there is none, or it is later.
    IfEarlier,
    /// Only if there is one, and it is later.
    IfSomeEarlier,
}

/// A value's deadline after it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDeadline {
    /// None.
    Never,
    /// As it was.
    Kept,
    /// A new one.
    New(Deadline),
}

/// Under which condition a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetRule {
    /// Always.
    Always,
    /// Only if there is no such key, value or list.
    IfNone,
    /// Only if there is such a key.
    IfSome,
}

/// The commands on keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCommand {
    /// → `Kind`
    Kind {
        /// Which.
        name: QueueName,
    },
    /// How many of these are keys, each as often as it is named. → `Count`
    CountOf {
        /// Which.
        names: Vec<QueueName>,
    },
    /// Delete keys: values, and the ready messages of queues; a name that is no key is passed over.
    /// One command deletes so many messages as fit into one frame. → `Count` of the keys that are
    /// gone by it; `CountSoFar` of those: ask again with the same names for the rest
    Delete {
        /// Which.
        names: Vec<QueueName>,
    },
    /// Delete all keys of this store, in frames as `Delete` does. → `Done`; `CountSoFar`: ask again
    DeleteAll,
    /// Give a key another name; a key of that name is deleted before. → `Done`; `Count(0)` if
    /// `only_new` and that name is a key; `NotFound`; `Refused` if it would be too much for one
    /// frame
    Rename {
        /// Which.
        from: QueueName,
        /// Its new name.
        to: QueueName,
        /// Only if that is no key.
        only_new: bool,
    },
    /// Say when a key is to go, whole. → `Count(1)`; `Count(0)` if there is no such key or the
    /// rule forbids it
    SetDeadline {
        /// Which.
        name: QueueName,
        /// When.
        deadline: Deadline,
        /// Under which condition.
        rule: DeadlineRule,
    },
    /// A key stays until it is deleted. → `Count(1)`; `Count(0)` if it had no deadline
    ClearDeadline {
        /// Which.
        name: QueueName,
    },
    /// When a key is to go. → `Lifetime`, `NotFound`
    Lifetime {
        /// Which.
        name: QueueName,
    },
    /// The names of keys, ascending. → `Names`
    Names {
        /// Only those after this one.
        after: Option<QueueName>,
        /// How many names are looked at.
        max: usize,
        /// Only those that stand for this.
        kind: Option<KeyKind>,
    },
    /// How many keys there are. → `Count`
    CountAll,
    /// Set a value; a list of that name is deleted. → `Replaced`; `NotFound` if the rule forbids
    /// it (with `want_old`: `Replaced` and nothing set); `Refused`
    SetValue {
        /// Its name.
        name: QueueName,
        /// The value.
        value: Arc<[u8]>,
        /// When it goes.
        deadline: ValueDeadline,
        /// Under which condition.
        rule: SetRule,
        /// Answer with the old value; refused (`WrongKind`) if that is a list.
        want_old: bool,
    },
    /// → `Value`; `Refused` (`WrongKind`) if it is a list
    Value {
        /// Its name.
        name: QueueName,
        /// Delete it as well.
        take: bool,
    },
    /// A run: show these as so many [`KeyCommand::Value`] would, one behind the other. → `Values`
    ValueEach {
        /// Their names, at least one.
        names: Vec<QueueName>,
    },
}

/// The values that [`KeyCommand::ValueEach`] shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The value of each in its order, or why it is not shown.
    pub found: Vec<Result<Option<Arc<[u8]>>, Refusal>>,
    /// The names of the others, to be asked for next: these were much already.
    pub rest: Vec<QueueName>,
}

impl KeyCommand {
    /// Bytes of the value that it brings.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        match self {
            Self::SetValue { value, .. } => value.len(),
            _ => 0,
        }
    }
}

/// When a key is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// At that moment; `None`: never.
    pub at: Option<Nanos>,
    /// How long that is from now.
    pub left: Option<Nanos>,
}
