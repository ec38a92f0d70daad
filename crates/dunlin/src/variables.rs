//! Variables of the environment: an empty one counts as not set. An error in one is reported by its
//! name, and so is one that looks like a setting and is none.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory as _, FromArgMatches as _};

use crate::cli::{Cli, Serve};
use crate::exit::Error;

/// Parses the command line, with the variables that are set. On an error it prints that and ends
/// the process.
pub(crate) fn parse() -> Cli {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = without_empty(Cli::command(), &is_empty);
    let parsed = command.clone().try_get_matches_from(&arguments);
    let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| named(error, &command, &arguments).exit())
}

/// Shells, compose files and units set unknown variables to nothing.
fn without_empty(command: Command, is_empty: &impl Fn(&OsStr) -> bool) -> Command {
    let command = command.mut_args(|argument| {
        if argument.get_env().is_some_and(is_empty) {
            // A source cannot be taken away.
            argument.env(NEVER_SET).hide_env(true)
        } else {
            argument
        }
    });
    command.mut_subcommands(|below| without_empty(below, is_empty))
}

/// An error about a flag that is not on the command line is about its variable.
fn named(mut error: clap::Error, command: &Command, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let flag = flag.split([' ', '=', '[', '<']).next().unwrap_or_default().to_owned();
    if let Some(variable) = variable_of(command, &flag)
        && std::env::var_os(&variable).is_some()
        && !is_given(&flag, arguments)
    {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The variable of a flag, in this command or below it.
fn variable_of(command: &Command, flag: &str) -> Option<String> {
    let long = flag.strip_prefix("--")?;
    let mut own = command.get_arguments().filter(|argument| argument.get_long() == Some(long));
    let own = own.find_map(|argument| Some(argument.get_env()?.to_string_lossy().into_owned()));
    own.or_else(|| command.get_subcommands().find_map(|below| variable_of(below, flag)))
}

fn is_given(flag: &str, arguments: &[OsString]) -> bool {
    arguments.iter().map(|argument| argument.to_string_lossy()).any(|argument| {
        argument.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// Sources of the settings of `serve`, for operators that have to correct one.
pub(crate) struct Origins {
    arguments: Vec<OsString>,
    file: Option<PathBuf>,
}

impl Origins {
    pub(crate) fn of(serve: &Serve) -> Self {
        Self { arguments: std::env::args_os().collect(), file: serve.config.clone() }
    }

    /// The error with the origins of the flags that it names, where these are not the command line.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let text = match &error {
            Error::Settings(text) => text.clone(),
            Error::Start(error) if error.is_misuse() => error.to_string(),
            _ => return error,
        };
        let mut explained = text.clone();
        let mut seen = Vec::new();
        for flag in flags(&text) {
            if seen.contains(&flag) || is_given(flag, &self.arguments) {
                continue;
            }
            seen.push(flag);
            if let Some(origin) = self.origin(flag) {
                explained.push_str(&format!("; {origin}"));
            }
        }
        Error::Settings(explained)
    }

    fn origin(&self, flag: &str) -> Option<String> {
        let key = flag.trim_start_matches("--");
        let variable = format!("{PREFIX}{}", key.replace('-', "_").to_uppercase());
        if let Some(value) = std::env::var_os(&variable).filter(|value| !value.is_empty()) {
            return Some(format!("{variable} is {}", value.to_string_lossy()));
        }
        // A pipe gives its text once.
        let path = self.file.as_ref().filter(|path| path.is_file())?;
        let table: toml::Table = std::fs::read_to_string(path).ok()?.parse().ok()?;
        let key = if key == "queue" { "queues" } else { key };
        table.contains_key(key).then(|| format!("{key} is set in {}", path.display()))
    }
}

/// The flags that a text names.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
    words.filter(|word| word.len() > 2 && word.starts_with("--"))
}

/// A complaint for each of these names that begins like a setting, and which no command reads. A
/// misspelt setting would have its default without a word.
pub(crate) fn complaints(names: impl Iterator<Item = String>) -> Vec<String> {
    let known = known(&Cli::command());
    let unknown = names.filter(|name| {
        let is_ours = name.starts_with(PREFIX) && !known.contains(name);
        is_ours && !OF_CONTAINERS.iter().any(|prefix| name.starts_with(prefix))
    });
    unknown
        .map(|name| format!("{name} is no setting: dunlin serve --help shows which are"))
        .collect()
}

/// The variables that this command and those below it read.
fn known(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    let own = own.map(|name| name.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(known)).collect()
}

const PREFIX: &str = "DUNLIN_";

/// No variable can have such a name.
const NEVER_SET: &str = "=";

/// Kubernetes, and linked containers, tell by such names where a service called `dunlin` is.
const OF_CONTAINERS: [&str; 3] = ["DUNLIN_SERVICE_", "DUNLIN_PORT", "DUNLIN_ENV_"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_setting_is_named() {
        let names = [
            "DUNLIN_SYNK",
            "DUNLIN_SYNC",
            "DUNLIN_URL",
            "DUNLIN_SERVICE_HOST",
            "DUNLIN_PORT_8422_TCP",
            "PATH",
            "DUNLIN",
        ];
        let complaints = complaints(names.into_iter().map(str::to_owned));
        let [only] = complaints.as_slice() else { panic!("{complaints:?}") };
        assert!(only.starts_with("DUNLIN_SYNK is no setting"), "{only}");
    }

    #[test]
    fn flags_have_variables_in_every_command() {
        let command = Cli::command();
        let variable = |flag| variable_of(&command, flag);
        assert_eq!(variable("--sync"), Some("DUNLIN_SYNC".into()));
        assert_eq!(variable("--url"), Some("DUNLIN_URL".into()));
        assert_eq!(variable("--follow"), None);
        assert_eq!(variable("sync"), None);
        let arguments = ["serve", "--sync=5", "--store"].map(OsString::from);
        let given = ["--sync", "--store", "--syn"].map(|flag| is_given(flag, &arguments));
        assert_eq!(given, [true, true, false]);
        let named: Vec<_> = flags("say --disk-limit, or '--sync' (--store none) - no").collect();
        assert_eq!(named, ["--disk-limit", "--sync", "--store"]);
    }

    #[test]
    fn empty_variables_are_no_source() {
        let command = without_empty(Cli::command(), &|name| name == "DUNLIN_SYNC");
        let sources = known(&command);
        assert!(!sources.contains(&"DUNLIN_SYNC".to_owned()), "{sources:?}");
        assert!(sources.contains(&"DUNLIN_STORE".to_owned()), "{sources:?}");
        assert_eq!(std::env::var_os(NEVER_SET), None);
    }
}
