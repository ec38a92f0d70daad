//! A map that is kept: its pairs stay encoded, and are walked as a [`Map`].

use alloc::vec::Vec;

use crate::encode;
use crate::types::{Map, Value};

/// An owned map with symbols as keys (2.8.13): properties, filters, annotations. An empty one
/// stands for null as well.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Keys and values counted each.
    count: u32,
    elements: Vec<u8>,
}

impl Fields {
    /// Adds a pair. If keys are equal, the first counts.
    pub fn insert(&mut self, key: &str, value: Value<'_>) {
        encode::symbol(&mut self.elements, key);
        encode::value(&mut self.elements, value);
        self.count += 2;
    }

    /// The same with one more pair, to build them.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value<'_>) -> Fields {
        self.insert(key, value);
        self
    }

    /// The pairs.
    pub fn as_map(&self) -> Map<'_> {
        Map { count: self.count, elements: &self.elements }
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.as_map().get(key)
    }

    /// True if there is no pair.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl From<Map<'_>> for Fields {
    fn from(map: Map<'_>) -> Fields {
        Fields { count: map.count, elements: map.elements.to_vec() }
    }
}

impl core::fmt::Debug for Fields {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_map().fmt(f)
    }
}
