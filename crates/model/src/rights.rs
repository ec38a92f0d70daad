//! Rights: what a user may do with which names.
//!
//! A rule is some rights and a pattern of names: `send,receive orders.*`. A user may do what a rule
//! allows and no rule denies. In a pattern `*` stands for any text, the empty one too; `{user}`
//! stands for the name of the user, and `{client}` for the name that the client gave itself. The
//! right [`Right::Operate`] has no pattern, since it is about the broker as a whole.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{BitOr, BitOrAssign, Sub};

use crate::{Nanos, Quota, QuotaReached, Quotas};

/// The bounds of rules.
pub mod rights_limits {
    /// Rules that one user has, those of the user's groups included.
    pub const USER_RULES_MAX: usize = 1_000;
    /// Bytes of a pattern.
    pub const PATTERN_BYTES_MAX: usize = 512;
    /// Parts of a pattern: stars, words in braces, and the texts between them. A pattern without
    /// any counts one.
    pub const PATTERN_PARTS_MAX: usize = 32;
}

/// One thing that a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Store messages, elements and values; be the target of a move.
    Send,
    /// Take messages and elements, subscribe; be the source of a move.
    Receive,
    /// See messages, values and figures without taking them, and names in lists.
    Look,
    /// Purge, delete, rename, kick, pause, change the rules of a queue.
    Manage,
    /// Use what belongs to the broker as a whole: metrics, its log, other clients.
    Operate,
}

/// Some rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RightSet(u8);

/// A rule of a user: rights, and the names that they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    rights: RightSet,
    pattern: Pattern,
}

/// A pattern of names: segments with a star between each two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern(Box<[Segment]>);

/// The parts of a pattern between two stars.
type Segment = Box<[Part]>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    User,
    Client,
}

/// The rights of one user, the moment they end, and how much the user may take.
#[derive(Clone, PartialEq, Eq)]
pub struct Rights {
    user: Arc<str>,
    expires: Option<Nanos>,
    token_expires: Option<Nanos>,
    quotas: Quotas,
    allow: Arc<[Rule]>,
    deny: Arc<[Rule]>,
}

/// The rights of all users, by name.
pub type UserRights = BTreeMap<Arc<str>, Arc<Rights>>;

/// The one for whom a session gives its commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Principal {
    /// There are no users: everyone may do everything.
    #[default]
    Everyone,
    /// It has not logged in, and may do nothing.
    Stranger,
    /// A user.
    User(Arc<Rights>),
}

/// A text that is no rule, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(Box<str>);

