//! Collections: keys that stand for fields with values (a hash, which is a table), for members (a
//! set), or for members with scores (a sorted set). Streams have commands of their own:
//! [`crate::StreamCommand`].
//!
//! A collection is there while it holds something. Fields and members are any bytes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Bound;

use crate::{KeyKind, Nanos, OneOrMany, QueueName, ValueEdit};

/// The kind of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionKind {
    /// Fields with values.
    Hash,
    /// Members.
    Set,
    /// Members with scores, in the order of score and member.
    SortedSet,
    /// Entries with ids, in the order of these, and groups of consumers. A command that is for all
    /// kinds has nothing to do with them.
    Stream,
}

/// The number by which a member of a sorted set has its place: any but NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Score(u64);

/// Commands on collections. A key of another kind is refused (`WrongKind`); no key is an empty
/// collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectionCommand {
    /// Set fields of a hash. → `Count` of those that are new; with `only_new` `Count(0)` and
    /// nothing set if the first is there
    SetFields {
        /// The hash.
        name: QueueName,
        /// Fields and values, at least one. Of a field that comes twice the last value stays.
        fields: Vec<FieldAndValue>,
        /// Only if there is no such field; then there is one.
        only_new: bool,
    },
    /// Change a field of a hash by what it was. → as [`ValueEdit`] says
    EditField {
        /// The hash.
        name: QueueName,
        /// The field.
        field: Arc<[u8]>,
        /// The change.
        edit: ValueEdit,
    },
    /// Add members to a set. → `Count` of those that are new
    AddMembers {
        /// The set.
        name: QueueName,
        /// At least one.
        members: OneOrMany<Arc<[u8]>>,
    },
    /// Add members to a sorted set, or change their scores. → `Count`, or `Scores` with
    /// `rule.adds`; `Refused` (`ScoreNotANumber`)
    SetScores {
        /// The sorted set.
        name: QueueName,
        /// At least one.
        members: Vec<(Score, Arc<[u8]>)>,
        /// Which scores are set.
        rule: ScoreRule,
    },
    /// Take fields or members out. → `Count` of those that were there
    RemoveFields {
        /// The collection.
        name: QueueName,
        /// Its kind.
        kind: CollectionKind,
        /// At least one.
        fields: OneOrMany<Arc<[u8]>>,
    },
    /// Look for fields or members. → of a hash `Value` of one, `Values` of several; of a set
    /// `Numbers`, each 1 or 0; of a sorted set `Scores`
    FindFields {
        /// The collection.
        name: QueueName,
        /// Its kind.
        kind: CollectionKind,
        /// At least one.
        fields: OneOrMany<Arc<[u8]>>,
    },
    /// How many fields or members there are. → `Count`
    CountFields {
        /// The collection.
        name: QueueName,
        /// Its kind.
        kind: CollectionKind,
    },
    /// Show all fields or members at one moment: a sorted set in its order, others in the order of
    /// their bytes. → `Entries`; `Refused` (`TooManyBytes`)
    ShowFields {
        /// The collection.
        name: QueueName,
        /// Its kind.
        kind: CollectionKind,
    },
    /// Show some in the order of their bytes. → `Entries`
    ScanFields {
        /// The collection.
        name: QueueName,
        /// Its kind.
        kind: CollectionKind,
        /// The beginning of them.
        from: Bound<Arc<[u8]>>,
        /// How many are looked at.
        max: usize,
    },
    /// Keep a picture of a collection as it is now, to show it page by page. → `Picture`
    TakePicture {
        /// The collection.
        name: QueueName,
        /// Its kind.
        kind: CollectionKind,
    },
    /// Show some of a picture in the order of their bytes. → `Entries`; `NotFound`: it is over
    ShowPicture {
        /// Its number.
        picture: u64,
        /// The collection that it is of.
        name: QueueName,
        /// The beginning of them.
        from: Bound<Arc<[u8]>>,
        /// How many are looked at.
        max: usize,
    },
    /// A picture is not needed any more. → `Done`, also when it was not there
    EndPicture {
        /// Its number.
        picture: u64,
        /// The collection that it is of.
        name: QueueName,
    },
    /// Show some by chance. → `Entries`; `Refused`
    PickFields {
        /// The collection.
        name: QueueName,
        /// Its kind.
        kind: CollectionKind,
        /// How many.
        max: u64,
        /// Each at most once; else exactly so many, if there is any.
        distinct: bool,
        /// Take them out as well: only if `distinct`.
        take: bool,
        /// The chance: another number, other fields.
        seed: u64,
    },
    /// Move a member from one set to another. → `Count(1)`; `Count(0)` if it is not there
    MoveMember {
        /// The set that has it.
        from: QueueName,
        /// The set that gets it.
        to: QueueName,
        /// The member.
        member: Arc<[u8]>,
    },
    /// Make one of several. → `Entries`; `Count` if it is stored or only counted; `Refused`
    Combine(Combination),
    /// Show a range of a sorted set. → `Entries`; `Refused` (`TooManyBytes`)
    ShowRange {
        /// The sorted set.
        name: QueueName,
        /// Which.
        part: ScoredPart,
    },
    /// Store a range of a sorted set under a name, in place of any key; an empty one deletes that.
    /// → `Count` of its members
    StoreRange {
        /// The sorted set.
        from: QueueName,
        /// The name.
        to: QueueName,
        /// Which.
        part: ScoredPart,
    },
    /// How many members are in a range of a sorted set. → `Count`
    CountRange {
        /// The sorted set.
        name: QueueName,
        /// Which.
        range: ScoredRange,
    },
    /// Take a range out of a sorted set. → `Count`; `RangeLeft`, but not in a batch; `Refused`: it
    /// is too much for one frame
    RemoveRange {
        /// The sorted set.
        name: QueueName,
        /// Which.
        range: ScoredRange,
    },
    /// The place of a member in a sorted set. → `Rank`; `NotFound`
    Rank {
        /// The sorted set.
        name: QueueName,
        /// The member.
        member: Arc<[u8]>,
        /// Count from the highest score.
        reverse: bool,
    },
    /// Take the outermost members of the first of these sorted sets that has any, waiting for it.
    /// → `ScoredPopped`; `TimedOut` if none has any
    PopScored {
        /// The sorted sets.
        names: Vec<QueueName>,
        /// Those with the highest scores, the highest first; else the lowest.
        highest: bool,
        /// How many at most.
        max: u64,
        /// How long to wait; zero: not at all, `None`: for ever.
        wait: Option<Nanos>,
    },
}

