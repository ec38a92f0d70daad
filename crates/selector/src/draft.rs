//! A program while it is written: it grows step by step within the limits.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Reason;
use crate::limits;
use crate::pattern::Pattern;
use crate::program::{Program, Step};

/// The beginning of a [`Program`].
#[derive(Debug, Default)]
pub(crate) struct Draft<'t> {
    steps: Vec<Step>,
    names: Vec<Box<str>>,
    places: BTreeMap<&'t str, usize>,
    strings: Vec<Box<str>>,
    lists: Vec<Box<[Box<str>]>>,
    patterns: Vec<Pattern>,
    operands: usize,
    operands_max: usize,
}

/// A jump that does not know yet where it leads.
#[derive(Debug)]
pub(crate) struct Skip(usize);

impl<'t> Draft<'t> {
    /// One step more.
    pub(crate) fn push(&mut self, step: Step) -> Result<(), Reason> {
        if self.steps.len() == limits::STEPS_MAX {
            return Err(Reason::TooManySteps);
        }
        let (taken, put) = step.effect();
        assert!(taken <= self.operands, "an operator follows its operands");
        self.operands = self.operands - taken + put;
        if self.operands > limits::OPERANDS_MAX {
            return Err(Reason::TooDeep);
        }
        self.operands_max = self.operands_max.max(self.operands);
        self.steps.push(step);
        Ok(())
    }

    /// A property, as it is written. Each name is kept once.
    pub(crate) fn push_name(&mut self, written: &'t str) -> Result<(), Reason> {
        let place = *self.places.entry(written).or_insert(self.names.len());
        if place == self.names.len() {
            self.names.push(unquote(written, '"').into());
        }
        self.push(Step::Name(place))
    }

    /// A literal string.
    pub(crate) fn push_string(&mut self, text: String) -> Result<(), Reason> {
        self.strings.push(text.into());
        self.push(Step::String(self.strings.len() - 1))
    }

    /// IN, over the operand before it.
    pub(crate) fn push_in(&mut self, mut list: Vec<Box<str>>) -> Result<(), Reason> {
        list.sort_unstable();
        list.dedup();
        self.lists.push(list.into());
        self.push(Step::In(self.lists.len() - 1))
    }

    /// LIKE, over the operand before it.
    pub(crate) fn push_like(&mut self, pattern: Pattern) -> Result<(), Reason> {
        self.patterns.push(pattern);
        self.push(Step::Like(self.patterns.len() - 1))
    }

    /// A jump over the next steps if the value before it is `decided`.
    pub(crate) fn push_skip(&mut self, decided: bool) -> Result<Skip, Reason> {
        self.push(Step::SkipIf(decided, usize::MAX))?;
        Ok(Skip(self.steps.len() - 1))
    }

    /// Lets jumps lead here.
    pub(crate) fn land(&mut self, skips: Vec<Skip>) {
        let here = self.steps.len();
        for Skip(place) in skips {
            assert!(place < here, "jumps lead forwards");
            if let Some(Step::SkipIf(_, target)) = self.steps.get_mut(place) {
                *target = here;
            }
        }
    }

    /// The finished program.
    pub(crate) fn finish(self) -> Program {
        assert!(self.operands == 1, "a program leaves one value");
        let open = |step: &Step| matches!(step, Step::SkipIf(_, target) if *target == usize::MAX);
        assert!(!self.steps.iter().any(open), "every jump leads somewhere");
        Program {
            steps: self.steps.into(),
            names: self.names.into(),
            strings: self.strings.into(),
            lists: self.lists.into(),
            patterns: self.patterns.into(),
            operands_max: self.operands_max,
        }
    }
}

/// The meaning of quoted text: two quotes stand for one.
pub(crate) fn unquote(written: &str, quote: char) -> String {
    let mut meant = String::with_capacity(written.len());
    let mut parts = written.split(quote);
    meant.extend(parts.next());
    while let Some(part) = parts.nth(1) {
        meant.push(quote);
        meant.push_str(part);
    }
    meant
}
