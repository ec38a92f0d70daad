//! Methods of [`crate::Engine`] by family; `engine.rs` and `consequences.rs` have the rest.

mod admission;
mod batch;
mod bodies;
mod browse;
mod check;
mod consume;
mod credit;
mod dead_letters;
mod deadlines;
mod demand;
mod keys;
mod list_edits;
mod lists;
mod operate;
mod produce;
mod quotas;
mod recover;
mod rights;
mod scripts;
mod settle;
mod snapshot;
mod topics;
mod transact;
