//! Open: begins a connection (2.7.1).

use alloc::string::String;
use alloc::vec::Vec;

use crate::encode;
use crate::limits::FRAME_BYTES_MIN;
use crate::types::list_reader::ListReader;
use crate::types::reader::Result;
use crate::types::{Fields, Symbols, descriptor};

/// Begins a connection and tells the peer's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The peer's name. JMS puts its client id here.
    pub container_id: String,
    /// The host that the client wanted to reach.
    pub hostname: Option<String>,
    /// The largest frame that the peer takes, in bytes, its head included.
    pub max_frame_size: u32,
    /// The largest channel number that the peer takes.
    pub channel_max: u16,
    /// Milliseconds of silence after which the peer closes the connection; absent: never.
    pub idle_time_out: Option<u32>,
    /// Languages that the peer speaks.
    pub outgoing_locales: Symbols,
    /// Languages that the peer wants to hear.
    pub incoming_locales: Symbols,
    /// Extensions that the peer has.
    pub offered_capabilities: Symbols,
    /// Extensions that the peer would use.
    pub desired_capabilities: Symbols,
    /// Such as product, version, platform.
    pub properties: Fields,
}

impl Open {
    /// An open with the specification's defaults.
    pub fn new(container_id: impl Into<String>) -> Open {
        Open {
            container_id: container_id.into(),
            hostname: None,
            max_frame_size: u32::MAX,
            channel_max: u16::MAX,
            idle_time_out: None,
            outgoing_locales: Symbols::default(),
            incoming_locales: Symbols::default(),
            offered_capabilities: Symbols::default(),
            desired_capabilities: Symbols::default(),
            properties: Fields::default(),
        }
    }

    pub(super) fn read(list: &mut ListReader<'_>) -> Result<Open> {
        let container_id = list.string()?;
        Ok(Open {
            container_id: list.need(container_id, "container-id")?,
            hostname: list.string()?,
            max_frame_size: max_frame_size(list)?,
            channel_max: list.ushort()?.unwrap_or(u16::MAX),
            idle_time_out: list.uint()?,
            outgoing_locales: list.symbols("outgoing-locales")?,
            incoming_locales: list.symbols("incoming-locales")?,
            offered_capabilities: list.symbols("offered-capabilities")?,
            desired_capabilities: list.symbols("desired-capabilities")?,
            properties: list.fields()?,
        })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::OPEN, |list| {
            list.string(Some(&self.container_id));
            list.string(self.hostname.as_deref());
            list.uint((self.max_frame_size != u32::MAX).then_some(self.max_frame_size));
            list.ushort((self.channel_max != u16::MAX).then_some(self.channel_max));
            list.uint(self.idle_time_out);
            list.symbols(&self.outgoing_locales);
            list.symbols(&self.incoming_locales);
            list.symbols(&self.offered_capabilities);
            list.symbols(&self.desired_capabilities);
            list.fields(&self.properties);
        });
    }
}

/// "Both peers MUST accept frames of up to 512 octets" (2.7.1), so less is no maximum.
fn max_frame_size(list: &mut ListReader<'_>) -> Result<u32> {
    let bytes = list.uint()?.unwrap_or(u32::MAX);
    if bytes < FRAME_BYTES_MIN { Err(list.invalid("max-frame-size")) } else { Ok(bytes) }
}
