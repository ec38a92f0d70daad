//! Steps of a transaction on tables. A table is a hash: a name stands for keys with values.

use alloc::sync::Arc;

use crate::QueueName;

/// One step of a transaction on one key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStep {
    /// The table; the first key that is put makes it.
    pub table: QueueName,
    /// The key: any bytes.
    pub key: Arc<[u8]>,
    /// The action.
    pub action: TableAction,
}

/// The action of a [`TableStep`]. At the commit all expectations are held against the tables
/// first, as they are before it; then all changes are made, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableAction {
    /// The commit is refused ([`crate::Refusal::TableConflict`]) unless the key is as expected.
    Expect(Expected),
    /// The key has this value from then on.
    Put(Arc<[u8]>),
    /// Add to the integer that the value is; a key that is not there has zero.
    Add(i64),
    /// The key is gone from then on. A table goes with its last key.
    Delete,
}

/// The state of a key that a transaction relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is not there.
    Absent,
    /// It is there, with any value.
    Present,
    /// It has this value.
    Value(Arc<[u8]>),
}

impl TableStep {
    /// Bytes that it brings.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        let value = match &self.action {
            TableAction::Put(value) | TableAction::Expect(Expected::Value(value)) => value.len(),
            TableAction::Expect(Expected::Absent | Expected::Present)
            | TableAction::Add(_)
            | TableAction::Delete => 0,
        };
        self.key.len() + value
    }

    /// It stores something.
    #[must_use]
    pub const fn stores(&self) -> bool {
        matches!(self.action, TableAction::Put(_) | TableAction::Add(_))
    }

    /// It changes the table.
    #[must_use]
    pub const fn writes(&self) -> bool {
        !matches!(self.action, TableAction::Expect(_))
    }
}

impl Expected {
    /// True if the value is as expected; `None`: the key is not there.
    #[must_use]
    pub fn holds(&self, value: Option<&[u8]>) -> bool {
        match self {
            Self::Absent => value.is_none(),
            Self::Present => value.is_some(),
            Self::Value(expected) => value == Some(&**expected),
        }
    }
}
