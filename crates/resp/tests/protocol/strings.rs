//! Random commands on strings to our session and engine and to the real Redis: the same answers,
//! byte for byte.

use resp::Options;
use testkit::Rng;

use crate::comparison::Pair;
use crate::real;

const KEYS: [&str; 4] = ["s", "t", "u", "l"];

const INTEGERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "7",
    "100",
    "-250",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "x",
    "1.5",
    "\"\"",
];

const DECIMALS: [&str; 24] = [
    "0.1",
    "-0.1",
    "1.5",
    "10.50",
    "5.0e3",
    "1e-17",
    "1e-18",
    "-5e-18",
    "3",
    "-3.25",
    ".5",
    "5.",
    "+2",
    "1e18",
    "123456789.987654321",
    "0.30000000000000004",
    "1e300",
    "-1e300",
    "1e4931",
    "0x1p4",
    "inf",
    "nan",
    "1e",
    "\" 1\"",
];

const BYTES: [&str; 8] =
    ["x", "hello", "\"\"", "\"\\xff\\xf0\\x00\"", "\"\\x00\"", "\"\\xff\"", "12", "\"a b\""];

const PLACES: [&str; 12] =
    ["0", "1", "2", "3", "7", "-1", "-2", "-3", "100", "-100", "9223372036854775807", "y"];

#[test]
fn strings_answer_as_in_redis() {
    let Some(redis) = real::start() else { return };
    for seed in 0..60 {
        let mut random = Rng::new(6_000 + seed);
        let mut pair = Pair::new(&redis, Options::default(), 1);
        if seed % 3 == 0 {
            pair.ask_apart(0, ["HELLO 3", "HELLO 3"]);
        }
        for _ in 0..200 {
            if random.index(20) == 0 {
                pair.ask(0, random.pick(&["MULTI", "EXEC", "EXEC", "RPUSH l x", "DEL l"]));
            }
            pair.ask(0, &command(&mut random));
        }
        pair.ask(0, "EXEC");
        for key in KEYS {
            pair.ask(0, &format!("GET {key}"));
        }
    }
}

/// Decimal sums by themselves: most of their digits differ where one bit of a float does.
#[test]
fn decimal_sums_have_digits_of_redis() {
    let Some(redis) = real::start() else { return };
    let mut pair = Pair::new(&redis, Options::default(), 1);
    for seed in 0..20 {
        let mut random = Rng::new(7_000 + seed);
        pair.ask(0, "DEL s");
        for _ in 0..100 {
            let digits = random.draw() >> random.index(60);
            let exponent = random.pick(&["", "e-3", "e-9", "e-19", "e-25", "e4", "e15", "e-30"]);
            let sign = random.pick(&["", "-"]);
            let point = random.pick(&["", ".5", ".000000000000000005", ".125"]);
            pair.ask(0, &format!("INCRBYFLOAT s {sign}{digits}{point}{exponent}"));
        }
    }
}

fn command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let (integer, decimal) = (random.pick(&INTEGERS), random.pick(&DECIMALS));
    let (bytes, more) = (random.pick(&BYTES), random.pick(&BYTES));
    let (first, last) = (random.pick(&PLACES), random.pick(&PLACES));
    match random.index(36) {
        0 => format!("INCR {key}"),
        1 => format!("DECR {key}"),
        2 | 3 => format!("INCRBY {key} {integer}"),
        4 => format!("DECRBY {key} {integer}"),
        5 | 6 => format!("INCRBYFLOAT {key} {decimal}"),
        7 => format!("APPEND {key} {bytes}"),
        8 => format!("STRLEN {key}"),
        9 => format!("{} {key} {first} {last}", random.pick(&["GETRANGE", "SUBSTR"])),
        10 => format!("SETRANGE {key} {} {bytes}", random.pick(&["0", "1", "9", "-1", "x"])),
        11 => format!("GETSET {key} {bytes}"),
        12 => format!("GETEX {key} {}", random.pick(&["", "PERSIST", "EX 1000", "EXAT 1"])),
        13 => format!("GETEX {key} {}", random.pick(&["NX", "KEEPTTL", "EX", "PERSIST EX 1"])),
        14 => format!("MGET {key} {other} none {key}"),
        15 => format!("MSET {key} {bytes} {other} {more}"),
        16 => format!("MSETNX {key} {bytes} {other} {more}"),
        17 => random.pick(&["MSET a", "MSET a b c", "MSETNX a b c", "MGET", "GETEX"]).into(),
        18 => format!("SETBIT {key} {} {}", bit_place(random), random.pick(&["0", "1", "1", "2"])),
        19 => format!("GETBIT {key} {}", bit_place(random)),
        20 => format!("BITCOUNT {key}"),
        21 => bit_count(key, first, last, random),
        22 | 23 => bit_place_of(key, first, last, random),
        24..28 => bit_field(key, random),
        28 => format!("BITFIELD_RO {key} GET u8 0 GET i5 {}", bit_place(random)),
        29 => format!("BITFIELD_RO {key} SET u8 0 1"),
        30 => format!("SET {key} {bytes}"),
        31 => format!("SET {key} {integer}"),
        32 => format!("SET {key} {decimal}"),
        33 => format!("DEL {key}"),
        34 => format!("TTL {key}"),
        _ => format!("GET {key}"),
    }
}

fn bit_place(random: &mut Rng) -> &'static str {
    random.pick(&["0", "1", "7", "8", "9", "23", "63", "100", "-1", "x", "4294967296"])
}

/// On a key that is there: Redis 7.0 reads the other words only then.
fn bit_count(key: &str, first: &str, last: &str, random: &mut Rng) -> String {
    let unit = random.pick(&["", "BYTE", "BIT", "bit"]);
    let [first, last] = [first, last].map(|place| if place == "y" { "-4" } else { place });
    format!("BITCOUNT {key} {first} {last} {unit}")
}

fn bit_place_of(key: &str, first: &str, last: &str, random: &mut Rng) -> String {
    let [first, last] = [first, last].map(|place| if place == "y" { "-4" } else { place });
    let bit = random.pick(&["0", "1"]);
    match random.index(5) {
        0 => format!("BITPOS {key} {}", random.pick(&["0", "1", "2", "x"])),
        1 => format!("BITPOS {key} {bit} {first}"),
        2 => format!("BITPOS {key} {bit} {first} {last}"),
        _ => {
            format!("BITPOS {key} {bit} {first} {last} {}", random.pick(&["BYTE", "BIT", "BIT"]))
        }
    }
}

fn bit_field(key: &str, random: &mut Rng) -> String {
    let mut command = format!("BITFIELD {key}");
    for _ in 0..1 + random.index(3) {
        let kind = random.pick(&["u1", "u4", "i4", "i8", "u8", "i13", "u63", "i64", "u64", "i0"]);
        let place = random.pick(&["0", "3", "8", "#1", "#2", "21", "-1", "#x"]);
        let numbers =
            ["0", "1", "-1", "7", "-8", "200", "9223372036854775807", "-9223372036854775808"];
        let number = random.pick(&numbers);
        command.push_str(&match random.index(9) {
            0 | 1 => format!(" GET {kind} {place}"),
            2 | 3 => format!(" SET {kind} {place} {number}"),
            4..7 => format!(" INCRBY {kind} {place} {number}"),
            7 => format!(" OVERFLOW {}", random.pick(&["SAT", "FAIL", "WRAP", "sat", "NO"])),
            _ => random.pick(&[" GET u8", " SET u8 0", " SET u8 0 x", " ADD u8 0 1"]).into(),
        });
    }
    command
}
