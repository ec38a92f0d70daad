//! Databases of Redis. A database is a part of the names: those that begin with its mark, a
//! character of the private use area. The first database has all other names.

/// A part of the names of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Database(u8);

/// Names that stand together in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameSpan {
    /// Its first name, if it has one.
    from: Option<char>,
    /// The first name behind it, if there is one.
    to: Option<char>,
}

/// The mark that database 0 would have. No name of it begins so, but that of its empty key.
const BEFORE_MARKS: u32 = 0xf100;

/// The first two bytes of the first of these, as UTF-8.
const LEAD: u8 = 0xef;
const SECOND: u8 = 0x84;

impl Database {
    /// The one in which a client begins.
    pub const FIRST: Self = Self(0);
    /// The last one that names can be of.
    pub const LAST: Self = Self(128);

    /// The database of this number.
    #[must_use]
    pub fn new(number: usize) -> Option<Self> {
        u8::try_from(number).ok().map(Self).filter(|database| *database <= Self::LAST)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// The database that a name is of.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let [LEAD, second, third, ..] = name.as_bytes() else { return Self::FIRST };
        let high = u32::from(*second).wrapping_sub(u32::from(SECOND)) << 6;
        let number = high | u32::from(*third & 0x3f);
        let known = u8::try_from(number).ok().map(Self).filter(|it| *it <= Self::LAST);
        known.unwrap_or(Self::FIRST)
    }

    /// The character that its names begin with; `None`: it is the first.
    #[must_use]
    pub fn mark(self) -> Option<char> {
        if self == Self::FIRST { None } else { Some(self.own_character()) }
    }

    /// The name of its empty key.
    #[must_use]
    pub fn own_character(self) -> char {
        char::from_u32(BEFORE_MARKS + u32::from(self.0)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// All of its names, ascending.
    pub fn spans(self) -> impl Iterator<Item = NameSpan> {
        let behind = |database: Self| char::from_u32(u32::from(database.own_character()) + 1);
        let (first, second) = match self.mark() {
            Some(mark) => (NameSpan { from: Some(mark), to: behind(self) }, None),
            None => {
                let before = NameSpan { from: None, to: behind(self) };
                (before, Some(NameSpan { from: behind(Self::LAST), to: None }))
            }
        };
        core::iter::once(first).chain(second)
    }
}

impl NameSpan {
    /// All names.
    pub const ALL: Self = Self { from: None, to: None };

    /// All names of a database, ascending; all where none is given.
    pub fn of(database: Option<Database>) -> impl Iterator<Item = Self> {
        let whole = database.is_none().then_some(Self::ALL);
        whole.into_iter().chain(database.into_iter().flat_map(Database::spans))
    }

    /// All names from this one on.
    #[must_use]
    pub const fn from(self) -> Option<char> {
        self.from
    }

    /// All names before this one.
    #[must_use]
    pub const fn to(self) -> Option<char> {
        self.to
    }

    /// True if a name is one of them.
    #[must_use]
    pub fn holds(self, name: &str) -> bool {
        let Some(first) = name.chars().next() else { return false };
        self.from.is_none_or(|from| first >= from) && self.to.is_none_or(|to| first < to)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn database_has_the_names_of_its_spans() {
        let all = (0..=128).map(|number| Database::new(number).unwrap());
        assert_eq!((all.clone().next_back(), Database::new(129)), (Some(Database::LAST), None));
        let names =
            (0xf000..0xf200).filter_map(char::from_u32).chain(['a', '\u{ffff}', '\u{10ffff}']);
        for name in names.flat_map(|first| [format!("{first}"), format!("{first}x")]) {
            let of = Database::of(&name);
            for database in all.clone() {
                let holding = database.spans().filter(|span| span.holds(&name)).count();
                assert_eq!(holding, usize::from(database == of), "{name:?} in {database:?}");
            }
            assert!(NameSpan::ALL.holds(&name));
        }
        assert_eq!(Database::of("\u{f101}"), Database(1));
        assert_eq!(Database::of("\u{f180}\u{f101}"), Database(128));
        assert_eq!(Database::of("a\u{f101}"), Database::FIRST);
    }

    #[test]
    fn spans_are_in_the_order_of_names() {
        for database in (0..=128).filter_map(Database::new) {
            let bounds = || database.spans().flat_map(|span| [span.from(), span.to()]).flatten();
            assert!(bounds().is_sorted(), "{database:?}");
        }
    }
}
