//! Several symbols in one field, such as capabilities.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Symbols in the order of the bytes. Null and an empty array mean the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols(Vec<Box<str>>);

impl Symbols {
    /// True if `symbol` is among them; case matters.
    pub fn contains(&self, symbol: &str) -> bool {
        self.iter().any(|found| found == symbol)
    }

    /// The symbols in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|symbol| &**symbol)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'s> FromIterator<&'s str> for Symbols {
    fn from_iter<I: IntoIterator<Item = &'s str>>(symbols: I) -> Symbols {
        Symbols(symbols.into_iter().map(Box::from).collect())
    }
}

impl<'s, const N: usize> From<[&'s str; N]> for Symbols {
    fn from(symbols: [&'s str; N]) -> Symbols {
        symbols.into_iter().collect()
    }
}