/// A field of a hash, and its value.
pub type FieldAndValue = (Arc<[u8]>, Arc<[u8]>);

/// Which scores [`CollectionCommand::SetScores`] sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreRule {
    /// Whether the member may be there.
    pub presence: Presence,
    /// The score of a member that is there only becomes greater, or only less.
    pub direction: Option<Direction>,
    /// The score is added to the one that is there. There is one member.
    pub adds: bool,
    /// Members whose score changes are counted beside new ones.
    pub counts_changed: bool,
}

/// Whether a member may be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Either way.
    #[default]
    Any,
    /// It must not be there.
    New,
    /// It must be there.
    There,
}

/// The way in which a score may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Only to a greater one.
    Up,
    /// Only to a smaller one.
    Down,
}

/// Members of a sorted set that stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScoredRange {
    /// From one place to another, both included; negative ones count from the end.
    Ranks {
        /// The first place.
        first: i64,
        /// The last place.
        last: i64,
    },
    /// Between two scores.
    Scores {
        /// The lower end.
        low: Bound<Score>,
        /// The upper end.
        high: Bound<Score>,
    },
    /// Between two members, in the order of their bytes; all members have the same score.
    Members {
        /// The lower end.
        low: MemberBound,
        /// The upper end.
        high: MemberBound,
    },
}

/// The end of a range of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberBound {
    /// In front of all.
    Least,
    /// Behind all.
    Greatest,
    /// This one, which is in the range.
    Included(Arc<[u8]>),
    /// This one, which is not.
    Excluded(Arc<[u8]>),
}

/// A part of a range: some of its members, in either order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoredPart {
    /// The range. Ranks of a reversed one count from the highest score.
    pub range: ScoredRange,
    /// From the highest score down.
    pub reverse: bool,
    /// Members to pass over.
    pub skip: u64,
    /// How many at most.
    pub max: Option<u64>,
}

/// Several sets or sorted sets made into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combination {
    /// How.
    pub how: SetOperation,
    /// The kind of the result. Of a set all are sets; of a sorted set they may be either, and a
    /// member of a set has the score 1.
    pub kind: CollectionKind,
    /// They, at least one. Of a sorted set each with a factor for its scores.
    pub names: Vec<(QueueName, Score)>,
    /// The score of a member of several.
    pub sum: ScoreSum,
    /// The use of the result.
    pub target: CombinationTarget,
}

/// How several sets are made into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// Members of any.
    Union,
    /// Members of all.
    Intersection,
    /// Members of the first, and of no other.
    Difference,
}

/// The score of a member of several sorted sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreSum {
    /// All scores together.
    #[default]
    Sum,
    /// The smallest.
    Least,
    /// The greatest.
    Greatest,
}

/// The use of a combination's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CombinationTarget {
    /// It is shown.
    Shown,
    /// Its members are counted, up to so many; zero: all.
    Counted {
        /// So many.
        max: u64,
    },
    /// It is stored under this name, in place of any key; an empty one deletes that.
    Stored(QueueName),
}

/// Fields or members, in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Fields of a hash, members of a set, or members of a sorted set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The fields or members.
    pub fields: Texts,
    /// The values of the fields, as many.
    pub values: Texts,
    /// The scores of the members, as many.
    pub scores: Vec<Score>,
    /// Of a scan: the last one that was looked at; `None`: there are no more.
    pub next: Option<Arc<[u8]>>,
}

