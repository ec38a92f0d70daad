//! How the process ends: its last words, and its status.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use server::{Failure, StartError};

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Error {
    /// A setting makes no sense: the text names it and a valid one.
    Settings(String),
    /// The server did not start.
    Start(StartError),
    /// The server ended by itself.
    Failed(Failure),
    /// The requested thing is not there, or did not come in time.
    Nothing(String),
    /// No server is reachable, or it has too much to do: nothing was done.
    Unreachable(String),
    /// It was asked for, and no answer came: whether it was done is not known.
    Unanswered(String),
    /// Any other error, in words for the user.
    Other(String),
}

impl Error {
    /// The same with something more to know.
    pub(crate) fn amended(self, what: &str) -> Self {
        match self {
            Self::Settings(text) => Self::Settings(format!("{text}; {what}")),
            Self::Nothing(text) => Self::Nothing(format!("{text}; {what}")),
            Self::Unreachable(text) => Self::Unreachable(format!("{text}; {what}")),
            Self::Unanswered(text) => Self::Unanswered(format!("{text}; {what}")),
            Self::Other(text) => Self::Other(format!("{text}; {what}")),
            error => error,
        }
    }

    /// The status, as `--help` documents it.
    const fn status(&self) -> u8 {
        match self {
            Self::Settings(_) => 2,
            Self::Nothing(_) => NOTHING,
            Self::Start(error) if error.is_misuse() => 2,
            Self::Failed(_) => IO_ERROR,
            Self::Start(_) | Self::Unreachable(_) | Self::Unanswered(_) | Self::Other(_) => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(what)
            | Self::Nothing(what)
            | Self::Unreachable(what)
            | Self::Unanswered(what)
            | Self::Other(what) => f.write_str(what),
            Self::Start(error) => error.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

/// Reports the error, if there is one.
pub(crate) fn code(end: Result<(), Error>) -> ExitCode {
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a reader of standard error the status has to tell alone.
            let _ = writeln!(std::io::stderr(), "dunlin: {error}");
            ExitCode::from(error.status())
        }
    }
}

/// As `grep` and others tell that nothing was found, but not to be taken for a failure.
const NOTHING: u8 = 3;

/// `EX_IOERR` of sysexits(3).
const IO_ERROR: u8 = 74;
