//! Hosts without data, and short ways to run a script.

use model::ScriptValue;
use resp::{Interpreter, ScriptHost, ScriptRun};
use script::Luau;

/// Answers each command by what it was told to.
pub(crate) struct Canned(pub(crate) ScriptValue);

impl ScriptHost for Canned {
    fn call(&mut self, _: &[Vec<u8>], _: bool) -> ScriptValue {
        self.0.clone()
    }
}

/// The commands that Redis does without data, as Redis does them.
pub(crate) struct Dataless;

impl ScriptHost for Dataless {
    fn call(&mut self, words: &[Vec<u8>], _: bool) -> ScriptValue {
        let error = |text: &str| ScriptValue::Error(text.as_bytes().to_vec());
        let name = words[0].to_ascii_lowercase();
        match (name.as_slice(), words) {
            (b"ping", [_]) => ScriptValue::Status(b"PONG".to_vec()),
            (b"echo", [_, text]) => ScriptValue::Bulk(text.clone()),
            (b"get", [_, _]) => ScriptValue::Null,
            (b"multi" | b"eval" | b"subscribe", _) => {
                error("ERR This Redis command is not allowed from script")
            }
            (b"echo" | b"incr" | b"get", _) => {
                error("ERR Wrong number of args calling Redis command from script")
            }
            _ => error("ERR Unknown Redis command called from script"),
        }
    }
}

/// Runs a script without keys and arguments.
pub(crate) fn run(luau: &Luau, source: &str) -> ScriptValue {
    run_with(luau, source, &mut Dataless)
}

/// Runs a script with a host.
pub(crate) fn run_with(luau: &Luau, source: &str, host: &mut dyn ScriptHost) -> ScriptValue {
    luau.run(ScriptRun { source: source.as_bytes(), keys: &[], arguments: &[], seed: 0 }, host)
}

/// Runs a script that must end with an error, and returns its text.
pub(crate) fn refusal(luau: &Luau, source: &str) -> String {
    match run(luau, source) {
        ScriptValue::Error(text) => String::from_utf8(text).unwrap(),
        other => panic!("{source}: {other:?}"),
    }
}

/// A value of bytes.
pub(crate) fn bulk(text: &str) -> ScriptValue {
    ScriptValue::Bulk(text.as_bytes().to_vec())
}
