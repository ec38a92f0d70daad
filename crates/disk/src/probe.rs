//! The way of writing that a directory's file system does well: the methods, the choices of the
//! operator, and the decision by the measurements of [`crate::trials`].

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::str::FromStr;

use rustix::io::Errno;

use crate::DirectoryError;
use crate::error::is_full;
use crate::remembered::Remembered;
use crate::trials::{Effort, SCRATCH_NAME, Times, measure_writes};

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

/// The operator's choice: `--journal-io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The finding of the probe.
    #[default]
    Auto,
    /// This method, against any finding of the probe.
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

/// The basis on which a method was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Not by times: the operator wants it, or there is no room or no descriptor for another.
    Circumstances,
    /// By times that differ from try to try, as beside other load.
    Guess,
    /// By times that tries agreed on.
    Times,
}

/// How a directory is written to, and why. Displays as one line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The method in use.
    pub method: Method,
    /// Why this one.
    pub reason: &'static str,
    /// Microseconds of one durable write of a block, direct; `None` if it is refused.
    pub direct_micros: Option<u64>,
    /// The same, buffered; `None` if nothing was measured.
    pub buffered_micros: Option<u64>,
    /// The basis on which the method was chosen.
    pub(crate) basis: Basis,
}

impl Probe {
    pub(crate) fn unmeasured() -> Self {
        Self::chosen(Method::Buffered, "not measured", None, None)
    }

    fn chosen(
        method: Method,
        reason: &'static str,
        direct: Option<Times>,
        buffered: Option<Times>,
    ) -> Self {
        let micros = |times: Times| u64::try_from(times.best.as_micros()).unwrap_or(u64::MAX);
        Self {
            method,
            reason,
            direct_micros: direct.map(micros),
            buffered_micros: buffered.map(micros),
            basis: Basis::Circumstances,
        }
    }

