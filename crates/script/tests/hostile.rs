//! Scripts that want more than they may have end at a limit, and the next script runs.

use std::time::{Duration, Instant};

use model::ScriptValue;
use resp::{Interpreter, ScriptRun};
use script::{LOADED_BYTES_MAX, Limits, Luau, SOURCE_BYTES_MAX};

use crate::support::{Canned, refusal, run, run_with};

#[test]
fn endless_scripts_end() {
    let luau = Luau::new(Limits { time: Duration::from_millis(50), ..Limits::default() });
    for source in ENDLESS {
        let start = Instant::now();
        let text = refusal(&luau, source);
        assert_eq!(text, "ERR script has run for 50 ms: the limit is --script-time", "{source}");
        assert!(start.elapsed() < Duration::from_secs(2), "{source}");
        assert_eq!(run(&luau, "return 7"), ScriptValue::Integer(7), "{source}");
    }
}

#[test]
fn greedy_scripts_end() {
    let luau = Luau::new(Limits { time: Duration::from_secs(20), memory_bytes: 16 << 20 });
    for source in GREEDY {
        let text = refusal(&luau, source);
        assert_eq!(text, "ERR script took more than 16 MiB of memory", "{source}");
        assert_eq!(run(&luau, "return 7"), ScriptValue::Integer(7), "{source}");
    }
}

#[test]
fn impossible_scripts_are_refused() {
    let luau = Luau::default();
    for (source, reason) in IMPOSSIBLE {
        let start = Instant::now();
        let text = refusal(&luau, source);
        assert!(text.contains(reason), "{source}: {text}");
        assert!(start.elapsed() < Duration::from_secs(2), "{source}");
    }
}

#[test]
fn caught_limits_of_memory_do_not_end_a_script() {
    let source = "local ok = pcall(string.rep, 'x', 1e9) return ok and 1 or 2";
    assert_eq!(run(&Luau::default(), source), ScriptValue::Integer(2));
}

#[test]
fn garbage_does_not_add_up() {
    let luau = Luau::default();
    for _ in 0..20 {
        let source = "local t = {} for i = 1, 10 do t[i] = ('x'):rep(1e6 + i) end return #t";
        assert_eq!(run(&luau, source), ScriptValue::Integer(10));
    }
}

#[test]
fn long_texts_are_refused() {
    let luau = Luau::default();
    let text = " ".repeat(SOURCE_BYTES_MAX);
    assert_eq!(luau.check(text.as_bytes()), Ok(()));
    let reason = format!("ERR script has more than {SOURCE_BYTES_MAX} bytes");
    assert_eq!(luau.check((text.clone() + " ").as_bytes()), Err(reason.clone()));
    assert_eq!(refusal(&luau, &(text + " ")), reason);
    let source = format!("return select(2, loadstring((' '):rep({})))", LOADED_BYTES_MAX + 1);
    let expected = format!("text has more than {LOADED_BYTES_MAX} bytes");
    assert_eq!(run(&luau, &source), ScriptValue::Bulk(expected.into_bytes()));
}

#[test]
fn slow_commands_count_as_time() {
    struct Slow;
    impl resp::ScriptHost for Slow {
        fn call(&mut self, _: &[Vec<u8>], _: bool) -> ScriptValue {
            std::thread::sleep(Duration::from_millis(1));
            ScriptValue::Null
        }
    }
    let luau = Luau::new(Limits { time: Duration::from_millis(50), ..Limits::default() });
    let source = "while true do redis.call('GET', 'k') end";
    let run = ScriptRun { source: source.as_bytes(), keys: &[], arguments: &[], seed: 0 };
    let ScriptValue::Error(text) = luau.run(run, &mut Slow) else { panic!("no end") };
    assert!(text.starts_with(b"ERR script has run for 50 ms"));
}

