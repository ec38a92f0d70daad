//! Options of `cargo xtask bench DOCUMENT`.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Id, value_parser};

use crate::Result;
use crate::repository::root;

/// A number that a document's test may be given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    /// Without its dashes.
    pub(super) name: &'static str,
    pub(super) value: u64,
    /// With `--quick`, which shows that everything works.
    pub(super) quick: u64,
    pub(super) what: &'static str,
}

/// The systems and numbers to choose from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) systems: &'static [&'static str],
    pub(super) numbers: &'static [Number],
}

/// The rounds, which the test of every document has.
pub(super) const ROUNDS: Number =
    Number { name: "rounds", value: 3, quick: 1, what: "Rounds, of which the median counts" };

impl Choice {
    /// The options of the command line.
    pub(super) fn args(self) -> Vec<Arg> {
        let list = |name| Arg::new(name).long(name).value_name("LIST").value_delimiter(',');
        let path = |name| Arg::new(name).long(name).value_parser(value_parser!(PathBuf));
        let systems = match self.systems {
            [] => "Only these systems".to_owned(),
            systems => format!("{}, or some", systems.join(", ")),
        };
        let mut args = vec![
            list(SYSTEMS).help(systems),
            list(ONLY).help(
                "Cases, or the beginnings of their names; their lines replace those of before",
            ),
            Arg::new(QUICK)
                .long(QUICK)
                .action(ArgAction::SetTrue)
                .help("Few messages and one round: shows that everything works"),
            path(BINARY).value_name("PATH").help("dunlin [default: the release build]"),
            path(OUT)
                .value_name("FOLDER")
                .help("For the document and what is behind it [default: target/bench]"),
        ];
        args.extend(self.numbers.iter().map(|number| {
            let Number { name, value, quick, what } = *number;
            Arg::new(name)
                .long(name)
                .value_name("N")
                .value_parser(value_parser!(u64))
                .help(format!("{what} [default: {value}, quick {quick}]"))
        }));
        args
    }
}

/// The choices.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) systems: Vec<String>,
    /// Nothing: all cases.
    pub(super) only: Vec<String>,
    pub(super) binary: Option<PathBuf>,
    pub(super) out: PathBuf,
    /// As they were given, to be shown.
    pub(super) words: String,
    numbers: Vec<(&'static str, u64)>,
}

impl Options {
    /// The choices among these that the command line makes.
    ///
    /// # Errors
    /// When it names an unknown system.
    pub(super) fn of(choice: Choice, given: &ArgMatches) -> Result<Options> {
        let list = |name| given.get_many::<String>(name).map(|names| names.cloned().collect());
        let path = |name| given.get_one::<PathBuf>(name).cloned();
        let quick = given.get_flag(QUICK);
        let number = |number: &Number| {
            // Of `all` not every document's numbers can be given.
            let given = given.try_get_one::<u64>(number.name).ok().flatten().copied();
            (number.name, given.unwrap_or(if quick { number.quick } else { number.value }))
        };
        Ok(Options {
            systems: known(choice, list(SYSTEMS))?,
            only: list(ONLY).unwrap_or_default(),
            binary: path(BINARY),
            out: path(OUT).unwrap_or_else(|| root().join("target/bench")),
            words: words(given),
            numbers: choice.numbers.iter().map(number).collect(),
        })
    }

    /// One of the document's numbers.
    pub(super) fn number(&self, name: &str) -> u64 {
        let found = self.numbers.iter().find(|(own, _)| *own == name);
        found.expect("invariant: a document asks for its own numbers").1
    }

    /// As words for a client that knows them by the same names.
    pub(super) fn flags(&self, names: &[&str]) -> Vec<String> {
        let flag = |name: &&str| [format!("--{name}"), self.number(name).to_string()];
        names.iter().flat_map(flag).collect()
    }

    /// All of them, to be shown.
    pub(super) fn numbers(&self) -> String {
        let shown = self.numbers.iter().map(|(name, value)| format!("{name} {value}"));
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// The chosen systems, or all.
fn known(choice: Choice, names: Option<Vec<String>>) -> Result<Vec<String>> {
    let all = || choice.systems.iter().map(|name| (*name).to_owned()).collect();
    let names = names.unwrap_or_else(all);
    match names.iter().find(|name| !choice.systems.contains(&name.as_str())) {
        Some(unknown) => {
            Err(format!("no system {unknown}; there are {}", choice.systems.join(", ")).into())
        }
        None => Ok(names),
    }
}

/// The options as they were given. Paths belong to this machine: they are left out.
fn words(given: &ArgMatches) -> String {
    let is_shown = |name: &&str| {
        ![QUICK, BINARY, OUT].contains(name)
            && given.value_source(name) == Some(ValueSource::CommandLine)
    };
    let mut names: Vec<_> = given.ids().map(Id::as_str).filter(is_shown).collect();
    names.sort_by_key(|name| given.index_of(name));
    let shown = names.into_iter().map(|name| {
        let values = given.get_raw(name).unwrap_or_default();
        let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
        format!(" --{name} {}", values.join(","))
    });
    let quick = given.get_flag(QUICK).then(|| format!(" --{QUICK}"));
    quick.into_iter().chain(shown).collect()
}

const SYSTEMS: &str = "systems";
const ONLY: &str = "only";
const QUICK: &str = "quick";
const BINARY: &str = "binary";
const OUT: &str = "out";

#[cfg(test)]
impl Choice {
    /// Reads words of a command line.
    pub(super) fn read(self, words: &[&str]) -> Result<Options> {
        let command = clap::Command::new("test").no_binary_name(true).args(self.args());
        Options::of(self, &command.try_get_matches_from(words)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: Choice = Choice {
        systems: &["dunlin", "joram"],
        numbers: &[Number { name: "rounds", value: 3, quick: 1, what: "" }],
    };

    #[test]
    fn command_is_shown_without_local_paths() {
        let words = ["--rounds", "5", "--binary", "/a/b", "--only", "queue-plain-plain"];
        let options = CHOICE.read(&words).unwrap();
        assert_eq!(options.words, " --rounds 5 --only queue-plain-plain");
        assert_eq!(options.only, ["queue-plain-plain"]);
        assert_eq!(options.flags(&["rounds"]), ["--rounds", "5"]);
    }

    #[test]
    fn quick_lowers_rounds_unless_given() {
        assert_eq!(CHOICE.read(&["--quick"]).unwrap().numbers(), "rounds 1");
        let more = CHOICE.read(&["--rounds", "2", "--quick"]).unwrap();
        assert_eq!(more.number("rounds"), 2);
        assert_eq!(more.words, " --quick --rounds 2");
    }

    #[test]
    fn unknown_options_are_refused() {
        for words in [["--speed", "9"], ["--rounds", "many"], ["--systems", "jorum"]] {
            assert!(CHOICE.read(&words).is_err());
        }
        assert!(CHOICE.read(&["--rounds"]).is_err());
    }
}
