//! What signals mean to a server that is a process of its own.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::Remote;

/// Exit status after a second SIGINT, as shells know it: 128 and the signal.
const INTERRUPTED: i32 = 130;

/// Obeys signals in a thread of its own until the process ends: SIGTERM and SIGINT stop the server
/// in good order, a second SIGINT at once; SIGUSR1 drains it; SIGHUP logs its counters.
///
/// # Errors
/// The system refuses handlers or a thread.
pub fn obey(remote: Remote) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGUSR1, SIGHUP])?;
    let obey = move || {
        let mut interrupted = false;
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => remote.drain(),
                SIGHUP => remote.log_counters(),
                SIGINT if interrupted => std::process::exit(INTERRUPTED),
                _ => {
                    interrupted |= signal == SIGINT;
                    remote.stop();
                }
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(obey).map(drop)
}
