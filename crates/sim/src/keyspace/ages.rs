//! How much is in a list, and which of its elements go first because there are too many.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::lists::Side;
use super::{Content, Element, Keyspace, text};
use crate::amount::Amount;
use crate::history::DEAD_LETTERS;

/// Which elements of lists came first, by numbers, the left end of each list first.
pub(crate) type Ages = BTreeMap<Rc<str>, Vec<u64>>;

impl Keyspace {
    /// Everything that is stored under a name, with popped elements that are held.
    pub(crate) fn amount(&self, name: &str) -> Amount {
        let held = self.held.iter().filter(|held| &*held.name == name);
        let held = held.map(|held| &held.element);
        let all = self.elements(name).iter().chain(held);
        all.fold(Amount::default(), |sum, element| sum.and(Amount::one(element.bytes.len() as u64)))
    }

    /// The outermost element of a list.
    pub(crate) fn outermost(&self, name: &[u8], side: &[u8]) -> Option<Rc<[u8]>> {
        let list = self.elements(text(name));
        let element = if Side::of(side) == Side::Left { list.first() } else { list.last() };
        element.map(|element| element.bytes.clone())
    }

    /// The number of the element that goes first: the older one of the two ends. It is the last one
    /// if that alone is more than the list may hold. The right end is the head.
    pub(crate) fn least_needed(&self, name: &str, bytes_max: Option<u64>) -> Option<u64> {
        let list = self.elements(name);
        let (first, last) = (list.last()?, list.first()?);
        let is_too_large = bytes_max.is_some_and(|max| last.bytes.len() as u64 > max);
        Some(if is_too_large || last.age < first.age { last.number } else { first.number })
    }

    /// An element goes because of others.
    pub(crate) fn drop_element(&mut self, name: &str, number: u64) -> Rc<[u8]> {
        let list = self.list_mut(name.as_bytes()).expect("invariant: no value is bounded");
        let place = list.iter().position(|element| element.number == number);
        let element = list.remove(place.expect("invariant: the caller found it"));
        self.forget_if_empty(name.as_bytes());
        element.bytes
    }

    /// The same, and it becomes a dead letter. In which order these lie is not followed.
    pub(crate) fn park_element(&mut self, name: &str, number: u64) {
        let bytes = self.drop_element(name, number);
        let dead = self.element(&dead_letter(name, &bytes));
        let list = self.list_mut(DEAD_LETTERS.as_bytes()).expect("invariant: it is no value");
        list.push(dead);
        list.sort_by(|one, other| one.bytes.cmp(&other.bytes));
    }

    /// After a recovery: the ages of elements do not show in its lists.
    pub(crate) fn set_ages(&mut self, ages: &Ages) {
        for (name, ages) in ages {
            let list = self.keys.get_mut(name).map(|key| &mut key.content);
            let Some(Content::List(list)) = list else { continue };
            list.iter_mut().zip(ages).for_each(|(element, age)| element.age = *age);
        }
        self.aged = ages.values().flatten().copied().max().unwrap_or(0).max(self.aged);
    }

    fn elements(&self, name: &str) -> &[Element] {
        match self.keys.get(name).map(|key| &key.content) {
            Some(Content::List(list)) => list,
            _ => &[],
        }
    }
}

/// The visible part of an element that became a dead letter: the name of its list, and its bytes.
pub(crate) fn dead_letter(from: &str, bytes: &[u8]) -> Rc<[u8]> {
    from.bytes().chain(*b" ").chain(bytes.iter().copied()).collect()
}
