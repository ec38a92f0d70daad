//! The certificates in use, which change with their files while connections go on.

use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use model::Nanos;
use rustls::ServerConfig;

use super::certificates::TlsConfigs;
use super::settings::{TlsError, TlsSettings};
use crate::Logger;
use crate::clock::Clock;
use crate::config::Protocol;
use crate::file_stamp::FileStamp;

/// Holds the configuration for new connections.
#[derive(Debug)]
pub(crate) struct TlsKeeper {
    settings: RwLock<TlsSettings>,
    current: RwLock<TlsConfigs>,
    /// The files as they were when they were read last, with or without success.
    seen: Mutex<Vec<Option<FileStamp>>>,
    log: Logger,
}

impl TlsKeeper {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// [`TlsError`]: one cannot be used.
    pub(crate) fn new(settings: TlsSettings, log: Logger) -> Result<Self, TlsError> {
        let seen = Mutex::new(stamps(&settings));
        let configs = TlsConfigs::load(&settings)?;
        tell_end(log, &configs);
        let settings = RwLock::new(settings);
        Ok(Self { settings, current: RwLock::new(configs), seen, log })
    }

    /// The configuration for a new connection.
    pub(crate) fn config(&self, protocol: Protocol) -> Arc<ServerConfig> {
        Arc::clone(self.current.read().expect(POISONED).of(protocol))
    }

    /// When the first of the server's certificates ends.
    pub(crate) fn ends_at(&self) -> Option<Nanos> {
        self.current.read().expect(POISONED).ends_at()
    }

    /// From now on the certificates are in other files.
    pub(crate) fn set_files(&self, settings: TlsSettings) {
        *self.settings.write().expect(POISONED) = settings;
    }

    /// Reads the files again: new connections use them. If one cannot be used, the former ones stay
    /// in use. Both is logged. A pipe is not read: it would keep the thread that obeys signals.
    pub(crate) fn reload(&self) {
        let settings = self.settings.read().expect(POISONED);
        let mut seen = self.seen.lock().expect(POISONED);
        *seen = stamps(&settings);
        if let Some(file) = settings.files().into_iter().find(|file| is_no_file(file)) {
            return self.log.line(format_args!(
                "certificates of TLS stay as they were: {} is no file that can be read twice",
                file.display()
            ));
        }
        match TlsConfigs::load(&settings) {
            Ok(configs) => {
                self.log.line(format_args!("certificates of TLS are read again"));
                tell_end(self.log, &configs);
                *self.current.write().expect(POISONED) = configs;
            }
            Err(error) => self.log.line(format_args!(
                "certificates of TLS stay as they were, the new ones cannot be used: {error}"
            )),
        }
    }

    /// The same if a file has changed since.
    pub(crate) fn reload_if_changed(&self) {
        let now = stamps(&self.settings.read().expect(POISONED));
        let is_new = *self.seen.lock().expect(POISONED) != now;
        if is_new {
            self.reload();
        }
    }
}

fn stamps(settings: &TlsSettings) -> Vec<Option<FileStamp>> {
    settings.files().into_iter().map(|file| FileStamp::of(file)).collect()
}

/// True of a pipe, a device or a directory.
fn is_no_file(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file())
}

/// Says when a certificate has ended or is about to.
fn tell_end(log: Logger, configs: &TlsConfigs) {
    let Some(end) = configs.ends_at() else { return };
    let now = Clock::wall();
    if end <= now {
        log.line(format_args!(
            "a certificate of TLS has ended at {}: clients will refuse it, renew it",
            end.rfc3339()
        ));
    } else if end.since(now) < WARNED_SPAN {
        let left = match end.since(now).as_secs().div_ceil(DAY_SECS) {
            1 => "within a day".to_owned(),
            days => format!("within {days} days"),
        };
        log.line(format_args!("a certificate of TLS ends at {}, {left}: renew it", end.rfc3339()));
    }
}

/// So long before its end a certificate is complained about.
const WARNED_SPAN: Nanos = Nanos::from_secs(14 * DAY_SECS);

const DAY_SECS: u64 = 86_400;

const POISONED: &str = "invariant: no thread panics with the certificates";