impl Right {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Send, Self::Receive, Self::Look, Self::Manage, Self::Operate];

    /// The word for it in rules.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Look => "look",
            Self::Manage => "manage",
            Self::Operate => "operate",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl RightSet {
    /// No right.
    pub const NONE: Self = Self(0);
    /// Every right.
    pub const ALL: Self = Self(0b1_1111);

    /// True if this right is among them.
    #[must_use]
    pub const fn contains(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// True if there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl From<Right> for RightSet {
    fn from(right: Right) -> Self {
        Self(right.bit())
    }
}

impl BitOr for RightSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for RightSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Sub for RightSet {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Rule {
    /// Every right on every name.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            rights: RightSet::ALL,
            pattern: Pattern([Segment::default(), Segment::default()].into()),
        }
    }

    /// Reads `RIGHTS PATTERN`, such as `send,receive orders.*`, or `operate`.
    ///
    /// # Errors
    /// [`RuleError`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let (words, pattern) = match text.split_once(' ') {
            Some((words, pattern)) => (words, Some(pattern)),
            None => (text, None),
        };
        let mut rights = RightSet::NONE;
        for word in words.split(',') {
            let right = Right::ALL.into_iter().find(|right| right.word() == word);
            rights |= right.ok_or_else(|| RuleError::unknown_right(word))?.into();
        }
        let for_names = rights - Right::Operate.into();
        let pattern = match pattern.filter(|pattern| !pattern.is_empty()) {
            Some(pattern) if for_names.is_empty() => {
                let why = format!("operate is about the whole broker: leave out {pattern:?}");
                return Err(RuleError(why.into()));
            }
            Some(pattern) => Pattern::parse(pattern)?,
            None if for_names.is_empty() => Pattern(Box::default()),
            None => {
                let why = format!("{words} of which names? Write {words:?}, a space and a pattern");
                return Err(RuleError(why.into()));
            }
        };
        Ok(Self { rights, pattern })
    }

    /// The rule for this user, whose name stands in it.
    fn of_user(&self, user: &str) -> Self {
        Self { rights: self.rights, pattern: self.pattern.of_user(user) }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Right::ALL.into_iter().filter(|right| self.rights.contains(*right));
        for (index, right) in words.enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            f.write_str(right.word())?;
        }
        for (index, segment) in self.pattern.0.iter().enumerate() {
            f.write_str(if index == 0 { " " } else { "*" })?;
            for part in segment {
                f.write_str(part.text())?;
            }
        }
        Ok(())
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, RuleError> {
        if text.len() > rights_limits::PATTERN_BYTES_MAX {
            let most = rights_limits::PATTERN_BYTES_MAX;
            return Err(RuleError(format!("a pattern has {most} bytes at most").into()));
        }
        if text.contains(char::is_control) {
            let why = format!("{text:?} has a control character, which no name has");
            return Err(RuleError(why.into()));
        }
        let pieces: Vec<_> = text.split('*').collect();
        let ends = [0, pieces.len() - 1];
        // Two stars are one.
        let kept = pieces.iter().enumerate().filter(|(at, it)| !it.is_empty() || ends.contains(at));
        let segments = kept.map(|(_, piece)| Part::all_of(piece)).collect::<Result<Vec<_>, _>>()?;
        if segments.iter().map(|segment| segment.len() + 1).sum::<usize>()
            > rights_limits::PATTERN_PARTS_MAX
        {
            let most = rights_limits::PATTERN_PARTS_MAX;
            let why = format!("a pattern has {most} stars, braces and texts at most");
            return Err(RuleError(why.into()));
        }
        Ok(Self(segments.into()))
    }

    fn of_user(&self, user: &str) -> Self {
        let segment = |parts: &Segment| {
            let mut named: Vec<Part> = Vec::with_capacity(parts.len());
            for part in parts {
                match (part, named.last_mut()) {
                    (Part::Client, _) => named.push(Part::Client),
                    (Part::User, Some(Part::Text(before))) => *before = joined(before, user),
                    (Part::User, _) => named.push(Part::Text(user.into())),
                    (Part::Text(text), Some(Part::Text(before))) => *before = joined(before, text),
                    (Part::Text(text), _) => named.push(Part::Text(text.clone())),
                }
            }
            named.into()
        };
        Self(self.0.iter().map(segment).collect())
    }

    /// False if it plainly does not match: most rules are about other names.
    #[inline]
    fn may_match(&self, name: &str) -> bool {
        match self.0.first().map(|first| &**first) {
            Some([Part::Text(text), ..]) => name.as_bytes().starts_with(text.as_bytes()),
            first => first.is_some(),
        }
    }

    /// Takes each segment at its first place, which leaves the most to the rest. So no part is
    /// tried twice.
    fn matches(&self, name: &str, client: Option<&str>) -> bool {
        let [first, others @ ..] = &*self.0 else { return false };
        let Some(first) = text_of(first, client) else { return false };
        let [between @ .., last] = others else { return *first == *name };
        let Some(mut rest) = name.strip_prefix(&*first) else { return false };
        for segment in between {
            let Some(text) = text_of(segment, client) else { return false };
            let Some(at) = rest.find(&*text) else { return false };
            rest = rest.get(at + text.len()..).unwrap_or_default();
        }
        text_of(last, client).is_some_and(|last| rest.ends_with(&*last))
    }
}

/// The text of a segment; `None`: it has the name of a client that has none.
fn text_of<'s>(segment: &'s [Part], client: Option<&'s str>) -> Option<Cow<'s, str>> {
    let text = |part: &'s Part| if *part == Part::Client { client } else { Some(part.text()) };
    match segment {
        [] => Some("".into()),
        [part] => text(part).map(Cow::Borrowed),
        parts => parts.iter().map(text).collect::<Option<String>>().map(Cow::Owned),
    }
}

fn joined(before: &str, behind: &str) -> Box<str> {
    [before, behind].concat().into()
}

impl Part {
    /// The parts of a text without stars.
    fn all_of(text: &str) -> Result<Segment, RuleError> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let end = rest.find(['{', '}']).unwrap_or(rest.len());
            let (plain, behind) = rest.split_at(end);
            if !plain.is_empty() {
                parts.push(Self::Text(plain.into()));
            }
            rest = behind;
            if !behind.is_empty() {
                let known = [Self::User, Self::Client];
                let part = known.into_iter().find(|part| behind.starts_with(part.text()));
                let part = part.ok_or_else(|| RuleError::lone_brace(text))?;
                rest = behind.strip_prefix(part.text()).unwrap_or_default();
                parts.push(part);
            }
        }
        Ok(parts.into())
    }

    /// As rules say it.
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::User => USER,
            Self::Client => CLIENT,
        }
    }
}

