//! Helpers that the engine's integration tests share.

pub(crate) mod crashing;
pub(crate) mod keying;
pub(crate) mod listing;
pub(crate) mod lists;
pub(crate) mod log;
pub(crate) mod naive;
pub(crate) mod naive_keys;
pub(crate) mod operating;
pub(crate) mod paging;
pub(crate) mod script;
pub(crate) mod users;
