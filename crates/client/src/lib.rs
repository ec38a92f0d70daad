//! Clients of the protocols as pure machines: bytes in, events and bytes out. The benches, the
//! tests and the project's tools drive them over sockets of their own.

mod links;
mod session;

pub use links::{Kind, Place, Wanted};
pub use session::{Event, Said, Session, TxnId, Wrong};
