//! Things that are mostly one: the elements of a command on lists, and of its answer.

use alloc::vec::{self, Vec};
use core::ops::{Deref, DerefMut};
use core::{mem, option, slice};

/// Any number of things, of which a single one takes no memory of its own.
#[derive(Clone, Debug)]
pub enum OneOrMany<T> {
    /// One.
    One(T),
    /// None, or several.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self::Many(Vec::new())
    }

    /// One more, behind the others.
    pub fn push(&mut self, thing: T) {
        match self {
            Self::Many(none) if none.capacity() == 0 => *self = Self::One(thing),
            Self::Many(others) => others.push(thing),
            Self::One(_) => {
                let mut all = mem::take(self).into_vec();
                all.push(thing);
                *self = Self::Many(all);
            }
        }
    }

    /// They, as a list.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => [one].into(),
            Self::Many(many) => many,
        }
    }
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for OneOrMany<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl<T> DerefMut for OneOrMany<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => slice::from_mut(one),
            Self::Many(many) => many,
        }
    }
}

/// However they are kept.
impl<T: PartialEq> PartialEq for OneOrMany<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for OneOrMany<T> {}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(many: Vec<T>) -> Self {
        Self::Many(many)
    }
}

impl<T> FromIterator<T> for OneOrMany<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        let mut things = things.into_iter();
        let Some(first) = things.next() else { return Self::new() };
        let Some(second) = things.next() else { return Self::One(first) };
        let mut many = Vec::with_capacity(2 + things.size_hint().0);
        many.extend([first, second]);
        many.extend(things);
        Self::Many(many)
    }
}

impl<T> IntoIterator for OneOrMany<T> {
    type Item = T;
    type IntoIter = core::iter::Chain<option::IntoIter<T>, vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            Self::One(one) => (Some(one), Vec::new()),
            Self::Many(many) => (None, many),
        };
        one.into_iter().chain(many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collected_items_keep_their_order() {
        for count in 0..5_u8 {
            let plain: Vec<u8> = (0..count).collect();
            let collected: OneOrMany<u8> = plain.iter().copied().collect();
            let mut pushed = OneOrMany::new();
            plain.iter().for_each(|one| pushed.push(*one));
            for few in [collected, pushed, plain.clone().into()] {
                assert_eq!(*few, *plain);
                assert_eq!(few, OneOrMany::from(plain.clone()));
                assert_eq!(few.clone().into_iter().collect::<Vec<_>>(), plain);
                assert_eq!(few.into_vec(), plain);
            }
        }
    }

    #[test]
    fn single_item_takes_no_own_memory() {
        let one: OneOrMany<u8> = [7].into_iter().collect();
        assert!(matches!(one, OneOrMany::One(7)));
        let mut pushed = OneOrMany::new();
        pushed.push(7);
        assert!(matches!(pushed, OneOrMany::One(7)));
    }
}