/// Members that were taken out of one of several sorted sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoredPopped {
    /// Which.
    pub name: QueueName,
    /// They, at least one.
    pub entries: Entries,
}

impl Score {
    /// The score 1.
    pub const ONE: Self = Self(1.0_f64.to_bits());

    /// Any number but NaN.
    #[must_use]
    pub const fn new(number: f64) -> Option<Self> {
        if number.is_nan() { None } else { Some(Self(number.to_bits())) }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// Bytes that stand in the order of the scores; both zeros have the same.
    #[must_use]
    pub const fn order(self) -> [u8; 8] {
        let bits = if self.is_zero() { 0 } else { self.0 };
        let negative = bits >> 63 == 1;
        let ordered = if negative { !bits } else { bits | 1 << 63 };
        ordered.to_be_bytes()
    }

    /// The score with these bytes; of both zeros the positive one.
    #[must_use]
    pub const fn of_order(order: [u8; 8]) -> Option<Self> {
        let ordered = u64::from_be_bytes(order);
        let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered };
        Self::new(f64::from_bits(bits))
    }

    const fn is_zero(self) -> bool {
        self.0 << 1 == 0
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl CollectionKind {
    /// Its number in records and in memory, from 1 on.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Hash => 1,
            Self::Set => 2,
            Self::SortedSet => 3,
            Self::Stream => 4,
        }
    }

    /// The kind of this number.
    #[must_use]
    pub const fn of_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Hash),
            2 => Some(Self::Set),
            3 => Some(Self::SortedSet),
            4 => Some(Self::Stream),
            _ => None,
        }
    }
}

impl From<CollectionKind> for KeyKind {
    fn from(kind: CollectionKind) -> Self {
        match kind {
            CollectionKind::Hash => Self::Hash,
            CollectionKind::Set => Self::Set,
            CollectionKind::SortedSet => Self::SortedSet,
            CollectionKind::Stream => Self::Stream,
        }
    }
}

impl Texts {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all of them together.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// One more.
    pub fn push(&mut self, text: &[u8]) {
        self.push_parts(&[text]);
    }

    /// One more, made of these parts.
    pub fn push_parts(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
    }

    /// The one at this place.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.bytes.get(start.unwrap_or(0)..end)
    }

    /// They, in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl Extend<Arc<[u8]>> for Texts {
    fn extend<T: IntoIterator<Item = Arc<[u8]>>>(&mut self, texts: T) {
        texts.into_iter().for_each(|text| self.push(&text));
    }
}

impl Entries {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.fields.len()
    }

    /// True if there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Bytes of fields and values.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.fields.bytes() + self.values.bytes()
    }
}

impl CollectionCommand {
    /// Bytes of the fields and values that it brings.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        let all = |fields: &[Arc<[u8]>]| fields.iter().map(|field| field.len()).sum();
        match self {
            Self::SetFields { fields, .. } => {
                fields.iter().map(|(field, value)| field.len() + value.len()).sum()
            }
            Self::EditField { field, edit, .. } => field.len() + edit.body_bytes(),
            Self::SetScores { members, .. } => {
                members.iter().map(|(_, member)| member.len() + size_of::<Score>()).sum()
            }
            Self::AddMembers { members, .. } => all(members),
            Self::RemoveFields { fields, .. } | Self::FindFields { fields, .. } => all(fields),
            Self::MoveMember { member, .. } | Self::Rank { member, .. } => member.len(),
            Self::CountFields { .. }
            | Self::ShowFields { .. }
            | Self::ScanFields { .. }
            | Self::TakePicture { .. }
            | Self::ShowPicture { .. }
            | Self::EndPicture { .. }
            | Self::PickFields { .. }
            | Self::Combine(_)
            | Self::ShowRange { .. }
            | Self::StoreRange { .. }
            | Self::CountRange { .. }
            | Self::RemoveRange { .. }
            | Self::PopScored { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_have_bytes_in_their_order() {
        let numbers = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            5e-324,
            1.0,
            1.5,
            9_007_199_254_740_992.0,
            f64::INFINITY,
        ];
        let scores: Vec<_> = numbers.into_iter().filter_map(Score::new).collect();
        assert_eq!(scores.len(), numbers.len());
        assert!(scores.is_sorted_by(|one, next| one.order() < next.order()));
        for score in &scores {
            assert_eq!(Score::of_order(score.order()), Some(*score));
        }
        let zeros = [0.0, -0.0].map(|zero| Score::new(zero).unwrap());
        assert!(zeros[0] != zeros[1] && zeros[0].order() == zeros[1].order());
        assert_eq!(Score::new(f64::NAN), None);
    }

    #[test]
    fn texts_are_read_as_they_were_pushed() {
        let mut texts = Texts::default();
        texts.push(b"one");
        texts.push(b"");
        texts.push_parts(&[b"th", b"ree"]);
        assert_eq!(texts.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"three"]);
        assert_eq!((texts.len(), texts.bytes(), texts.get(3)), (3, 8, None));
    }
}
