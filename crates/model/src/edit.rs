//! Edits: changes of a value by what it was, as the counters, texts and bits of Redis.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::limits;

/// A change of a value by what it was. No value is an empty one, and a number that is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueEdit {
    /// Add to the integer that the value is. → `Integer`; `Refused` (`NotAnInteger`, `Overflow`)
    Add(i64),
    /// Add to the decimal number that the value is, this one as text. → `Value`; `Refused`
    /// (`NotADecimal`, `NotFinite`)
    AddDecimal(Arc<[u8]>),
    /// Put bytes behind it. → `Count` of its bytes
    Append(Arc<[u8]>),
    /// Put bytes over it from this place on; zeros fill a gap. No bytes change nothing. → `Count`
    /// of its bytes
    Overwrite {
        /// The place.
        offset: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// Read and write groups of bits, one after the other. Zeros are put behind it up to the
    /// farthest that is written. → `Numbers`
    Bits(Vec<BitOperation>),
}

/// One step of [`ValueEdit::Bits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitOperation {
    /// The group of bits.
    pub field: BitField,
    /// The change of it, if any.
    pub action: BitAction,
    /// The rule for a number that the group cannot hold.
    pub overflow: BitOverflow,
}

/// A number in the bits of a value, the most significant bit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// In two's complement.
    pub is_signed: bool,
    /// How many bits: 1 to 64 of a signed number, 1 to 63 of another.
    pub bits: u8,
    /// The place of the first one: 0 is the most significant bit of the first byte.
    pub offset: u64,
}

/// The part of a [`BitOperation`] that reads or changes its [`BitField`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitAction {
    /// Its number is told.
    Get,
    /// It becomes this number; the old one is told.
    Set(i64),
    /// This is added to its number; the new one is told.
    Add(i64),
}

/// The rule for a number that a [`BitField`] cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOverflow {
    /// Its lowest bits stay.
    Wrap,
    /// The nearest number stays that can be held.
    Saturate,
    /// Nothing is changed, and nothing told.
    Fail,
}

impl BitField {
    /// The byte behind its last bit.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.bits as u64).div_ceil(8)
    }

    /// One bit.
    #[must_use]
    pub const fn bit(offset: u64) -> Self {
        Self { is_signed: false, bits: 1, offset }
    }

    /// Its number in a value; the bits behind that are zero.
    #[must_use]
    pub fn number(&self, value: &[u8]) -> i64 {
        let bits = self.places().map(|(byte, bit)| {
            let byte = usize::try_from(byte).ok().and_then(|byte| value.get(byte));
            byte.map_or(0, |byte| u64::from(byte >> bit & 1))
        });
        let number = bits.fold(0, |number: u64, bit| number << 1 | bit);
        if self.is_signed {
            let above = 64 - u32::from(self.bits);
            (number << above).cast_signed() >> above
        } else {
            number.cast_signed()
        }
    }

    /// The byte of each bit, and the bit's place in that, from the most significant bit on.
    pub fn places(&self) -> impl Iterator<Item = (u64, u8)> {
        let (first, bits) = (self.offset, u64::from(self.bits));
        (0..bits).map(move |index| {
            let place = first.saturating_add(index);
            (place / 8, 7 - (place % 8) as u8)
        })
    }

    /// The numbers that it can hold.
    ///
    /// # Panics
    /// If it has no bits, or more than 64.
    #[must_use]
    pub const fn range(&self) -> (i128, i128) {
        assert!(self.bits > 0 && self.bits <= 64, "a field has bits, as many as an integer");
        if self.is_signed {
            let half = 1_i128 << (self.bits - 1);
            (-half, half - 1)
        } else {
            (0, (1_i128 << self.bits) - 1)
        }
    }
}

impl BitOperation {
    /// True if it may change the value.
    #[must_use]
    pub const fn writes(&self) -> bool {
        !matches!(self.action, BitAction::Get)
    }
}

