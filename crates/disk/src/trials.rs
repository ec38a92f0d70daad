//! Measuring both methods on a scratch file with blocks that are initialised like those of a
//! segment.
//!
//! The methods take turns, so that a moment in which the disk is busy falls on both. The shortest
//! time of each counts: other work of the machine only adds to it. A failed write is no slow one.
//! Only the answer that direct I/O is not available is a finding. Every other error is the
//! device's, which is not to be trusted then.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use journal::BLOCK_BYTES;
use rustix::fs::{AtFlags, fdatasync, unlinkat};
use rustix::io::Errno;

use crate::file::{Access, write_all};
use crate::{File, Method};

/// The scratch file: there only while it is written to.
pub(crate) const SCRATCH_NAME: &str = "probe.tmp";

/// How long is measured: until both methods have settled, but not past `tries_max` tries of each,
/// nor, after `tries_min`, past the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    tries_min: u32,
    tries_max: u32,
    budget: Duration,
}

impl Effort {
    /// While an operator waits for the start.
    pub(crate) const START: Self =
        Self { tries_min: 3, tries_max: 24, budget: Duration::from_millis(6) };

    /// While no client waits for anything.
    pub(crate) const IDLE: Self =
        Self { tries_min: 8, tries_max: 64, budget: Duration::from_millis(500) };
}

/// How long durable writes of a block took in one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// The shortest.
    pub(crate) best: Duration,
    /// The next.
    pub(crate) second: Duration,
    count: u32,
}

impl Times {
    const NONE: Self = Self { best: Duration::MAX, second: Duration::MAX, count: 0 };

    /// The times of a method that took the same each time.
    #[cfg(test)]
    pub(crate) const fn settled(best: Duration) -> Self {
        Self { best, second: best, count: 3 }
    }

    fn note(&mut self, time: Duration) {
        self.second = self.second.min(time.max(self.best));
        self.best = self.best.min(time);
        self.count += 1;
    }

    /// True if the shortest time is no chance: another was within a quarter of it.
    pub(crate) fn is_settled(&self) -> bool {
        self.count > 1 && self.second <= self.best + self.best / 4
    }
}

/// Measures direct writes, `None` if the file system refuses them, and buffered ones.
///
/// # Errors
/// Any of the system's but that refusal.
pub(crate) fn measure_writes(
    directory: &OwnedFd,
    path: &Path,
    effort: Effort,
) -> Result<(Option<Times>, Times), Errno> {
    remove_scratch(directory)?;
    let measured = on_scratch(directory, path, effort);
    // The first of two errors tells more.
    let removed = remove_scratch(directory);
    let measured = measured?;
    removed?;
    Ok(measured)
}

fn on_scratch(
    directory: &OwnedFd,
    path: &Path,
    effort: Effort,
) -> Result<(Option<Times>, Times), Errno> {
    let open = |access, method| {
        File::open(directory, path.join(SCRATCH_NAME), SCRATCH_NAME, access, method)
    };
    let cached = open(Access::Create, Method::Buffered)?;
    initialise(&cached)?;
    let direct = match open(Access::Write, Method::Direct) {
        Err(errno) if is_refusal(errno) => None,
        direct => Some(direct?),
    };
    take_turns(effort, |method, index| {
        let begin = Instant::now();
        match (method, &direct) {
            (Method::Buffered, _) => {
                write_all(cached.cached(), offset(index), &ZEROS.0)?;
                fdatasync(cached.cached())?;
            }
            (Method::Direct, None) => return Err(Errno::INVAL),
            (Method::Direct, Some(file)) => {
                let at = offset(index + BLOCKS / 2);
                let direct = file.direct_for(at, &ZEROS.0).ok_or(Errno::INVAL)?;
                write_all(direct, at, &ZEROS.0)?;
            }
        }
        Ok(begin.elapsed())
    })
}

