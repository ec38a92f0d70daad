//! Users of the system, whose processes are users of the broker on Unix sockets.

use alloc::boxed::Box;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{Users, shown};
use crate::limits::{PROBLEMS_MAX, UNIX_USER_BYTES_MAX};
use crate::problem::{Problem, Problems};

/// A user of the system, as a users file writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnixUser {
    /// By its number.
    Number(u32),
    /// By its name, which the system knows.
    Name(Box<str>),
}

impl UnixUser {
    /// Digits are a number, any other word is a name. The last number stands for none (chown(2)).
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().ok().filter(|number| *number != u32::MAX);
            return number.map(Self::Number);
        }
        let is_word = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | '/' | ',');
        let is_name = text.len() <= UNIX_USER_BYTES_MAX && !text.contains(is_word);
        is_name.then(|| Self::Name(text.into()))
    }
}

impl fmt::Display for UnixUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Users {
    /// Looks up the names of all `unix-users`: `number_of` gives the number of a name. Without this
    /// no process is a user.
    ///
    /// # Errors
    /// [`Problems`]: a name is unknown, or two users have the same number. Then no process is one.
    pub fn resolve_unix_users(
        mut self,
        number_of: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        for user in self.users.values() {
            for (line, unix_user) in &user.unix_users {
                let number = match unix_user {
                    UnixUser::Number(number) => Some(*number),
                    UnixUser::Name(name) => number_of(name),
                };
                let taken = number.map(|number| self.unix_users.entry(number));
                let fault = match taken {
                    None => unknown(unix_user),
                    Some(Entry::Vacant(entry)) => {
                        entry.insert(Arc::clone(user.name()));
                        continue;
                    }
                    Some(Entry::Occupied(other)) => {
                        let other = shown(other.get());
                        format!("{unix_user} is of user {other} as well: remove one")
                    }
                };
                let what = format!("users.{}.unix-users: {fault}", shown(user.name()));
                problems.push(Problem { line: *line, what });
            }
        }
        problems.sort_by_key(|problem| problem.line);
        problems.truncate(PROBLEMS_MAX);
        if problems.is_empty() { Ok(self) } else { Err(Problems(problems)) }
    }

    /// The numbers of the users of the system whose processes are users here.
    pub fn unix_user_numbers(&self) -> impl Iterator<Item = u32> {
        self.unix_users.keys().copied()
    }
}

fn unknown(unix_user: &UnixUser) -> String {
    format!(
        "{} is no user in /etc/passwd: correct it, or write the number of one that another \
         directory has",
        shown(&format!("{unix_user}"))
    )
}
