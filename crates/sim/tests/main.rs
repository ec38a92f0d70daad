//! The integration tests in one binary: each binary links the whole crate anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod clock_jumps;
mod collections;
mod cramped;
mod dead_letters;
mod defects;
mod drains;
mod every_bit;
mod every_call;
mod full_disk;
mod full_disk_consumers;
mod hand_over;
mod http;
mod large_commits;
mod levels;
mod lists;
mod rot;
mod scarcity;
mod seeds;
mod slow_disk;
mod space;
mod spill;
mod thinned;
mod transactions;
