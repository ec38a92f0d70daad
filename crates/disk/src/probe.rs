//! Which way of writing a directory's file system does well: a few writes each way when it is
//! opened, on a scratch file whose blocks are initialised like those of a segment.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use journal::BLOCK_BYTES;
use rustix::fs::{AtFlags, fdatasync, unlinkat};
use rustix::io::Errno;

use crate::error::is_full;
use crate::file::{Access, write_all};
use crate::{File, OpenError};

/// How a synced write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Past the page cache with `O_DIRECT | O_DSYNC`: touches no file system journal and lets two
    /// writes be in flight. A write that is not made of aligned blocks goes as in `Buffered`.
    Direct,
    /// Through the page cache, then `fdatasync`: works everywhere.
    Buffered,
}

impl Method {
    /// Descriptors of a file that is open.
    pub(crate) const fn descriptors(self) -> usize {
        match self {
            Self::Direct => 2,
            Self::Buffered => 1,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
        })
    }
}

/// What the operator asks for: `--journal-io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// What the probe finds.
    #[default]
    Auto,
    /// This method, whatever the probe finds.
    Force(Method),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "direct" => Ok(Self::Force(Method::Direct)),
            "buffered" => Ok(Self::Force(Method::Buffered)),
            _ => Err(format!("`{text}` is not one of auto, direct, buffered")),
        }
    }
}

/// How a directory is written to, and why. Displays as one line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The method in use.
    pub method: Method,
    /// Why this one.
    pub reason: &'static str,
    /// Microseconds of one durable write of a block, direct; `None` where it is refused.
    pub direct_micros: Option<u64>,
    /// The same, buffered; `None` where nothing was measured.
    pub buffered_micros: Option<u64>,
}

impl Probe {
    pub(crate) const fn unmeasured() -> Self {
        let reason = "not measured";
        Self { method: Method::Buffered, reason, direct_micros: None, buffered_micros: None }
    }

    /// Where the journal has so many files that there are not two descriptors for each, which
    /// direct writes take, and for half as many more, one has to do: or a start could not open what
    /// a buffered one made, or add nothing to it.
    pub(crate) fn within(self, files: usize, descriptors: usize) -> Self {
        let wanted = (files + files / 2).max(FILES_FEW) * Method::Direct.descriptors();
        if self.method == Method::Buffered || self.reason == FORCED || wanted <= descriptors {
            return self;
        }
        Self { method: Method::Buffered, reason: "too few descriptors for direct I/O", ..self }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Option<u64>| time.map_or("-".into(), |time| format!("{time} us"));
        write!(
            f,
            "{} ({}; a durable 4 KiB write takes {} direct, {} buffered)",
            self.method,
            self.reason,
            micros(self.direct_micros),
            micros(self.buffered_micros)
        )
    }
}

/// Room for as many files there is to be at least where each takes two descriptors.
const FILES_FEW: usize = 64;

/// The reason where the operator wants a method.
const FORCED: &str = "forced";

/// The scratch file: there only while the probe runs.
pub(crate) const SCRATCH_NAME: &str = "probe.tmp";

/// Measures both methods and chooses. Each gets [`WRITES`] writes or [`BUDGET`], whichever ends
/// first, so that a slow disk does not hold up the start.
pub(crate) fn measure(
    directory: &OwnedFd,
    path: &Path,
    choice: Choice,
) -> Result<Probe, OpenError> {
    let failed = |operation| {
        let scratch = path.join(SCRATCH_NAME);
        move |errno: Errno| OpenError::io(operation, &scratch, errno)
    };
    remove_scratch(directory).map_err(failed("remove"))?;
    let scratch = open(directory, path, Access::Create, Method::Buffered);
    let scratch = unless_full(scratch).map_err(failed("create"))?;
    let scratch = scratch.as_ref().map_err(|errno| *errno);
    let buffered = scratch.and_then(|file| {
        initialise(file)?;
        buffered_time(file)
    });
    let direct = scratch.and_then(|_| {
        let file = open(directory, path, Access::Write, Method::Direct)?;
        direct_time(&file)
    });
    remove_scratch(directory).map_err(failed("remove"))?;
    decide(path, choice, direct, buffered)
}

/// What cannot be measured for want of room does not keep a full disk from being emptied.
fn unless_full<T>(made: Result<T, Errno>) -> Result<Result<T, Errno>, Errno> {
    match made {
        Err(errno) if !is_full(errno) => Err(errno),
        made => Ok(made),
    }
}

fn decide(
    path: &Path,
    choice: Choice,
    direct: Result<Duration, Errno>,
    buffered: Result<Duration, Errno>,
) -> Result<Probe, OpenError> {
    let (method, reason) = match (choice, &direct, &buffered) {
        (Choice::Force(Method::Direct), Err(errno), _) if !is_full(*errno) => {
            let cause = (*errno).into();
            return Err(OpenError::DirectRefused { path: path.to_owned(), cause });
        }
        (Choice::Force(method), ..) => (method, FORCED),
        (Choice::Auto, Err(errno), _) if is_full(*errno) => {
            (Method::Buffered, "no room to measure")
        }
        (Choice::Auto, Err(_), _) => (Method::Buffered, "direct I/O refused"),
        (Choice::Auto, Ok(direct), Ok(buffered)) if *direct > *buffered * 3 / 2 => {
            (Method::Buffered, "direct I/O slower")
        }
        // About as fast alone is faster in pairs: flushes of cached files wait for each other.
        (Choice::Auto, Ok(_), _) => (Method::Direct, "direct I/O works well"),
    };
    let micros = |time: Result<Duration, Errno>| time.ok().map(|time| time.as_micros() as u64);
    Ok(Probe { method, reason, direct_micros: micros(direct), buffered_micros: micros(buffered) })
}

