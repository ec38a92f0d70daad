//! Settings of `cjson`, which a script may change for itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{IntoLuaMulti, Lua, MultiValue, Table, Value};

use crate::native::{Refusal, argument, bad_argument, function, number};

/// Settings of one table `cjson`.
#[derive(Debug, Default)]
pub(crate) struct Settings(Mutex<Values>);

/// The values of the settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    pub(crate) sparse_convert: bool,
    pub(crate) sparse_ratio: usize,
    pub(crate) sparse_safe: usize,
    pub(crate) encode_depth: usize,
    pub(crate) decode_depth: usize,
    pub(crate) precision: usize,
    /// Changes nothing here.
    keep_buffer: bool,
    pub(crate) encode_invalid: Invalid,
    pub(crate) decode_invalid: bool,
}

/// The treatment of a number that JSON cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    Refuse,
    Write,
    Null,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: 1000,
            decode_depth: 1000,
            precision: 14,
            keep_buffer: true,
            encode_invalid: Invalid::Refuse,
            decode_invalid: true,
        }
    }
}

impl Settings {
    pub(crate) fn values(&self) -> Values {
        *self.lock()
    }

    /// A new script has the settings of a new table.
    pub(crate) fn reset(&self) {
        *self.lock() = Values::default();
    }

    fn lock(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts the functions that read and change settings into a table.
pub(crate) fn install(lua: &Lua, table: &Table, settings: &Arc<Settings>) -> mlua::Result<()> {
    add(lua, table, settings, "encode_sparse_array", sparse)?;
    add(lua, table, settings, "encode_max_depth", |call, values| {
        call.integer(1, 1, INTEGER_MAX, &mut values.encode_depth)
    })?;
    add(lua, table, settings, "decode_max_depth", |call, values| {
        call.integer(1, 1, INTEGER_MAX, &mut values.decode_depth)
    })?;
    add(lua, table, settings, "encode_number_precision", |call, values| {
        call.integer(1, 1, 14, &mut values.precision)
    })?;
    add(lua, table, settings, "encode_keep_buffer", |call, values| {
        call.boolean(1, &mut values.keep_buffer)
    })?;
    add(lua, table, settings, "encode_invalid_numbers", encode_invalid)?;
    add(lua, table, settings, "decode_invalid_numbers", |call, values| {
        call.boolean(1, &mut values.decode_invalid)
    })
}

/// A call of one of these functions.
struct Call<'c> {
    lua: &'c Lua,
    arguments: &'c MultiValue,
    name: &'static str,
}

fn add<R: IntoLuaMulti + 'static>(
    lua: &Lua,
    table: &Table,
    settings: &Arc<Settings>,
    name: &'static str,
    act: fn(&Call<'_>, &mut Values) -> Result<R, Refusal>,
) -> mlua::Result<()> {
    let settings = settings.clone();
    let arguments_max = if name == "encode_sparse_array" { 3 } else { 1 };
    let body = move |lua: &Lua, arguments: &MultiValue| {
        if arguments.len() > arguments_max {
            return Err(bad_argument(arguments_max + 1, name, "found too many arguments"));
        }
        act(&Call { lua, arguments, name }, &mut settings.lock())
    };
    table.raw_set(name, function(lua, body)?)
}

fn sparse(call: &Call<'_>, values: &mut Values) -> Result<(bool, usize, usize), Refusal> {
    let convert = call.boolean(1, &mut values.sparse_convert)?;
    let ratio = call.integer(2, 0, INTEGER_MAX, &mut values.sparse_ratio)?;
    Ok((convert, ratio, call.integer(3, 0, INTEGER_MAX, &mut values.sparse_safe)?))
}

fn encode_invalid(call: &Call<'_>, values: &mut Values) -> Result<Value, Refusal> {
    let chosen = match call.given(1) {
        None => values.encode_invalid,
        Some(value) => match option(value).as_deref() {
            Some("off") => Invalid::Refuse,
            Some("on") => Invalid::Write,
            Some("null") => Invalid::Null,
            _ => return Err(call.invalid_option(1, value)),
        },
    };
    values.encode_invalid = chosen;
    Ok(match chosen {
        Invalid::Refuse => Value::Boolean(false),
        Invalid::Write => Value::Boolean(true),
        Invalid::Null => Value::String(call.lua.create_string("null")?),
    })
}

/// A boolean as its option.
fn option(value: &Value) -> Option<String> {
    match value {
        Value::Boolean(true) => Some("on".to_owned()),
        Value::Boolean(false) => Some("off".to_owned()),
        Value::String(text) => Some(text.to_string_lossy()),
        _ => None,
    }
}

impl Call<'_> {
    fn given(&self, place: usize) -> Option<&Value> {
        argument(self.arguments, place).filter(|value| !value.is_nil())
    }

    fn boolean(&self, place: usize, setting: &mut bool) -> Result<bool, Refusal> {
        if let Some(value) = self.given(place) {
            *setting = match option(value).as_deref() {
                Some("on") => true,
                Some("off") => false,
                _ => return Err(self.invalid_option(place, value)),
            };
        }
        Ok(*setting)
    }

    fn integer(
        &self,
        place: usize,
        least: usize,
        most: usize,
        setting: &mut usize,
    ) -> Result<usize, Refusal> {
        if self.given(place).is_some() {
            let number = number(self.lua, self.arguments, place, self.name)?;
            if number < least as f64 || number > most as f64 {
                let reason = format!("expected integer between {least} and {most}");
                // lua-cjson names the first argument whichever it is.
                return Err(bad_argument(1, self.name, &reason));
            }
            *setting = number as usize;
        }
        Ok(*setting)
    }

    fn invalid_option(&self, place: usize, value: &Value) -> Refusal {
        let text = match value {
            Value::String(text) => text.to_string_lossy(),
            Value::Integer(number) => number.to_string(),
            Value::Number(number) => crate::number::text(*number),
            _ => {
                let reason = format!("string expected, got {}", crate::native::type_name(value));
                return bad_argument(place, self.name, &reason);
            }
        };
        bad_argument(place, self.name, &format!("invalid option '{text}'"))
    }
}

const INTEGER_MAX: usize = i32::MAX as usize;
