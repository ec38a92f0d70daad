//! A parsed selector: steps over a small stack of values.
//!
//! The steps stand in the order in which they are taken, operands before their operator, and jumps
//! lead only forwards. So each is taken once at most, nothing calls itself, and how deep the stack
//! grows is known before the first message.

use alloc::boxed::Box;
use core::borrow::Borrow;

use model::PropertyValue;

use crate::limits;
use crate::operators::{self, Arithmetic, Comparison};
use crate::pattern::Pattern;
use crate::value::{Operand, PropertySource, Truth};

/// One step. Operands are taken off the stack, the result is put onto it. Numbers in steps are
/// places in the tables of the [`Program`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    String(usize),
    Name(usize),
    Plus,
    Negate,
    Arithmetic(Arithmetic),
    Compare(Comparison),
    Between,
    Outside,
    In(usize),
    Like(usize),
    IsNull,
    Not,
    And,
    Or,
    /// Goes on at a later step if the topmost value is this boolean, and leaves it there: it
    /// decides an AND or OR alone.
    SkipIf(bool, usize),
}

/// The steps and the constants they refer to.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) steps: Box<[Step]>,
    pub(crate) names: Box<[Box<str>]>,
    pub(crate) strings: Box<[Box<str>]>,
    /// Sorted, for IN.
    pub(crate) lists: Box<[Box<[Box<str>]>]>,
    pub(crate) patterns: Box<[Pattern]>,
    /// How many values are on the stack at once.
    pub(crate) operands_max: usize,
}

/// Steps for which LIKE counts beside its own: it looks at all of a text.
const LIKE_WEIGHT: usize = 63;

/// Enough for nearly every selector, and soon made ready.
const OPERANDS_USUAL: usize = 8;

impl Step {
    /// How many values a step takes off the stack and puts onto it.
    pub(crate) fn effect(self) -> (usize, usize) {
        match self {
            Step::Boolean(_) | Step::Integer(_) | Step::Float(_) => (0, 1),
            Step::String(_) | Step::Name(_) => (0, 1),
            Step::Plus | Step::Negate | Step::In(_) | Step::Like(_) => (1, 1),
            Step::IsNull | Step::Not | Step::SkipIf(..) => (1, 1),
            Step::Arithmetic(_) | Step::Compare(_) | Step::And | Step::Or => (2, 1),
            Step::Between | Step::Outside => (3, 1),
        }
    }
}

impl Program {
    /// Steps of one match, at most.
    pub(crate) fn weight(&self) -> usize {
        let patterns = self.steps.iter().filter(|step| matches!(step, Step::Like(_)));
        self.steps.len() + LIKE_WEIGHT * patterns.count()
    }

    /// The selector's result for a message.
    pub(crate) fn evaluate(&self, properties: &(impl PropertySource + ?Sized)) -> Truth {
        if self.operands_max <= OPERANDS_USUAL {
            self.run(properties, &mut [PropertyValue::Null; OPERANDS_USUAL])
        } else {
            self.run(properties, &mut [PropertyValue::Null; limits::OPERANDS_MAX])
        }
    }

    fn run<'v>(
        &'v self,
        properties: &'v (impl PropertySource + ?Sized),
        below: &mut [PropertyValue<'v>],
    ) -> Truth {
        let mut operands = Operands { top: PropertyValue::Null, below, count: 0 };
        let mut next = 0;
        while let Some(step) = self.steps.get(next) {
            next += 1;
            match *step {
                Step::SkipIf(decided, target) => {
                    assert!(target >= next, "jumps lead forwards");
                    if operands.top == PropertyValue::Boolean(decided) {
                        next = target;
                    }
                }
                step => self.take(step, properties, &mut operands),
            }
        }
        assert!(operands.count == 1, "a program leaves one value");
        operands.top.truth()
    }

