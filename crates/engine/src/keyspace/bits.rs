//! Numbers in the bits of a value.

use model::{BitAction, BitField, BitOperation, BitOverflow};

/// Does one step; the value has all bits that it writes. Tells the number that the step tells:
/// none if the field cannot hold it and the step is to fail then.
pub(crate) fn perform(operation: &BitOperation, value: &mut [u8]) -> Option<i64> {
    let BitOperation { field, action, overflow } = operation;
    let before = field.number(value);
    let (wanted, tells_old) = match action {
        BitAction::Get => return Some(before),
        // As Redis takes it: a negative number is a large one of a field without a sign.
        BitAction::Set(number) if !field.is_signed => (i128::from(number.cast_unsigned()), true),
        BitAction::Set(number) => (i128::from(*number), true),
        BitAction::Add(more) => (i128::from(before) + i128::from(*more), false),
    };
    let number = held(field, wanted, *overflow)?;
    set(field, number, value);
    debug_assert_eq!(field.number(value), number, "a field has the number that it was given");
    Some(if tells_old { before } else { number })
}

fn set(field: &BitField, number: i64, value: &mut [u8]) {
    let (least, most) = field.range();
    assert!((least..=most).contains(&number.into()), "a field holds its number");
    for (index, (byte, bit)) in field.places().enumerate() {
        let is_one = number.cast_unsigned() >> (usize::from(field.bits) - 1 - index) & 1;
        let byte = usize::try_from(byte).ok().and_then(|byte| value.get_mut(byte));
        let byte = byte.expect("invariant: the value was made long enough");
        *byte = *byte & !(1 << bit) | (is_one as u8) << bit;
    }
}

/// The number that stays of one that may be too large or too small.
fn held(field: &BitField, number: i128, overflow: BitOverflow) -> Option<i64> {
    let (least, most) = field.range();
    let held = match overflow {
        _ if (least..=most).contains(&number) => number,
        BitOverflow::Fail => return None,
        BitOverflow::Saturate => number.clamp(least, most),
        BitOverflow::Wrap => (number - least).rem_euclid(most - least + 1) + least,
    };
    Some(i64::try_from(held).expect("invariant: a field holds 64 bits with a sign, or 63"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(
        (is_signed, bits, offset): (bool, u8, u64),
        action: BitAction,
        overflow: BitOverflow,
        value: &mut [u8],
    ) -> Option<i64> {
        let field = BitField { is_signed, bits, offset };
        perform(&BitOperation { field, action, overflow }, value)
    }

    #[test]
    fn fields_lie_across_bytes() {
        let mut value = [0_u8; 3];
        let wrap = BitOverflow::Wrap;
        assert_eq!(step((false, 8, 4), BitAction::Set(0xab), wrap, &mut value), Some(0));
        assert_eq!(value, [0x0a, 0xb0, 0]);
        assert_eq!(step((true, 8, 4), BitAction::Get, wrap, &mut value), Some(0xab - 256));
        assert_eq!(step((false, 63, 1), BitAction::Get, wrap, &mut value), Some(0x0ab0 << 48));
        assert_eq!(step((true, 64, u64::MAX), BitAction::Get, wrap, &mut value), Some(0));
    }

    #[test]
    fn overflow_wraps_saturates_or_fails() {
        let add = |overflow, start: i64, more| {
            let mut value = [start.cast_unsigned() as u8];
            let told = step((true, 8, 0), BitAction::Add(more), overflow, &mut value);
            (told, value[0].cast_signed())
        };
        assert_eq!(add(BitOverflow::Wrap, 127, 1), (Some(-128), -128));
        assert_eq!(add(BitOverflow::Wrap, -128, i64::MIN), (Some(-128), -128));
        assert_eq!(add(BitOverflow::Saturate, 100, i64::MAX), (Some(127), 127));
        assert_eq!(add(BitOverflow::Saturate, -100, -100), (Some(-128), -128));
        assert_eq!(add(BitOverflow::Fail, 127, 1), (None, 127));
        let mut value = [0_u8];
        let set = BitAction::Set(-1);
        assert_eq!(step((false, 4, 0), set, BitOverflow::Saturate, &mut value), Some(0));
        assert_eq!(value, [0xf0]);
    }

    #[test]
    fn widest_fields_hold_their_bounds() {
        let mut value = [0_u8; 8];
        for number in [i64::MIN, -1, 0, i64::MAX] {
            step((true, 64, 0), BitAction::Set(number), BitOverflow::Fail, &mut value);
            assert_eq!(i64::from_be_bytes(value), number);
        }
        let more = BitAction::Add(1);
        assert_eq!(step((true, 64, 0), more, BitOverflow::Wrap, &mut value), Some(i64::MIN));
    }
}
