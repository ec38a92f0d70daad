//! Properties that hold for any bytes: run by the fuzzer in `fuzz/`, and by a test.

use selector::{PropertySource, PropertyValue, Selector};

/// The first bytes choose the message, the others are the selector.
pub(crate) fn run(bytes: &[u8]) {
    let (seed, text) = bytes.split_at(bytes.len().min(2));
    let Ok(text) = str::from_utf8(text) else { return };
    let message = Random { seed, text };
    match Selector::parse(text) {
        Ok(selector) => check_selector(&selector, &message),
        Err(error) => {
            let before = text.split_at_checked(error.position).map(|(before, _)| before);
            let column = before.map(|before| before.chars().count() + 1);
            assert_eq!(column, Some(error.column), "{text}: {error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

fn check_selector(selector: &Selector, message: &Random<'_>) {
    let text = selector.text();
    let matches = selector.matches(message);
    let again = Selector::parse(text).expect("what was read once is read again");
    assert!(again.names().eq(selector.names()), "{text}");
    assert_eq!(again.matches(message), matches, "{text}");
    // The same in parentheses may be one too deep, and nothing in parentheses is no selector.
    if let Ok(same) = Selector::parse(&format!("({text}) AND TRUE")) {
        assert_eq!(same.matches(message), matches, "{text}");
    }
    if let Ok(contrary) = Selector::parse(&format!("NOT ({text})")) {
        assert!(!(matches && contrary.matches(message)), "{text}");
    }
}

/// A message that has a value for each name, of a type that the seed and the name choose.
struct Random<'t> {
    seed: &'t [u8],
    text: &'t str,
}

impl PropertySource for Random<'_> {
    fn property(&self, name: &str) -> PropertyValue<'_> {
        let mix = |sum: u64, byte: &u8| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte);
        let number = self.seed.iter().chain(name.as_bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
        match number % 8 {
            0 => PropertyValue::Null,
            7 => PropertyValue::Opaque,
            1 => PropertyValue::Boolean(number & 8 == 0),
            2 => PropertyValue::Integer(i64::from(number as i8)),
            3 => PropertyValue::Integer(number.cast_signed()),
            4 => PropertyValue::Float(f64::from_bits(number)),
            5 => PropertyValue::String("a"),
            _ => PropertyValue::String(self.text),
        }
    }
}