impl ValueEdit {
    /// False if it only reads.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Bits(operations) => operations.iter().any(BitOperation::writes),
            Self::Add(_) | Self::AddDecimal(_) | Self::Append(_) | Self::Overwrite { .. } => true,
        }
    }

    /// Bytes that it brings.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        match self {
            Self::Add(_) => 0,
            Self::AddDecimal(bytes) | Self::Append(bytes) | Self::Overwrite { bytes, .. } => {
                bytes.len()
            }
            Self::Bits(operations) => operations.len() * size_of::<BitOperation>(),
        }
    }

    /// The most bytes that a value of so many has behind it. More than
    /// [`limits::EDITED_BYTES_MAX`]: it is refused.
    #[must_use]
    pub fn bytes_after(&self, before: usize) -> usize {
        match self {
            Self::Add(_) => before.max(INTEGER_BYTES_MAX),
            Self::AddDecimal(_) => before.max(DECIMAL_BYTES_MAX),
            Self::Append(bytes) => before.saturating_add(bytes.len()),
            Self::Overwrite { bytes, .. } if bytes.is_empty() => before,
            Self::Overwrite { offset, bytes } => {
                let offset = usize::try_from(*offset).unwrap_or(usize::MAX);
                before.max(offset.saturating_add(bytes.len()))
            }
            Self::Bits(operations) => {
                let written = operations.iter().filter(|operation| operation.writes());
                let end = written.map(|operation| operation.field.end()).max().unwrap_or(0);
                before.max(usize::try_from(end).unwrap_or(usize::MAX))
            }
        }
    }

    /// The most bytes that any value has behind it.
    #[must_use]
    pub const fn bytes_max(&self) -> usize {
        match self {
            Self::Add(_) => INTEGER_BYTES_MAX,
            Self::AddDecimal(_) => DECIMAL_BYTES_MAX,
            Self::Append(_) | Self::Overwrite { .. } | Self::Bits(_) => limits::EDITED_BYTES_MAX,
        }
    }
}

/// Bytes of an integer of 64 bits as text.
const INTEGER_BYTES_MAX: usize = 20;

/// Bytes of a decimal number as text, as Redis bounds it.
pub const DECIMAL_BYTES_MAX: usize = 5 * 1024;

/// An integer in its one right form: no spaces, no plus, no zeros before it.
#[must_use]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let canonical = match digits {
        [b'0'] => !negative,
        [b'1'..=b'9', ..] => digits.len() <= 19,
        _ => false,
    };
    if !canonical || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn integers_have_one_form() {
        for number in [0, 1, -1, 9, 10, -10, 12_345, i64::MAX, i64::MIN] {
            assert_eq!(parse_integer(number.to_string().as_bytes()), Some(number));
        }
        for wrong in [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "x",
            "9223372036854775808",
            "-9223372036854775809",
            "11111111111111111111",
        ] {
            assert_eq!(parse_integer(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn bit_fields_know_their_bounds() {
        let field = |is_signed, bits, offset| BitField { is_signed, bits, offset };
        assert_eq!(field(true, 64, 0).range(), (i64::MIN.into(), i64::MAX.into()));
        assert_eq!(field(true, 1, 0).range(), (-1, 0));
        assert_eq!(field(false, 63, 0).range(), (0, i64::MAX.into()));
        assert_eq!(field(false, 1, 7).end(), 1);
        assert_eq!(field(false, 2, 7).end(), 2);
        assert_eq!(field(false, 8, u64::MAX).end(), u64::MAX.div_ceil(8));
    }

    #[test]
    fn edits_bound_the_value_they_leave() {
        let bytes: Arc<[u8]> = Arc::from(&b"abc"[..]);
        assert_eq!(ValueEdit::Append(Arc::clone(&bytes)).bytes_after(7), 10);
        let over = |offset| ValueEdit::Overwrite { offset, bytes: Arc::clone(&bytes) };
        assert_eq!(over(2).bytes_after(7), 7);
        assert_eq!(over(6).bytes_after(7), 9);
        assert_eq!(over(u64::MAX).bytes_after(7), usize::MAX);
        let nothing = ValueEdit::Overwrite { offset: 9, bytes: Arc::from(&b""[..]) };
        assert_eq!(nothing.bytes_after(7), 7);
        let operation = |action, offset| BitOperation {
            field: BitField { is_signed: false, bits: 1, offset },
            action,
            overflow: BitOverflow::Wrap,
        };
        let bits = |operations: &[_]| ValueEdit::Bits(operations.to_vec()).bytes_after(0);
        assert_eq!(bits(&[operation(BitAction::Get, 100)]), 0);
        assert_eq!(bits(&[operation(BitAction::Set(0), 15), operation(BitAction::Get, 100)]), 2);
    }
}
