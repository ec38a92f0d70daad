//! Begin: begins a session (2.7.2).

use alloc::vec::Vec;

use crate::encode;
use crate::types::list_reader::ListReader;
use crate::types::reader::Result;
use crate::types::{Fields, Symbols, descriptor};

/// Begins a session on a channel and tells its windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// The channel of the begin that this one answers.
    pub remote_channel: Option<u16>,
    /// The number of the next transfer frame that will be sent.
    pub next_outgoing_id: u32,
    /// Transfer frames that may be received.
    pub incoming_window: u32,
    /// Transfer frames that may be sent.
    pub outgoing_window: u32,
    /// The largest handle that the peer takes.
    pub handle_max: u32,
    /// Extensions that the peer has.
    pub offered_capabilities: Symbols,
    /// Extensions that the peer would use.
    pub desired_capabilities: Symbols,
    /// Properties of the session.
    pub properties: Fields,
}

impl Default for Begin {
    fn default() -> Begin {
        Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: 0,
            outgoing_window: 0,
            handle_max: u32::MAX,
            offered_capabilities: Symbols::default(),
            desired_capabilities: Symbols::default(),
            properties: Fields::default(),
        }
    }
}

impl Begin {
    pub(super) fn read(list: &mut ListReader<'_>) -> Result<Begin> {
        let remote_channel = list.ushort()?;
        let next_outgoing_id = list.uint()?;
        let next_outgoing_id = list.need(next_outgoing_id, "next-outgoing-id")?;
        let incoming_window = list.uint()?;
        let incoming_window = list.need(incoming_window, "incoming-window")?;
        let outgoing_window = list.uint()?;
        let outgoing_window = list.need(outgoing_window, "outgoing-window")?;
        Ok(Begin {
            remote_channel,
            next_outgoing_id,
            incoming_window,
            outgoing_window,
            handle_max: list.uint()?.unwrap_or(u32::MAX),
            offered_capabilities: list.symbols("offered-capabilities")?,
            desired_capabilities: list.symbols("desired-capabilities")?,
            properties: list.fields()?,
        })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::BEGIN, |list| {
            list.ushort(self.remote_channel);
            list.uint(Some(self.next_outgoing_id));
            list.uint(Some(self.incoming_window));
            list.uint(Some(self.outgoing_window));
            list.uint((self.handle_max != u32::MAX).then_some(self.handle_max));
            list.symbols(&self.offered_capabilities);
            list.symbols(&self.desired_capabilities);
            list.fields(&self.properties);
        });
    }
}
