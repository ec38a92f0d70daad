//! LIKE patterns, matched in one pass over the text.
//!
//! A pattern is cut at its `%` into runs. The first run has to begin the text and the last one to
//! end it. Those between are looked for one after the other, each as far to the left as it goes. No
//! choice is ever taken back: the text between runs is free, so the leftmost place leaves most to
//! the others. A run without `_` is found by the core library's search, which is linear. One with
//! `_` is found by shift-and, which keeps the partial matches as the bits of one word.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Reason;
use crate::limits;

/// The required character; `None` for `_`, which any is.
type Wanted = Option<char>;

/// A pattern, ready to be matched.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    head: Box<[Wanted]>,
    middle: Box<[Needle]>,
    /// Absent if there is no `%`: the head is everything then.
    tail: Option<Box<[Wanted]>>,
}

/// A run between two `%`.
#[derive(Clone, Debug)]
enum Needle {
    Plain(Box<str>),
    Wild(WildNeedle),
}

/// A run with `_` in it. Bit n of a mask stands for the n-th character of the run.
#[derive(Clone, Debug)]
struct WildNeedle {
    /// The places of `_`.
    any: u64,
    /// The places of each other character, in the order of the characters.
    masks: Box<[(char, u64)]>,
    /// The bit of the last character.
    last: u64,
}

impl Pattern {
    /// A pattern as it stands in the selector, its quotes removed.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Result<Self, Reason> {
        let mut runs = cut(pattern, escape)?;
        let tail = if runs.len() > 1 { runs.pop() } else { None };
        let mut runs = runs.into_iter();
        let head = runs.next().unwrap_or_default();
        let middle = runs.filter(|run| !run.is_empty()).map(|run| Needle::new(&run));
        Ok(Pattern {
            head: head.into(),
            middle: middle.collect::<Result<_, _>>()?,
            tail: tail.map(Vec::into),
        })
    }

    /// True if all of a text is as the pattern says.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.leave(text).is_some()
    }

    fn leave<'t>(&self, text: &'t str) -> Option<&'t str> {
        let rest = strip_head(text, &self.head)?;
        let Some(tail) = &self.tail else {
            return rest.is_empty().then_some(rest);
        };
        let between = strip_tail(rest, tail)?;
        self.middle.iter().try_fold(between, |rest, needle| needle.skip_past(rest))
    }
}

/// The runs between the `%`, always one more than there are.
fn cut(pattern: &str, escape: Option<char>) -> Result<Vec<Vec<Wanted>>, Reason> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            _ if Some(c) == escape => run.push(Some(chars.next().ok_or(Reason::OpenEscape)?)),
            '%' => runs.push(core::mem::take(&mut run)),
            '_' => run.push(None),
            _ => run.push(Some(c)),
        }
    }
    runs.push(run);
    Ok(runs)
}

/// The rest behind the run that begins the text.
fn strip_head<'t>(text: &'t str, run: &[Wanted]) -> Option<&'t str> {
    let mut chars = text.chars();
    run.iter()
        .all(|wanted| chars.next().is_some_and(|c| fits(*wanted, c)))
        .then_some(chars.as_str())
}

/// The text before the run that ends it.
fn strip_tail<'t>(text: &'t str, run: &[Wanted]) -> Option<&'t str> {
    let mut chars = text.chars();
    let fits_back = |wanted: &Wanted| chars.next_back().is_some_and(|c| fits(*wanted, c));
    run.iter().rev().all(fits_back).then_some(chars.as_str())
}

fn fits(wanted: Wanted, c: char) -> bool {
    wanted.is_none_or(|wanted| wanted == c)
}

impl Needle {
    fn new(run: &[Wanted]) -> Result<Self, Reason> {
        let plain: Option<String> = run.iter().copied().collect();
        match plain {
            Some(plain) => Ok(Needle::Plain(plain.into())),
            None if run.len() > limits::WILD_RUN_CHARS_MAX => Err(Reason::WildRunTooLong),
            None => Ok(Needle::Wild(WildNeedle::new(run))),
        }
    }

    /// The rest behind the first place where the run stands.
    fn skip_past<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Needle::Plain(plain) => text.split_once(&**plain).map(|(_, rest)| rest),
            Needle::Wild(wild) => text.get(wild.first_end(text.char_indices())?..),
        }
    }
}

impl WildNeedle {
    fn new(run: &[Wanted]) -> Self {
        assert!((1..=limits::WILD_RUN_CHARS_MAX).contains(&run.len()), "a bit for each character");
        let mut any = 0;
        let mut masks = BTreeMap::new();
        let mut last = 1;
        for (bit, wanted) in run.iter().enumerate() {
            last = 1 << bit;
            *wanted.map_or(&mut any, |c| masks.entry(c).or_insert(0)) |= last;
        }
        WildNeedle { any, masks: masks.into_iter().collect(), last }
    }

    /// The end of the first match, in bytes. Each character is looked at once.
    fn first_end(&self, chars: impl Iterator<Item = (usize, char)>) -> Option<usize> {
        // Bit n is set while the last n + 1 characters are the first n + 1 of the run.
        let mut begun: u64 = 0;
        for (start, c) in chars {
            begun = (begun << 1 | 1) & self.places_of(c);
            if begun & self.last != 0 {
                return Some(start + c.len_utf8());
            }
        }
        None
    }

    /// The places of a character in the run.
    fn places_of(&self, c: char) -> u64 {
        let found = self.masks.binary_search_by_key(&c, |(c, _)| *c).ok();
        let own = found.and_then(|index| self.masks.get(index)).map_or(0, |(_, mask)| *mask);
        self.any | own
    }
}

const _: () = assert!(limits::WILD_RUN_CHARS_MAX <= u64::BITS as usize, "a run fits one word");

#[cfg(test)]
#[path = "pattern_test.rs"]
mod tests;
