//! The cost of matching: nanoseconds per message for some selectors.
//!
//! `cargo run --release -p dunlin-selector --example speed`

use std::hint::black_box;
use std::time::Instant;

use selector::{Properties, Selector, Value};

const SELECTORS: [&str; 6] = [
    "TRUE",
    "a = 'x'",
    "a = 'x' AND b > 3",
    "a = 'y' AND b > 3",
    "b * 2 + 1 BETWEEN 5 AND 15 AND a IN ('u', 'v', 'w', 'x', 'y')",
    "text LIKE '%dozen l_quor%'",
];

const ROUNDS: u32 = 2_000_000;

/// A message with three properties.
struct Message;

impl Properties for Message {
    fn property(&self, name: &str) -> Value<'_> {
        match name {
            "a" => Value::String("x"),
            "b" => Value::Integer(5),
            "text" => Value::String("pack my box with five dozen liquor jugs"),
            _ => Value::Null,
        }
    }
}

fn main() -> Result<(), selector::ParseError> {
    for text in SELECTORS {
        let selector = Selector::parse(text)?;
        let start = Instant::now();
        let matched =
            (0..ROUNDS).filter(|_| black_box(&selector).matches(black_box(&Message))).count();
        let each = start.elapsed() / ROUNDS;
        println!("{:>4} ns  {text}  ({} of {ROUNDS})", each.as_nanos(), matched);
    }
    Ok(())
}
