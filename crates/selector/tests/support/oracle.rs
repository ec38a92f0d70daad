//! Random conditions as trees, printed, and evaluated in the plainest way.
//!
//! Written apart from the crate and in other terms: truths are 0, 1 and 2, so that AND is the
//! minimum and OR the maximum; integers have 128 bits; LIKE tries everything.

use testkit::Rng;

use super::{Message, Owned};

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Literal(Owned),
    Name(&'static str),
    Sign(char, Box<Tree>),
    Arithmetic(char, Box<[Tree; 2]>),
    Compare(&'static str, Box<[Tree; 2]>),
    /// Negated or not; the value and the bounds.
    Between(bool, Box<[Tree; 3]>),
    In(bool, Box<Tree>, Vec<String>),
    Like(bool, Box<Tree>, String),
    IsNull(bool, Box<Tree>),
    Not(Box<Tree>),
    And(Box<[Tree; 2]>),
    Or(Box<[Tree; 2]>),
}

pub(crate) const NAMES: [&str; 7] = ["a", "b", "c-d", "it\"s", "IN", "JMSMessageID", "größe"];

const INTEGERS: [i64; 9] = [0, 1, 2, 3, -1, -7, 1 << 53, i64::MAX, i64::MIN];
const FLOATS: [f64; 8] = [0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 1e300, 9_007_199_254_740_992.0];
const STRINGS: [&str; 8] = ["", "a", "b", "ab", "ba", "a'b", "%", "ß_"];
const PATTERNS: [&str; 10] = ["", "%", "_", "a%", "%b", "%a_%", "_%_", "a'b", "ß%", "%%"];

/// A message over [`NAMES`]: each is missing or of any type.
pub(crate) fn message(rng: &mut Rng) -> Message {
    let mut message = Message::default();
    for name in NAMES {
        let value = match rng.below(6) {
            0 => continue,
            1 => Owned::Boolean(rng.one_in(2)),
            2 => Owned::Float(rng.pick(&[f64::NAN, f64::INFINITY, 0.5, 1.0, -0.0])),
            3 => Owned::String(rng.pick(&STRINGS).to_owned()),
            _ => Owned::Integer(rng.pick(&INTEGERS)),
        };
        message.0.insert(name.to_owned(), value);
    }
    message
}

/// A condition of at most this depth.
pub(crate) fn condition(rng: &mut Rng, depth: usize) -> Tree {
    let Some(depth) = depth.checked_sub(1) else {
        return if rng.one_in(4) {
            Tree::Literal(Owned::Boolean(rng.one_in(2)))
        } else {
            name(rng)
        };
    };
    let negated = rng.one_in(2);
    match rng.below(10) {
        0 | 1 => Tree::And(Box::new([condition(rng, depth), condition(rng, depth)])),
        2 | 3 => Tree::Or(Box::new([condition(rng, depth), condition(rng, depth)])),
        4 => Tree::Not(Box::new(condition(rng, depth))),
        5 => Tree::Compare(rng.pick(&["=", "<>"]), Box::new([any(rng, depth), any(rng, depth)])),
        6 => {
            let operator = rng.pick(&["<", "<=", ">", ">=", "=", "<>"]);
            Tree::Compare(operator, Box::new([number(rng, depth), number(rng, depth)]))
        }
        7 => {
            let operands = [number(rng, depth), number(rng, depth), number(rng, depth)];
            Tree::Between(negated, Box::new(operands))
        }
        8 if rng.one_in(2) => {
            let list = (0..=rng.below(4)).map(|_| rng.pick(&STRINGS).to_owned()).collect();
            Tree::In(negated, Box::new(string(rng)), list)
        }
        8 => Tree::Like(negated, Box::new(string(rng)), rng.pick(&PATTERNS).to_owned()),
        _ => Tree::IsNull(negated, Box::new(any(rng, depth))),
    }
}

fn any(rng: &mut Rng, depth: usize) -> Tree {
    match rng.below(3) {
        0 => string(rng),
        1 => number(rng, depth),
        _ => condition(rng, depth),
    }
}

fn number(rng: &mut Rng, depth: usize) -> Tree {
    let Some(depth) = depth.checked_sub(1) else {
        return match rng.below(4) {
            0 => Tree::Literal(Owned::Integer(rng.pick(&INTEGERS))),
            1 => Tree::Literal(Owned::Float(rng.pick(&FLOATS))),
            _ => name(rng),
        };
    };
    match rng.below(4) {
        0 => Tree::Sign(rng.pick(&['+', '-']), Box::new(number(rng, depth))),
        1 => number(rng, 0),
        _ => {
            let operator = rng.pick(&['+', '-', '*', '/']);
            Tree::Arithmetic(operator, Box::new([number(rng, depth), number(rng, depth)]))
        }
    }
}

fn string(rng: &mut Rng) -> Tree {
    if rng.one_in(3) { Tree::Literal(Owned::String(rng.pick(&STRINGS).into())) } else { name(rng) }
}

fn name(rng: &mut Rng) -> Tree {
    Tree::Name(rng.pick(&NAMES))
}

/// How a tree is written down.
pub(crate) struct Printer<'r> {
    pub(crate) rng: &'r mut Rng,
    /// One in so many operands stands in parentheses that it does not need.
    pub(crate) parentheses: u64,
}

