//! Common parts of the tests of all documents: their rounds, and the pages written from them.
//!
//! Systems take turns: round by round, and within a round setup by setup. So other load of the
//! machine hits all alike. A case that a system cannot do, or fails at, is shown in its line and
//! stops no other.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use clap::{ArgMatches, Command};
use serde_json::json;

use super::machine;
use super::options::{Choice, Number, Options};
use super::page::{self, Column};
use super::plot;
use super::raw::Raw;
use super::sample::Sample;
use crate::Result;
use crate::steps::Bench;
use crate::tally::Tally;

/// A line of a table, for each system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// By which it is asked for and kept.
    pub(super) name: String,
    /// Its name for readers, within its section.
    pub(super) label: String,
    /// The table and picture in which it stands; a word for a file.
    pub(super) section: &'static str,
    /// Cases of one setup have one broker and client, one after the other.
    pub(super) setup: String,
}

/// The test of one document.
pub(super) trait Document {
    /// The processes that run while cases are asked. Dropping it ends it.
    type System;

    const NAME: &'static str;
    /// The text that does not change from run to run, as Markdown.
    const INTRODUCTION: &'static str;
    const SYSTEMS: &'static [&'static str];
    const NUMBERS: &'static [Number];
    /// The name of the figure, with its unit.
    const FIGURE: &'static str;
    const LESS_IS_BETTER: bool = false;

    fn cases(&self) -> Vec<Case>;

    /// A section's heading.
    fn title(&self, section: &str) -> &'static str;

    /// A system that has no such thing has no line.
    fn applies(&self, _system: &str, _case: &Case) -> bool {
        true
    }

    /// Which of ours another system is compared with.
    fn ours(_system: &str) -> &'static str {
        "dunlin"
    }

    /// Builds and installs the programs that all systems need.
    fn prepare(&self, run: &Run) -> Result<()>;

    fn start(&self, run: &Run, system: &str, setup: &str) -> Result<Self::System>;

    fn ask(&self, system: &mut Self::System, case: &Case) -> Result<Sample>;

    /// The one by which systems are compared.
    fn figure(sample: &Sample) -> Option<f64>;

    /// The columns behind the figure in a line.
    fn columns(&self) -> Vec<Column>;

    /// A section as SVG.
    fn picture(&self, section: &str, cases: &[Case], raw: &Raw) -> Result<String> {
        let shown = |sample: &Sample| Self::figure(sample);
        plot::bars(self.title(section), Self::FIGURE, &page::middles(cases, raw, &shown))
    }

    /// Versions of the programs that take part.
    fn versions(&self, run: &Run) -> Result<Vec<String>>;
}

/// The tools and choices of a run.
pub(super) struct Run<'a> {
    pub(super) bench: &'a Bench,
    pub(super) options: &'a Options,
    /// Dunlin's.
    pub(super) binary: PathBuf,
    /// The chosen cases.
    pub(super) cases: Vec<Case>,
}

impl Run<'_> {
    /// An empty folder for the data of a system.
    ///
    /// # Errors
    /// When its contents cannot be removed.
    pub(super) fn empty_folder(&self) -> Result<PathBuf> {
        let data = self.bench.scratch.join("bench-data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir_all(&data)?;
        Ok(data)
    }
}

/// Measures as `options` say, and writes the document.
///
/// # Errors
/// When they name an unknown system, or nothing can be measured or written.
pub(super) fn run<D: Document>(document: &D, bench: &Bench, options: &ArgMatches) -> Result<Tally> {
    let options = Options::of(choice::<D>(), options)?;
    let cases = chosen(document.cases(), &options)?;
    let binary = options.binary.clone().map_or_else(|| bench.dunlin(), Ok)?;
    let run = Run { bench, options: &options, binary, cases };
    document.prepare(&run)?;
    let begun = machine::now()?;
    let mut fresh = Vec::new();
    let described = json!({
        "run": begun,
        "command": format!("cargo xtask bench {}{}", D::NAME, options.words),
        "numbers": options.numbers(),
        "machine": machine::describe(),
        "versions": document.versions(&run)?,
    });
    measure(document, &run, &begun, &mut fresh)?;
    let failed = fresh.iter().filter(|sample| sample.error().is_some()).count() as u64;
    let passed = fresh.len() as u64 - failed;
    let file = options.out.join(format!("{}.json", D::NAME));
    let mut raw = Raw::read(&file)?;
    raw.runs.push(described);
    raw.put(fresh, D::SYSTEMS);
    write(document, &run, &raw)?;
    Ok(Tally { passed, failed })
}

fn chosen(all: Vec<Case>, options: &Options) -> Result<Vec<Case>> {
    let named = |case: &Case, name: &str| case.name == name || case.name.starts_with(name);
    let unknown = |name: &&String| !all.iter().any(|case| named(case, name));
    if let Some(name) = options.only.iter().find(unknown) {
        let names: Vec<&str> = all.iter().map(|case| case.name.as_str()).collect();
        return Err(format!("no case {name}; there are {}", names.join(", ")).into());
    }
    let wanted =
        |case: &Case| options.only.is_empty() || options.only.iter().any(|name| named(case, name));
    Ok(all.into_iter().filter(wanted).collect())
}