#[test]
fn panicking_hosts_break_nothing() {
    struct Panicking;
    impl resp::ScriptHost for Panicking {
        fn call(&mut self, _: &[Vec<u8>], _: bool) -> ScriptValue {
            std::panic::resume_unwind(Box::new("no"));
        }
    }
    let luau = Luau::default();
    let result = std::panic::catch_unwind(|| {
        run_with(&luau, "return pcall(redis.call, 'GET', 'k')", &mut Panicking)
    });
    assert!(result.is_err());
    let mut host = Canned(ScriptValue::Integer(3));
    assert_eq!(run_with(&luau, "return redis.call('X')", &mut host), ScriptValue::Integer(3));
}

const ENDLESS: [&str; 16] = [
    "while true do end",
    "repeat until false",
    "while true do pcall(function() while true do end end) end",
    "local f f = function() pcall(f) pcall(f) end while true do f() end",
    "coroutine.wrap(function() while true do end end)()",
    "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "while true do coroutine.wrap(function() coroutine.yield() end)() end",
    "return string.find(('a'):rep(30), ('a?'):rep(30) .. ('a'):rep(30))",
    "return ('a'):rep(1e5):find(('.-'):rep(30) .. 'b')",
    "return ('x'):rep(1e5):gsub('.', function() while true do end end)",
    "local t = {} for i = 1, 1e5 do t[i] = i end table.sort(t, function() while true do end end)",
    "local t = {1, 2} for i = 1, 40 do t = {t, t} end return cjson.encode(t)",
    "local t = {1, 2} for i = 1, 40 do t = {t, t} end return t",
    "setmetatable({}, {__index = function() while true do end end}).x.y = 1",
    "xpcall(function() error('x') end, function() while true do end end) while true do end",
    "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
];

const GREEDY: [&str; 9] = [
    "return ('x'):rep(1e9)",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} for i = 1, 1e9 do t[i] = i end",
    "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
    "local s = ('x'):rep(1e5) return s:gsub('.', s)",
    "local t = {} for i = 1, 1e5 do t[i] = ('x'):rep(1000) end return table.concat(t)",
    "local s = ('x'):rep(1e6) local t = {} for i = 1, 100 do t[i] = s end return cjson.encode(t)",
    "local s = ('x'):rep(1e6) local t = {} for i = 1, 100 do t[i] = s end return cmsgpack.pack(t)",
    "local s = ('x'):rep(1e6) local t = {} for i = 1, 100 do t[i] = s end return t",
];

const IMPOSSIBLE: [(&str, &str); 15] = [
    ("local function f() return 1 + f() end return f()", "stack overflow"),
    ("return string.find(('a'):rep(5000), ('a?'):rep(5000))", "pattern too complex"),
    ("return ('b'):rep(1e6):find('[' .. ('a'):rep(99) .. 'b]*c')", "pattern too complex"),
    (
        "local t = {} for i = 1, 1e4 do t[i] = i end \
      table.sort(t, function() return true end)",
        "invalid order function",
    ),
    ("local t = {} setmetatable(t, {__index = t}) return t.x", "'__index' chain too long"),
    (
        "local t = {} setmetatable(t, {__index = function(s, k) return s[k] end}) return t.x",
        "stack overflow",
    ),
    ("return cjson.decode(('['):rep(1e6))", "too many nested data structures (1001)"),
    (
        "cjson.decode_max_depth(1e9) return cjson.decode(('['):rep(1e6))",
        "too many nested data structures (1001)",
    ),
    (
        "cjson.encode_max_depth(1e9) local t = {} t[1] = t return cjson.encode(t)",
        "excessive nesting (1001)",
    ),
    ("return cmsgpack.unpack('\\221\\255\\255\\255\\255')", "Missing bytes in input"),
    ("return cmsgpack.unpack(('\\145'):rep(1e6))", "stack overflow"),
    ("return cmsgpack.unpack(('\\1'):rep(1e6))", "too many results"),
    ("return struct.unpack(('b'):rep(1e5), ('x'):rep(1e5))", "too many results"),
    ("return unpack({}, 1, 1e8)", "too many results"),
    ("error({})", "ERR nil"),
];
