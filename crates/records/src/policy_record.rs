//! The rules that a queue was given while the broker ran, as a record says them.
//!
//! ```text
//! OwnPolicy 21 · name bytes · rules varint, a bit for each that was given · of each, in this order
//!              bit 0  release order byte: 0 front, 1 back
//!              bit 1  attempts varint of at most 2^32 - 1, 0 for any number
//!              bit 2  dead letters byte: 0 park, 1 drop, 2 park what is persistent
//!              bit 3  pop lease varint, 0 for none
//!              bit 4  messages varint, 0 for any number
//!              bit 5  bytes varint, 0 for any number
//!              bit 6  when full byte: 0 block, 1 reject, 2 drop the oldest, 3 dead letter,
//!                     4 disconnect
//!              bit 7  target age varint, 0 for none
//!              bit 8  redelivery delay varint, 0 for none
//!              bit 9  redelivery factor varint, in thousandths: 1,000 to 1,000,000
//!              bit 10 longest redelivery delay varint, 0 for none
//!              bit 11 redelivery jitter varint, in thousandths: 0 to 1,000
//! ```
//! It states all rules of the queue's own, so the last one holds; without any it has none.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use model::{
    DeadLetters, Nanos, OwnPolicy, QueueRule, ReleaseOrder, RuleKey, Thousandths, WhenFull,
};

use crate::codec::text;
use crate::record::{FieldValue, RecordError};
use crate::wire::{Reader, put_bytes, put_varint};

/// A queue's own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnPolicyView<'a> {
    /// The queue, or the topic of subscriptions.
    pub name: &'a str,
    /// All of them.
    pub own: OwnPolicy,
}

impl<'a> OwnPolicyView<'a> {
    pub(crate) fn put(&self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        put_bytes(out, self.name.as_bytes());
        let given: u64 = self.own.iter().map(|rule| bit_of(rule.key())).sum();
        assert_eq!(given.count_ones() as usize, self.own.iter().count(), "each rule is given once");
        put_varint(out, given);
        self.own.iter().for_each(|rule| put_rule(out, rule));
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let name = text(reader, "name")?;
        let given = reader.varint()?;
        if given & !RuleKey::ALL.into_iter().map(bit_of).sum::<u64>() != 0 {
            return Err(RecordError::Invalid("rules"));
        }
        let mut own = OwnPolicy::default();
        for key in RuleKey::ALL.into_iter().filter(|key| given & bit_of(*key) != 0) {
            own.set(read_rule(key, reader)?);
        }
        Ok(Self { name, own })
    }

    pub(crate) fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("name", FieldValue::Text(self.name));
        for rule in self.own.iter() {
            each(rule.key().word(), FieldValue::Text(&rule.to_string()));
        }
    }
}

const fn bit_of(key: RuleKey) -> u64 {
    match key {
        RuleKey::ReleaseOrder => 1,
        RuleKey::MaxDeliveryAttempts => 1 << 1,
        RuleKey::DeadLetters => 1 << 2,
        RuleKey::PopLease => 1 << 3,
        RuleKey::MessagesMax => 1 << 4,
        RuleKey::BytesMax => 1 << 5,
        RuleKey::WhenFull => 1 << 6,
        RuleKey::TargetAge => 1 << 7,
        RuleKey::RedeliveryDelay => 1 << 8,
        RuleKey::RedeliveryFactor => 1 << 9,
        RuleKey::RedeliveryMax => 1 << 10,
        RuleKey::RedeliveryJitter => 1 << 11,
    }
}