fn open(directory: &OwnedFd, path: &Path, access: Access, method: Method) -> Result<File, Errno> {
    File::open(directory, path.join(SCRATCH_NAME), SCRATCH_NAME, access, method)
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
    for index in 0..WRITES {
        write_all(file.cached(), offset(index), &ZEROS.0)?;
    }
    fdatasync(file.cached())
}

fn buffered_time(file: &File) -> Result<Duration, Errno> {
    best_time(|index| {
        write_all(file.cached(), offset(index), &ZEROS.0)?;
        fdatasync(file.cached())
    })
}

fn direct_time(file: &File) -> Result<Duration, Errno> {
    best_time(|index| {
        let direct = file.direct_for(offset(index), &ZEROS.0).ok_or(Errno::INVAL)?;
        write_all(direct, offset(index), &ZEROS.0)
    })
}

/// The shortest of the times: whatever else the machine does only adds to them.
fn best_time(mut write: impl FnMut(usize) -> Result<(), Errno>) -> Result<Duration, Errno> {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    for index in 0..WRITES {
        let start = Instant::now();
        write(index)?;
        best = best.min(start.elapsed());
        if begin.elapsed() > BUDGET {
            break;
        }
    }
    Ok(best)
}

const fn offset(index: usize) -> u64 {
    (index * BLOCK_BYTES) as u64
}

/// Writes each way: a handful shows a factor of 1.5 and takes a millisecond.
const WRITES: usize = 5;

/// The longest that one way is measured.
const BUDGET: Duration = Duration::from_millis(3);

/// A block of zeros, aligned as direct I/O wants it.
#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

static ZEROS: Block = Block([0; BLOCK_BYTES]);

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(choice: Choice, direct: Result<u64, Errno>, buffered: u64) -> Option<Method> {
        let direct = direct.map(Duration::from_micros);
        let buffered = Ok(Duration::from_micros(buffered));
        decide(Path::new("d"), choice, direct, buffered).ok().map(|probe| probe.method)
    }

    #[test]
    fn the_better_method_is_chosen_unless_one_is_forced() {
        let force = Choice::Force;
        assert_eq!(chosen(Choice::Auto, Ok(120), 130), Some(Method::Direct));
        assert_eq!(chosen(Choice::Auto, Ok(150), 130), Some(Method::Direct));
        assert_eq!(chosen(Choice::Auto, Ok(250), 130), Some(Method::Buffered));
        assert_eq!(chosen(Choice::Auto, Err(Errno::INVAL), 130), Some(Method::Buffered));
        assert_eq!(chosen(force(Method::Direct), Ok(900), 130), Some(Method::Direct));
        assert_eq!(chosen(force(Method::Buffered), Ok(1), 130), Some(Method::Buffered));
        assert_eq!(chosen(force(Method::Direct), Err(Errno::INVAL), 130), None);
    }

    #[test]
    fn a_full_device_is_not_taken_for_one_that_refuses_direct_writes() {
        for full in [Errno::NOSPC, Errno::DQUOT] {
            let probe = |choice| decide(Path::new("d"), choice, Err(full), Err(full)).unwrap();
            assert_eq!(probe(Choice::Force(Method::Direct)).method, Method::Direct);
            assert_eq!(probe(Choice::Auto).method, Method::Buffered);
            assert!(probe(Choice::Auto).to_string().contains("no room to measure"));
            assert_eq!(unless_full::<()>(Err(full)), Ok(Err(full)), "no file could be made");
        }
        assert_eq!(unless_full(Ok(1)), Ok(Ok(1)));
        assert_eq!(unless_full::<()>(Err(Errno::ACCESS)), Err(Errno::ACCESS));
    }

    #[test]
    fn where_descriptors_are_few_each_file_takes_one() {
        let probe = |choice| {
            let times = [Ok(Duration::from_micros(100)), Ok(Duration::from_micros(100))];
            let [direct, buffered] = times;
            decide(Path::new("d"), choice, direct, buffered).unwrap()
        };
        let method = |choice, files| probe(choice).within(files, 270).method;
        assert_eq!(method(Choice::Auto, 90), Method::Direct);
        assert_eq!(method(Choice::Auto, 91), Method::Buffered);
        assert_eq!(method(Choice::Force(Method::Direct), 91), Method::Direct);
        assert_eq!(probe(Choice::Auto).within(1_000_000, usize::MAX), probe(Choice::Auto));
    }

    #[test]
    fn choices_are_parsed() {
        assert_eq!("auto".parse(), Ok(Choice::Auto));
        assert_eq!("direct".parse(), Ok(Choice::Force(Method::Direct)));
        assert_eq!("buffered".parse(), Ok(Choice::Force(Method::Buffered)));
        assert!("mmap".parse::<Choice>().unwrap_err().contains("buffered"));
    }
}
