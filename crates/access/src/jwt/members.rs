//! JSON objects in which each name stands once.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::string::String;
use core::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

/// The members of an object. A name that stands twice is refused (RFC 7519, section 4): two readers
/// could believe two values. The parser bounds how deep values go.
#[derive(Debug)]
pub(super) struct Members(BTreeMap<String, Value>);

impl Members {
    /// Reads the text of an object. `None`: it is none.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// The value of a member.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The value of a member that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = BTreeMap<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<String, Value>()? {
            match all.entry(name) {
                Entry::Vacant(entry) => entry.insert(value),
                Entry::Occupied(_) => return Err(A::Error::custom("a name stands twice")),
            };
        }
        Ok(all)
    }
}
