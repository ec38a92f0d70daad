//! The operators on values: the rules of section 3.8.1.2, and nothing about their order.

use core::cmp::Ordering;

use model::PropertyValue;

use crate::value::{Operand, Truth};

/// `=`, `<>`, `<`, `<=`, `>`, `>=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// `+`, `-`, `*`, `/` between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Comparison {
    /// True if it asks which value is larger, which only numbers can answer.
    pub(crate) fn orders(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }

    /// Compares two values.
    pub(crate) fn apply(self, left: PropertyValue<'_>, right: PropertyValue<'_>) -> Truth {
        match (left, right) {
            // Jakarta Messaging 3.1, 3.8.1.2: "If either of the type values evaluates to NULL, the
            // value of the expression is unknown." The same holds for an opaque value: if it was
            // false, NOT of it would be true of any content.
            (PropertyValue::Null | PropertyValue::Opaque, _)
            | (_, PropertyValue::Null | PropertyValue::Opaque) => None,
            (PropertyValue::Integer(left), PropertyValue::Integer(right)) => {
                Some(self.accepts(Some(left.cmp(&right))))
            }
            (PropertyValue::String(left), PropertyValue::String(right)) => {
                Some(self.equates(left == right))
            }
            (PropertyValue::Boolean(left), PropertyValue::Boolean(right)) => {
                Some(self.equates(left == right))
            }
            // "If the comparison of non-like type values is attempted, the value of the operation
            // is false", and exact and approximate numbers are like.
            _ => match (left.float(), right.float()) {
                (Some(left), Some(right)) => Some(self.accepts(left.partial_cmp(&right))),
                _ => Some(false),
            },
        }
    }

    /// True if numbers in this order satisfy it; NaN has none.
    fn accepts(self, order: Option<Ordering>) -> bool {
        match self {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }

    /// True if strings or booleans, the same or not, satisfy it.
    fn equates(self, same: bool) -> bool {
        match self {
            Comparison::Equal => same,
            Comparison::NotEqual => !same,
            _ => false,
        }
    }
}

impl Arithmetic {
    /// Computes; null for an operand that is no number, and for a division by zero.
    pub(crate) fn apply(
        self,
        left: PropertyValue<'_>,
        right: PropertyValue<'_>,
    ) -> PropertyValue<'static> {
        let (Some(left_float), Some(right_float)) = (left.float(), right.float()) else {
            return PropertyValue::Null;
        };
        if self == Arithmetic::Divide && right_float == 0.0 {
            return PropertyValue::Null;
        }
        if let (PropertyValue::Integer(left), PropertyValue::Integer(right)) = (left, right)
            && let Some(exact) = self.exact(left, right)
        {
            return PropertyValue::Integer(exact);
        }
        PropertyValue::Float(self.approximate(left_float, right_float))
    }

    /// Computes with integers, as long as the result is one of 64 bits.
    fn exact(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Arithmetic::Add => left.checked_add(right),
            Arithmetic::Subtract => left.checked_sub(right),
            Arithmetic::Multiply => left.checked_mul(right),
            Arithmetic::Divide => left.checked_div(right),
        }
    }

    fn approximate(self, left: f64, right: f64) -> f64 {
        match self {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
        }
    }
}

/// `-value`; null for a value that is no number.
pub(crate) fn negate(value: PropertyValue<'_>) -> PropertyValue<'_> {
    match value {
        PropertyValue::Integer(exact) => exact
            .checked_neg()
            .map_or(PropertyValue::Float(-(exact as f64)), PropertyValue::Integer),
        PropertyValue::Float(approximate) => PropertyValue::Float(-approximate),
        _ => PropertyValue::Null,
    }
}

/// `+value`; null for a value that is no number.
pub(crate) fn plus(value: PropertyValue<'_>) -> PropertyValue<'_> {
    match value {
        PropertyValue::Integer(exact) => PropertyValue::Integer(exact),
        PropertyValue::Float(approximate) => PropertyValue::Float(approximate),
        _ => PropertyValue::Null,
    }
}

/// AND: false if one is false, unknown if one is unknown.
pub(crate) fn and(left: Truth, right: Truth) -> Truth {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// OR: true if one is true, unknown if one is unknown.
pub(crate) fn or(left: Truth, right: Truth) -> Truth {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// NOT: unknown stays so.
pub(crate) fn not(operand: Truth) -> Truth {
    operand.map(|truth| !truth)
}

/// BETWEEN: the bounds belong to it.
pub(crate) fn between(
    value: PropertyValue<'_>,
    low: PropertyValue<'_>,
    high: PropertyValue<'_>,
) -> Truth {
    and(Comparison::GreaterOrEqual.apply(value, low), Comparison::LessOrEqual.apply(value, high))
}

/// NOT BETWEEN.
pub(crate) fn outside(
    value: PropertyValue<'_>,
    low: PropertyValue<'_>,
    high: PropertyValue<'_>,
) -> Truth {
    or(Comparison::Less.apply(value, low), Comparison::Greater.apply(value, high))
}
