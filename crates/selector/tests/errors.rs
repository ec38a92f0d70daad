//! Refused selectors: a table of positions and reasons, and each limit.

use std::fmt::Write;
use std::{env, fs};

use selector::{ParseError, PropertySource, PropertyValue, Reason, Selector, limits};

const TABLE: &str = include_str!("errors.txt");

#[test]
fn errors_say_cause_and_position() {
    let mut written = String::new();
    for line in TABLE.lines().filter(|line| !line.starts_with("  ")) {
        writeln!(written, "{line}").unwrap();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = refusal(line);
        assert_eq!(line[..error.position].chars().count() + 1, error.column, "{line}");
        writeln!(written, "  {error}").unwrap();
    }
    if env::var_os("UPDATE").is_some() {
        fs::write("tests/errors.txt", &written).unwrap();
    } else {
        assert_eq!(written, TABLE);
    }
}

#[test]
fn selector_text_over_limit_is_refused() {
    let longest = format!("a = '{}'", "x".repeat(limits::TEXT_BYTES_MAX - 6));
    assert!(Selector::parse(&longest).is_ok());
    assert_eq!(refusal(&(longest + " ")).reason, Reason::TextTooLong);
}

#[test]
fn nesting_over_limit_is_refused() {
    let most = limits::DEPTH_MAX;
    let parentheses = |depth: usize| format!("{}TRUE{}", "(".repeat(depth), ")".repeat(depth));
    let nots = |depth: usize| format!("{}TRUE", "NOT ".repeat(depth));
    let signs = |depth: usize| format!("a = {}a", "- ".repeat(depth));
    for nest in [&parentheses as &dyn Fn(usize) -> String, &nots, &signs] {
        assert!(Selector::parse(&nest(most)).is_ok());
        assert_eq!(refusal(&nest(most + 1)).reason, Reason::TooDeep);
        // Far beyond it nothing is called any deeper.
        assert_eq!(refusal(&nest(10_000)).reason, Reason::TooDeep);
    }
    assert_eq!(refusal(&parentheses(most + 1)).position, most + 1);
}

#[test]
fn parallel_terms_do_not_nest() {
    let many = vec!["(NOT (- - a > 1))"; 2 * limits::DEPTH_MAX].join(" OR ");
    assert!(Selector::parse(&many).is_ok());
}

#[test]
fn operands_that_wait_are_counted() {
    let nested =
        |depth: usize| format!("{} = {}1{}", depth + 1, "1 + (".repeat(depth), ")".repeat(depth));
    // The left side of the comparison waits, and one value at each level; then comes the last.
    let most = limits::OPERANDS_MAX - 2;
    for depth in 0..=most {
        assert!(Selector::parse(&nested(depth)).unwrap().matches(&Nothing), "depth {depth}");
    }
    assert_eq!(refusal(&nested(most + 1)).reason, Reason::TooDeep);
}

#[test]
fn steps_are_counted() {
    // A step for each number and each operator: twice the numbers of the sum, and one more.
    let count = limits::STEPS_MAX / 2 - 1;
    let sum = format!("{count} = {}", vec!["1"; count].join("+"));
    let not = Selector::parse(&format!("NOT {sum}")).unwrap();
    assert!(!not.matches(&Nothing));
    let error = refusal(&format!("NOT NOT {sum}"));
    assert_eq!((error.reason, error.column), (Reason::TooManySteps, sum.len() + 9));
}

#[test]
fn long_list_is_one_step() {
    let list: Vec<_> = (0..8_000).map(|n| format!("'{n}'")).collect();
    let selector = Selector::parse(&format!("'7999' IN ({})", list.join(","))).unwrap();
    assert!(selector.matches(&Nothing));
}

#[test]
fn wild_run_length_is_limited() {
    let run = |count: usize| format!("a LIKE '%_{}%'", "x".repeat(count));
    let most = limits::WILD_RUN_CHARS_MAX - 1;
    assert!(Selector::parse(&run(most)).is_ok());
    let error = refusal(&run(most + 1));
    assert_eq!((error.reason, error.column), (Reason::WildRunTooLong, 8));
}

/// A message without properties.
struct Nothing;

impl PropertySource for Nothing {
    fn property(&self, _: &str) -> PropertyValue<'_> {
        PropertyValue::Null
    }
}

fn refusal(text: &str) -> ParseError {
    Selector::parse(text).expect_err(text)
}
