//! The brokers that are measured: one of this process, or one that an operator runs.

use std::path::PathBuf;

use crate::client::Target;
use crate::error::BenchError;

/// How a broker stores persistent messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// As its operator has set it.
    AsSet,
    /// Keeps them in memory.
    None,
    /// Flushes them to the device before it confirms.
    Always,
    /// Writes them before it confirms, and flushes once a second.
    Periodic,
}

impl Store {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Store::AsSet => "as set",
            Store::None => "none",
            Store::Always => "always",
            Store::Periodic => "periodic",
        }
    }
}

/// A broker that runs.
pub trait Broker {
    /// The address at which it listens to AMQP 1.0.
    fn target(&self) -> Target;

    /// The bytes that it has written up to now, if it tells.
    fn written(&self) -> Option<Written>;
}

/// Totals of a broker's log since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Batches, each one write.
    pub batches: u64,
    /// Flushes to the device.
    pub syncs: u64,
    /// Bytes of the batches.
    pub bytes: u64,
}

impl Written {
    /// The difference since an earlier moment.
    #[must_use]
    pub fn since(self, before: Written) -> Written {
        Written {
            batches: self.batches - before.batches,
            syncs: self.syncs - before.syncs,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Opens a broker with a store, on an empty directory.
pub type Open<'a> = dyn FnMut(Store) -> Result<Box<dyn Broker>, BenchError> + 'a;

/// The brokers to measure.
pub enum Brokers<'a> {
    /// Brokers of our own, one after the other.
    Own {
        /// Opens one.
        open: &'a mut Open<'a>,
        /// The directory in which they store.
        directory: PathBuf,
        /// How they store, in the words of the command line.
        settings: String,
    },
    /// One that an operator runs.
    Running {
        /// Its address.
        target: Target,
        /// The directory in which it stores, if that is on this machine and known.
        directory: Option<PathBuf>,
    },
}

impl Brokers<'_> {
    /// The stores that can be compared.
    pub(crate) fn stores(&self) -> &'static [Store] {
        match self {
            Brokers::Own { .. } => &[Store::None, Store::Always, Store::Periodic],
            Brokers::Running { .. } => &[Store::AsSet],
        }
    }

    /// A broker with that store, or the one that runs already.
    pub(crate) fn open(&mut self, store: Store) -> Result<Box<dyn Broker>, BenchError> {
        match self {
            Brokers::Own { open, .. } => open(store),
            Brokers::Running { target, .. } => Ok(Box::new(Running(target.clone()))),
        }
    }

    /// The directory of the stored messages, if that is known.
    pub(crate) fn directory(&self) -> Option<&PathBuf> {
        match self {
            Brokers::Own { directory, .. } => Some(directory),
            Brokers::Running { directory, .. } => directory.as_ref(),
        }
    }

    /// For the head of a report.
    pub(crate) fn name(&self) -> String {
        match self {
            Brokers::Own { settings, directory, .. } => {
                format!("Dunlin in this process, {settings}, in {}", directory.display())
            }
            Brokers::Running { target, .. } => target.to_string(),
        }
    }
}

/// A broker that an operator runs; its writes cannot be seen.
struct Running(Target);

impl Broker for Running {
    fn target(&self) -> Target {
        self.0.clone()
    }

    fn written(&self) -> Option<Written> {
        None
    }
}
