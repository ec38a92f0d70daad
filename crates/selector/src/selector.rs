//! The selector itself: its text, and the program that the text became.

use alloc::boxed::Box;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::error::ParseError;
use crate::parser::{self, Fields};
use crate::program::Program;
use crate::value::PropertySource;

/// A valid message selector. Two are equal if their texts are.
#[derive(Clone)]
pub struct Selector {
    text: Box<str>,
    program: Program,
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    /// The position and the reason if the text is no selector, or can never match as its author
    /// means it, or exceeds one of the [`limits`](crate::limits).
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Selector { text: text.into(), program: parser::parse(text, Fields::Checked)? })
    }

    /// Reads a selector that was accepted earlier, when more was: any header field may be compared
    /// with anything.
    ///
    /// # Errors
    /// As of [`parse`](Self::parse).
    pub fn parse_stored(text: &str) -> Result<Self, ParseError> {
        Ok(Selector { text: text.into(), program: parser::parse(text, Fields::Unchecked)? })
    }

    /// True if it is true of a message. An unknown result does not match.
    pub fn matches(&self, properties: &(impl PropertySource + ?Sized)) -> bool {
        self.program.evaluate(properties) == Some(true)
    }

    /// The text as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The highest cost of a match, in steps of some 25 ns: each literal, name and operator is one,
    /// LIKE counts for 64.
    pub fn weight(&self) -> usize {
        self.program.weight()
    }

    /// The properties and header fields that it may ask for, each once. A match depends on their
    /// values alone.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.program.names.iter().map(|name| &**name)
    }
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Selector {}

impl Hash for Selector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Selector").field(&self.text).finish()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
