//! Time as the engine knows it: a number it is given.

use core::fmt;
use core::ops::Add;

/// A moment or a span in nanoseconds. Moments count from the Unix epoch on a clock that never goes
/// back, neither while the process runs nor over a restart on the same journal. The server makes it
/// from the wall clock at start plus monotonic time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The epoch, or no time at all.
    pub const ZERO: Self = Self(0);
    /// Later than every other moment.
    pub const MAX: Self = Self(u64::MAX);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// A span of whole seconds; beyond 584 years it is [`Nanos::MAX`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(Self::SECOND.0))
    }

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whole seconds, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0 / Self::SECOND.0
    }

    /// The span that a positive whole number with a unit says, such as `250ms`: us, ms, s, m, h or
    /// d. More than a hundred days is a mistake: times stay far from any overflow.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(unit_at);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let span = number.parse::<u64>().ok()?.checked_mul(*nanos)?;
        (1..=SPAN_MAX.0).contains(&span).then_some(Self(span))
    }

    /// Writes a span as [`Nanos::of_text`] takes it, in the largest unit that it is whole in.
    pub(crate) fn fmt_text(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().find(|(_, nanos)| self.0.is_multiple_of(*nanos));
        let (unit, nanos) = whole.copied().unwrap_or(("ns", 1));
        write!(f, "{}{unit}", self.0 / nanos)
    }

    /// The span from `earlier` to this moment, zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

/// The units of spans in texts, the largest first.
const UNITS: [(&str, u64); 6] = [
    ("d", 24 * 3_600 * Nanos::SECOND.0),
    ("h", 3_600 * Nanos::SECOND.0),
    ("m", 60 * Nanos::SECOND.0),
    ("s", Nanos::SECOND.0),
    ("ms", 1_000_000),
    ("us", 1_000),
];

/// The longest span that a text may say.
const SPAN_MAX: Nanos = Nanos::from_secs(100 * 24 * 3_600);

impl Add for Nanos {
    type Output = Self;

    /// Saturates at [`Nanos::MAX`].
    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.as_secs(), self.0 % Self::SECOND.0)
    }
}
