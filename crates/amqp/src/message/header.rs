//! The header: how a message is to be delivered (3.2.1). A broker may change it.

use alloc::vec::Vec;

use crate::encode;
use crate::types::descriptor;
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};

/// The priority of a message that names none; 9 is the most urgent that JMS knows.
pub const PRIORITY_DEFAULT: u8 = 4;

/// How a message is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// True if it has to survive the broker.
    pub durable: bool,
    /// How urgent it is; more is more urgent.
    pub priority: u8,
    /// Milliseconds that it is worth something, from when the broker gets it; absent: for ever.
    pub ttl: Option<u32>,
    /// True if no other receiver has ever acquired it.
    pub first_acquirer: bool,
    /// Earlier attempts to deliver it that failed.
    pub delivery_count: u32,
}

impl Default for Header {
    fn default() -> Header {
        Header {
            durable: false,
            priority: PRIORITY_DEFAULT,
            ttl: None,
            first_acquirer: false,
            delivery_count: 0,
        }
    }
}

impl Header {
    /// The fields behind the section's descriptor.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Header> {
        let mut list = ListReader::new(reader)?;
        let header = Header {
            durable: list.flag()?,
            priority: list.ubyte()?.unwrap_or(PRIORITY_DEFAULT),
            ttl: list.uint()?,
            first_acquirer: list.flag()?,
            delivery_count: list.uint()?.unwrap_or_default(),
        };
        list.finish(reader)?;
        Ok(header)
    }

    /// Appends the section; nothing if all is default, which means the same.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if *self == Header::default() {
            return;
        }
        encode::composite(out, descriptor::HEADER, |list| {
            list.flag(self.durable);
            list.ubyte((self.priority != PRIORITY_DEFAULT).then_some(self.priority));
            list.uint(self.ttl);
            list.flag(self.first_acquirer);
            list.uint((self.delivery_count > 0).then_some(self.delivery_count));
        });
    }
}
