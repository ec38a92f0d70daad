//! Arguments that several commands read in the same way: `--name value` pairs, and lists of words.

use crate::Result;

/// The pairs, in the order in which they were given.
///
/// # Errors
/// When the last has no value.
pub(crate) fn pairs<'w>(words: &[&'w str]) -> Result<Vec<(&'w str, &'w str)>> {
    let pair = |pair: &[&'w str]| match *pair {
        [name, value] => Ok((name, value)),
        _ => Err(format!("{} needs a value", pair.concat()).into()),
    };
    words.chunks(2).map(pair).collect()
}

/// Words with commas between.
pub(crate) fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).collect()
}
