//! One virtual machine of Luau with its compiled scripts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value, VmState};
use model::ScriptValue;
use resp::{RecentScripts, ScriptHost, ScriptRun};

use crate::budget::Overrun;
use crate::host::{State, give};
use crate::limits::Limits;
use crate::native::{Refusal, overrun};
use crate::redis::{add_load, hexadecimal, natives, syntax_error};
use crate::values;

/// The machine. It is used by one thread at a time.
pub(crate) struct Machine {
    lua: Lua,
    /// The globals of scripts. Only this crate writes to it.
    globals: Table,
    run: Function,
    state: Arc<State>,
    scripts: RecentScripts<Function>,
    /// Memory in use after the last collection.
    settled_bytes: usize,
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Machine").finish_non_exhaustive()
    }
}

/// How a run ended.
pub(crate) enum End {
    /// With a value, or an error of the script.
    Value(ScriptValue),
    /// At a limit: the machine must not be used again.
    Overrun(Overrun),
}

impl Machine {
    pub(crate) fn new() -> mlua::Result<Self> {
        let libraries = StdLib::ALL_SAFE;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let state = Arc::new(State::new());
        let natives = natives(&lua, &state)?;
        let prelude = lua.load(PRELUDE).set_name("=prelude").set_compiler(compiler());
        let (globals, run): (Table, Function) = prelude.call(natives.clone())?;
        add_load(&lua, &natives, &globals)?;
        globals.set_readonly(true);
        let budget = state.budget.clone();
        lua.set_interrupt(
            move |_| {
                if budget.is_in_time() { Ok(VmState::Continue) } else { Err(overrun()) }
            },
        );
        lua.gc_collect()?;
        let settled_bytes = lua.used_memory();
        Ok(Self { lua, globals, run, state, scripts: RecentScripts::default(), settled_bytes })
    }

    /// Compiles a script, unless it is compiled already. `source` is without a shebang.
    pub(crate) fn prepare(&mut self, digest: [u8; 20], source: &[u8]) -> Result<Function, String> {
        if let Some(script) = self.scripts.find(&digest) {
            return Ok(script);
        }
        let script = self.compile(source).map_err(|error| {
            let message = syntax_error(&error).unwrap_or_else(|| error.to_string());
            format!("ERR Error compiling script (new function): {message}")
        })?;
        self.scripts.keep(digest, source.len(), script.clone());
        Ok(script)
    }

    fn compile(&self, source: &[u8]) -> mlua::Result<Function> {
        self.lua
            .load(source)
            .set_name("@user_script")
            .set_mode(ChunkMode::Text)
            .set_compiler(compiler())
            .set_environment(self.globals.clone())
            .into_function()
    }

    /// Runs a compiled script.
    pub(crate) fn run(
        &mut self,
        script: &Function,
        digest: &[u8; 20],
        run: ScriptRun<'_>,
        limits: Limits,
        host: &mut dyn ScriptHost,
    ) -> End {
        let result = self.begin(run, limits).and_then(|()| self.execute(script, digest, host));
        if let Err(Refusal::Machine(error)) = &result
            && is_memory(&error.to_string())
        {
            self.state.budget.note_out_of_memory();
        }
        match (self.state.budget.overrun(), result) {
            (Some(overrun), _) => End::Overrun(overrun),
            (None, Ok(value)) => End::Value(value),
            (None, Err(refusal)) => End::Value(ScriptValue::Error(message(refusal).into_bytes())),
        }
    }

    fn begin(&mut self, run: ScriptRun<'_>, limits: Limits) -> Result<(), Refusal> {
        self.collect()?;
        self.lua.set_memory_limit(self.lua.used_memory().saturating_add(limits.memory_bytes))?;
        self.state.budget.begin(limits.time, limits.memory_bytes);
        self.state.random.seed((run.seed ^ (run.seed >> 32)) as u32);
        self.state.json.reset();
        self.state.resp3.store(false, Relaxed);
        self.globals.set_readonly(false);
        let set = self.set_arguments(run);
        self.globals.set_readonly(true);
        Ok(set?)
    }

    /// Collects what earlier runs left if it is much.
    fn collect(&mut self) -> mlua::Result<()> {
        if self.lua.used_memory() > self.settled_bytes + GARBAGE_BYTES_MAX {
            self.lua.set_memory_limit(0)?;
            self.lua.gc_collect()?;
            self.settled_bytes = self.lua.used_memory();
        }
        Ok(())
    }

    fn set_arguments(&self, run: ScriptRun<'_>) -> mlua::Result<()> {
        self.globals.raw_set("KEYS", self.strings(run.keys)?)?;
        self.globals.raw_set("ARGV", self.strings(run.arguments)?)
    }

    fn strings(&self, words: &[Vec<u8>]) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(words.len(), 0)?;
        for (place, word) in (1..).zip(words) {
            table.raw_seti(place, self.lua.create_string(word)?)?;
        }
        Ok(table)
    }

    fn execute(
        &self,
        script: &Function,
        digest: &[u8; 20],
        host: &mut dyn ScriptHost,
    ) -> Result<ScriptValue, Refusal> {
        let (ok, value): (bool, Value) = self.lua.scope(|scope| {
            let give = scope.create_function_mut(|lua, arguments: MultiValue| {
                give(lua, &arguments, &mut *host, &self.state)
            })?;
            self.run.call((script, give))
        })?;
        if ok {
            return values::answer(&value, self.state.is_resp3(), &self.state.budget);
        }
        self.fault(&value, digest)
    }

    /// The error that a script raised, with its place, as Redis 7.0 says it.
    fn fault(&self, fault: &Value, digest: &[u8; 20]) -> Result<ScriptValue, Refusal> {
        let Value::Table(fault) = fault else {
            return Err(Refusal::Machine(mlua::Error::runtime(format!("{fault:?}"))));
        };
        let text: LuaString = fault.raw_get("text")?;
        if is_memory(&text.to_string_lossy()) {
            self.state.budget.note_out_of_memory();
        }
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(format!(" script: {}", hexadecimal(digest)).as_bytes());
        if let (Value::String(source), Some(line)) =
            (fault.raw_get("source")?, fault.raw_get::<Option<u32>>("line")?)
        {
            bytes.extend_from_slice(b", on ");
            bytes.extend_from_slice(&source.as_bytes());
            bytes.extend_from_slice(format!(":{line}.").as_bytes());
        }
        Ok(ScriptValue::Error(values::one_line(bytes)))
    }
}

fn compiler() -> Compiler {
    Compiler::new().set_optimization_level(1).set_debug_level(1)
}

fn message(refusal: Refusal) -> String {
    match refusal {
        Refusal::Text(text) => format!("ERR {text}"),
        Refusal::Overrun => "ERR script met a limit".to_owned(),
        Refusal::Machine(error) => format!("ERR {error}").replace(['\r', '\n'], " "),
    }
}

fn is_memory(text: &str) -> bool {
    text.ends_with(OUT_OF_MEMORY)
}

/// Luau says this when it has no memory left.
const OUT_OF_MEMORY: &str = "not enough memory";

/// So much garbage of earlier runs may remain.
const GARBAGE_BYTES_MAX: usize = 8 << 20;

const PRELUDE: &str = include_str!("prelude.luau");
