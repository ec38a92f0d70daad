//! `dunlin journal verify`.

use std::path::Path;

use broker::{BrokerOptions, verify};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{BrokerStatistics, StorePolicy};

use crate::client::table::say;
use crate::exit::Error;
use crate::journal_open::{Reading, open};

/// Recovers into nothing and reports the state that a start would find.
pub(crate) fn run(directory: &Path) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Other(error.to_string());
    let disk = open(directory)?;
    let reading = Reading::begin();
    let recovery = verify(&disk, options(), &mut |bytes| reading.read(bytes))
        .map_err(|error| failed(&error))?;
    drop(reading);
    let BrokerStatistics { ready, delayed, buried, queues, .. } = recovery.statistics;
    let mut text = format!(
        "sound: {ready} ready, {delayed} delayed and {buried} buried messages in {queues} queues\n\
         read {} bytes: snapshot {}, then {} frames up to frame {}\n",
        recovery.log.bytes, recovery.log.snapshot, recovery.log.frames, recovery.log.last
    );
    if recovery.commits_cut > 0 {
        text.push_str(&format!(
            "{} commits were cut off by a crash: nothing of them took effect\n",
            recovery.commits_cut
        ));
    }
    say(text.as_bytes())
}

/// The stored content does not depend on any option.
pub(crate) fn options() -> BrokerOptions {
    let policy = StorePolicy::Always;
    let engine = EngineOptions::new(policy);
    BrokerOptions { engine, journal: JournalOptions::new(policy) }
}
