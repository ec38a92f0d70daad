//! Load drivers and benchmarks.