impl Printer<'_> {
    /// The text, for a place that takes operands that bind at least so tightly; see the grammar.
    pub(crate) fn print(&mut self, tree: &Tree, tightness: u8) -> String {
        let (own, text) = match tree {
            Tree::Literal(value) => literal(value),
            Tree::Name(name) => (7, self.name(name)),
            Tree::Sign(sign, operand) => (6, format!("{sign}{}", self.print(operand, 6))),
            Tree::Arithmetic(operator, operands) => {
                let own = if matches!(operator, '*' | '/') { 5 } else { 4 };
                (own, self.infix(operands, &operator.to_string(), own, own + 1))
            }
            Tree::Compare(operator, operands) => {
                // The right operand must not look like a string in wrong quotes.
                let right = if matches!(operands[1], Tree::Name(_)) { 8 } else { 4 };
                (3, self.infix(operands, operator, 4, right))
            }
            Tree::Between(negated, operands) => {
                let [value, low, high] = operands.each_ref().map(|tree| self.print(tree, 4));
                let not = self.not(*negated);
                (
                    3,
                    format!(
                        "{value}{not} {} {low} {} {high}",
                        self.word("BETWEEN"),
                        self.word("AND")
                    ),
                )
            }
            Tree::In(negated, value, list) => {
                let list: Vec<_> = list.iter().map(|text| quoted(text)).collect();
                let (value, not) = (self.print(value, 4), self.not(*negated));
                (3, format!("{value}{not} {}({})", self.word("IN"), list.join(self.space())))
            }
            Tree::Like(negated, value, pattern) => {
                let (value, not) = (self.print(value, 4), self.not(*negated));
                (3, format!("{value}{not} {} {}", self.word("LIKE"), quoted(pattern)))
            }
            Tree::IsNull(negated, value) => {
                let (value, not) = (self.print(value, 4), self.not(*negated));
                (3, format!("{value} {}{not} {}", self.word("IS"), self.word("NULL")))
            }
            Tree::Not(operand) => (2, format!("{} {}", self.word("NOT"), self.print(operand, 2))),
            Tree::And(operands) => (1, self.infix(operands, "AND", 1, 2)),
            Tree::Or(operands) => (0, self.infix(operands, "OR", 0, 1)),
        };
        if own < tightness || self.rng.one_in(self.parentheses) {
            format!("({text})")
        } else {
            text
        }
    }

    /// In double quotes if it needs them, and at times if it does not.
    fn name(&mut self, name: &str) -> String {
        let is_plain = name != "IN" && name.chars().all(char::is_alphanumeric);
        if is_plain && !self.rng.one_in(4) {
            return name.to_owned();
        }
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn infix(&mut self, operands: &[Tree; 2], operator: &str, left: u8, right: u8) -> String {
        let [first, second] = operands;
        let (first, second) = (self.print(first, left), self.print(second, right));
        format!("{first} {} {second}", self.word(operator))
    }

    fn not(&mut self, negated: bool) -> String {
        if negated { format!(" {}", self.word("NOT")) } else { String::new() }
    }

    /// In any case, with any space around it.
    fn word(&mut self, word: &str) -> String {
        let word = if self.rng.one_in(4) { word.to_lowercase() } else { word.to_owned() };
        if self.rng.one_in(4) { format!("\n{word}\t") } else { word }
    }

    fn space(&mut self) -> &'static str {
        self.rng.pick(&[",", ", ", " ,\n"])
    }
}

