//! Why a text is no selector, and where.

use alloc::boxed::Box;
use core::error::Error;
use core::fmt;

use crate::limits;

/// A text that is refused. The fault is the selector's author's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The position in the text, in bytes; never inside of a character.
    pub position: usize,
    /// The same in characters, the first being 1.
    pub column: usize,
    /// The error there.
    pub reason: Reason,
}

/// The errors in a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is longer than [`limits::TEXT_BYTES_MAX`].
    TextTooLong,
    /// More is nested than [`limits::DEPTH_MAX`] or [`limits::OPERANDS_MAX`] allow.
    TooDeep,
    /// There are more literals, identifiers and operators than [`limits::STEPS_MAX`].
    TooManySteps,
    /// No token begins with this character.
    Character(char),
    /// A string without its end.
    OpenString,
    /// A name in double quotes without its end.
    OpenName,
    /// Nothing stands between the double quotes of a name.
    EmptyName,
    /// Something is compared with a name in double quotes, as if that was a string.
    QuotedOperand,
    /// A name that only JMS may give, and does not.
    UnknownField,
    /// The value compared with JMSDeliveryMode is no such mode.
    NoDeliveryMode,
    /// `0x` and no digit.
    NoDigits,
    /// A number that begins with 0 holds an 8 or a 9.
    NotOctal,
    /// A number beyond 64 bits, or beyond a double.
    NumberTooLarge,
    /// A name follows a number without anything between.
    NumberRunsOn,
    /// Something else should stand here.
    Expected {
        /// The token that should stand here.
        wanted: &'static str,
        /// The beginning of the token that does.
        found: Box<str>,
    },
    /// The operand here has another type for certain.
    WrongType {
        /// The type that its operator needs.
        wanted: &'static str,
    },
    /// The text behind ESCAPE is not one character.
    LongEscape,
    /// A LIKE pattern ends with its escape character.
    OpenEscape,
    /// A LIKE pattern holds a longer run with `_` than [`limits::WILD_RUN_CHARS_MAX`].
    WildRunTooLong,
}

impl ParseError {
    pub(crate) fn new(text: &str, position: usize, reason: Reason) -> Self {
        let before = text.get(..position);
        assert!(before.is_some(), "a fault lies in the text, between characters");
        let column = before.unwrap_or_default().chars().count() + 1;
        ParseError { position, column, reason }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { position, column, reason } = self;
        write!(f, "invalid selector at column {column} (byte {position}): {reason}")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TextTooLong => write!(f, "longer than {} bytes", limits::TEXT_BYTES_MAX),
            Reason::TooDeep => write!(f, "nested too deep"),
            Reason::TooManySteps => {
                write!(f, "more than {} literals, identifiers and operators", limits::STEPS_MAX)
            }
            Reason::Character(c @ ('.' | ':' | '@')) => {
                write!(f, "unexpected character {c:?}: a name with it stands in double quotes")
            }
            Reason::Character(c) => write!(f, "unexpected character {c:?}"),
            Reason::OpenString => write!(f, "expected a closing ' for this string"),
            Reason::OpenName => write!(f, "expected a closing \" for this name"),
            Reason::EmptyName => write!(f, "expected a name between the double quotes"),
            Reason::QuotedOperand => {
                write!(
                    f,
                    "expected a string in single quotes; a name in double quotes stands first"
                )
            }
            Reason::UnknownField => {
                write!(
                    f,
                    "JMS has no such field: a property with this name stands in double quotes"
                )
            }
            Reason::NoDeliveryMode => write!(f, "expected 'PERSISTENT' or 'NON_PERSISTENT' here"),
            Reason::NoDigits => write!(f, "expected hexadecimal digits after 0x"),
            Reason::NotOctal => write!(f, "expected octal digits after the leading 0"),
            Reason::NumberTooLarge => write!(f, "number out of range"),
            Reason::NumberRunsOn => write!(f, "expected a space or an operator after this number"),
            Reason::Expected { wanted, found } => write!(f, "expected {wanted}, found {found}"),
            Reason::WrongType { wanted } => write!(f, "expected {wanted} here"),
            Reason::LongEscape => write!(f, "expected one character after ESCAPE"),
            Reason::OpenEscape => write!(f, "the pattern ends with its escape character"),
            Reason::WildRunTooLong => {
                let most = limits::WILD_RUN_CHARS_MAX;
                write!(f, "more than {most} characters with _ between two % of this pattern")
            }
        }
    }
}

impl Error for ParseError {}
