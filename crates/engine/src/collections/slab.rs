//! Values in numbered slots that are used again. Other structures point to a value by four bytes.
//!
//! The owner of a slab removes a value only when nothing points to it any more.

use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    /// Boxed, so that a slot that was used once costs eight bytes.
    slots: Vec<Option<Box<T>>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            if let Some(place) = self.slots.get_mut(slot as usize) {
                *place = Some(Box::new(value));
            }
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("invariant: limits are far below 2^32");
        self.slots.push(Some(Box::new(value)));
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<Box<T>> {
        let value = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All values once, in turn, from a slot on that is chosen by a number.
    pub(crate) fn iter_from(&self, seed: u64) -> impl Iterator<Item = &T> {
        let first = seed.checked_rem(self.slots.len() as u64).unwrap_or(0) as usize;
        let (before, behind) = self.slots.split_at(first);
        behind.iter().chain(before).filter_map(|value| value.as_deref())
    }

    /// All values by slot, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.slots).filter_map(|(slot, value)| Some((slot, value.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn slots_are_used_again() {
        let mut slab = Slab::new();
        assert_eq!((slab.insert('a'), slab.insert('b')), (0, 1));
        assert_eq!(slab.remove(0).as_deref(), Some(&'a'));
        assert_eq!((slab.remove(0), slab.get(0)), (None, None));
        assert_eq!((slab.insert('c'), slab.insert('d')), (0, 2));
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(0, &'c'), (1, &'b'), (2, &'d')]);
    }
}
