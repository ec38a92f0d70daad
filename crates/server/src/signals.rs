//! The signals that a server in a process of its own obeys.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::{Config, Remote, ServiceManager};

/// Exit status after a second SIGINT, as shells know it: 128 and the signal.
const INTERRUPTED: i32 = 130;

/// Signals that are kept until a handler obeys them. Until then SIGTERM and SIGINT end the process:
/// it has served no client yet, and may have no other thread to end it.
pub struct Caught {
    signals: Signals,
    /// True if a signal that stops ends the process.
    ends: Arc<AtomicBool>,
}

impl Caught {
    /// Catches them from now on. To be called before anything that may take long, such as reading
    /// settings.
    ///
    /// # Errors
    /// The system refuses handlers.
    pub fn now() -> io::Result<Self> {
        let signals = Signals::new([SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGXFSZ])?;
        let ends = Arc::new(AtomicBool::new(true));
        for signal in [SIGTERM, SIGINT] {
            flag::register_conditional_shutdown(signal, 0, Arc::clone(&ends))?;
        }
        Ok(Self { signals, ends })
    }

    /// Obeys signals in a thread of its own until the process ends. SIGTERM and SIGINT stop the
    /// server in good order, a second SIGINT at once. SIGUSR1 drains it; SIGHUP reads its
    /// `settings`, users and certificates again and logs its counters.
    /// SIGXFSZ does nothing: the write beyond `ulimit -f` fails, and says so. The service manager
    /// is told.
    ///
    /// To be called before the server starts, which may take long. Until there is a remote SIGTERM
    /// and SIGINT end the process; a drain waits for it, and there are no counters to tell.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn obey(
        mut self,
        remote: Arc<OnceLock<Remote>>,
        manager: Arc<ServiceManager>,
        mut settings: impl FnMut() -> Result<Config, String> + Send + 'static,
    ) -> io::Result<()> {
        let obey = move || {
            self.ends.store(false, Ordering::Relaxed);
            let mut interrupted = false;
            for signal in self.signals.forever() {
                match signal {
                    SIGUSR1 => {
                        remote.wait().drain();
                        manager.draining();
                    }
                    SIGHUP => {
                        if let Some(remote) = remote.get() {
                            manager.reload(|| {
                                match settings() {
                                    Ok(config) => remote.reconfigure(config),
                                    Err(error) => remote.tell_settings_stay(&error),
                                }
                                remote.reload();
                                remote.log_counters();
                            });
                        }
                    }
                    SIGXFSZ => {}
                    SIGINT if interrupted => std::process::exit(INTERRUPTED),
                    _ => {
                        interrupted |= signal == SIGINT;
                        manager.stopping("stopping by a signal");
                        let Some(remote) = remote.get() else { std::process::exit(0) };
                        remote.stop();
                    }
                }
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(obey).map(drop)
    }
}
