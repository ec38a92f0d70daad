//! No script changes what a later one sees.

use model::ScriptValue;
use resp::Interpreter;
use script::Luau;

use crate::support::{bulk, refusal, run};

#[test]
fn globals_and_libraries_are_read_only() {
    let luau = Luau::default();
    for source in CHANGES {
        let text = refusal(&luau, source);
        assert!(text.contains("Attempt to modify a readonly table"), "{source}: {text}");
    }
    assert_eq!(run(&luau, INTACT), bulk("xx PONG [1] 1 2"));
}

#[test]
fn arguments_end_with_their_run() {
    let luau = Luau::default();
    run(&luau, "KEYS[1] = 'left' ARGV[1] = 'left'");
    assert_eq!(run(&luau, "return #KEYS + #ARGV"), ScriptValue::Integer(0));
}

#[test]
fn settings_end_with_their_run() {
    let luau = Luau::default();
    run(&luau, "cjson.encode_number_precision(1) redis.setresp(3) math.randomseed(5)");
    assert_eq!(run(&luau, "return cjson.encode(1.25)"), bulk("1.25"));
    assert_eq!(run(&luau, "return true"), ScriptValue::Integer(1));
    let first = run(&luau, "return math.random(1e9)");
    assert_eq!(run(&luau, "math.random() return 1"), ScriptValue::Integer(1));
    assert_eq!(run(&luau, "return math.random(1e9)"), first);
}

#[test]
fn functions_of_a_script_begin_anew() {
    let luau = Luau::default();
    let source = "local n = 0 local function count() n = n + 1 return n end return count()";
    for _ in 0..3 {
        assert_eq!(run(&luau, source), ScriptValue::Integer(1));
    }
}

#[test]
fn loaded_text_stays_in_the_sandbox() {
    let luau = Luau::default();
    let text = refusal(&luau, "return loadstring('x = 1')()");
    assert!(text.contains("Attempt to modify a readonly table"), "{text}");
    let source = "return {loadstring('\\27Lua'), type(loadstring('return KEYS')())}";
    let ScriptValue::Array(values) = run(&luau, source) else { panic!("no array") };
    assert!(values.is_empty(), "compiled code is refused");
}

#[test]
fn dangerous_names_do_not_exist() {
    let luau = Luau::default();
    let names = "print io require debug package dofile loadfile newproxy getfenv setfenv typeof \
                 buffer vector bit32 utf8 native server arg module";
    for name in names.split_whitespace() {
        let text = refusal(&luau, &format!("return {name}"));
        assert!(text.contains("nonexistent global variable"), "{name}: {text}");
    }
    assert_eq!(run(&luau, "return os.execute or os.time or os.getenv"), ScriptValue::Null);
    assert_eq!(run(&luau, "return table.freeze or table.clone"), ScriptValue::Null);
}

#[test]
fn digests_name_scripts() {
    let luau = Luau::default();
    let digest = luau.digest(b"return 1");
    assert_eq!(digest[..4], [0xe0, 0xe1, 0xf9, 0xfa]);
}

const CHANGES: [&str; 21] = [
    "x = 1",
    "redis = nil",
    "KEYS = {}",
    "_G.x = 1",
    "_G.string = {}",
    "rawset(_G, 'x', 1)",
    "rawset(_G, 'redis', nil)",
    "setmetatable(_G, nil)",
    "setmetatable(_G, {__index = function() return 1 end})",
    "getmetatable(_G).__index = nil",
    "string.rep = nil",
    "function string.rep() return 'evil' end",
    "getmetatable('').__index = {}",
    "getmetatable('').__add = function() return 1 end",
    "rawset(string, 'rep', nil)",
    "redis.call = function() return 'evil' end",
    "rawset(redis, 'call', nil)",
    "cjson.encode = function() return 'evil' end",
    "setmetatable(cjson, {__index = function() return 1 end})",
    "table.insert(table, 1)",
    "math.random = nil",
];

const INTACT: &str = "return table.concat({('x'):rep(2), redis.call('PING').ok, cjson.encode({1}), \
                      bit.tobit(1), math.max(1, 2)}, ' ')";
