//! The process as the other accounts of its machine see it: they can read neither the files that
//! it makes nor its memory.

use std::io;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior, umask};

use crate::Logger;

/// Gives new files to their owner only, and forbids core dumps. It changes the whole process, so a
/// program calls it before it makes a file or reads a secret.
///
/// # Errors
/// The system refuses it.
pub fn harden() -> io::Result<()> {
    // A Unix socket gets its configured mode after it is bound; until then this one holds.
    umask(Mode::RWXG | Mode::RWXO);
    forbid_core_dumps()
}

/// Memory holds the bodies of messages, passwords and keys.
fn forbid_core_dumps() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Warns of a process that has all rights of the machine: a broker needs none of them.
pub fn warn_of_root(log: Logger) {
    if geteuid().is_root() {
        log.line(format_args!(
            "runs as root and needs none of its rights: start it as a user that owns --data"
        ));
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    // A test of the binary covers the umask, which would disturb other tests of this process.
    #[test]
    fn core_dumps_can_be_forbidden() {
        forbid_core_dumps().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
