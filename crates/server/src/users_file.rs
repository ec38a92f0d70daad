//! The users file, and the files of keys that it names for the issuers of tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::{KeySet, Users, limits};
use disk::{PrivateFileError, read_private, read_protected};

use crate::file_stamp::FileStamp;
use crate::system_accounts::user_number;

/// The users file of a server, as it was read last.
#[derive(Debug)]
pub(crate) struct UsersFile {
    path: PathBuf,
    /// The files as they were when they were read last, with or without success.
    seen: Vec<(PathBuf, Option<FileStamp>)>,
    /// The keys that are in use, by the name of their file.
    keys: BTreeMap<Box<str>, Arc<KeySet>>,
}

/// A users file that cannot be used.
#[derive(Debug)]
pub enum UsersError {
    /// It, or a file of keys, cannot be read, or others may read or change it.
    File(PrivateFileError),
    /// Its content is wrong: each fault with its line.
    Content {
        /// The file.
        file: PathBuf,
        /// The faults.
        problems: access::Problems,
    },
    /// The content of a file of keys is wrong.
    Keys {
        /// The file.
        file: PathBuf,
        /// The fault.
        error: access::KeySetError,
    },
}

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Content { file, problems } => write!(f, "{}: {problems}", file.display()),
            Self::Keys { file, error } => write!(f, "{}: {error}", file.display()),
        }
    }
}

impl std::error::Error for UsersError {}

/// Reads a users file with the keys of its issuers.
///
/// # Errors
/// [`UsersError`]: one of the files cannot be used.
pub fn read_users(path: &Path) -> Result<Users, UsersError> {
    UsersFile::open(path.to_owned()).map(|(_, users)| users)
}

impl UsersFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// [`UsersError`]: it, or one of the files of keys, cannot be used.
    pub(crate) fn open(path: PathBuf) -> Result<(Self, Users), UsersError> {
        let mut file = Self { path, seen: Vec::new(), keys: BTreeMap::new() };
        let mut fault = None;
        let users = file.read(|error| fault = fault.take().or(Some(error)))?;
        fault.map_or(Ok((file, users)), Err)
    }

    /// Reads the file again. A file of keys that cannot be used is complained of, and leaves the
    /// former keys in use, if there are any.
    ///
    /// # Errors
    /// [`UsersError`]: the users file cannot be used.
    pub(crate) fn read(
        &mut self,
        mut complain: impl FnMut(UsersError),
    ) -> Result<Users, UsersError> {
        let stamp = FileStamp::of(&self.path);
        self.seen.retain(|(path, _)| *path != self.path);
        self.seen.push((self.path.clone(), stamp));
        let mut users = parse(&self.path)?;
        self.seen.clear();
        self.seen.push((self.path.clone(), stamp));
        let files = users.issuers().iter().map(|issuer| issuer.keys_file().into());
        let files: BTreeSet<Box<str>> = files.collect();
        self.keys.retain(|name, _| files.contains(name));
        for name in files {
            self.read_keys(&name).unwrap_or_else(&mut complain);
            self.keys.get(&name).into_iter().for_each(|keys| users.set_keys(&name, keys));
        }
        Ok(users)
    }

    /// Reads a file of keys; a path that is not absolute begins where the users file is.
    fn read_keys(&mut self, name: &str) -> Result<(), UsersError> {
        let path = self.path.parent().unwrap_or(Path::new("")).join(name);
        self.seen.push((path.clone(), FileStamp::of(&path)));
        let text = read_protected(&path, limits::JWKS_BYTES_MAX).map_err(UsersError::File)?;
        let keys = KeySet::parse(&text).map_err(|error| UsersError::Keys { file: path, error })?;
        self.keys.insert(name.into(), Arc::new(keys));
        Ok(())
    }

    /// From now on the users are in another file, whose files of keys may be others, too.
    pub(crate) fn move_to(&mut self, path: PathBuf) {
        if path != self.path {
            self.keys.clear();
            self.seen.clear();
            self.path = path;
        }
    }

    /// True if one of the files has changed since it was read.
    pub(crate) fn has_changed(&self) -> bool {
        self.seen.iter().any(|(path, seen)| *seen != FileStamp::of(path))
    }
}

