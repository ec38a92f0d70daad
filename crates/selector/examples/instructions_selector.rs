//! Selectors that cost most, to count their instructions: `cargo xtask instructions` runs it under
//! callgrind with two counts and prints the difference.
//!
//! `instructions_selector CASE STORE COUNT`, where CASE is one of the shapes in [`SHAPES`], or
//! `parse` and one of these: whether it matches, or that it is one, is found COUNT times. STORE is
//! not looked at: a selector stores nothing.
#![allow(clippy::unwrap_used, reason = "it is a measurement")]

use std::hint::black_box;

use selector::{PropertySource, PropertyValue, Selector};

/// A message with one property, of 16 KiB.
struct Message(String);

impl PropertySource for Message {
    fn property(&self, _: &str) -> PropertyValue<'_> {
        PropertyValue::String(&self.0)
    }
}

const TEXT_BYTES: usize = 16 * 1024;

/// The pattern that is compared at most places, conditions one behind another, a condition inside
/// of others, and a list of many texts.
fn shape(name: &str) -> String {
    match name {
        "like" => format!("a LIKE '%{}b%'", "_a".repeat(16)),
        "wildcards" => format!("a LIKE '{}b'", "%a_".repeat(60)),
        "or" => format!("{}a = 'b'", "a = 'aab' OR ".repeat(150)),
        "nested" => format!("{}a = 'b'{}", "NOT (".repeat(30), ")".repeat(30)),
        "in" => format!("a IN ({}'b')", "'aaaaaa', ".repeat(180)),
        "sum" => format!("{}1 = 2", "1 + ".repeat(400)),
        _ => panic!("{name}?"),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [what, _, count] = words[..] else { panic!("instructions_selector WHAT STORE COUNT") };
    let count: u64 = count.parse().unwrap();
    if let Some(name) = what.strip_prefix("parse ") {
        let text = shape(name);
        for _ in 0..count {
            assert!(Selector::parse(black_box(&text)).is_ok(), "it is one");
        }
        return;
    }
    let (selector, message) =
        (Selector::parse(&shape(what)).unwrap(), Message("a".repeat(TEXT_BYTES)));
    for _ in 0..count {
        assert!(!black_box(&selector).matches(black_box(&message)), "it never matches");
    }
}
