//! Options of `cargo xtask bench DOCUMENT`.

use std::path::PathBuf;

use crate::Result;
use crate::flags::{list, pairs};
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
    /// Reads `--name value` pairs, and `--quick`.
    pub(super) fn read(choice: Choice, words: &[&str]) -> Result<Options> {
        let quick = words.contains(&"--quick");
        let number = |number: &Number| if quick { number.quick } else { number.value };
        let mut options = Options {
            systems: choice.systems.iter().map(|name| (*name).to_owned()).collect(),
            only: Vec::new(),
            binary: None,
            out: root().join("target/bench"),
            words: if quick { " --quick".to_owned() } else { String::new() },
            numbers: choice.numbers.iter().map(|each| (each.name, number(each))).collect(),
        };
        let words: Vec<&str> = words.iter().copied().filter(|word| *word != "--quick").collect();
        for (name, value) in pairs(&words)? {
            options.set(choice, name, value)?;
        }
        Ok(options)
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

    fn set(&mut self, choice: Choice, name: &str, value: &str) -> Result<()> {
        match name {
            "--systems" => self.systems = known(choice, value)?,
            "--only" => self.only = list(value),
            "--binary" => self.binary = Some(value.into()),
            "--out" => self.out = value.into(),
            _ => self.set_number(name, value)?,
        }
        // Paths belong to this machine: the recorded command leaves them out.
        if !["--binary", "--out"].contains(&name) {
            self.words.push_str(&format!(" {name} {value}"));
        }
        Ok(())
    }

    fn set_number(&mut self, name: &str, value: &str) -> Result<()> {
        let own = |own: &&mut (&'static str, u64)| name.strip_prefix("--") == Some(own.0);
        let unknown = || format!("{name}? See cargo xtask --help");
        self.numbers.iter_mut().find(own).ok_or_else(unknown)?.1 = value.parse()?;
        Ok(())
    }
}

fn known(choice: Choice, value: &str) -> Result<Vec<String>> {
    let names = list(value);
    match names.iter().find(|name| !choice.systems.contains(&name.as_str())) {
        Some(unknown) => {
            Err(format!("no system {unknown}; there are {}", choice.systems.join(", ")).into())
        }
        None => Ok(names),
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
        let options = Options::read(CHOICE, &words).unwrap();
        assert_eq!(options.words, " --rounds 5 --only queue-plain-plain");
        assert_eq!(options.only, ["queue-plain-plain"]);
        assert_eq!(options.flags(&["rounds"]), ["--rounds", "5"]);
    }

    #[test]
    fn quick_lowers_rounds_unless_given() {
        assert_eq!(Options::read(CHOICE, &["--quick"]).unwrap().numbers(), "rounds 1");
        let more = Options::read(CHOICE, &["--rounds", "2", "--quick"]).unwrap();
        assert_eq!(more.number("rounds"), 2);
        assert_eq!(more.words, " --quick --rounds 2");
    }

    #[test]
    fn unknown_options_are_refused() {
        for words in [["--speed", "9"], ["--rounds", "many"], ["--systems", "jorum"]] {
            assert!(Options::read(CHOICE, &words).is_err());
        }
        assert!(Options::read(CHOICE, &["--rounds"]).is_err());
    }
}