fn parse(path: &Path) -> Result<Users, UsersError> {
    let text = read_private(path, limits::USERS_FILE_BYTES_MAX).map_err(UsersError::File)?;
    let users = Users::parse(&text).and_then(|users| users.resolve_unix_users(user_number));
    users.map_err(|problems| UsersError::Content { file: path.to_owned(), problems })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use testkit::Directory;

    use super::*;

    const KEYS: &str = "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"a\",\
                        \"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";

    fn write(directory: &Directory, name: &str, text: &str) -> PathBuf {
        let file = directory.file(name, text);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        file
    }

    fn issuer(name: &str, keys: &str) -> String {
        format!("[[jwt]]\nissuer = \"{name}\"\naudience = \"a\"\njwks-file = \"{keys}\"\n")
    }

    /// Reads the file again; gives the complaints.
    fn read(file: &mut UsersFile) -> Vec<String> {
        let mut complaints = Vec::new();
        let read = file.read(|error| complaints.push(error.to_string()));
        complaints.extend(read.err().map(|error| error.to_string()));
        complaints
    }

    #[test]
    fn keys_are_needed_at_start() {
        let directory = Directory::new("users-file-start");
        let path = write(&directory, "users.toml", &issuer("i", "keys"));
        let error = read_users(&path).unwrap_err().to_string();
        assert!(error.contains("cannot open") && error.contains("keys"), "{error}");
        write(&directory, "keys", "{}");
        let error = read_users(&path).unwrap_err();
        assert!(matches!(error, UsersError::Keys { .. }), "{error}");
        assert!(error.to_string().ends_with("keys: this is no JWK Set: it has no list `keys`"));
        let keys = write(&directory, "keys", KEYS);
        assert_eq!(read_users(&path).unwrap().issuers().len(), 1);
        // An absolute path is one.
        write(&directory, "users.toml", &issuer("i", &keys.display().to_string()));
        assert!(read_users(&path).is_ok());
        fs::set_permissions(&keys, PermissionsExt::from_mode(0o606)).unwrap();
        assert!(read_users(&path).unwrap_err().to_string().contains("chmod go-w"));
    }

    #[test]
    fn broken_keys_leave_former_ones() {
        let directory = Directory::new("users-file-keys");
        let path = write(&directory, "users.toml", &issuer("i", "keys"));
        write(&directory, "keys", KEYS);
        let (mut file, _) = UsersFile::open(path).unwrap();
        assert!(!file.has_changed());
        let former = Arc::clone(&file.keys["keys"]);
        write(&directory, "keys", "{\"keys\":[]}");
        assert!(file.has_changed());
        let complaints = read(&mut file);
        assert!(complaints.len() == 1 && complaints[0].contains("no key for"), "{complaints:?}");
        assert!(!file.has_changed() && Arc::ptr_eq(&former, &file.keys["keys"]));
        write(&directory, "keys", &KEYS.replace("\"a\"", "\"bb\""));
        assert!(file.has_changed() && read(&mut file).is_empty());
        assert!(!Arc::ptr_eq(&former, &file.keys["keys"]));
        fs::remove_file(directory.0.join("keys")).unwrap();
        assert!(file.has_changed() && read(&mut file).len() == 1 && !file.has_changed());
        assert!(file.keys.contains_key("keys"));
    }

    #[test]
    fn broken_users_file_is_seen_once() {
        let directory = Directory::new("users-file-broken");
        let path = write(&directory, "users.toml", &issuer("i", "keys"));
        write(&directory, "keys", KEYS);
        let (mut file, _) = UsersFile::open(path).unwrap();
        write(&directory, "users.toml", "[users.");
        assert!(file.has_changed() && read(&mut file).len() == 1 && !file.has_changed());
        // The files of keys are still watched, and keys that no issuer names are dropped.
        write(&directory, "keys", "");
        assert!(file.has_changed());
        write(&directory, "users.toml", "");
        assert!(read(&mut file).is_empty() && file.keys.is_empty() && !file.has_changed());
    }
}
