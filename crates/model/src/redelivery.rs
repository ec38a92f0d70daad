//! How long a message that comes back is hidden before its next delivery.

use core::fmt;

use crate::{MIXED_STEP, MessageId, Nanos, mixed};

/// The rules of a queue for that. By default a message is ready again at once, as in Artemis and
/// RabbitMQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redelivery {
    /// After the first failed delivery, and each time a client gives it back; `None`: not at all.
    pub delay: Option<Nanos>,
    /// The factor by which each further failed delivery multiplies it.
    pub factor: Thousandths,
    /// The longest that comes of it; `None`: ten times the delay.
    pub delay_max: Option<Nanos>,
    /// The share of it by which the delay is longer or shorter, differently for each message and
    /// attempt. So messages that failed together do not come back together.
    pub jitter: Thousandths,
}

/// A decimal number with three places, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thousandths(pub u32);

impl Redelivery {
    /// How long a message of which so many deliveries have failed is hidden; none: not at all.
    ///
    /// It follows from these alone, so that it is the same whenever it is asked for.
    #[must_use]
    pub fn delay_of(&self, message: MessageId, failed: u32) -> Option<Nanos> {
        let delay = self.delay?;
        let most = self.delay_max.unwrap_or_else(|| Nanos(delay.0.saturating_mul(MAX_FACTOR)));
        let grown = grow(delay, self.factor, failed.saturating_sub(1), most);
        Some(spread(grown, self.jitter, mix(message.0, failed)).min(most).max(Nanos(1)))
    }
}

impl Default for Redelivery {
    fn default() -> Self {
        let (factor, jitter) = (Thousandths::ONE, Thousandths(0));
        Self { delay: None, factor, delay_max: None, jitter }
    }
}

impl Thousandths {
    /// 1
    pub const ONE: Self = Self(1_000);

    /// The number in a text, such as `2` or `0.25`; `None`: no number below 4,294,968 with three
    /// decimal places at most.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_plain =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain(whole) || !is_plain(part) || part.len() > PLACES {
            return None;
        }
        let scale = 10_u32.pow((PLACES - part.len()) as u32);
        let part = part.parse::<u32>().ok()?.checked_mul(scale)?;
        whole.parse::<u32>().ok()?.checked_mul(Self::ONE.0)?.checked_add(part).map(Self)
    }
}

/// As [`Thousandths::of_text`] takes it, without zeros at the end.
impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / Self::ONE.0, self.0 % Self::ONE.0);
        match part {
            0 => whole.fmt(f),
            part if part % 100 == 0 => write!(f, "{whole}.{}", part / 100),
            part if part % 10 == 0 => write!(f, "{whole}.{:02}", part / 10),
            part => write!(f, "{whole}.{part:03}"),
        }
    }
}

/// Multiplied so many times, by squaring, until it is beyond `most`.
fn grow(delay: Nanos, factor: Thousandths, times: u32, most: Nanos) -> Nanos {
    let one = u128::from(Thousandths::ONE.0);
    // With places behind the point, so that many small steps add up.
    let mut square = (u128::from(factor.0) << FRACTION_BITS) / one;
    let mut power = 1_u128 << FRACTION_BITS;
    let mut left = times;
    let limit = u128::from(u64::MAX);
    while left > 0 {
        if left % 2 == 1 {
            power = (power.saturating_mul(square) >> FRACTION_BITS).min(limit);
        }
        square = (square.saturating_mul(square) >> FRACTION_BITS).min(limit);
        left /= 2;
    }
    let grown = u128::from(delay.0).saturating_mul(power) >> FRACTION_BITS;
    u64::try_from(grown).map_or(most, Nanos).min(most)
}

