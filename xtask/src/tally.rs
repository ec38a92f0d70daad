//! Counts of passed and failed checks, read from the output of each kind of test runner.

use std::fmt;
use std::ops::AddAssign;

/// How many checks passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Checks that held.
    pub(crate) passed: u64,
    /// Checks that did not.
    pub(crate) failed: u64,
}

/// The program that printed the output of a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A program that either succeeds or fails: one check.
    Program,
    /// `cargo test`.
    Cargo,
    /// `python -m unittest`.
    Unittest,
    /// `go test -v`.
    Go,
    /// `node --test --test-reporter=tap`.
    Node,
    /// `mvn test`, with Surefire.
    Maven,
    /// `sim --seeds N`, which ends at the first seed that fails.
    Simulation,
    /// A program of `interop/cases`.
    Case,
}

impl Tally {
    /// One check.
    pub(crate) fn one(passed: bool) -> Tally {
        Tally { passed: u64::from(passed), failed: u64::from(!passed) }
    }

    /// Counts the checks in the output of `runner`; `ended_well` is its own success. A runner that
    /// ended badly without a failed test (it did not compile, it was killed) counts as one failure;
    /// so does one that ended well without having run anything.
    pub(crate) fn read(runner: Runner, output: &str, ended_well: bool) -> Tally {
        let mut tally = match runner {
            Runner::Program => return Tally::one(ended_well),
            Runner::Cargo => read_cargo(output),
            Runner::Unittest => read_unittest(output),
            Runner::Go => read_go(output),
            Runner::Node => read_node(output),
            Runner::Maven => read_maven(output),
            Runner::Simulation => read_simulation(output),
            Runner::Case => read_case(output),
        };
        if tally.failed == 0 && (!ended_well || tally.passed == 0) {
            tally.failed = 1;
        }
        tally
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

fn read_cargo(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines().filter(|line| line.starts_with("test result: ")) {
        tally.passed += number_before(line, " passed");
        tally.failed += number_before(line, " failed");
    }
    tally
}

/// `Ran N tests` counts those that are skipped too; the result behind it tells how many are.
fn read_unittest(output: &str) -> Tally {
    let (mut tally, mut skipped) = (Tally::default(), 0);
    for line in output.lines() {
        if let Some(ran) = line.strip_prefix("Ran ") {
            tally.passed += first_number(ran);
        }
        let result = line.strip_prefix("FAILED (").or_else(|| line.strip_prefix("OK ("));
        for word in result.into_iter().flat_map(|counts| counts.split(", ")) {
            if is_failure(word) {
                tally.failed += first_number(word);
            } else if word.starts_with("skipped=") {
                skipped += first_number(word);
            }
        }
    }
    tally.passed = tally.passed.saturating_sub(tally.failed + skipped);
    tally
}

fn is_failure(word: &str) -> bool {
    word.starts_with("failures=") || word.starts_with("errors=")
}

fn read_go(output: &str) -> Tally {
    let count = |prefix| output.lines().filter(|line| line.starts_with(prefix)).count() as u64;
    Tally { passed: count("--- PASS: "), failed: count("--- FAIL: ") }
}

fn read_node(output: &str) -> Tally {
    let sum = |prefix| {
        output.lines().filter_map(|line| line.strip_prefix(prefix)).map(first_number).sum()
    };
    let cancelled: u64 = sum("# cancelled ");
    let failed: u64 = sum("# fail ");
    Tally { passed: sum("# pass "), failed: failed + cancelled }
}

/// A line for each class, with its time, and one for each module, without.
fn read_maven(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines().filter(|line| !line.contains("Time elapsed")) {
        let Some((_, counts)) = line.split_once("Tests run: ") else { continue };
        let count = |word| counts.split(", ").find_map(|part| part.strip_prefix(word));
        let failed: u64 =
            ["Failures: ", "Errors: "].map(|w| count(w).map_or(0, first_number)).iter().sum();
        let skipped = count("Skipped: ").map_or(0, first_number);
        tally.failed += failed;
        tally.passed += first_number(counts).saturating_sub(failed + skipped);
    }
    tally
}

/// `N seeds, …` now and then, and `N seeds passed: …` at the end.
fn read_simulation(output: &str) -> Tally {
    let counts = output.lines().filter(|line| line.contains(" seeds"));
    let passed = counts.map(|line| number_before(line, " seeds")).max().unwrap_or(0);
    Tally { passed, failed: 0 }
}

/// A line `PASS …` or `FAIL …` for each check.
fn read_case(output: &str) -> Tally {
    let count = |word| output.lines().filter(|line| line.starts_with(word)).count() as u64;
    Tally { passed: count("PASS "), failed: count("FAIL ") }
}

/// The number that stands before `word`.
fn number_before(line: &str, word: &str) -> u64 {
    let Some(before) = line.find(word).and_then(|end| line.get(..end)) else { return 0 };
    before.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The first number in `text`.
fn first_number(text: &str) -> u64 {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
    numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(runner: Runner, output: &str, ended_well: bool, passed: u64, failed: u64) {
        let tally = Tally::read(runner, output, ended_well);
        assert_eq!(tally, Tally { passed, failed }, "{runner:?}: {output}");
    }

    #[test]
    fn cargo_test_counts_each_binary() {
        let ok = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let bad = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured";
        check(Runner::Cargo, &format!("running 12 tests\n{ok}\n{bad}\n"), false, 15, 2);
        check(Runner::Cargo, ok, true, 12, 0);
        check(Runner::Cargo, "error: could not compile", false, 0, 1);
    }

    #[test]
    fn unittest_counts_runs_and_failures() {
        check(Runner::Unittest, "Ran 40 tests in 9.0s\n\nOK\n", true, 40, 0);
        let bad = "Ran 40 tests in 9.0s\n\nFAILED (failures=1, errors=2, skipped=3)\n";
        check(Runner::Unittest, bad, false, 34, 3);
        check(Runner::Unittest, "Ran 40 tests in 9.0s\n\nOK (skipped=30)\n", true, 10, 0);
        check(Runner::Unittest, "ModuleNotFoundError", false, 0, 1);
    }

    #[test]
    fn go_counts_each_test() {
        check(Runner::Go, "--- PASS: TestA (0.0s)\n--- FAIL: TestB (1.0s)\nFAIL\n", false, 1, 1);
        check(Runner::Go, "ok  \tx\t3.1s\n", true, 0, 1);
    }

    #[test]
    fn node_counts_at_the_end() {
        check(Runner::Node, "# tests 11\n# pass 11\n# fail 0\n# cancelled 0\n", true, 11, 0);
        check(Runner::Node, "# pass 9\n# fail 1\n# cancelled 1\n", false, 9, 2);
    }

    #[test]
    fn maven_counts_by_class_and_module() {
        let class = "[ERROR] Tests run: 9, Failures: 1, Errors: 2, Skipped: 1, Time elapsed: 1 s";
        let module = "[ERROR] Tests run: 20, Failures: 1, Errors: 2, Skipped: 3";
        let other = "[INFO] Tests run: 7, Failures: 0, Errors: 0, Skipped: 0";
        check(Runner::Maven, &format!("{class}\n{module}\n{other}\n"), false, 21, 3);
        check(Runner::Maven, other, true, 7, 0);
        check(Runner::Maven, "[ERROR] COMPILATION ERROR", false, 0, 1);
    }

    #[test]
    fn simulation_ends_at_first_failure() {
        let begun = "1000 seeds, 5 crashes\n2000 seeds, 9 crashes\n";
        check(
            Runner::Simulation,
            &format!("{begun}2500 seeds passed: 11 crashes\n"),
            true,
            2500,
            0,
        );
        check(Runner::Simulation, &format!("{begun}seed 2100 failed: lost\n"), false, 2000, 1);
        check(Runner::Simulation, "nothing", true, 0, 1);
    }

    #[test]
    fn case_prints_line_for_each_check() {
        check(Runner::Case, "PASS it starts\n     a note\nRESULT PASS\n", true, 1, 0);
        check(Runner::Case, "PASS it starts\nFAIL it ends: 3\nRESULT FAIL\n", false, 1, 1);
        check(Runner::Case, "PASS it starts\nTraceback (most recent call last):\n", false, 1, 1);
    }

    #[test]
    fn program_counts_as_one_check() {
        check(Runner::Program, "", true, 1, 0);
        check(Runner::Program, "12 failed", false, 0, 1);
    }
}