fn put_rule(out: &mut Vec<u8>, rule: QueueRule) {
    match rule {
        QueueRule::ReleaseOrder(ReleaseOrder::Front)
        | QueueRule::DeadLetters(DeadLetters::Park)
        | QueueRule::WhenFull(WhenFull::Block) => out.push(0),
        QueueRule::ReleaseOrder(ReleaseOrder::Back)
        | QueueRule::DeadLetters(DeadLetters::Drop)
        | QueueRule::WhenFull(WhenFull::Reject) => out.push(1),
        QueueRule::DeadLetters(DeadLetters::ParkPersistent)
        | QueueRule::WhenFull(WhenFull::DropOldest) => out.push(2),
        QueueRule::WhenFull(WhenFull::DeadLetter) => out.push(3),
        QueueRule::WhenFull(WhenFull::Disconnect) => out.push(4),
        QueueRule::MaxDeliveryAttempts(attempts) => put_varint(out, attempts.into()),
        QueueRule::MessagesMax(number) | QueueRule::BytesMax(number) => {
            put_above_zero(out, number);
        }
        QueueRule::PopLease(span)
        | QueueRule::TargetAge(span)
        | QueueRule::RedeliveryDelay(span)
        | QueueRule::RedeliveryMax(span) => put_above_zero(out, span.map(|span| span.0)),
        QueueRule::RedeliveryFactor(number) => {
            assert!(QueueRule::FACTORS.contains(&number), "no reader takes another factor");
            put_varint(out, number.0.into());
        }
        QueueRule::RedeliveryJitter(number) => {
            assert!(number <= Thousandths::ONE, "no reader takes a larger share");
            put_varint(out, number.0.into());
        }
    }
}

/// As [`above_zero`] reads it: zero stands for none.
fn put_above_zero(out: &mut Vec<u8>, number: Option<u64>) {
    assert_ne!(number, Some(0), "a reader takes zero for none");
    put_varint(out, number.unwrap_or(0));
}

fn read_rule(key: RuleKey, reader: &mut Reader<'_>) -> Result<QueueRule, RecordError> {
    let invalid = || RecordError::Invalid(key.word());
    Ok(match key {
        RuleKey::ReleaseOrder => QueueRule::ReleaseOrder(match reader.byte()? {
            0 => ReleaseOrder::Front,
            1 => ReleaseOrder::Back,
            _ => return Err(invalid()),
        }),
        RuleKey::MaxDeliveryAttempts => QueueRule::MaxDeliveryAttempts(reader.small()?),
        RuleKey::DeadLetters => QueueRule::DeadLetters(match reader.byte()? {
            0 => DeadLetters::Park,
            1 => DeadLetters::Drop,
            2 => DeadLetters::ParkPersistent,
            _ => return Err(invalid()),
        }),
        RuleKey::PopLease => QueueRule::PopLease(above_zero(reader)?.map(Nanos)),
        RuleKey::MessagesMax => QueueRule::MessagesMax(above_zero(reader)?),
        RuleKey::BytesMax => QueueRule::BytesMax(above_zero(reader)?),
        RuleKey::WhenFull => QueueRule::WhenFull(match reader.byte()? {
            0 => WhenFull::Block,
            1 => WhenFull::Reject,
            2 => WhenFull::DropOldest,
            3 => WhenFull::DeadLetter,
            4 => WhenFull::Disconnect,
            _ => return Err(invalid()),
        }),
        RuleKey::TargetAge => QueueRule::TargetAge(above_zero(reader)?.map(Nanos)),
        RuleKey::RedeliveryDelay => QueueRule::RedeliveryDelay(above_zero(reader)?.map(Nanos)),
        RuleKey::RedeliveryFactor => {
            let number = Thousandths(reader.small()?);
            let is_factor = QueueRule::FACTORS.contains(&number);
            QueueRule::RedeliveryFactor(Some(number).filter(|_| is_factor).ok_or_else(invalid)?)
        }
        RuleKey::RedeliveryMax => QueueRule::RedeliveryMax(above_zero(reader)?.map(Nanos)),
        RuleKey::RedeliveryJitter => {
            let number = Thousandths(reader.small()?);
            let is_share = number <= Thousandths::ONE;
            QueueRule::RedeliveryJitter(Some(number).filter(|_| is_share).ok_or_else(invalid)?)
        }
    })
}

fn above_zero(reader: &mut Reader<'_>) -> Result<Option<u64>, RecordError> {
    let number = reader.varint()?;
    Ok((number > 0).then_some(number))
}
