//! The target of a link's messages: a node (3.5.4) or the transaction coordinator (4.5.1).

use alloc::string::String;
use alloc::vec::Vec;

use crate::decode_error::DecodeErrorKind as Kind;
use crate::encode;
use crate::terminus::source::address;
use crate::terminus::{ExpiryPolicy, TerminusDurability};
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};
use crate::types::{Fields, Symbols, descriptor};

/// The target of a link's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachTarget {
    /// A node.
    Node(Target),
    /// The coordinator, which begins and ends transactions.
    Coordinator(Coordinator),
}

/// A node that messages go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The node; absent when it is to be created, or when each message names its own.
    pub address: Option<String>,
    /// The part of it that survives the broker.
    pub durable: TerminusDurability,
    /// When it begins to expire.
    pub expiry_policy: ExpiryPolicy,
    /// Seconds from then until it is gone.
    pub timeout: u32,
    /// True if the node is to be created and named by the broker.
    pub dynamic: bool,
    /// The kind of node to create.
    pub dynamic_node_properties: Fields,
    /// The capabilities of the node, or those asked for.
    pub capabilities: Symbols,
}

/// The coordinator of transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coordinator {
    /// Such as `amqp:local-transactions` (4.5.7).
    pub capabilities: Symbols,
}

impl AttachTarget {
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<AttachTarget> {
        let unknown = reader.error(Kind::UnknownDescriptor);
        match reader.composite()? {
            descriptor::TARGET => Target::read(reader).map(AttachTarget::Node),
            descriptor::COORDINATOR => Coordinator::read(reader).map(AttachTarget::Coordinator),
            _ => Err(unknown),
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            AttachTarget::Node(target) => target.encode(out),
            AttachTarget::Coordinator(coordinator) => {
                encode::composite(out, descriptor::COORDINATOR, |list| {
                    list.symbols(&coordinator.capabilities);
                });
            }
        }
    }
}

impl Target {
    fn read(reader: &mut Reader<'_>) -> Result<Target> {
        let mut list = ListReader::new(reader)?;
        let target = Target {
            address: address(&mut list)?,
            durable: TerminusDurability::read(&mut list)?,
            expiry_policy: ExpiryPolicy::read(&mut list)?,
            timeout: list.uint()?.unwrap_or_default(),
            dynamic: list.flag()?,
            dynamic_node_properties: list.fields()?,
            capabilities: list.symbols("capabilities")?,
        };
        list.finish(reader)?;
        Ok(target)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::TARGET, |list| {
            list.string(self.address.as_deref());
            list.uint(self.durable.field());
            list.symbol(self.expiry_policy.field());
            list.uint((self.timeout > 0).then_some(self.timeout));
            list.flag(self.dynamic);
            list.fields(&self.dynamic_node_properties);
            list.symbols(&self.capabilities);
        });
    }
}

impl Coordinator {
    fn read(reader: &mut Reader<'_>) -> Result<Coordinator> {
        let mut list = ListReader::new(reader)?;
        let coordinator = Coordinator { capabilities: list.symbols("capabilities")? };
        list.finish(reader)?;
        Ok(coordinator)
    }
}
