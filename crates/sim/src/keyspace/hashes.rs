//! Hashes: fields with values.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::collections::Entries;
use super::{Content, Keyspace, too_large};
use crate::redis_client::Value;

type Fields = BTreeMap<Rc<[u8]>, Rc<[u8]>>;

impl Keyspace {
    pub(super) fn set_fields(&mut self, key: &[u8], pairs: &[&[u8]]) -> Value {
        self.change(key, |fields: &mut Fields| {
            let before = fields.len();
            for pair in pairs.chunks_exact(2) {
                let [field, value] = pair else { continue };
                fields.insert((*field).into(), (*value).into());
            }
            Value::count(fields.len() - before)
        })
    }

    pub(super) fn set_new_field(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> Value {
        self.change(key, |fields: &mut Fields| {
            let is_new = !fields.contains_key(field);
            if is_new {
                fields.insert(field.into(), value.into());
            }
            Value::Integer(i64::from(is_new))
        })
    }

    pub(super) fn remove_fields(&mut self, key: &[u8], gone: &[&[u8]]) -> Value {
        self.change(key, |fields: &mut Fields| {
            Value::count(gone.iter().filter(|field| fields.remove(**field).is_some()).count())
        })
    }

    pub(super) fn increase_field(&mut self, key: &[u8], field: &[u8], more: i64) -> Value {
        self.change(key, |fields: &mut Fields| {
            let before = fields.get(field).map_or(&b"0"[..], |value| value);
            // In the one form that a number has.
            let number = std::str::from_utf8(before).ok().and_then(|it| it.parse::<i64>().ok());
            let number = number.filter(|number| number.to_string().as_bytes() == before);
            let Some(sum) = number.and_then(|number| number.checked_add(more)) else {
                return Value::error("ERR");
            };
            fields.insert(field.into(), sum.to_string().into_bytes().into());
            Value::Integer(sum)
        })
    }

    pub(super) fn field(&self, key: &[u8], field: &[u8]) -> Value {
        self.see(key, |fields| fields.get(field).cloned().map_or(Value::Nil, Value::Bulk))
    }

    pub(super) fn fields(&self, key: &[u8], names: &[&[u8]]) -> Value {
        self.see(key, |fields| {
            let value = |name: &&[u8]| fields.get(*name).cloned().map_or(Value::Nil, Value::Bulk);
            let bytes: usize =
                names.iter().filter_map(|name| fields.get(*name)).map(|it| it.len()).sum();
            if !self.answer.has_room_for_entries(names.len(), bytes) {
                return too_large();
            }
            Value::Array(names.iter().map(value).collect())
        })
    }

    pub(super) fn all_fields(&self, key: &[u8]) -> Value {
        self.see(key, |fields| {
            let bytes = fields.iter().map(|(field, value)| field.len() + value.len()).sum();
            if !self.answer.has_room_for_entries(fields.len(), bytes) {
                return too_large();
            }
            let pairs = fields.into_iter().flat_map(|(field, value)| [field, value]);
            Value::Array(pairs.map(Value::Bulk).collect())
        })
    }

    pub(super) fn fields_count(&self, key: &[u8]) -> Value {
        self.see(key, |fields| Value::count(fields.len()))
    }

    fn see(&self, key: &[u8], see: impl FnOnce(Fields) -> Value) -> Value {
        self.entries(key).map_or_else(|error| error, see)
    }
}

impl Entries for Fields {
    fn of(content: &Content) -> Option<&Self> {
        if let Content::Hash(fields) = content { Some(fields) } else { None }
    }

    fn of_mut(content: &mut Content) -> Option<&mut Self> {
        if let Content::Hash(fields) = content { Some(fields) } else { None }
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn into_content(self) -> Content {
        Content::Hash(self)
    }
}
