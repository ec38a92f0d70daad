//! Flow: windows of a session and credit of a link (2.7.4).

use alloc::vec::Vec;

use crate::encode;
use crate::types::list_reader::ListReader;
use crate::types::reader::Result;
use crate::types::{Fields, descriptor};

/// Tells the windows of a session, and the credit of a link when `handle` is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The transfer frame that the peer expects next; absent before it saw our begin.
    pub next_incoming_id: Option<u32>,
    /// Transfer frames that the peer takes.
    pub incoming_window: u32,
    /// The number of the next transfer frame that the peer will send.
    pub next_outgoing_id: u32,
    /// Transfer frames that the peer may send.
    pub outgoing_window: u32,
    /// The link that the rest is about; absent: the session alone.
    pub handle: Option<u32>,
    /// The sender's delivery count.
    pub delivery_count: Option<u32>,
    /// Deliveries that may follow `delivery_count`.
    pub link_credit: Option<u32>,
    /// Messages that wait for credit.
    pub available: Option<u32>,
    /// True if the sender has to use up the credit at once.
    pub drain: bool,
    /// True if the peer asks for a flow.
    pub echo: bool,
    /// Properties of the link's state.
    pub properties: Fields,
}

impl Flow {
    pub(super) fn read(list: &mut ListReader<'_>) -> Result<Flow> {
        let next_incoming_id = list.uint()?;
        let incoming_window = list.uint()?;
        let incoming_window = list.need(incoming_window, "incoming-window")?;
        let next_outgoing_id = list.uint()?;
        let next_outgoing_id = list.need(next_outgoing_id, "next-outgoing-id")?;
        let outgoing_window = list.uint()?;
        let outgoing_window = list.need(outgoing_window, "outgoing-window")?;
        Ok(Flow {
            next_incoming_id,
            incoming_window,
            next_outgoing_id,
            outgoing_window,
            handle: list.uint()?,
            delivery_count: list.uint()?,
            link_credit: list.uint()?,
            available: list.uint()?,
            drain: list.flag()?,
            echo: list.flag()?,
            properties: list.fields()?,
        })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::FLOW, |list| {
            list.uint(self.next_incoming_id);
            list.uint(Some(self.incoming_window));
            list.uint(Some(self.next_outgoing_id));
            list.uint(Some(self.outgoing_window));
            list.uint(self.handle);
            list.uint(self.delivery_count);
            list.uint(self.link_credit);
            list.uint(self.available);
            list.flag(self.drain);
            list.flag(self.echo);
            list.fields(&self.properties);
        });
    }
}
