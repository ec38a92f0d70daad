//! Changes of a users file that keep its comments and its order.

use std::path::{Path, PathBuf};

use access::{Users, decoy_key_text, limits};
use disk::PrivateFile;
use toml_edit::{Array, Datetime, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::exit::Error;
use crate::user::password;

/// A users file that is being changed. Nothing is written before [`UsersFile::write`].
#[derive(Debug)]
pub(super) struct UsersFile {
    path: PathBuf,
    file: PrivateFile,
    document: DocumentMut,
    /// The users before the change.
    users: Users,
}

impl UsersFile {
    /// Reads the file and keeps others from changing it. A missing one is empty.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = PrivateFile::lock(path, limits::USERS_FILE_BYTES_MAX);
        let file = file.map_err(|error| Error::Other(error.to_string()))?;
        let users = parse(file.text(), path)?;
        let document = file.text().parse::<DocumentMut>();
        // The reader of users took the same text.
        let document = document.map_err(|error| Error::Other(error.message().to_owned()))?;
        Ok(Self { path: path.to_owned(), file, document, users })
    }

    /// The users before the change.
    pub(super) const fn users(&self) -> &Users {
        &self.users
    }

    pub(super) fn require_user(&self, name: &str) -> Result<(), Error> {
        match self.users.user(name) {
            Some(_) => Ok(()),
            None => Err(Error::Nothing(format!(
                "there is no user {name}: dunlin user ls shows which there are"
            ))),
        }
    }

    pub(super) fn require_no_user(&self, name: &str) -> Result<(), Error> {
        match self.users.user(name) {
            None => Ok(()),
            Some(_) => Err(Error::Other(format!(
                "user {name} is there already: dunlin user passwd sets another password"
            ))),
        }
    }

    pub(super) fn has_token(&self, name: &str) -> bool {
        self.users.tokens().any(|(other, _)| other == name)
    }

    pub(super) fn add_user(&mut self, name: &str) -> Result<(), Error> {
        self.add_decoy_key()?;
        self.section("users")?.insert(name, Item::Table(Table::new()));
        Ok(())
    }

    /// Salts of names that are no users derive from it. Without it they would change with each
    /// start, and those of users would not.
    fn add_decoy_key(&mut self) -> Result<(), Error> {
        if !self.document.contains_key("decoy-key") {
            let key = decoy_key_text(&password::random::<32>()?);
            self.document.insert("decoy-key", Item::Value(key.into()));
        }
        Ok(())
    }

    /// Sets a list of a user: its certificates, or its users of the system.
    pub(super) fn set_texts(
        &mut self,
        name: &str,
        key: &str,
        texts: &[String],
    ) -> Result<(), Error> {
        self.set_user(name, key, texts.iter().collect::<Array>().into())
    }

    /// Sets one key of a user; a comment behind its former value stays.
    pub(super) fn set_user(
        &mut self,
        name: &str,
        key: &str,
        mut value: Value,
    ) -> Result<(), Error> {
        let user = self.entry("users", name)?;
        if let Some(old) = user.get(key).and_then(Item::as_value) {
            *value.decor_mut() = old.decor().clone();
        }
        user.insert(key, Item::Value(value));
        Ok(())
    }

    pub(super) fn require_group(&self, name: &str) -> Result<(), Error> {
        let groups = self.document.get("groups").and_then(Item::as_table_like);
        if groups.is_some_and(|groups| groups.contains_key(name)) {
            return Ok(());
        }
        Err(Error::Nothing(format!(
            "there is no group {name}: dunlin user grant --group {name} RULE makes it"
        )))
    }

    /// Makes a group unless it is there.
    pub(super) fn add_group(&mut self, name: &str) -> Result<(), Error> {
        let groups = self.section("groups")?;
        if !groups.contains_key(name) {
            groups.insert(name, Item::Table(Table::new()));
        }
        Ok(())
    }

    /// Adds texts to a list of a user or group, but for those that are in it.
    pub(super) fn extend(
        &mut self,
        section: &str,
        name: &str,
        key: &str,
        texts: &[String],
    ) -> Result<(), Error> {
        let list = self.list(section, name, key)?;
        for text in texts {
            if !list.iter().any(|value| value.as_str() == Some(text)) {
                list.push(text);
            }
        }
        Ok(())
    }

    /// Takes texts out of a list of a user or group. Gives the first that is not in it.
    pub(super) fn withdraw<'t>(
        &mut self,
        section: &str,
        name: &str,
        key: &str,
        texts: &'t [String],
    ) -> Result<Option<&'t str>, Error> {
        let list = self.list(section, name, key)?;
        for text in texts {
            let Some(at) = list.iter().position(|value| value.as_str() == Some(text)) else {
                return Ok(Some(text));
            };
            list.remove(at);
        }
        Ok(None)
    }

    /// Sets a limit of a user, or of all users; no amount takes it away. False if there was none to
    /// take away.
    pub(super) fn set_limit(
        &mut self,
        user: Option<&str>,
        limit: &str,
        amount: Option<&str>,
    ) -> Result<bool, Error> {
        let limits = match user {
            None => self.section("limits")?,
            Some(user) => {
                let entry = self.entry("users", user)?.entry("limits");
                let limits = entry.or_insert_with(|| Item::Value(InlineTable::new().into()));
                limits
                    .as_table_like_mut()
                    .ok_or_else(|| no_table(&format!("users.{user}.limits")))?
            }
        };
        let Some(amount) = amount else { return Ok(limits.remove(limit).is_some()) };
        let number = amount.parse::<i64>().ok().map(Value::from);
        limits.insert(limit, Item::Value(number.unwrap_or_else(|| amount.into())));
        Ok(true)
    }

    fn list(&mut self, section: &str, name: &str, key: &str) -> Result<&mut Array, Error> {
        let entry = self.entry(section, name)?;
        let list = entry.entry(key).or_insert_with(|| Item::Value(Array::new().into()));
        list.as_array_mut()
            .ok_or_else(|| Error::Other(format!("{section}.{name}.{key} is no list")))
    }

    fn entry(&mut self, section: &str, name: &str) -> Result<&mut dyn TableLike, Error> {
        let entry = self.section(section)?.get_mut(name).and_then(Item::as_table_like_mut);
        entry.ok_or_else(|| no_table(&format!("{section}.{name}")))
    }

    pub(super) fn add_token(
        &mut self,
        name: &str,
        digest: &[u8],
        user: &str,
        expires: Option<Value>,
    ) -> Result<(), Error> {
        let mut token = InlineTable::new();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        token.insert("sha256", digest.into());
        token.insert("user", user.into());
        if let Some(expires) = expires {
            token.insert("expires", expires);
        }
        self.section("tokens")?.insert(name, Item::Value(token.into()));
        Ok(())
    }

    /// Removes a user or a token.
    pub(super) fn remove(&mut self, section: &str, name: &str) {
        if let Some(table) = self.document.get_mut(section).and_then(Item::as_table_like_mut) {
            table.remove(name);
        }
    }

    /// Writes the file, if the broker would take it.
    pub(super) fn write(self) -> Result<(), Error> {
        let text = self.document.to_string();
        // A value of the command line is judged here, by the code that the broker has.
        Users::parse(&text).map_err(|problems| {
            let faults = problems.0.into_iter().map(|problem| problem.what);
            Error::Settings(faults.collect::<Vec<_>>().join("\n"))
        })?;
        let path = self.path.display();
        self.file.replace(&text).map_err(|error| Error::Other(format!("{path}: {error}")))
    }

    /// A table at the top, which is made if it is missing.
    fn section(&mut self, name: &str) -> Result<&mut dyn TableLike, Error> {
        let section = self.document.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(!["limits", "tokens"].contains(&name));
            Item::Table(table)
        });
        section.as_table_like_mut().ok_or_else(|| no_table(name))
    }
}

/// Reads the users, or tells all faults of the file.
pub(super) fn parse(text: &str, path: &Path) -> Result<Users, Error> {
    let path = path.display();
    Users::parse(text).map_err(|problems| Error::Other(format!("{path} has faults:\n{problems}")))
}

/// A date or moment of the command line.
pub(super) fn moment(text: &str) -> Result<Value, Error> {
    let moment = text.parse::<Datetime>().map_err(|_| {
        Error::Settings(format!(
            "`{text}` is no date such as 2027-01-01, nor a moment: 2027-01-01T12:00:00Z"
        ))
    })?;
    Ok(moment.into())
}

fn no_table(name: &str) -> Error {
    Error::Other(format!("{name} is no table"))
}
