//! The library `cjson`: JSON as lua-cjson 2.1 writes and reads it.

mod decode;
mod encode;
mod settings;

use std::sync::Arc;

use mlua::{Lua, Table};

pub(crate) use settings::Settings;

use crate::budget::Budget;
use crate::native::{argument, bad_argument, bytes, function};

/// Makes the table of native functions of the library, with settings of its own.
pub(crate) fn library(
    lua: &Lua,
    settings: &Arc<Settings>,
    budget: &Arc<Budget>,
) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let (setting, encoding) = (settings.clone(), budget.clone());
    table.raw_set(
        "encode",
        function(lua, move |lua, arguments| {
            let value = argument(arguments, 1).filter(|_| arguments.len() == 1);
            let value = value.ok_or_else(|| bad_argument(1, "encode", "expected 1 argument"))?;
            Ok(lua.create_string(encode::encode(value, setting.values(), &encoding)?)?)
        })?,
    )?;
    let (setting, decoding) = (settings.clone(), budget.clone());
    table.raw_set(
        "decode",
        function(lua, move |lua, arguments| {
            if arguments.len() != 1 {
                return Err(bad_argument(1, "decode", "expected 1 argument"));
            }
            let text = bytes(arguments, 1, "decode")?;
            decode::decode(lua, &text, setting.values(), &decoding)
        })?,
    )?;
    settings::install(lua, &table, settings)?;
    Ok(table)
}

/// Tables may lie so deep in each other, whatever a script sets: values are visited recursively.
const DEPTH_MAX: usize = 1000;
