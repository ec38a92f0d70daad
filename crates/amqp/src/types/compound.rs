//! Lists, maps, arrays and described values, walked without copying.
//!
//! Their bytes were checked when they were decoded, so iterators end early only if that check
//! is broken.

use core::fmt;

use crate::types::descriptor::Descriptor;
use crate::types::reader::Reader;
use crate::types::value::Value;

/// Values one after another (1.6.22).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct List<'a> {
    pub(crate) count: u32,
    pub(crate) elements: &'a [u8],
}

/// Keys and values (1.6.23), in the order of the bytes. If keys are equal, the first counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Map<'a> {
    /// Keys and values counted each.
    pub(crate) count: u32,
    pub(crate) elements: &'a [u8],
}

/// Values of one type (1.6.24).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a> {
    pub(crate) descriptor: Option<Descriptor<'a>>,
    pub(crate) code: u8,
    pub(crate) count: u32,
    pub(crate) elements: &'a [u8],
}

/// A value of a type that its descriptor names (1.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Described<'a> {
    /// The name of the type.
    pub descriptor: Descriptor<'a>,
    pub(crate) code: u8,
    pub(crate) content: &'a [u8],
}

impl<'a> List<'a> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values in their order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        values(self.elements, self.count)
    }
}

impl<'a> Map<'a> {
    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.count as usize / 2
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The pairs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + use<'a> {
        let mut values = values(self.elements, self.count);
        core::iter::from_fn(move || Some((values.next()?, values.next()?)))
    }

    /// The pairs in their order, as far as they are sound: those of a log are read unchecked.
    pub(crate) fn sound_pairs(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + use<'a> {
        let mut reader = Reader::new(self.elements);
        (0..self.count / 2).map_while(move |_| Some((reader.value().ok()?, reader.value().ok()?)))
    }

    /// The value under the symbol or string `key`.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        let mut reader = Reader::new(self.elements);
        for _ in 0..self.count / 2 {
            if reader.text().ok()? == Some(key.as_bytes()) {
                return reader.value().ok();
            }
            reader.leap().ok()?;
        }
        None
    }

    /// The same of several, by one walk.
    pub(crate) fn get_each<const N: usize>(&self, keys: [&str; N]) -> [Option<Value<'a>>; N] {
        let mut found = [None; N];
        let mut reader = Reader::new(self.elements);
        for _ in 0..self.count / 2 {
            let Ok(text) = reader.text() else { break };
            let place = text.and_then(|text| keys.iter().position(|key| key.as_bytes() == text));
            if let Some(value) = place.and_then(|place| found.get_mut(place)) {
                *value = value.or_else(|| reader.clone().value().ok());
            }
            if reader.leap().is_err() {
                break;
            }
        }
        found
    }
}

impl<'a> Array<'a> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements in their order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (array, mut reader) = (*self, Reader::new(self.elements));
        (0..self.count).map_while(move |_| {
            let content = reader.rest();
            let value = reader.value_of(array.code, 0).ok()?;
            let Some(descriptor) = array.descriptor else { return Some(value) };
            let content = content.get(..content.len() - reader.rest().len())?;
            Some(Value::Described(Described { descriptor, code: array.code, content }))
        })
    }
}

impl<'a> Described<'a> {
    /// The value that is described.
    pub fn value(&self) -> Value<'a> {
        let value = Reader::new(self.content).value_of(self.code, 0);
        debug_assert!(value.is_ok(), "a described value was checked when it was decoded");
        value.unwrap_or(Value::Null)
    }
}

fn values<'a>(elements: &'a [u8], count: u32) -> impl Iterator<Item = Value<'a>> + use<'a> {
    let mut reader = Reader::new(elements);
    (0..count).map_while(move |_| {
        let value = reader.value();
        debug_assert!(value.is_ok(), "elements were checked when they were decoded");
        value.ok()
    })
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Described").field(&self.descriptor).field(&self.value()).finish()
    }
}