/// Lets the methods take turns in `write`, which tells how long one took.
fn take_turns(
    effort: Effort,
    mut write: impl FnMut(Method, u32) -> Result<Duration, Errno>,
) -> Result<(Option<Times>, Times), Errno> {
    let (mut direct, mut buffered) = (Some(Times::NONE), Times::NONE);
    let mut spent = Duration::ZERO;
    for index in 0..effort.tries_max {
        let turns = match index % 2 {
            0 => [Method::Buffered, Method::Direct],
            _ => [Method::Direct, Method::Buffered],
        };
        for method in turns {
            let times = match method {
                Method::Buffered => Some(&mut buffered),
                Method::Direct => direct.as_mut(),
            };
            let Some(times) = times else { continue };
            match write(method, index) {
                Err(errno) if method == Method::Direct && is_refusal(errno) => direct = None,
                time => {
                    let time = time?;
                    times.note(time);
                    spent += time;
                }
            }
        }
        let is_settled = buffered.is_settled() && direct.is_none_or(|times| times.is_settled());
        if index + 1 >= effort.tries_min && (is_settled || spent >= effort.budget) {
            break;
        }
    }
    Ok((direct, buffered))
}

/// The errors of a file system that has no direct I/O.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::OPNOTSUPP)
}

fn remove_scratch(directory: &OwnedFd) -> Result<(), Errno> {
    match unlinkat(directory, SCRATCH_NAME, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Writes zeros over the whole scratch file and waits for them: a sync over blocks that were never
/// written would measure the file system's journal instead.
fn initialise(file: &File) -> Result<(), Errno> {
    for index in 0..BLOCKS {
        write_all(file.cached(), offset(index), &ZEROS.0)?;
    }
    fdatasync(file.cached())
}

const fn offset(index: u32) -> u64 {
    (index % BLOCKS) as u64 * BLOCK_BYTES as u64
}

/// Blocks of the scratch file. One half is written one way while the other is the other way's.
const BLOCKS: u32 = 8;

/// A block of zeros, aligned as direct I/O wants it.
#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

static ZEROS: Block = Block([0; BLOCK_BYTES]);

#[cfg(test)]
mod tests {
    use super::*;

    const fn micros(time: u64) -> Duration {
        Duration::from_micros(time)
    }

    /// How long each method took in the tries that were made.
    fn measured(
        effort: Effort,
        write: impl Fn(Method, u32) -> Result<Duration, Errno>,
    ) -> (Result<(Option<Times>, Times), Errno>, u32) {
        let mut tries = 0;
        let times = take_turns(effort, |method, index| {
            tries = index + 1;
            write(method, index)
        });
        (times, tries)
    }

    #[test]
    fn minimum_survives_a_busy_moment() {
        // Both are as fast, and for the first two tries something else has the disk.
        let (times, tries) = measured(Effort::START, |method, index| {
            Ok(match (index, method) {
                (0, Method::Buffered) => micros(900),
                (0 | 1, Method::Direct) => micros(1_200),
                _ => micros(70),
            })
        });
        let (direct, buffered) = times.unwrap();
        assert_eq!((direct.unwrap().best, buffered.best), (micros(70), micros(70)));
        assert!(direct.unwrap().is_settled() && buffered.is_settled());
        assert_eq!(tries, 4, "until the times are no chance");
    }

    #[test]
    fn slow_disk_ends_within_budget() {
        let slow = Duration::from_millis(9);
        let (times, tries) = measured(Effort::START, |_, index| Ok(slow * (index + 1)));
        assert!(!times.unwrap().1.is_settled());
        assert_eq!(tries, Effort::START.tries_min);
    }

    #[test]
    fn refused_direct_write_is_a_finding() {
        for refusal in [Errno::INVAL, Errno::OPNOTSUPP] {
            let (times, _) = measured(Effort::START, |method, _| match method {
                Method::Direct => Err(refusal),
                Method::Buffered => Ok(micros(70)),
            });
            let (direct, buffered) = times.unwrap();
            assert_eq!((direct, buffered.best), (None, micros(70)));
        }
    }

    #[test]
    fn failed_write_is_an_error() {
        for failing in [Method::Direct, Method::Buffered] {
            for at in 0..3 {
                let (times, _) = measured(Effort::START, |method, index| match method {
                    _ if method == failing && index == at => Err(Errno::IO),
                    _ => Ok(micros(70)),
                });
                assert_eq!(times, Err(Errno::IO), "{failing}, try {at}");
            }
        }
        let (times, _) = measured(Effort::START, |method, _| match method {
            Method::Buffered => Err(Errno::INVAL),
            Method::Direct => Ok(micros(70)),
        });
        assert_eq!(times, Err(Errno::INVAL), "buffered writes are never refused");
    }
}
