//! Deterministic simulation of Dunlin over a virtual clock and a faulty disk.

mod faulty_disk;
mod history;
mod image;
mod oracle;
mod rng;
mod wish;

pub use faulty_disk::{Fault, FaultyDisk, FaultyFile, Moment};
pub use history::{Content, Fall, History, Kept, Standing};
pub use image::{Extent, Image, SECTOR_BYTES};
pub use oracle::Oracle;
pub use rng::Rng;
pub use wish::{Answer, Which, Wish};
