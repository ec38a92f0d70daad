//! The parts that tests, the simulator and the project's tools share. No product crate depends on
//! it.

mod rng;

pub use rng::Rng;
