//! The table of selectors and their results for messages.

use selector::Selector;

use crate::support::{Message, Owned, truth};

const TABLE: &str = include_str!("matching.txt");

#[test]
fn selectors_say_what_the_specification_says() {
    let mut message = Message::default();
    let mut wrong = Vec::new();
    for (number, line) in (1..).zip(TABLE.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(properties) = line.strip_prefix("given ") {
            message = read_message(properties);
            continue;
        }
        let (word, text) = line.split_once(' ').unwrap_or((line, ""));
        let text = spaced(text.trim_start());
        let expected = match word {
            "TRUE" => Some(true),
            "FALSE" => Some(false),
            "UNKNOWN" => None,
            _ => panic!("line {number} begins with a truth: {line}"),
        };
        if text.is_empty() {
            // NOT ( ) is no selector, so only this can be asked.
            assert_eq!((expected, parse("").matches(&message)), (Some(true), true));
        } else if truth(&text, &message) != expected {
            wrong.push(format!("line {number}: {line} is {:?}", truth(&text, &message)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn blank_selector_matches_any_message() {
    assert!(parse(" \t\r\n\x0c").matches(&Message::default()));
}

#[test]
fn selector_knows_its_text_and_names() {
    let text = "b = 1 AND a IN ('b') OR NOT b > -a + JMSPriority";
    let selector = parse(text);
    assert_eq!(selector.text(), text);
    assert_eq!(selector.to_string(), text);
    assert_eq!(selector.names().collect::<Vec<_>>(), ["b", "a", "JMSPriority"]);
    assert_eq!(selector, parse(text));
    assert_ne!(selector, parse("TRUE"));
    assert_eq!(parse("1 = 1").names().len(), 0);
}

/// Selectors accepted before header fields were checked are still read from a log.
#[test]
fn stored_selectors_compare_fields_with_anything() {
    for text in ["JMSPriority = 'high'", "JMSDeliveryMode IN ('x')", "JMSfoo = 1", "JMSType > 5"] {
        assert!(Selector::parse(text).is_err(), "{text}");
        let stored = Selector::parse_stored(text).expect(text);
        assert!(!stored.matches(&Message::default()), "{text}");
    }
    assert!(Selector::parse_stored("a =").is_err());
}

fn parse(text: &str) -> Selector {
    Selector::parse(text).expect("a selector")
}

/// `name = value, name = value`.
fn read_message(properties: &str) -> Message {
    let property = |property: &str| {
        let (name, value) = property.split_once(" = ").expect("name = value");
        (name.to_owned(), read_value(value))
    };
    Message(properties.split(", ").map(property).collect())
}

fn read_value(value: &str) -> Owned {
    if let Some(text) = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')) {
        return Owned::String(spaced(&text.replace("''", "'")));
    }
    match value {
        "OPAQUE" => Owned::Opaque,
        "TRUE" => Owned::Boolean(true),
        "FALSE" => Owned::Boolean(false),
        "NaN" => Owned::Float(f64::NAN),
        "Infinity" => Owned::Float(f64::INFINITY),
        _ if value.contains('.') => Owned::Float(value.parse().expect("a number")),
        _ => Owned::Integer(value.parse().expect("an integer")),
    }
}

/// White space that a line of the table cannot hold.
fn spaced(text: &str) -> String {
    let text = text.replace("\\n", "\n").replace("\\r", "\r");
    text.replace("\\t", "\t").replace("\\f", "\x0c")
}
