//! Detach, end and close: how links, sessions and connections end (2.7.7 to 2.7.9).

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::encode::{self, ListWriter};
use crate::error::Error;
use crate::types::descriptor;
use crate::types::list_reader::ListReader;
use crate::types::reader::Result;

/// Detaches a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detach {
    /// The link.
    pub handle: u32,
    /// True if it is gone for good, not only detached.
    pub closed: bool,
    /// Why, when something is wrong.
    pub error: Option<Box<Error>>,
}

/// Ends a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Why, when something is wrong.
    pub error: Option<Box<Error>>,
}

/// Ends a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Close {
    /// Why, when something is wrong.
    pub error: Option<Box<Error>>,
}

impl Detach {
    pub(super) fn read(list: &mut ListReader<'_>) -> Result<Detach> {
        let handle = list.uint()?;
        Ok(Detach {
            handle: list.need(handle, "handle")?,
            closed: list.flag()?,
            error: read_error(list)?,
        })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::DETACH, |list| {
            list.uint(Some(self.handle));
            list.flag(self.closed);
            write_error(list, self.error.as_deref());
        });
    }
}

impl End {
    pub(super) fn read(list: &mut ListReader<'_>) -> Result<End> {
        Ok(End { error: read_error(list)? })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::END, |list| write_error(list, self.error.as_deref()));
    }
}

impl Close {
    pub(super) fn read(list: &mut ListReader<'_>) -> Result<Close> {
        Ok(Close { error: read_error(list)? })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::CLOSE, |list| write_error(list, self.error.as_deref()));
    }
}

fn read_error(list: &mut ListReader<'_>) -> Result<Option<Box<Error>>> {
    Ok(list.described(Error::decode)?.map(Box::new))
}

fn write_error(list: &mut ListWriter<'_>, error: Option<&Error>) {
    list.field(error, |out, error| error.encode(out));
}
