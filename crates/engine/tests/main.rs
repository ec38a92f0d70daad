//! The integration tests in one binary: each binary links the whole crate anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod adding;
mod administration;
mod batch_limits;
mod beside_messages;
mod blocked_sends_random;
mod bounds_random;
mod call_limits;
mod chains;
mod consuming;
mod consuming_random;
mod dead_letters;
mod groups_random;
mod key_limits;
mod keys;
mod list_limits;
mod lists_random;
mod memory_limit;
mod paged_out;
mod paged_out_random;
mod places;
mod policies_random;
mod publishing;
mod quotas;
mod random;
mod records;
mod rights;
mod rights_random;
mod scripts;
mod selecting;
mod send_ids;
mod shown;
mod stale_deadlines;
mod support;
mod transaction_limits;
mod waiting_for_memory;
