//! Which consumer is delivered which message, and when.

pub(crate) mod browsing;
pub(crate) mod dead_letters;
pub(crate) mod deleted_queues;
pub(crate) mod feeding;
pub(crate) mod matching;
pub(crate) mod move_messages;
pub(crate) mod paging;
pub(crate) mod receiving;
pub(crate) mod settling;
pub(crate) mod slow_consumers;
pub(crate) mod views;
pub(crate) mod woken;
