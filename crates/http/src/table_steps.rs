//! The steps of a transaction on tables, as its JSON says them.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Expected, QueueName, TableAction, TableStep};

use crate::base64;
use crate::gateway::Step;
use crate::object::Object;
use crate::problem::{Problem, Result};
use crate::route::name;
use crate::sent::{AddedKey, DeletedKey, ExpectedKey, PutKey};
use crate::tables::Octets;

/// Steps in the order in which they are done: expectations, then changes.
#[derive(Debug, Default)]
pub(crate) struct TableSteps {
    steps: Vec<Step>,
    /// Keys that are changed.
    changed: BTreeSet<(QueueName, Octets)>,
}

/// All that a transaction says of tables.
pub(crate) struct Said {
    pub(crate) expect: Option<Vec<Object<ExpectedKey>>>,
    pub(crate) put: Option<Vec<Object<PutKey>>>,
    pub(crate) add: Option<Vec<Object<AddedKey>>>,
    pub(crate) delete: Option<Vec<Object<DeletedKey>>>,
}

impl Said {
    /// How many steps it is.
    pub(crate) fn len(&self) -> usize {
        let Self { expect, put, add, delete } = self;
        let counts = [count(expect), count(put), count(add), count(delete)];
        counts.iter().sum()
    }

    pub(crate) fn into_steps(self) -> Result<Vec<Step>> {
        let mut steps = TableSteps::default();
        for Object(it) in self.expect.unwrap_or_default() {
            let expected = expected(it.value, it.value_base64, it.present)?;
            let key = octets("expect", "key", it.key, it.key_base64)?;
            steps.push(name(&it.table)?, key, TableAction::Expect(expected));
        }
        for Object(it) in self.put.unwrap_or_default() {
            let key = octets("put", "key", it.key, it.key_base64)?;
            let value = octets("put", "value", it.value, it.value_base64)?;
            steps.change(&it.table, key, TableAction::Put(value))?;
        }
        for Object(it) in self.add.unwrap_or_default() {
            let key = octets("add", "key", it.key, it.key_base64)?;
            steps.change(&it.table, key, TableAction::Add(it.by))?;
        }
        for Object(it) in self.delete.unwrap_or_default() {
            let key = octets("delete", "key", it.key, it.key_base64)?;
            steps.change(&it.table, key, TableAction::Delete)?;
        }
        Ok(steps.steps)
    }
}

impl TableSteps {
    fn push(&mut self, table: QueueName, key: Octets, action: TableAction) {
        self.steps.push(Step::Table(TableStep { table, key, action }));
    }

    /// A key is changed once: the lists say no order among themselves.
    fn change(&mut self, table: &str, key: Octets, action: TableAction) -> Result<()> {
        let table = name(table)?;
        if !self.changed.insert((table.clone(), Arc::clone(&key))) {
            let key = String::from_utf8_lossy(&key).into_owned();
            return Err(Problem::bad_request(format!(
                "key {key:?} of table {table} is changed twice: put, add and delete name each key \
                 once"
            )));
        }
        self.push(table, key, action);
        Ok(())
    }
}

fn count<T>(list: &Option<Vec<T>>) -> usize {
    list.as_ref().map_or(0, Vec::len)
}

fn expected(
    value: Option<String>,
    value_base64: Option<String>,
    present: Option<bool>,
) -> Result<Expected> {
    match (present, value.is_some() || value_base64.is_some()) {
        (Some(true), false) => Ok(Expected::Present),
        (Some(false), false) => Ok(Expected::Absent),
        (None, true) => Ok(Expected::Value(octets("expect", "value", value, value_base64)?)),
        _ => Err(Problem::bad_request(
            "each of expect says one of value, value_base64 and present (true or false)",
        )),
    }
}

/// Bytes that are given as text or as base64.
fn octets(
    of: &str,
    word: &str,
    text: Option<String>,
    base64_text: Option<String>,
) -> Result<Octets> {
    match (text, base64_text) {
        (Some(text), None) => Ok(text.into_bytes().into()),
        (None, Some(text)) => base64::decode(&text)
            .map(Into::into)
            .ok_or_else(|| Problem::bad_request(format!("{word}_base64 of {of} is no base64"))),
        _ => Err(Problem::bad_request(format!("each of {of} has one of {word} and {word}_base64"))),
    }
}
