//! Values of scripts as answers, and answers as values of scripts.

use mlua::{Lua, Table, Value};
use model::ScriptValue;

use crate::budget::Budget;
use crate::limits::DEPTH_MAX;
use crate::native::Refusal;
use crate::number;

/// The answer that the value of a script is, as Redis converts it.
pub(crate) fn answer(value: &Value, resp3: bool, budget: &Budget) -> Result<ScriptValue, Refusal> {
    Answers { resp3, budget }.value(value, 0)
}

struct Answers<'b> {
    resp3: bool,
    budget: &'b Budget,
}

impl Answers<'_> {
    fn value(&self, value: &Value, depth: usize) -> Result<ScriptValue, Refusal> {
        self.budget.take(size_of::<ScriptValue>())?;
        Ok(match value {
            Value::String(text) => ScriptValue::Bulk(self.bytes(&text.as_bytes())?),
            Value::Boolean(is) => self.boolean(*is),
            Value::Integer(number) => ScriptValue::Integer(*number),
            Value::Number(number) => ScriptValue::Integer(number::truncated(*number)),
            Value::Table(table) => self.table(table, depth)?,
            _ => ScriptValue::Null,
        })
    }

    fn boolean(&self, is: bool) -> ScriptValue {
        match (self.resp3, is) {
            (true, _) => ScriptValue::Boolean(is),
            (false, true) => ScriptValue::Integer(1),
            (false, false) => ScriptValue::Null,
        }
    }

    fn bytes(&self, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.budget.take(bytes.len())?;
        Ok(bytes.to_vec())
    }

    fn table(&self, table: &Table, depth: usize) -> Result<ScriptValue, Refusal> {
        if depth >= DEPTH_MAX {
            return Ok(ScriptValue::Error(b"ERR reached lua stack limit".to_vec()));
        }
        if let Value::String(text) = table.raw_get("err")? {
            return Ok(ScriptValue::Error(self.line(&text.as_bytes())?));
        }
        if let Value::String(text) = table.raw_get("ok")? {
            return Ok(ScriptValue::Status(self.line(&text.as_bytes())?));
        }
        match self.resp3_form(table, depth)? {
            Some(value) => Ok(value),
            None => self.array(table, depth),
        }
    }

    /// The forms of RESP3 that a table names.
    fn resp3_form(&self, table: &Table, depth: usize) -> Result<Option<ScriptValue>, Refusal> {
        match table.raw_get("double")? {
            Value::Integer(number) => return Ok(Some(ScriptValue::Double(number as f64))),
            Value::Number(number) => return Ok(Some(ScriptValue::Double(number))),
            _ => {}
        }
        if let Value::Table(pairs) = table.raw_get("map")? {
            return self.map(&pairs, depth).map(Some);
        }
        if let Value::Table(members) = table.raw_get("set")? {
            return self.set(&members, depth).map(Some);
        }
        self.text_form(table)
    }

    /// A long number, or text for people: both are bytes in RESP2, and here.
    fn text_form(&self, table: &Table) -> Result<Option<ScriptValue>, Refusal> {
        if let Value::String(number) = table.raw_get("big_number")? {
            return Ok(Some(ScriptValue::Bulk(self.line(&number.as_bytes())?)));
        }
        let Value::Table(verbatim) = table.raw_get("verbatim_string")? else {
            return Ok(None);
        };
        match (verbatim.raw_get("format")?, verbatim.raw_get("string")?) {
            (Value::String(_), Value::String(text)) => {
                Ok(Some(ScriptValue::Bulk(self.bytes(&text.as_bytes())?)))
            }
            _ => Ok(None),
        }
    }

    fn map(&self, pairs: &Table, depth: usize) -> Result<ScriptValue, Refusal> {
        let mut values = Vec::new();
        for pair in pairs.pairs::<Value, Value>() {
            let (key, value) = pair?;
            values.push((self.value(&key, depth + 1)?, self.value(&value, depth + 1)?));
        }
        Ok(ScriptValue::Map(values))
    }

    fn set(&self, members: &Table, depth: usize) -> Result<ScriptValue, Refusal> {
        let mut values = Vec::new();
        for pair in members.pairs::<Value, Value>() {
            values.push(self.value(&pair?.0, depth + 1)?);
        }
        Ok(ScriptValue::Set(values))
    }

    fn array(&self, table: &Table, depth: usize) -> Result<ScriptValue, Refusal> {
        let mut values = Vec::new();
        for place in 1.. {
            match table.raw_get(place)? {
                Value::Nil => break,
                value => values.push(self.value(&value, depth + 1)?),
            }
        }
        Ok(ScriptValue::Array(values))
    }

    /// Bytes that stand in one line of the protocol.
    fn line(&self, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.bytes(bytes).map(one_line)
    }
}

/// Bytes with a space for each end of a line.
pub(crate) fn one_line(mut bytes: Vec<u8>) -> Vec<u8> {
    for byte in &mut bytes {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    bytes
}

/// The value that an answer is for a script.
pub(crate) fn value(lua: &Lua, answer: &ScriptValue, resp3: bool) -> mlua::Result<Value> {
    Ok(match answer {
        ScriptValue::Null if resp3 => Value::Nil,
        ScriptValue::Null => Value::Boolean(false),
        ScriptValue::Status(text) => field(lua, "ok", Value::String(lua.create_string(text)?))?,
        ScriptValue::Error(text) => error(lua, text)?,
        ScriptValue::Integer(number) => Value::Number(*number as f64),
        ScriptValue::Bulk(bytes) => Value::String(lua.create_string(bytes)?),
        ScriptValue::Array(values) => array(lua, values, resp3)?,
        ScriptValue::Boolean(is) => Value::Boolean(*is),
        ScriptValue::Double(number) => field(lua, "double", Value::Number(*number))?,
        ScriptValue::Map(pairs) => map(lua, pairs, resp3)?,
        ScriptValue::Set(members) => set(lua, members, resp3)?,
    })
}

fn field(lua: &Lua, name: &str, value: Value) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

/// An error as a command answers it.
fn error(lua: &Lua, text: &[u8]) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", lua.create_string(text)?)?;
    table.raw_set("ignore_error_stats_update", true)?;
    Ok(Value::Table(table))
}

fn array(lua: &Lua, values: &[ScriptValue], resp3: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(values.len(), 0)?;
    for (place, each) in (1..).zip(values) {
        table.raw_seti(place, value(lua, each, resp3)?)?;
    }
    Ok(Value::Table(table))
}

fn map(lua: &Lua, pairs: &[(ScriptValue, ScriptValue)], resp3: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, pairs.len())?;
    for (key, each) in pairs {
        table.raw_set(value(lua, key, resp3)?, value(lua, each, resp3)?)?;
    }
    field(lua, "map", Value::Table(table))
}

fn set(lua: &Lua, members: &[ScriptValue], resp3: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, members.len())?;
    for member in members {
        table.raw_set(value(lua, member, resp3)?, true)?;
    }
    field(lua, "set", Value::Table(table))
}
