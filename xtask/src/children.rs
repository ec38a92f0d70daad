//! The processes that were started and run: Ctrl-C ends them all, each by its id.

use std::collections::BTreeSet;
use std::io;
use std::process::{self, Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Result;

/// The status that a shell gives for a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts `command`, to be ended by [`end`] or Ctrl-C. One that leads a process group of its own is
/// ended by the latter with all of that.
///
/// # Errors
/// As [`Command::spawn`].
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut running = running();
    let child = command.spawn()?;
    running.insert(child.id());
    Ok(child)
}

/// Kills it, if it has not ended by itself, and waits for it.
pub(crate) fn end(child: &mut Child) {
    let mut running = running();
    // Both fail only for a process that has ended already, as intended.
    let _ = child.kill();
    let _ = child.wait();
    running.remove(&child.id());
}

/// The same for one that leads a process group, with all of that.
pub(crate) fn end_group(child: &mut Child) {
    kill(&[child.id()]);
    end(child);
}

/// From now on Ctrl-C and SIGTERM end the running children, and then this process.
///
/// # Errors
/// When the system refuses to tell of signals.
pub(crate) fn end_when_interrupted() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // Held to the end: nothing is started meanwhile.
            let running = running();
            eprintln!("interrupted: ending {} processes", running.len());
            kill(&running.iter().copied().collect::<Vec<_>>());
            process::exit(INTERRUPTED);
        }
    });
    Ok(())
}

/// Each with its group; that there is no such group, or no such process any more, is no failure.
fn kill(pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    let targets = pids.iter().flat_map(|pid| [format!("-{pid}"), pid.to_string()]);
    let _ = Command::new("kill").args(["-KILL", "--"]).args(targets).stderr(Stdio::null()).status();
}

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn group_ends_with_its_leader() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "(sleep 60; echo late) & wait"]).stdout(Stdio::piped()).process_group(0);
        let mut child = spawn(&mut shell).unwrap();
        assert!(running().contains(&child.id()));
        end_group(&mut child);
        assert!(!running().contains(&child.id()));
        // The pipe is open as long as any of them is there.
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "");
    }
}
