//! Native functions that scripts call.
//!
//! An error of mlua would arrive in the script as an object of mlua. So a native function returns
//! `true` with its values, or `false` with a message, and `prelude.luau` raises the message.

use mlua::{Function, IntoLuaMulti, Lua, MultiValue, Value};

/// A native function refuses its arguments, or may not go on.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A message for the script.
    Text(String),
    /// The run has met a limit.
    Overrun,
    /// The machine failed.
    Machine(mlua::Error),
}

impl From<mlua::Error> for Refusal {
    fn from(error: mlua::Error) -> Self {
        Self::Machine(error)
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Refusal {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Makes a function that `prelude.luau` guards.
pub(crate) fn function<R, F>(lua: &Lua, body: F) -> mlua::Result<Function>
where
    R: IntoLuaMulti,
    F: Fn(&Lua, &MultiValue) -> Result<R, Refusal> + Send + 'static,
{
    lua.create_function(move |lua, arguments: MultiValue| {
        answer(lua, body(lua, &arguments).and_then(|values| Ok(values.into_lua_multi(lua)?)))
    })
}

/// The values of a native function with the mark before them that `prelude.luau` looks at.
fn answer(lua: &Lua, result: Result<MultiValue, Refusal>) -> mlua::Result<MultiValue> {
    match result {
        Ok(mut values) => {
            values.push_front(Value::Boolean(true));
            Ok(values)
        }
        Err(Refusal::Text(text)) => (false, lua.create_string(text)?).into_lua_multi(lua),
        Err(Refusal::Overrun) => Err(overrun()),
        Err(Refusal::Machine(error)) => Err(error),
    }
}

/// The error by which a run ends that has met a limit. No client sees its text.
pub(crate) fn overrun() -> mlua::Error {
    mlua::Error::runtime("limit")
}

/// The argument at a place, which counts from 1.
pub(crate) fn argument(arguments: &MultiValue, place: usize) -> Option<&Value> {
    arguments.get(place.wrapping_sub(1))
}

/// An argument that must be a number.
pub(crate) fn number(
    lua: &Lua,
    arguments: &MultiValue,
    place: usize,
    name: &str,
) -> Result<f64, Refusal> {
    let value = argument(arguments, place);
    let number = match value {
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Number(number)) => Some(*number),
        Some(Value::String(_)) => lua.coerce_number(value.cloned().unwrap_or_default())?,
        _ => None,
    };
    number.ok_or_else(|| wrong_type(value, place, name, "number"))
}

/// An argument that must be bytes. A number is taken for its text.
pub(crate) fn bytes(arguments: &MultiValue, place: usize, name: &str) -> Result<Vec<u8>, Refusal> {
    let value = argument(arguments, place);
    match value {
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Integer(number)) => Ok(crate::number::text(*number as f64).into_bytes()),
        Some(Value::Number(number)) => Ok(crate::number::text(*number).into_bytes()),
        _ => Err(wrong_type(value, place, name, "string")),
    }
}

/// The message of Lua 5.1 about an argument of a wrong type.
fn wrong_type(value: Option<&Value>, place: usize, name: &str, expected: &str) -> Refusal {
    let found = value.map_or("no value", type_name);
    bad_argument(place, name, &format!("{expected} expected, got {found}"))
}

/// The message of Lua 5.1 about an argument.
pub(crate) fn bad_argument(place: usize, name: &str, reason: &str) -> Refusal {
    Refusal::Text(format!("bad argument #{place} to '{name}' ({reason})"))
}

/// The name of the type of a value in Lua 5.1.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}
