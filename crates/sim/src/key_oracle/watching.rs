//! Changes to keys that clients observe.
//!
//! A change that leaves a key as it was may count or not: Redis defines its signals command by
//! command. Only a change that another client could have seen is promised.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::keyspace::{Keyspace, text};

/// How often keys changed for certain, and how often a command named them that may have.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions(BTreeMap<Rc<str>, Version>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Version {
    changes: u64,
    touches: u64,
}

/// A key as a client saw it that observes it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) name: Rc<str>,
    version: Version,
}

impl Versions {
    pub(super) fn see(&self, name: &str) -> Seen {
        Seen { name: name.into(), version: self.version(name) }
    }

    pub(super) fn touch(&mut self, before: &Keyspace, after: &Keyspace) {
        for name in before.visible().differences(&after.visible()) {
            self.0.entry(name).or_default().changes += 1;
        }
    }

    pub(super) fn may_touch(&mut self, keys: &[Rc<[u8]>]) {
        for key in keys {
            self.0.entry(text(key).into()).or_default().touches += 1;
        }
    }

    pub(super) fn must_be_stale(&self, seen: &[Seen]) -> bool {
        seen.iter().any(|seen| self.version(&seen.name).changes != seen.version.changes)
    }

    pub(super) fn may_be_stale(&self, seen: &[Seen]) -> bool {
        seen.iter().any(|seen| self.version(&seen.name) != seen.version)
    }

    fn version(&self, name: &str) -> Version {
        self.0.get(name).copied().unwrap_or_default()
    }
}
