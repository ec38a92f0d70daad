//! Deterministic simulation of Dunlin over a virtual clock and a faulty disk.

mod faulty_disk;
mod image;
mod rng;

pub use faulty_disk::{Fault, FaultyDisk, FaultyFile, Moment};
pub use image::{Extent, Image, SECTOR_BYTES};
pub use rng::Rng;