/// Longer or shorter by up to that share, as the last bits of `draw` say.
fn spread(delay: Nanos, jitter: Thousandths, draw: u64) -> Nanos {
    let width = u128::from(delay.0) * u128::from(jitter.0) / u128::from(Thousandths::ONE.0);
    let width = u64::try_from(width).unwrap_or(delay.0).min(delay.0);
    let shift = (u128::from(draw) * u128::from(width) * 2) >> u64::BITS;
    let shift = u64::try_from(shift).unwrap_or(0);
    Nanos((delay.0 - width).saturating_add(shift))
}

/// Bits that look as if drawn, of these two numbers.
const fn mix(message: u64, failed: u32) -> u64 {
    mixed(message.wrapping_mul(MIXED_STEP) ^ ((failed as u64) << 32))
}

/// A millionth is told apart, and a microsecond grows to a hundred days.
const FRACTION_BITS: u32 = 20;

/// How much longer than the first the longest delay is, if the rules do not say: as in Artemis.
const MAX_FACTOR: u64 = 10;

const PLACES: usize = 3;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    fn rules(factor: &str, jitter: &str) -> Redelivery {
        Redelivery {
            delay: Some(Nanos::from_millis(100)),
            factor: Thousandths::of_text(factor).unwrap(),
            delay_max: None,
            jitter: Thousandths::of_text(jitter).unwrap(),
        }
    }

    fn millis(rules: &Redelivery, failures: &[u32]) -> Vec<u64> {
        let delay = |failed: &u32| rules.delay_of(MessageId(7), *failed).unwrap().0 / 1_000_000;
        failures.iter().map(delay).collect()
    }

    #[test]
    fn delays_grow_up_to_their_maximum() {
        assert_eq!(Redelivery::default().delay_of(MessageId(1), 3), None);
        assert_eq!(millis(&rules("1", "0"), &[0, 1, 2, u32::MAX]), [100, 100, 100, 100]);
        assert_eq!(
            millis(&rules("2", "0"), &[0, 1, 2, 3, 4, 5, 6]),
            [100, 100, 200, 400, 800, 1_000, 1_000]
        );
        let wide = Redelivery { delay_max: Some(Nanos::from_secs(86_400)), ..rules("1.5", "0") };
        assert_eq!(millis(&wide, &[2, 3, 4, 5, 11]), [150, 225, 337, 506, 5_766]);
        assert_eq!(millis(&wide, &[u32::MAX]), [86_400_000]);
        let slow = Redelivery { delay_max: wide.delay_max, ..rules("1.001", "0") };
        assert_eq!(millis(&slow, &[1_001]), [271], "small steps add up");
        let short = Redelivery { delay_max: Some(Nanos::from_millis(30)), ..rules("2", "0") };
        assert_eq!(millis(&short, &[1, 2]), [30, 30], "the maximum holds from the first on");
    }

    #[test]
    fn jitter_spreads_evenly_and_repeats() {
        let rules = rules("1", "0.2");
        let all: Vec<_> = (1..=1_000)
            .map(|number| rules.delay_of(MessageId(number), 1).unwrap().0 / 1_000)
            .collect();
        assert!(all.iter().all(|micros| (80_000..120_000).contains(micros)), "{all:?}");
        let below = all.iter().filter(|micros| **micros < 90_000).count();
        assert!((200..300).contains(&below), "a quarter is in the first quarter: {below}");
        assert_eq!(rules.delay_of(MessageId(3), 2), rules.delay_of(MessageId(3), 2));
        assert_ne!(rules.delay_of(MessageId(3), 2), rules.delay_of(MessageId(3), 3));
    }

    #[test]
    fn thousandths_text_round_trips() {
        for text in ["0", "1", "1.5", "0.25", "2.001", "0.01", "4294967.295"] {
            assert_eq!(Thousandths::of_text(text).unwrap().to_string(), text);
        }
        assert_eq!(Thousandths::of_text("2.50"), Some(Thousandths(2_500)));
        for text in ["", ".5", "1.", "-1", "+1", "1.0001", "1e3", "4294968", "1,5", "١"] {
            assert_eq!(Thousandths::of_text(text), None, "{text}");
        }
    }
}
