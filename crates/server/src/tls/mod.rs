//! TLS between the sockets and the sessions: certificates, and the stream of one connection.
//!
//! Sessions see plain bytes. `rustls` does the protocol; here are its files, their reload, and the
//! steps between a socket that never blocks and a connection.

mod certificates;
mod failure;
mod keeper;
mod names;
mod settings;
mod transport;

pub(crate) use failure::FailedHandshake;
pub(crate) use keeper::TlsKeeper;
pub(crate) use names::names;
pub use settings::{ClientCertificates, Identity, TlsError, TlsSettings};
pub(crate) use transport::{Received, Sent, Transport};