impl Rights {
    /// The rights that these rules give a user.
    #[must_use]
    pub fn new<'r>(
        user: Arc<str>,
        allow: impl IntoIterator<Item = &'r Rule>,
        deny: impl IntoIterator<Item = &'r Rule>,
    ) -> Self {
        let allow = allow.into_iter().map(|rule| rule.of_user(&user)).collect();
        let deny = deny.into_iter().map(|rule| rule.of_user(&user)).collect();
        Self { user, expires: None, token_expires: None, quotas: Quotas::default(), allow, deny }
    }

    /// A user who may do everything.
    #[must_use]
    pub fn everything(user: &str) -> Self {
        Self::new(user.into(), [&Rule::everything()], [])
    }

    /// The user expires then, by the wall clock.
    #[must_use]
    pub fn until(self, expires: Option<Nanos>) -> Self {
        Self { expires, ..self }
    }

    /// With these quotas.
    #[must_use]
    pub fn within(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// How much the user may take.
    #[must_use]
    pub const fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Checks that the user may take so much.
    ///
    /// # Errors
    /// [`QuotaReached`] names it.
    pub fn allow(&self, quota: Quota, amount: u64) -> Result<(), QuotaReached> {
        match self.quotas.of(quota).filter(|max| amount > *max) {
            Some(max) => Err(QuotaReached { user: Arc::clone(&self.user), quota, max }),
            None => Ok(()),
        }
    }

    /// The same rights of a client that has logged in by a token with this end, if it has one.
    #[must_use]
    pub fn by_token_until(&self, end: Option<Nanos>) -> Self {
        Self { token_expires: end, ..self.clone() }
    }

    /// The name of the user.
    #[must_use]
    pub const fn user(&self) -> &Arc<str> {
        &self.user
    }

    /// When they end, by the wall clock: with the user or with its token, if that is sooner.
    #[must_use]
    pub fn expires(&self) -> Option<Nanos> {
        self.expires.into_iter().chain(self.token_expires).min()
    }

    /// When the token ends by which the client has logged in.
    #[must_use]
    pub const fn token_expires(&self) -> Option<Nanos> {
        self.token_expires
    }

    /// The rules that allow, and those that deny.
    #[must_use]
    pub fn rules(&self) -> (&[Rule], &[Rule]) {
        (&self.allow, &self.deny)
    }

    /// The rights on a name, for a client that calls itself so.
    #[must_use]
    pub fn on(&self, name: &str, client: Option<&str>) -> RightSet {
        let of = |rules: &[Rule]| {
            let hits = rules
                .iter()
                .filter(|rule| rule.pattern.may_match(name) && rule.pattern.matches(name, client));
            hits.fold(RightSet::NONE, |rights, rule| rights | rule.rights)
        };
        let allowed = of(&self.allow);
        if allowed.is_empty() { allowed } else { allowed - of(&self.deny) }
    }

    /// True if the user may use what belongs to the broker as a whole.
    #[must_use]
    pub fn may_operate(&self) -> bool {
        let has = |rules: &[Rule]| rules.iter().any(|rule| rule.rights.contains(Right::Operate));
        has(&self.allow) && !has(&self.deny)
    }

    /// True if there are names on which it is allowed, though all of them may be denied.
    #[must_use]
    pub fn allow_anywhere(&self, right: Right) -> bool {
        self.allow.iter().any(|rule| rule.rights.contains(right))
    }

    /// True if both come of one reading of the user and end alike: that is plain without a look at
    /// the rules.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.allow, &other.allow)
            && Arc::ptr_eq(&self.deny, &other.deny)
            && self.user == other.user
            && self.quotas == other.quotas
            && (self.expires, self.token_expires) == (other.expires, other.token_expires)
    }

    /// True if they plainly allow all that others allow: each rule that allows there does so here,
    /// each that denies here does so there, and they end no earlier. A session whose rights are
    /// replaced by such rights has nothing that it may not have.
    #[must_use]
    pub fn cover(&self, others: &Self) -> bool {
        let lasts = match (self.expires(), others.expires()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(here), Some(there)) => here >= there,
        };
        lasts
            && self.user == others.user
            && others.allow.iter().all(|rule| self.allow.contains(rule))
            && self.deny.iter().all(|rule| others.deny.contains(rule))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rights").field(&self.user).finish()
    }
}

impl Principal {
    /// A user who may do everything.
    #[must_use]
    pub fn almighty(user: &str) -> Self {
        Self::User(Arc::new(Rights::everything(user)))
    }

    /// Its rights, if it is a user.
    #[must_use]
    pub const fn rights(&self) -> Option<&Arc<Rights>> {
        match self {
            Self::User(rights) => Some(rights),
            Self::Everyone | Self::Stranger => None,
        }
    }

    /// The name of the user, if it is one.
    #[must_use]
    pub fn user(&self) -> Option<&Arc<str>> {
        self.rights().map(|rights| rights.user())
    }

    /// True if it may use what belongs to the broker as a whole.
    #[must_use]
    pub fn may_operate(&self) -> bool {
        match self {
            Self::Everyone => true,
            Self::Stranger => false,
            Self::User(rights) => rights.may_operate(),
        }
    }

    /// Its rights on a name, for a client that calls itself so.
    #[must_use]
    pub fn on(&self, name: &str, client: Option<&str>) -> RightSet {
        match self {
            Self::Everyone => RightSet::ALL,
            Self::Stranger => RightSet::NONE,
            Self::User(rights) => rights.on(name, client),
        }
    }
}

impl RuleError {
    fn unknown_right(word: &str) -> Self {
        let known = Right::ALL.map(Right::word).join(", ");
        Self(format!("{word:?} is no right: they are {known}").into())
    }

    fn lone_brace(text: &str) -> Self {
        Self(format!("in {text:?} a brace is neither {USER} nor {CLIENT}").into())
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for RuleError {}

const USER: &str = "{user}";
const CLIENT: &str = "{client}";

#[cfg(test)]
#[path = "rights_test.rs"]
mod tests;
