//! Measures runs of scripts: `cargo run --release -p dunlin-script --example runs`.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

use std::time::Instant;

use model::ScriptValue;
use resp::{Interpreter, ScriptHost, ScriptRun};
use script::Luau;

struct Fake;

impl ScriptHost for Fake {
    fn call(&mut self, _: &[Vec<u8>], _: bool) -> ScriptValue {
        ScriptValue::Bulk(b"17".to_vec())
    }
}

fn main() {
    let luau = Luau::default();
    let call = "redis.call('HINCRBY', KEYS[1], ARGV[1], 5)\n";
    let loop_65 = "local sum = 0 \
                   for i = 1, 65 do sum = sum + tonumber(redis.call('GET', KEYS[1])) end \
                   return sum";
    let work = "local t = {} for i = 1, 1000 do t[i] = i * 2 end return #t";
    let text = "local r = {} \
                for i = 1, 100 do r[i] = ('%d:%s'):format(i, tostring(i)):match('%d+') end \
                return table.concat(r, ',')";
    let json =
        "return cjson.encode(cjson.decode('{\"a\":[1,2,3],\"b\":\"text\",\"c\":{\"d\":null}}'))";
    for (name, source) in [
        ("empty", String::new()),
        ("4 calls", call.repeat(4)),
        ("65 calls", loop_65.to_owned()),
        ("loop of 1000", work.to_owned()),
        ("100 texts", text.to_owned()),
        ("JSON there and back", json.to_owned()),
    ] {
        measure(&luau, name, source.as_bytes());
    }
    let start = Instant::now();
    for _ in 0..100 {
        Luau::default().check(b"").unwrap();
    }
    println!("new machine: {:?}", start.elapsed() / 100);
}

fn measure(luau: &Luau, name: &str, source: &[u8]) {
    let keys = [b"account:17".to_vec()];
    let arguments = [b"balance".to_vec()];
    let mut best = f64::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        for seed in 0..5000 {
            luau.run(ScriptRun { source, keys: &keys, arguments: &arguments, seed }, &mut Fake);
        }
        best = best.min(start.elapsed().as_secs_f64() / 5000.0);
    }
    println!("{name}: {:.2} us", best * 1e6);
}
