//! Options that hold for the life of an engine.

use model::{Formats, StorePolicy};

/// Options that hold for the engine's life.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) policy: StorePolicy,
    pub(crate) formats: Formats,
}
