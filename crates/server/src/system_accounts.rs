//! Users and groups of the system, by the names in its files. Directories of other machines, such
//! as LDAP, are not asked: their users and groups are known by number.

use std::fs::File;
use std::io::Read as _;

/// The number of a user in `/etc/passwd`.
#[must_use]
pub fn user_number(name: &str) -> Option<u32> {
    number_of(name, &read("/etc/passwd"))
}

/// The number of a group in `/etc/group`.
#[must_use]
pub fn group_number(name: &str) -> Option<u32> {
    number_of(name, &read("/etc/group"))
}

/// A file that cannot be read knows nobody.
fn read(path: &str) -> String {
    let mut bytes = Vec::new();
    let file = File::open(path);
    if file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)).is_err() {
        bytes.clear();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Its number, in lines of `NAME:PASSWORD:NUMBER:…`.
fn number_of(name: &str, lines: &str) -> Option<u32> {
    let mut lines = lines.lines().map(|line| line.split(':'));
    let mut line = lines.find(|line| line.clone().next() == Some(name))?;
    line.nth(2)?.parse().ok()
}

/// Bytes of such a file that are looked at: some hundred thousand accounts.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_name() {
        let groups = "root:x:0:\ndunlin:x:105:a,b\nbroken:x\n";
        let found = ["dunlin", "root", "broken", "x"].map(|name| number_of(name, groups));
        assert_eq!(found, [Some(105), Some(0), None, None]);
        assert_eq!((user_number("root"), group_number("root")), (Some(0), Some(0)));
        assert_eq!(user_number("no-such-user"), None);
    }
}
