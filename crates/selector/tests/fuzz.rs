//! The fuzzer's body over bytes that are the same each time.

use testkit::Rng;

use crate::fuzz_body;

const PIECES: [&str; 54] = [
    "a",
    "b",
    "JMSType",
    "JMSPriority",
    "JMSDeliveryMode",
    "'PERSISTENT'",
    "\"",
    "\"a-b\"",
    "\"\"",
    "größe",
    "_",
    "$x",
    "AND",
    "or",
    "NOT",
    "BETWEEN",
    "LIKE",
    "IN",
    "IS",
    "NULL",
    "ESCAPE",
    "TRUE",
    "false",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "(",
    ")",
    "(",
    ")",
    ",",
    "'",
    "''",
    "'a%'",
    "'_'",
    "'!'",
    "0",
    "1",
    "0x1F",
    "017",
    "9223372036854775808",
    "1.5",
    "1E3",
    ".5F",
    "\u{0}",
    "🦆",
    "\u{301}",
];

/// Lines of the tables: valid selectors and those that nearly are.
fn lines() -> impl Iterator<Item = &'static str> {
    let matching = include_str!("matching.txt").lines().map(|line| {
        line.trim_start_matches("TRUE ").trim_start_matches("FALSE ").trim_start_matches("UNKNOWN ")
    });
    matching.chain(include_str!("errors.txt").lines())
}

fn check(seed: u64, text: &[u8]) {
    for variant in 0..2 {
        let mut bytes = vec![seed as u8, variant];
        bytes.extend_from_slice(text);
        fuzz_body::run(&bytes);
    }
}

#[test]
fn fuzz_corpus_breaks_nothing() {
    testkit::replay("selector", fuzz_body::run);
}

#[test]
fn pieces_in_any_order_break_nothing() {
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let count = rng.below(12);
        let pieces: Vec<_> = (0..count).map(|_| rng.pick(&PIECES)).collect();
        let between = rng.pick(&["", " ", " "]);
        check(seed, pieces.join(between).as_bytes());
    }
}

#[test]
fn mutilated_selectors_break_nothing() {
    for (seed, line) in (0..).zip(lines()) {
        check(seed, line.as_bytes());
        let mut rng = Rng::new(seed);
        for _ in 0..20 {
            let mut bytes = line.as_bytes().to_vec();
            for _ in 0..=rng.below(3) {
                let at = rng.index(bytes.len() + 1);
                match rng.below(3) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, rng.pick(b"'()%_-+=<>1aN \xff\xc3")),
                    _ if at < bytes.len() => drop(bytes.remove(at)),
                    _ => {}
                }
            }
            check(seed, &bytes);
        }
    }
}

#[test]
fn bytes_of_any_kind_break_nothing() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let length = rng.below(64);
        let bytes: Vec<u8> = (0..length).map(|_| rng.draw() as u8).collect();
        check(seed, &bytes);
        let ascii: Vec<u8> = bytes.iter().map(|byte| byte & 0x7f).collect();
        check(seed, &ascii);
    }
}

#[test]
fn repeated_pieces_break_nothing() {
    for piece in PIECES {
        for count in [10, 100, 127, 128, 129, 1_000, 5_000, 70_000] {
            check(count, piece.repeat(count as usize).as_bytes());
            check(count, format!("{piece} ").repeat(count as usize).as_bytes());
        }
    }
}