    /// Direct writes take two descriptors for each file. If there are too few for the journal's
    /// files and half as many more, falls back to buffered writes, which take one. Otherwise a
    /// start could not open the files that a buffered one made, or add none to them.
    pub(crate) fn within(self, files: usize, descriptors: usize) -> Self {
        let wanted = (files + files / 2).max(FILES_FEW) * Method::Direct.descriptors();
        if self.method == Method::Buffered || self.reason == FORCED || wanted <= descriptors {
            return self;
        }
        let reason = "too few descriptors for direct I/O";
        Self { method: Method::Buffered, reason, basis: Basis::Circumstances, ..self }
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

/// Room for as many files there is to be at least if each takes two descriptors.
const FILES_FEW: usize = 64;

/// The reason if the operator wants a method.
const FORCED: &str = "forced";

/// Decides how a directory is written to. An earlier finding in it counts as long as it is on
/// the same file system since the same boot of the machine; else both methods are measured.
///
/// # Errors
/// [`DirectoryError`]: a call failed for another reason than want of room, or `choice` demands
/// direct I/O of a file system that has none.
pub(crate) fn probe(
    directory: &OwnedFd,
    path: &Path,
    choice: Choice,
) -> Result<Probe, DirectoryError> {
    let remembered = Remembered::read(directory);
    if let (Choice::Auto, Some(remembered)) = (choice, &remembered) {
        return Ok(remembered.probe());
    }
    let probe = measure(directory, path, choice, None, Effort::START)?;
    if probe.basis == Basis::Times {
        Remembered::write(directory, path, &probe)?;
    }
    Ok(probe)
}

/// Measures anew, with more patience, beside a process that goes on with its method; the finding is
/// for the next start. Returns it if that start would take another method.
///
/// # Errors
/// [`DirectoryError::Io`]: a call failed for another reason than want of room.
pub(crate) fn probe_again(
    directory: &OwnedFd,
    path: &Path,
    before: &Probe,
) -> Result<Option<Probe>, DirectoryError> {
    let earlier = Some(before.method).filter(|_| before.basis == Basis::Times);
    let found = measure(directory, path, Choice::Auto, earlier, Effort::IDLE)?;
    if found.basis == Basis::Circumstances {
        return Ok(None);
    }
    Remembered::write(directory, path, &found)?;
    Ok(Some(found).filter(|found| found.method != before.method))
}

fn measure(
    directory: &OwnedFd,
    path: &Path,
    choice: Choice,
    before: Option<Method>,
    effort: Effort,
) -> Result<Probe, DirectoryError> {
    match measure_writes(directory, path, effort) {
        Ok(times) => decide(path, choice, before, times),
        // A measurement without room does not keep a full disk from being emptied.
        Err(errno) if is_full(errno) => Ok(without_room(choice)),
        Err(errno) => Err(DirectoryError::io("measure writes to", &path.join(SCRATCH_NAME), errno)),
    }
}

fn without_room(choice: Choice) -> Probe {
    match choice {
        Choice::Force(method) => Probe::chosen(method, FORCED, None, None),
        Choice::Auto => Probe::chosen(Method::Buffered, "no room to measure", None, None),
    }
}

/// Chooses by the times of direct writes, `None` if they are refused, and of buffered ones.
fn decide(
    path: &Path,
    choice: Choice,
    before: Option<Method>,
    (direct, buffered): (Option<Times>, Times),
) -> Result<Probe, DirectoryError> {
    let (method, reason) = match (choice, &direct) {
        (Choice::Force(Method::Direct), None) => {
            let cause = Errno::INVAL.into();
            return Err(DirectoryError::DirectRefused { path: path.to_owned(), cause });
        }
        (Choice::Force(method), _) => (method, FORCED),
        (Choice::Auto, None) => (Method::Buffered, "direct I/O refused"),
        (Choice::Auto, Some(direct)) if is_slower(direct, &buffered, before) => {
            (Method::Buffered, "direct I/O slower")
        }
        (Choice::Auto, Some(_)) => (Method::Direct, "direct I/O works well"),
    };
    let is_sure = buffered.is_settled() && direct.is_none_or(|times| times.is_settled());
    let basis = match choice {
        Choice::Force(_) => Basis::Circumstances,
        Choice::Auto if is_sure => Basis::Times,
        Choice::Auto => Basis::Guess,
    };
    Ok(Probe { basis, ..Probe::chosen(method, reason, direct, Some(buffered)) })
}

/// True if direct writes are slower by so much that buffered ones are better. About as fast alone
/// is faster in pairs, for flushes of cached files wait for each other. A choice that was made
/// before stands unless the times speak clearly against it. Times that differ from try to try, as
/// beside other load, speak for nothing.
fn is_slower(direct: &Times, buffered: &Times, before: Option<Method>) -> bool {
    let percent = match before {
        None => 150,
        Some(Method::Direct) => 200,
        Some(Method::Buffered) => 120,
    };
    let is_slower = direct.best * 100 > buffered.best * percent;
    let is_sure = direct.is_settled() && buffered.is_settled();
    if is_sure { is_slower } else { before == Some(Method::Buffered) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn times(micros: u64) -> Times {
        Times::settled(Duration::from_micros(micros))
    }

    fn chosen(choice: Choice, direct: Option<u64>, buffered: u64) -> Option<Method> {
        let measured = (direct.map(times), times(buffered));
        decide(Path::new("d"), choice, None, measured).ok().map(|probe| probe.method)
    }

    #[test]
    fn better_method_is_chosen_unless_forced() {
        let force = Choice::Force;
        assert_eq!(chosen(Choice::Auto, Some(120), 130), Some(Method::Direct));
        assert_eq!(chosen(Choice::Auto, Some(150), 130), Some(Method::Direct));
        assert_eq!(chosen(Choice::Auto, Some(250), 130), Some(Method::Buffered));
        assert_eq!(chosen(Choice::Auto, None, 130), Some(Method::Buffered));
        assert_eq!(chosen(force(Method::Direct), Some(900), 130), Some(Method::Direct));
        assert_eq!(chosen(force(Method::Buffered), Some(1), 130), Some(Method::Buffered));
        assert_eq!(chosen(force(Method::Direct), None, 130), None);
    }

    #[test]
    fn earlier_choice_stands_near_the_threshold() {
        let slower = |direct, before| is_slower(&times(direct), &times(100), before);
        let both = [Some(Method::Direct), Some(Method::Buffered)];
        assert_eq!(both.map(|before| slower(110, before)), [false, false]);
        assert_eq!(both.map(|before| slower(170, before)), [false, true]);
        assert_eq!(both.map(|before| slower(210, before)), [true, true]);
        let mut scattered = times(210);
        scattered.second = Duration::from_micros(900);
        let by_chance = |before| is_slower(&scattered, &times(100), before);
        assert_eq!(both.map(by_chance), [false, true]);
        assert!(!by_chance(None), "what differs from try to try decides nothing");
    }

    #[test]
    fn full_device_decides_nothing() {
        assert_eq!(without_room(Choice::Force(Method::Direct)).method, Method::Direct);
        let probe = without_room(Choice::Auto);
        assert_eq!((probe.method, probe.basis), (Method::Buffered, Basis::Circumstances));
        assert!(probe.to_string().contains("no room to measure"));
    }

    #[test]
    fn few_descriptors_leave_one_a_file() {
        let probe = |choice| {
            let measured = (Some(times(100)), times(100));
            decide(Path::new("d"), choice, None, measured).unwrap()
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
