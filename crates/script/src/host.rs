//! Commands that a script gives, and what a run has of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mlua::{Lua, MultiValue, Value};
use model::ScriptValue;
use resp::ScriptHost;

use crate::budget::Budget;
use crate::json;
use crate::number;
use crate::random::Random;
use crate::values;

/// State of the run that goes on.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) budget: Arc<Budget>,
    pub(crate) random: Arc<Random>,
    pub(crate) json: Arc<json::Settings>,
    /// True after `redis.setresp(3)`.
    pub(crate) resp3: AtomicBool,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            budget: Arc::new(Budget::new()),
            random: Arc::default(),
            json: Arc::default(),
            resp3: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_resp3(&self) -> bool {
        self.resp3.load(Relaxed)
    }
}

/// Gives a command: `true` with its answer, or `false` with an error for the script.
pub(crate) fn give(
    lua: &Lua,
    arguments: &MultiValue,
    host: &mut dyn ScriptHost,
    state: &State,
) -> mlua::Result<(bool, Value)> {
    if arguments.is_empty() {
        return refuse(lua, "ERR Please specify at least one argument for this redis lib call");
    }
    let Some(words) = words(arguments) else {
        return refuse(lua, "ERR Lua redis lib command arguments must be strings or integers");
    };
    let answer = host.call(&words, state.is_resp3());
    let is_error = matches!(answer, ScriptValue::Error(_));
    Ok((!is_error, values::value(lua, &answer, state.is_resp3())?))
}

fn words(arguments: &MultiValue) -> Option<Vec<Vec<u8>>> {
    arguments.iter().map(word).collect()
}

fn word(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number::word(*number as f64).into_bytes()),
        Value::Number(number) => Some(number::word(*number).into_bytes()),
        _ => None,
    }
}

fn refuse(lua: &Lua, text: &str) -> mlua::Result<(bool, Value)> {
    let table = lua.create_table()?;
    table.raw_set("err", text)?;
    Ok((false, Value::Table(table)))
}
