//! The native functions that `prelude.luau` takes.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mlua::chunk::ChunkMode;
use mlua::{Lua, MultiValue, Table, Value};
use sha1::{Digest, Sha1};

use crate::host::State;
use crate::limits::LOADED_BYTES_MAX;
use crate::native::{Refusal, argument, bytes, function, number};
use crate::{bits, json, message_pack, random, structs, text};

/// Makes the table of native functions.
pub(crate) fn natives(lua: &Lua, state: &Arc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("bit", bits::library(lua)?)?;
    table.raw_set("cjson", json::library(lua, &state.json, &state.budget)?)?;
    table.raw_set("cmsgpack", message_pack::library(lua, &state.budget)?)?;
    table.raw_set("struct", structs::library(lua, &state.budget)?)?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("find", function(lua, text::find)?)?;
    table.raw_set("sha1hex", function(lua, sha1hex)?)?;
    random::install(lua, &table, &state.random)?;
    let setting = state.clone();
    table.raw_set(
        "set_resp",
        function(lua, move |lua, arguments| {
            setting.resp3.store(number(lua, arguments, 1, "setresp")? > 2.0, Relaxed);
            Ok(())
        })?,
    )?;
    let budget = state.budget.clone();
    table.raw_set(
        "new_cjson",
        lua.create_function(move |lua, ()| json::library(lua, &Arc::default(), &budget))?,
    )?;
    Ok(table)
}

/// Adds the function that compiles text, once there is a table of globals for it.
pub(crate) fn add_load(lua: &Lua, table: &Table, globals: &Table) -> mlua::Result<()> {
    let globals = globals.clone();
    table.raw_set("load", function(lua, move |lua, arguments| load(lua, arguments, &globals))?)
}

fn load(lua: &Lua, arguments: &MultiValue, globals: &Table) -> Result<mlua::Function, Refusal> {
    let source = bytes(arguments, 1, "loadstring")?;
    if source.len() > LOADED_BYTES_MAX {
        return Err(format!("text has more than {LOADED_BYTES_MAX} bytes").into());
    }
    let name = match argument(arguments, 2) {
        Some(Value::String(name)) => String::from_utf8_lossy(&name.as_bytes()).replace('\0', "?"),
        _ => "=?".to_owned(),
    };
    lua.load(source)
        .set_name(name)
        .set_mode(ChunkMode::Text)
        .set_environment(globals.clone())
        .into_function()
        .map_err(|error| syntax_error(&error).map_or(Refusal::Machine(error), Refusal::Text))
}

/// The message of the compiler.
pub(crate) fn syntax_error(error: &mlua::Error) -> Option<String> {
    match error {
        mlua::Error::SyntaxError { message, .. } => Some(message.clone()),
        _ => None,
    }
}

fn sha1hex(_: &Lua, arguments: &MultiValue) -> Result<String, Refusal> {
    Ok(hexadecimal(&Sha1::digest(bytes(arguments, 1, "sha1hex")?)))
}

/// Bytes as digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
