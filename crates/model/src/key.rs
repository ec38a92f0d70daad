//! Keys: a name stands for a queue with ready messages (a list) or for a small value.
//!
//! A queue that holds no ready message is no key. A value hides the list of the same name, which
//! can only come to be there through another protocol; commands on lists refuse such a name
//! (`WrongKind`).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{CollectionCommand, Database, Nanos, QueueName, Refusal, StreamCommand, ValueEdit};

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A queue with ready messages.
    List,
    /// A small value.
    Value,
    /// Fields with values.
    Hash,
    /// Members.
    Set,
    /// Members with scores.
    SortedSet,
    /// Entries with ids.
    Stream,
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
    /// Delete all keys, in frames as `Delete` does. → `Done`; `CountSoFar`: ask again
    DeleteAll {
        /// Only those of this one; `None`: all of this store.
        database: Option<Database>,
    },
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
        /// Only those of this one; `None`: all.
        database: Option<Database>,
        /// Only those after this one.
        after: Option<QueueName>,
        /// How many names are looked at.
        max: usize,
        /// Only those that stand for this.
        kind: Option<KeyKind>,
    },
    /// How many keys there are. → `Count`
    CountAll {
        /// Only those of this one; `None`: all.
        database: Option<Database>,
    },
    /// How many keys each database has. → `Databases`
    CountEach,
    /// Some key of a database. → `Names` with it, or with none
    AnyName {
        /// Which.
        database: Database,
        /// The chance: another number, another key.
        seed: u64,
    },
    /// The bytes of memory that a key is reckoned to take. → `Count`; `NotFound`
    MemoryOf {
        /// Which.
        name: QueueName,
    },
    /// → `Done`, once all that was stored before is on the device, if this store ever syncs
    Synced,
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
    /// Set several values, all or none; lists of these names are deleted. → `Done`; `Count(0)` if
    /// `only_new` and one of them is a key; `Refused`
    SetValues {
        /// Names and values, at least one. Of a name that comes twice the last value stays.
        values: Vec<(QueueName, Arc<[u8]>)>,
        /// Only if none of them is a key.
        only_new: bool,
    },
    /// Show a value, and say when it goes; `None`: it stays until it is deleted. → `Value`;
    /// `Refused` (`WrongKind`) if it is a list
    ValueUntil {
        /// Its name.
        name: QueueName,
        /// When.
        deadline: Option<Deadline>,
    },
    /// Change a value by what it was; its deadline stays. → see [`ValueEdit`]; `Refused`
    /// (`WrongKind`) if it is a list
    EditValue {
        /// Its name.
        name: QueueName,
        /// The change.
        edit: ValueEdit,
    },
    /// Show all of these at one moment. → `Values`; `Refused`
    ValuesAtOnce {
        /// Their names, at least one.
        names: Vec<QueueName>,
    },
    /// A command on collections. → as there
    Collection(Box<CollectionCommand>),
    /// → as there
    Stream(Box<StreamCommand>),
    /// A run: show these as so many [`KeyCommand::Value`] would, one behind the other. → `Values`
    ValueEach {
        /// Their names, at least one.
        names: Vec<QueueName>,
    },
}

/// The values that [`KeyCommand::ValueEach`] or [`KeyCommand::ValuesAtOnce`] shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The value of each in its order, or why it is not shown.
    pub found: Vec<Result<Option<Arc<[u8]>>, Refusal>>,
    /// The names of the others of a run, to be asked for next: these were much already.
    pub rest: Vec<QueueName>,
}

impl KeyCommand {
    /// The deadline that it names. No arm is a wildcard: a command that names one and forgot it
    /// here would take the machine's clock for the engine's.
    pub const fn deadline_mut(&mut self) -> Option<&mut Deadline> {
        match self {
            Self::SetDeadline { deadline, .. }
            | Self::SetValue { deadline: ValueDeadline::New(deadline), .. }
            | Self::ValueUntil { deadline: Some(deadline), .. } => Some(deadline),
            Self::SetValue { deadline: ValueDeadline::Never | ValueDeadline::Kept, .. }
            | Self::ValueUntil { deadline: None, .. }
            | Self::Kind { .. }
            | Self::CountOf { .. }
            | Self::Delete { .. }
            | Self::DeleteAll { .. }
            | Self::Rename { .. }
            | Self::ClearDeadline { .. }
            | Self::Lifetime { .. }
            | Self::Names { .. }
            | Self::CountAll { .. }
            | Self::CountEach
            | Self::AnyName { .. }
            | Self::MemoryOf { .. }
            | Self::Synced
            | Self::SetValues { .. }
            | Self::EditValue { .. }
            | Self::Value { .. }
            | Self::ValuesAtOnce { .. }
            | Self::Collection(_)
            | Self::Stream(_)
            | Self::ValueEach { .. } => None,
        }
    }

    /// Bytes of the values that it brings.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        match self {
            Self::SetValue { value, .. } => value.len(),
            Self::SetValues { values, .. } => values.iter().map(|(_, value)| value.len()).sum(),
            Self::EditValue { edit, .. } => edit.body_bytes(),
            Self::Collection(command) => command.body_bytes(),
            Self::Stream(command) => command.body_bytes(),
            _ => 0,
        }
    }
}

/// The keys of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseStatistics {
    /// Which.
    pub database: Database,
    /// How many keys it has.
    pub keys: u64,
    /// How many of them go at some moment.
    pub limited: u64,
}

/// When a key is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// At that moment; `None`: never.
    pub at: Option<Nanos>,
    /// How long that is from now.
    pub left: Option<Nanos>,
}
