//! Commands on hashes: keys that stand for fields with values.

use model::CollectionKind::Hash;
use model::{CollectionCommand, ValueEdit};

use crate::arguments::Arguments;
use crate::collection_format::CollectionFormat;
use crate::collections;
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::number::is_infinite;
use crate::query::Query;
use crate::reply_format::ReplyFormat;
use crate::strings::Part;

/// HSET
pub(crate) fn set(arguments: Arguments<'_>) -> QueryResult {
    set_fields(arguments, "hset", ReplyFormat::Count)
}

/// HMSET
pub(crate) fn set_several(arguments: Arguments<'_>) -> QueryResult {
    set_fields(arguments, "hmset", CollectionFormat::FieldsSet.into())
}

fn set_fields(arguments: Arguments<'_>, name: &str, format: ReplyFormat) -> QueryResult {
    if !arguments.len().is_multiple_of(2) {
        return Err(Fault::arity(name));
    }
    let pairs = (2..arguments.len()).step_by(2);
    let fields = pairs.map(|at| (arguments.element(at), arguments.element(at + 1))).collect();
    let name = arguments.key(1)?;
    let command = CollectionCommand::SetFields { name, fields, only_new: false };
    Ok(Query::collection(command, format))
}

/// HSETNX
pub(crate) fn set_new(arguments: Arguments<'_>) -> QueryResult {
    let fields = [(arguments.element(2), arguments.element(3))].into();
    let name = arguments.key(1)?;
    let command = CollectionCommand::SetFields { name, fields, only_new: true };
    Ok(Query::collection(command, ReplyFormat::Count))
}

/// HGET
pub(crate) fn value(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, Hash, ReplyFormat::Value)
}

/// HMGET
pub(crate) fn values(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, Hash, CollectionFormat::Values)
}

/// HEXISTS
pub(crate) fn exists(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, Hash, CollectionFormat::WhetherFound)
}

/// HSTRLEN
pub(crate) fn value_length(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, Hash, ReplyFormat::Part(Part::Length))
}

/// HINCRBY
pub(crate) fn increase(arguments: Arguments<'_>) -> QueryResult {
    let by = arguments.integer(3)?;
    edit(arguments, ValueEdit::Add(by))
}

/// HINCRBYFLOAT
pub(crate) fn increase_decimal(arguments: Arguments<'_>) -> QueryResult {
    match is_infinite(arguments.word(3)) {
        Some(false) => edit(arguments, ValueEdit::AddDecimal(arguments.element(3))),
        Some(true) => Err(Fault::of("ERR value is NaN or Infinity")),
        None => Err(Fault::NOT_FLOAT),
    }
}

fn edit(arguments: Arguments<'_>, edit: ValueEdit) -> QueryResult {
    let (name, field) = (arguments.key(1)?, arguments.element(2));
    let command = CollectionCommand::EditField { name, field, edit };
    Ok(Query::collection(command, CollectionFormat::Edited))
}