fn literal(value: &Owned) -> (u8, String) {
    let text = match value {
        Owned::Opaque => unreachable!("nothing opaque is written"),
        Owned::Boolean(value) => value.to_string(),
        Owned::Integer(value) => value.to_string(),
        Owned::Float(value) => format!("{value:?}"),
        Owned::String(value) => quoted(value),
    };
    (if text.starts_with('-') { 6 } else { 7 }, text)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The value of a tree for a message; `None` is null.
pub(crate) fn evaluate(tree: &Tree, message: &Message) -> Option<Owned> {
    let value = |tree: &Tree| evaluate(tree, message);
    match tree {
        Tree::Literal(literal) => Some(literal.clone()),
        Tree::Name(name) => message.0.get(*name).cloned(),
        Tree::Sign(sign, operand) => {
            let zero = if *sign == '-' { Owned::Float(-0.0) } else { Owned::Integer(0) };
            match (sign, value(operand)?) {
                ('+', number @ (Owned::Integer(_) | Owned::Float(_))) => Some(number),
                ('-', Owned::Integer(operand)) => Some(integer(-i128::from(operand))),
                (_, operand) => arithmetic('-', &zero, &operand),
            }
        }
        Tree::Arithmetic(operator, operands) => {
            arithmetic(*operator, &value(&operands[0])?, &value(&operands[1])?)
        }
        _ => match degree(tree, message) {
            0 => Some(Owned::Boolean(false)),
            1 => None,
            _ => Some(Owned::Boolean(true)),
        },
    }
}

/// How true a condition is: not, perhaps, or wholly.
fn degree(tree: &Tree, message: &Message) -> u8 {
    let value = |tree: &Tree| evaluate(tree, message);
    let degree = |tree: &Tree| degree(tree, message);
    let negate = |negated: bool, degree: u8| if negated { 2 - degree } else { degree };
    match tree {
        Tree::Compare(operator, operands) => {
            compare(operator, value(&operands[0]), value(&operands[1]))
        }
        Tree::Between(false, operands) => {
            let [number, low, high] = operands.each_ref().map(value);
            compare(">=", number.clone(), low).min(compare("<=", number, high))
        }
        Tree::Between(true, operands) => {
            let [number, low, high] = operands.each_ref().map(value);
            compare("<", number.clone(), low).max(compare(">", number, high))
        }
        Tree::In(negated, text, list) => {
            let text = value(text).filter(|text| matches!(text, Owned::String(_)));
            let equal =
                |entry: &String| compare("=", text.clone(), Some(Owned::String(entry.into())));
            negate(*negated, list.iter().map(equal).max().unwrap_or(0))
        }
        Tree::Like(negated, text, pattern) => {
            let pattern: Vec<char> = pattern.chars().collect();
            let liked = |text: &str| like(&pattern, &text.chars().collect::<Vec<_>>());
            let degree = match value(text) {
                None => 1,
                Some(Owned::String(text)) if liked(&text) => 2,
                Some(_) => 0,
            };
            negate(*negated, degree)
        }
        Tree::IsNull(negated, operand) => negate(*negated, 2 * u8::from(value(operand).is_none())),
        Tree::Not(operand) => 2 - degree(operand),
        Tree::And(operands) => degree(&operands[0]).min(degree(&operands[1])),
        Tree::Or(operands) => degree(&operands[0]).max(degree(&operands[1])),
        value_only => match value(value_only) {
            Some(Owned::Boolean(truth)) => 2 * u8::from(truth),
            _ => 1,
        },
    }
}

fn compare(operator: &str, left: Option<Owned>, right: Option<Owned>) -> u8 {
    let (Some(left), Some(right)) = (left, right) else { return 1 };
    let holds = match (&left, &right) {
        (Owned::String(left), Owned::String(right)) => equality(operator, left == right),
        (Owned::Boolean(left), Owned::Boolean(right)) => equality(operator, left == right),
        (Owned::Integer(left), Owned::Integer(right)) => orders(operator, left, right),
        _ => match (float(&left), float(&right)) {
            (Some(left), Some(right)) => orders(operator, &left, &right),
            _ => false,
        },
    };
    2 * u8::from(holds)
}

fn equality(operator: &str, same: bool) -> bool {
    match operator {
        "=" => same,
        "<>" => !same,
        _ => false,
    }
}

fn orders<T: PartialOrd>(operator: &str, left: &T, right: &T) -> bool {
    match operator {
        "=" => left == right,
        "<>" => left != right,
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        _ => left >= right,
    }
}

fn arithmetic(operator: char, left: &Owned, right: &Owned) -> Option<Owned> {
    if let (Owned::Integer(left), Owned::Integer(right)) = (left, right) {
        let (wide_left, wide_right) = (i128::from(*left), i128::from(*right));
        let exact = match operator {
            '+' => wide_left + wide_right,
            '-' => wide_left - wide_right,
            '*' => wide_left * wide_right,
            _ => wide_left.checked_div(wide_right)?,
        };
        if let Ok(exact) = i64::try_from(exact) {
            return Some(Owned::Integer(exact));
        }
    }
    let (left, right) = (float(left)?, float(right)?);
    match operator {
        '+' => Some(Owned::Float(left + right)),
        '-' => Some(Owned::Float(left - right)),
        '*' => Some(Owned::Float(left * right)),
        _ if right == 0.0 => None,
        _ => Some(Owned::Float(left / right)),
    }
}

fn integer(value: i128) -> Owned {
    i64::try_from(value).map_or(Owned::Float(value as f64), Owned::Integer)
}

fn float(value: &Owned) -> Option<f64> {
    match value {
        Owned::Integer(value) => Some(*value as f64),
        Owned::Float(value) => Some(*value),
        _ => None,
    }
}

fn like(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|skipped| like(rest, &text[skipped..])),
        [wanted, rest @ ..] => {
            !text.is_empty() && (*wanted == '_' || *wanted == text[0]) && like(rest, &text[1..])
        }
    }
}