    #[inline]
    fn take<'v>(
        &'v self,
        step: Step,
        properties: &'v (impl PropertySource + ?Sized),
        operands: &mut Operands<'_, 'v>,
    ) {
        match step {
            Step::Boolean(value) => operands.push(PropertyValue::Boolean(value)),
            Step::Integer(value) => operands.push(PropertyValue::Integer(value)),
            Step::Float(value) => operands.push(PropertyValue::Float(value)),
            Step::String(index) => operands.push(PropertyValue::String(at(&self.strings, index))),
            Step::Name(index) => operands.push(properties.property(at(&self.names, index))),
            Step::Plus => operands.unary(operators::plus),
            Step::Negate => operands.unary(operators::negate),
            Step::Arithmetic(operator) => operands.binary(|l, r| operator.apply(l, r)),
            Step::Compare(operator) => {
                operands.binary(|l, r| PropertyValue::of(operator.apply(l, r)))
            }
            Step::Between => {
                operands.ternary(|v, l, h| PropertyValue::of(operators::between(v, l, h)))
            }
            Step::Outside => {
                operands.ternary(|v, l, h| PropertyValue::of(operators::outside(v, l, h)))
            }
            Step::In(index) => {
                operands.unary(|value| PropertyValue::of(is_in(value, at(&self.lists, index))))
            }
            Step::Like(index) => {
                operands
                    .unary(|value| PropertyValue::of(is_like(value, at(&self.patterns, index))));
            }
            Step::IsNull => {
                operands.unary(|value| PropertyValue::Boolean(value == PropertyValue::Null))
            }
            Step::Not => operands.unary(|value| PropertyValue::of(operators::not(value.truth()))),
            Step::And => {
                operands.binary(|l, r| PropertyValue::of(operators::and(l.truth(), r.truth())))
            }
            Step::Or => {
                operands.binary(|l, r| PropertyValue::of(operators::or(l.truth(), r.truth())))
            }
            Step::SkipIf(..) => unreachable!("jumps are taken where the next step is chosen"),
        }
    }
}

/// IN, over a sorted list: unknown for a value that is no string.
fn is_in(value: PropertyValue<'_>, list: &[Box<str>]) -> Truth {
    let found = |text: &str| list.binary_search_by(|entry| (**entry).cmp(text)).is_ok();
    value.string().map(found)
}

/// LIKE: unknown for an unknown value, false for a value that is no string.
fn is_like(value: PropertyValue<'_>, pattern: &Pattern) -> Truth {
    is_known(value).then(|| value.string().is_some_and(|text| pattern.matches(text)))
}

/// True if a condition on it can be true or false.
fn is_known(value: PropertyValue<'_>) -> bool {
    !matches!(value, PropertyValue::Null | PropertyValue::Opaque)
}

fn at<T: ?Sized>(table: &[impl Borrow<T>], index: usize) -> &T {
    table
        .get(index)
        .map(Borrow::borrow)
        .expect("invariant: a step refers to what was drafted with it")
}

/// The stack. Its topmost value is kept apart, where most steps find all that they need.
struct Operands<'s, 'v> {
    top: PropertyValue<'v>,
    /// The operands below, `count` of them; the lowest is no operand.
    below: &'s mut [PropertyValue<'v>],
    count: usize,
}

impl<'v> Operands<'_, 'v> {
    fn push(&mut self, value: PropertyValue<'v>) {
        let slot = self.below.get_mut(self.count);
        *slot.expect("invariant: the draft counted the operands") = self.top;
        self.count += 1;
        self.top = value;
    }

    /// Takes the topmost value but one.
    fn take_second(&mut self) -> PropertyValue<'v> {
        assert!(self.count > 1, "an operator has its operands");
        self.count -= 1;
        self.below.get(self.count).copied().unwrap_or(PropertyValue::Null)
    }

    fn unary(&mut self, apply: impl FnOnce(PropertyValue<'v>) -> PropertyValue<'v>) {
        self.top = apply(self.top);
    }

    fn binary(
        &mut self,
        apply: impl FnOnce(PropertyValue<'v>, PropertyValue<'v>) -> PropertyValue<'v>,
    ) {
        self.top = apply(self.take_second(), self.top);
    }

    fn ternary<A>(&mut self, apply: A)
    where
        A: FnOnce(PropertyValue<'v>, PropertyValue<'v>, PropertyValue<'v>) -> PropertyValue<'v>,
    {
        let middle = self.take_second();
        self.top = apply(self.take_second(), middle, self.top);
    }
}
