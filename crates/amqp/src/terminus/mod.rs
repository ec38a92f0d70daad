//! The two ends of a link: where messages come from and where they go (3.5, 4.5.1).

mod lifetime;
mod policy;
mod source;
mod target;

pub use lifetime::LifetimePolicy;
pub use policy::{DistributionMode, ExpiryPolicy, TerminusDurability};
pub use source::Source;
pub use target::{AttachTarget, Coordinator, Target};
