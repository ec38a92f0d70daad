//! When a node that a link has created is deleted (3.5.10 to 3.5.13).

use crate::types::{Described, Descriptor, Fields, Value, code, descriptor};

/// The key among the properties of a dynamic node (3.5.9).
const KEY: &str = "lifetime-policy";

/// When a dynamic node is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimePolicy {
    /// When the link that created it is closed.
    DeleteOnClose,
    /// When no link is attached to it.
    DeleteOnNoLinks,
    /// When it holds no message.
    DeleteOnNoMessages,
    /// When no link is attached and it holds no message.
    DeleteOnNoLinksOrMessages,
}

impl LifetimePolicy {
    const ALL: [LifetimePolicy; 4] = [
        Self::DeleteOnClose,
        Self::DeleteOnNoLinks,
        Self::DeleteOnNoMessages,
        Self::DeleteOnNoLinksOrMessages,
    ];

    /// The policy among `dynamic-node-properties`, when it is a known one.
    pub fn of(properties: &Fields) -> Option<LifetimePolicy> {
        let Value::Described(described) = properties.get(KEY)? else { return None };
        let code = described.descriptor.code()?;
        Self::ALL.into_iter().find(|policy| policy.code() == code)
    }

    /// Adds the policy to `dynamic-node-properties`.
    pub fn insert_into(self, properties: &mut Fields) {
        let descriptor = Descriptor::Code(self.code());
        let policy = Described { descriptor, code: code::LIST_0, content: &[] };
        properties.insert(KEY, Value::Described(policy));
    }

    fn code(self) -> u64 {
        match self {
            LifetimePolicy::DeleteOnClose => descriptor::DELETE_ON_CLOSE,
            LifetimePolicy::DeleteOnNoLinks => descriptor::DELETE_ON_NO_LINKS,
            LifetimePolicy::DeleteOnNoMessages => descriptor::DELETE_ON_NO_MESSAGES,
            LifetimePolicy::DeleteOnNoLinksOrMessages => descriptor::DELETE_ON_NO_LINKS_OR_MESSAGES,
        }
    }
}
