//! Faults of a users file.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// One fault: its line, its key, its cause and its mend. It never shows a verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The rest, as one line of text.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// All faults of a file, or the first of them if they are many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let between = if index == 0 { "" } else { "\n" };
            write!(f, "{between}{problem}")?;
        }
        Ok(())
    }
}

impl core::error::Error for Problems {}
