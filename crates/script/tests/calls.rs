//! Commands of scripts: their words, and the forms of their answers.

use model::ScriptValue;
use resp::{Interpreter, ScriptHost, ScriptRun};
use script::Luau;

use crate::support::{Canned, bulk, run_with};

#[test]
fn keys_and_arguments_arrive() {
    struct Words(Vec<Vec<u8>>);
    impl ScriptHost for Words {
        fn call(&mut self, words: &[Vec<u8>], resp3: bool) -> ScriptValue {
            assert!(!resp3);
            self.0 = words.to_vec();
            ScriptValue::Null
        }
    }
    let mut host = Words(Vec::new());
    let run = ScriptRun {
        source: b"return redis.call('SET', KEYS[1], ARGV[1], 1e15, 0.5, -3)",
        keys: &[b"k\0".to_vec()],
        arguments: &[b"\xff".to_vec()],
        seed: 0,
    };
    assert_eq!(Luau::default().run(run, &mut host), ScriptValue::Null);
    let expected: [&[u8]; 6] = [b"SET", b"k\0", b"\xff", b"1000000000000000", b"0.5", b"-3"];
    assert_eq!(host.0, expected);
}

#[test]
fn answers_of_resp2_arrive() {
    check(ScriptValue::Null, "return tostring(v)", bulk("false"));
    check(ScriptValue::Status(b"OK".to_vec()), "return v.ok", bulk("OK"));
    check(ScriptValue::Integer(7), "return v + 1", ScriptValue::Integer(8));
    check(bulk("x"), "return v .. 'y'", bulk("xy"));
    let array = ScriptValue::Array(vec![ScriptValue::Integer(1), ScriptValue::Null, bulk("z")]);
    check(array, "return {#v, tostring(v[2]), v[3]}", list(["3", "false", "z"]));
}

#[test]
fn answers_of_resp3_arrive() {
    let source = "redis.setresp(3) v = nil";
    assert!(matches!(given(ScriptValue::Null, source), ScriptValue::Error(_)));
    check3(ScriptValue::Null, "return tostring(v)", bulk("nil"));
    check3(ScriptValue::Boolean(true), "return v", ScriptValue::Boolean(true));
    check3(ScriptValue::Double(1.5), "return v.double", ScriptValue::Integer(1));
    check3(ScriptValue::Double(1.5), "return v", ScriptValue::Double(1.5));
    let map = ScriptValue::Map(vec![(bulk("k"), bulk("v"))]);
    check3(map.clone(), "return v.map.k", bulk("v"));
    check3(map.clone(), "return v", map);
    let set = ScriptValue::Set(vec![bulk("m")]);
    check3(set.clone(), "return tostring(v.set.m)", bulk("true"));
    check3(set.clone(), "return v", set);
}

#[test]
fn errors_of_commands_are_raised() {
    let error = ScriptValue::Error(b"WRONGTYPE no".to_vec());
    let ScriptValue::Error(text) = given(error.clone(), "return redis.call('X')") else {
        panic!("no error")
    };
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("WRONGTYPE no script: "), "{text}");
    assert!(text.ends_with(", on @user_script:1."), "{text}");
    assert_eq!(given(error.clone(), "return redis.pcall('X')"), error);
    assert_eq!(given(error.clone(), "return redis.pcall('X').err"), bulk("WRONGTYPE no"));
    let caught = "local ok, e = pcall(redis.call, 'X') return e";
    assert_eq!(given(error.clone(), caught), bulk("WRONGTYPE no"));
    let rest = "redis.pcall('X') return 'went on'";
    assert_eq!(given(error, rest), bulk("went on"));
}

#[test]
fn first_lines_may_name_the_language() {
    let luau = Luau::default();
    assert_eq!(luau.check(b"#!lua flags=no-writes,allow-stale\nreturn 1"), Ok(()));
    for (source, text) in [
        ("#!lua", "ERR Invalid script shebang"),
        ("#!js\n", "ERR Unexpected engine in script shebang: #!js"),
        ("#!lua name=x\n", "ERR Unknown lua shebang option: name=x"),
        ("#!lua flags=foo\n", "ERR Unexpected flag in script shebang: foo"),
    ] {
        assert_eq!(luau.check(source.as_bytes()), Err(text.to_owned()));
    }
    let ScriptValue::Error(text) = given(ScriptValue::Null, "#!lua\n\nerror('x')") else {
        panic!("no error")
    };
    assert!(text.starts_with(b"ERR user_script:3: x"));
}

#[test]
fn interpreters_are_shared_by_threads() {
    let luau: std::sync::Arc<dyn Interpreter> = std::sync::Arc::new(Luau::default());
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let luau = luau.clone();
            std::thread::spawn(move || {
                for _ in 0..100 {
                    let source =
                        format!("local n = 0 for i = 1, 10 do n = n + {number} end return n");
                    let run = ScriptRun {
                        source: source.as_bytes(),
                        keys: &[],
                        arguments: &[],
                        seed: number,
                    };
                    let value = luau.run(run, &mut Canned(ScriptValue::Null));
                    assert_eq!(value, ScriptValue::Integer(10 * number.cast_signed()));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn given(answer: ScriptValue, source: &str) -> ScriptValue {
    run_with(&Luau::default(), source, &mut Canned(answer))
}

fn check(answer: ScriptValue, source: &str, expected: ScriptValue) {
    let whole = format!("local v = redis.call('X') {source}");
    assert_eq!(given(answer, &whole), expected, "{source}");
}

fn check3(answer: ScriptValue, source: &str, expected: ScriptValue) {
    let whole = format!("redis.setresp(3) local v = redis.call('X') {source}");
    assert_eq!(given(answer, &whole), expected, "{source}");
}

fn list<const N: usize>(texts: [&str; N]) -> ScriptValue {
    let mut values: Vec<_> = texts.iter().map(|text| bulk(text)).collect();
    if let Some(first) = values.first_mut() {
        *first = ScriptValue::Integer(3);
    }
    ScriptValue::Array(values)
}
