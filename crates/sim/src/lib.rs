//! Deterministic simulation of Dunlin over a virtual clock and a faulty disk.