fn measure<D: Document>(
    document: &D,
    run: &Run,
    name: &str,
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let begun = Instant::now();
    let setups = page::distinct(run.cases.iter().map(|case| case.setup.as_str()));
    let rounds = run.options.number("rounds");
    for round in 1..=rounds {
        for setup in &setups {
            for system in &run.options.systems {
                let applies =
                    |case: &&Case| case.setup == **setup && document.applies(system, case);
                let cases: Vec<&Case> = run.cases.iter().filter(applies).collect();
                if cases.is_empty() {
                    continue;
                }
                let seconds = begun.elapsed().as_secs();
                println!("== {seconds} s, round {round} of {rounds}: {system} {setup}");
                for (case, sample) in turn(document, run, system, setup, &cases) {
                    samples.push(sample.named(system, &case.name, round, name));
                }
            }
        }
    }
    Ok(())
}

/// All cases of one setup on one system. After a failure the next case gets a new system. If none
/// can be started, all remaining cases fail for that reason.
fn turn<'c, D: Document>(
    document: &D,
    run: &Run,
    system: &str,
    setup: &str,
    cases: &[&'c Case],
) -> Vec<(&'c Case, Sample)> {
    let mut running = None;
    let mut refused: Option<String> = None;
    let mut ask = |case: &Case| {
        if let Some(why) = &refused {
            return Sample::of_failure(why);
        }
        let started = match running.take() {
            Some(left) => Ok(left),
            None => document.start(run, system, setup),
        };
        let mut started = match started {
            Ok(started) => started,
            Err(error) => {
                let why = first_line(&format!("not started: {error}"));
                refused = Some(why.clone());
                return Sample::of_failure(&why);
            }
        };
        match document.ask(&mut started, case) {
            Ok(sample) => {
                running = Some(started);
                sample
            }
            Err(error) => Sample::of_failure(&first_line(&error.to_string())),
        }
    };
    let asked = |case: &&'c Case| {
        let sample = ask(case);
        println!("{}", progress::<D>(system, case, &sample));
        (*case, sample)
    };
    cases.iter().map(asked).collect()
}

/// The first line of a text, cut to fit into a cell.
fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("unknown");
    line.chars().take(160).collect()
}

fn progress<D: Document>(system: &str, case: &Case, sample: &Sample) -> String {
    let name = &case.name;
    match (sample.error(), D::figure(sample)) {
        (Some(error), _) => format!("{system} {name}: failed, {error}"),
        (None, Some(figure)) => format!("{system} {name}: {figure:.1} {}", D::FIGURE),
        (None, None) => format!("{system} {name}: no figure"),
    }
}

fn write<D: Document>(document: &D, run: &Run, raw: &Raw) -> Result<()> {
    let out = &run.options.out;
    fs::create_dir_all(out)?;
    fs::write(out.join(format!("{}.json", D::NAME)), raw.render())?;
    let all = document.cases();
    for section in page::distinct(all.iter().map(|case| case.section)) {
        let cases: Vec<Case> = all.iter().filter(|case| case.section == section).cloned().collect();
        let picture = document.picture(section, &cases, raw)?;
        fs::write(out.join(format!("{}-{section}.svg", D::NAME)), picture)?;
    }
    fs::write(out.join(format!("{}.md", D::NAME)), page::render(document, raw))?;
    for case in &run.cases {
        print!("{}", page::lines(document, case, raw));
    }
    println!("written: {0}.md, {0}.json and pictures in {1}", D::NAME, out.display());
    Ok(())
}

/// The command of a document's test.
pub(super) fn command<D: Document>(about: &'static str) -> Command {
    Command::new(D::NAME).about(about).args(choice::<D>().args())
}

fn choice<D: Document>() -> Choice {
    Choice { systems: D::SYSTEMS, numbers: D::NUMBERS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        let (name, label) = (name.to_owned(), name.to_owned());
        Case { name, label, section: "all", setup: String::new() }
    }

    fn options(words: &[&str]) -> Options {
        Choice { systems: &[], numbers: &[] }.read(words).unwrap()
    }

    #[test]
    fn cases_are_chosen_by_name_prefix() {
        let all = || vec![case("queue-plain"), case("queue-transacted"), case("topic-plain")];
        assert_eq!(chosen(all(), &options(&["--only", "queue"])).unwrap().len(), 2);
        assert_eq!(chosen(all(), &options(&["--only", "topic-plain"])).unwrap().len(), 1);
        assert_eq!(chosen(all(), &options(&[])).unwrap().len(), 3);
        assert!(chosen(all(), &options(&["--only", "plain"])).is_err());
    }

    #[test]
    fn long_reason_fits_a_cell() {
        assert_eq!(first_line("\n  \nclosed\nat A.b\n"), "closed");
        assert_eq!(first_line(&"x".repeat(1000)).len(), 160);
    }
}
