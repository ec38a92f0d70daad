//! Tables as targets: a message to `table://NAME` changes one key.
//!
//! Its subject, JMS's type, is the key. The application property `dunlin_op` says what is done with
//! the body, and `dunlin_was` the value that the key has to have before. In a transaction it is a
//! part of the commit; alone it is done at once, and expects nothing.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    CollectionCommand, CollectionKind, Command, Expected, OneOrMany, QueueName, TableAction,
    TableStep, TransactionId, ValueEdit, parse_integer,
};

use crate::connection::address;
use crate::error::{Error, condition};
use crate::formats::content_of;
use crate::message::{MESSAGE_FORMAT, Message, Place};
use crate::types::Value;

/// How the address of a table begins.
const PREFIX: &str = "table://";

/// The action; without it the body is put.
const OPERATION: &str = "dunlin_op";

/// The value that the key has to have.
const WAS: &str = "dunlin_was";

/// The table that an address names, if it is one's.
pub(super) fn named(address: &str) -> Option<Result<QueueName, Error>> {
    address.strip_prefix(PREFIX).map(address::name)
}

/// The table that a message without a node names as its destination, if it does.
pub(super) fn named_by(body: &[u8]) -> Option<Result<QueueName, Error>> {
    let message = Message::scan(body).ok()?;
    named(message.property(Place::To)?.as_str()?)
}

/// The refusal for a peer that wants to receive from a table.
pub(super) fn unreadable() -> Error {
    let why = "a table is no queue: read it by HTTP (GET /tables/NAME) or Redis (HGET)";
    Error::new(condition::NOT_IMPLEMENTED, why)
}

/// The steps of a message on a table, the last of which tells its outcome.
///
/// # Errors
/// The error that the peer is told: the message is malformed, or does not say a step.
pub(super) fn steps(table: &QueueName, body: &[u8], format: u32) -> Result<Vec<TableStep>, Error> {
    if format != MESSAGE_FORMAT {
        return Err(Error::new(condition::NOT_IMPLEMENTED, "unknown message format"));
    }
    let message = Message::scan(body)?;
    let Some(Value::String(key)) = message.property(Place::Subject) else {
        return Err(invalid("a message to a table has the key as its subject (JMSType)"));
    };
    let key: Arc<[u8]> = key.as_bytes().into();
    let annotations = message.message_annotations();
    if annotations.is_some_and(|map| PLEDGES.iter().any(|pledge| map.get(pledge).is_some())) {
        return Err(invalid("a change of a table takes no delay and no deduplication id"));
    }
    let [operation, was] =
        message.application_properties().map_or([None; 2], |map| map.get_each([OPERATION, WAS]));
    let mut steps = Vec::new();
    if let Some(was) = was {
        let Value::String(was) = was else { return Err(invalid("dunlin_was is a string")) };
        steps.push(TableAction::Expect(Expected::Value(was.as_bytes().into())));
    }
    steps.push(action(operation, &message)?);
    let step = |action| TableStep { table: table.clone(), key: Arc::clone(&key), action };
    Ok(steps.into_iter().map(step).collect())
}

fn action(operation: Option<Value<'_>>, message: &Message<'_>) -> Result<TableAction, Error> {
    let content = || {
        let why = "its body, text or bytes, is the value: a map, a list or no body is none";
        content_of(message).ok_or_else(|| invalid(why))
    };
    match operation {
        None | Some(Value::Null | Value::String("put")) => Ok(TableAction::Put(content()?.into())),
        Some(Value::String("add")) => parse_integer(content()?)
            .map(TableAction::Add)
            .ok_or_else(|| invalid("what is added is an integer of 64 bits, as text")),
        Some(Value::String("delete")) => Ok(TableAction::Delete),
        Some(Value::String("expect")) => {
            Ok(TableAction::Expect(Expected::Value(content()?.into())))
        }
        Some(Value::String("expect-absent")) => Ok(TableAction::Expect(Expected::Absent)),
        Some(_) => Err(invalid("dunlin_op is put, add, delete, expect or expect-absent")),
    }
}

fn invalid(why: &str) -> Error {
    Error::new(condition::INVALID_FIELD, why)
}

/// The commands of these steps, in a transaction or alone.
///
/// # Errors
/// Alone nothing can be expected.
pub(super) fn commands(
    steps: Vec<TableStep>,
    transaction: Option<TransactionId>,
) -> Result<Vec<Command>, Error> {
    if let Some(transaction) = transaction {
        let enlist = |step| Command::Table { step: Box::new(step), transaction };
        return Ok(steps.into_iter().map(enlist).collect());
    }
    steps.into_iter().map(alone).collect()
}

