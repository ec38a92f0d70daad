//! The message as its sender hands it over.

use alloc::boxed::Box;

use crate::{Nanos, Persistence};

/// A message on its way in. What identifies it and what happens to it later is the engine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Smaller is more urgent.
    pub priority: u32,
    /// How long it stays hidden; zero: ready at once.
    pub delay: Nanos,
    /// How long a consumer may hold it before it is ready again.
    pub lease: Nanos,
    /// What its sender asks of the store.
    pub persistence: Persistence,
    /// Opaque bytes.
    pub body: Box<[u8]>,
}
