//! The sharing of the open files that the system allows. Connections leave some to the store, and
//! the store never takes those of connections. A client that filled a store can connect to empty
//! it.

use broker::SPILL_FILE_BYTES;
use journal::{JournalOptions, SEGMENTS_MIN};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::StartError;
use crate::config::Config;

/// Raises the limit as far as this process may, and gives it. Every connection is a descriptor, and
/// the customary limit of 1,024 is a soft one.
pub(crate) fn raised() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it cannot be raised, the present limit holds.
    let _ = setrlimit(Resource::Nofile, limit);
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.and_then(|allowed| usize::try_from(allowed).ok()).unwrap_or(usize::MAX)
}

/// Connections that there may be beside a store, of those that are wanted.
pub(crate) fn bound_connections(config: &mut Config, allowed: usize) {
    let possible = allowed.saturating_sub(STORE_MIN).max(1);
    if possible < config.limits.connections {
        config.log.line(format_args!(
            "at most {possible} connections: the system allows {allowed} open files, of which \
             {STORE_MIN} are kept for the journal (raise `ulimit -n`)"
        ));
        config.limits.connections = possible;
    }
}

/// Descriptors, out of `allowed`, for the store's files: all but the server's own and those for
/// connections. Connections get as many as are allowed, up to a quarter of the rest.
pub(crate) fn of_store(config: &Config, allowed: usize) -> usize {
    let rest = allowed.saturating_sub(OWN + OWN_EACH_THREAD * config.threads);
    rest - config.limits.connections.min(rest / 4)
}

/// The log and the spill held to so many files.
///
/// # Errors
/// [`StartError::Descriptors`]: they are too few.
pub(crate) fn share_files(
    journal: JournalOptions,
    files: usize,
) -> Result<JournalOptions, StartError> {
    if files < FILES_MIN {
        return Err(StartError::Descriptors { files, least: FILES_MIN });
    }
    let spill_files = (files / 8).max(SPILL_FILES_MIN);
    let spill_bytes = u64::try_from(spill_files).unwrap_or(u64::MAX);
    Ok(JournalOptions {
        spill_bytes_max: spill_bytes.saturating_mul(SPILL_FILE_BYTES).min(journal.spill_bytes_max),
        segments_max: Some(files - spill_files - OTHER_FILES),
        ..journal
    })
}

/// Descriptors that connections leave for segments, snapshots and the server itself.
const STORE_MIN: usize = 256;

/// Listeners, standard streams, the directory and its lock, the waits of HTTP, and files open for a
/// moment: `/proc`, a file that is being made.
const OWN: usize = 32;

/// The descriptors by which a reactor waits, and is woken.
const OWN_EACH_THREAD: usize = 2;

/// Snapshots.
const OTHER_FILES: usize = 2;

/// The fewest files that the spill is divided into.
const SPILL_FILES_MIN: usize = 16;

/// The fewest files with which there can be a store.
const FILES_MIN: usize = SEGMENTS_MIN + SPILL_FILES_MIN + OTHER_FILES;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use model::StorePolicy;

    use super::*;
    use crate::Logger;

    fn config(connections: usize) -> Config {
        let mut config = Config { threads: 2, log: Logger::Quiet, ..Config::default() };
        config.limits.connections = connections;
        config
    }

    #[test]
    fn descriptors_are_shared_with_the_store() {
        for (allowed, connections, files) in [
            (60, 1, 23),
            (270, 14, 220),
            (1_024, 768, 741),
            (20_000, 10_000, 14_973),
            (1 << 20, 10_000, (1 << 20) - 10_036),
            (usize::MAX, 10_000, usize::MAX - 10_036),
        ] {
            let mut config = config(10_000);
            bound_connections(&mut config, allowed);
            assert_eq!(config.limits.connections, connections, "of {allowed}");
            assert_eq!(of_store(&config, allowed), files, "of {allowed}");
        }
        assert_eq!(of_store(&config(5), 1_024), 983);
        assert_eq!(of_store(&config(5), 10), 0);
    }

    #[test]
    fn log_and_spill_share_files() {
        let journal = || JournalOptions {
            spill_bytes_max: 64 * SPILL_FILE_BYTES,
            ..JournalOptions::new(StorePolicy::Always)
        };
        let shared = |files| {
            let journal = share_files(journal(), files).unwrap();
            (journal.segments_max.unwrap(), journal.spill_bytes_max / SPILL_FILE_BYTES)
        };
        assert_eq!(shared(FILES_MIN), (SEGMENTS_MIN, 16));
        assert_eq!(shared(220), (191, 27));
        assert_eq!(shared(8_000), (6_998, 64));
        let refused = share_files(journal(), FILES_MIN - 1).unwrap_err().to_string();
        assert!(refused.contains("23") && refused.contains("ulimit -n"), "{refused}");
    }
}
