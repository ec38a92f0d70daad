//! The source of a link's messages (3.5.3).

use alloc::string::String;
use alloc::vec::Vec;

use crate::encode;
use crate::state::Outcome;
use crate::terminus::{DistributionMode, ExpiryPolicy, TerminusDurability};
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};
use crate::types::{Descriptor, Fields, Symbols, Value, descriptor};

/// The source of a link's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The node; absent when it is to be created.
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
    /// How messages leave the node: moved or copied.
    pub distribution_mode: Option<DistributionMode>,
    /// Which messages are wanted: described values under any key (3.5.8).
    pub filter: Fields,
    /// The outcome of deliveries that the receiver never settled.
    pub default_outcome: Option<Outcome>,
    /// Symbols of the outcomes that the link may use; all of them if empty.
    pub outcomes: Symbols,
    /// The capabilities of the node, or those asked for.
    pub capabilities: Symbols,
}

impl Source {
    /// The value of the filter of a type, by its descriptor in either form. Keys are the peer's.
    pub fn filter(&self, code: u64, symbol: &str) -> Option<Value<'_>> {
        let wanted = [Descriptor::Code(code), Descriptor::Symbol(symbol)];
        self.filter.as_map().iter().find_map(|(_, value)| match value {
            Value::Described(described) if wanted.contains(&described.descriptor) => {
                Some(described.value())
            }
            _ => None,
        })
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Source> {
        let mut list = ListReader::composite(reader, descriptor::SOURCE)?;
        let source = Source {
            address: address(&mut list)?,
            durable: TerminusDurability::read(&mut list)?,
            expiry_policy: ExpiryPolicy::read(&mut list)?,
            timeout: list.uint()?.unwrap_or_default(),
            dynamic: list.flag()?,
            dynamic_node_properties: list.fields()?,
            distribution_mode: DistributionMode::read(&mut list)?,
            filter: list.fields()?,
            default_outcome: list.described(Outcome::decode)?,
            outcomes: list.symbols("outcomes")?,
            capabilities: list.symbols("capabilities")?,
        };
        list.finish(reader)?;
        Ok(source)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::SOURCE, |list| {
            list.string(self.address.as_deref());
            list.uint(self.durable.field());
            list.symbol(self.expiry_policy.field());
            list.uint((self.timeout > 0).then_some(self.timeout));
            list.flag(self.dynamic);
            list.fields(&self.dynamic_node_properties);
            list.symbol(self.distribution_mode.map(DistributionMode::symbol));
            list.fields(&self.filter);
            list.field(self.default_outcome.as_ref(), |out, outcome| outcome.encode(out));
            list.symbols(&self.outcomes);
            list.symbols(&self.capabilities);
        });
    }
}

/// An address: any type is allowed (3.5.3), but strings are all that is defined (3.2.15).
pub(super) fn address(list: &mut ListReader<'_>) -> Result<Option<String>> {
    match list.value()? {
        None => Ok(None),
        Some(Value::String(address)) => Ok(Some(address.into())),
        Some(_) => Err(list.invalid("address")),
    }
}