fn alone(step: TableStep) -> Result<Command, Error> {
    let TableStep { table: name, key: field, action } = step;
    let command = match action {
        TableAction::Put(value) => {
            let fields = alloc::vec![(field, value)];
            CollectionCommand::SetFields { name, fields, only_new: false }
        }
        TableAction::Add(more) => {
            CollectionCommand::EditField { name, field, edit: ValueEdit::Add(more) }
        }
        TableAction::Delete => {
            let (kind, fields) = (CollectionKind::Hash, OneOrMany::One(field));
            CollectionCommand::RemoveFields { name, kind, fields }
        }
        TableAction::Expect(_) => {
            let why = format!(
                "{WAS} and dunlin_op=expect are for transactions: send them in a transacted session"
            );
            return Err(invalid(&why));
        }
    };
    Ok(command.into())
}

/// Annotations on which a sender relies, and that a change of a table does not keep.
const PLEDGES: [&str; 3] = ["x-opt-delivery-time", "x-opt-delivery-delay", "x-opt-dunlin-send-id"];

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;
    use alloc::vec;

    use super::*;
    use crate::message::{self, Properties};

    fn message(
        subject: Option<&str>,
        pairs: &[(&str, Value<'_>)],
        body: Option<Value<'_>>,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        Properties { subject, ..Properties::default() }.encode(&mut bytes);
        message::application_properties(&mut bytes, |map| {
            pairs.iter().for_each(|(name, value)| map.string(name, *value));
        });
        match body {
            Some(Value::Binary(data)) => message::data(&mut bytes, data),
            Some(other) => message::value(&mut bytes, other),
            None => {}
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<TableAction>, Error> {
        let table = QueueName::new("accounts").expect("a name");
        let steps = steps(&table, bytes, MESSAGE_FORMAT)?;
        assert!(steps.iter().all(|step| step.table == table && *step.key == *b"17"));
        Ok(steps.into_iter().map(|step| step.action).collect())
    }

    #[test]
    fn messages_say_their_step() {
        let text = |text| Some(Value::String(text));
        let op = |word| [("dunlin_op", Value::String(word))];
        let put = |value: &[u8]| TableAction::Put(value.into());
        for (pairs, body, expected) in [
            (&[][..], text("100"), put(b"100")),
            (&[], Some(Value::Binary(b"\xff")), put(b"\xff")),
            (&op("put"), text(""), put(b"")),
            (&op("add"), text("-5"), TableAction::Add(-5)),
            (&op("delete"), None, TableAction::Delete),
            (&op("expect"), text("1"), TableAction::Expect(Expected::Value((*b"1").into()))),
            (&op("expect-absent"), None, TableAction::Expect(Expected::Absent)),
        ] {
            let bytes = message(Some("17"), pairs, body);
            assert_eq!(read(&bytes), Ok(vec![expected]), "{pairs:?}");
        }
        let pairs = [("dunlin_was", Value::String("1")), ("dunlin_op", Value::String("add"))];
        let both = vec![TableAction::Expect(Expected::Value((*b"1").into())), TableAction::Add(2)];
        assert_eq!(read(&message(Some("17"), &pairs, text("2"))), Ok(both));
    }

    #[test]
    fn other_messages_are_refused() {
        let text = |text| Some(Value::String(text));
        let op = |word| [("dunlin_op", word)];
        for (subject, pairs, body, part) in [
            (None, &[][..], text("1"), "JMSType"),
            (Some("17"), &[], None, "text or bytes"),
            (Some("17"), &[], Some(Value::Boolean(true)), "text or bytes"),
            (Some("17"), &op(Value::String("add")), text("1.5"), "an integer"),
            (Some("17"), &op(Value::String("incr")), text("1"), "put, add, delete"),
            (Some("17"), &op(Value::Boolean(true)), text("1"), "put, add, delete"),
            (Some("17"), &[("dunlin_was", Value::Boolean(true))], text("1"), "a string"),
        ] {
            let error = read(&message(subject, pairs, body)).unwrap_err();
            assert_eq!(error.condition, condition::INVALID_FIELD);
            let why = error.description.unwrap_or_default().to_string();
            assert!(why.contains(part), "{why}");
        }
        assert!(read(b"\x00").is_err());
    }

    #[test]
    fn addresses_of_tables_are_known() {
        assert_eq!(named("accounts"), None);
        let name = named("table://accounts").and_then(Result::ok);
        assert_eq!(name.as_ref().map(QueueName::as_str), Some("accounts"));
        assert!(named("table://").is_some_and(|name| name.is_err()));
    }
}
