//! Clients of the protocols as pure machines: bytes in, events and bytes out. The benches, the
//! tests and the project's tools drive them over sockets of their own.

pub mod beanstalkd;
mod links;
pub mod resp;
mod session;

pub use links::{Kind, Place, Wanted};
pub use session::{Event, Said, Session, TxnId, Wrong};

/// The bytes are nothing that a server of the protocol says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage;
