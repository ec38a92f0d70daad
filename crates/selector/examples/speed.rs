//! The cost of matching: nanoseconds per message for some selectors.
//!
//! `cargo run --release -p dunlin-selector --example speed`

use std::hint::black_box;
use std::time::Instant;

use selector::{PropertySource, PropertyValue, Selector};

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

impl PropertySource for Message {
    fn property(&self, name: &str) -> PropertyValue<'_> {
        match name {
            "a" => PropertyValue::String("x"),
            "b" => PropertyValue::Integer(5),
            "text" => PropertyValue::String("pack my box with five dozen liquor jugs"),
            _ => PropertyValue::Null,
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
