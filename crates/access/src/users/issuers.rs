//! Reads the issuers of tokens in a users file: one table `[jwt]`, or several `[[jwt]]`.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::reading::{Reader, Value};
use super::{Users, shown};
use crate::jwt::Issuer;
use crate::limits::{CLAIM_BYTES_MAX, JWKS_PATH_BYTES_MAX, JWT_ISSUERS_MAX, JWT_SUBJECTS_MAX};
use toml::de::DeValue;

impl Reader<'_> {
    pub(super) fn read_issuers(&mut self, value: &Value<'_>, users: &Users) -> Vec<Issuer> {
        let DeValue::Array(tables) = value.get_ref() else {
            return self.read_issuer("jwt", value, users).into_iter().collect();
        };
        if tables.len() > JWT_ISSUERS_MAX {
            let count = tables.len();
            let what = format!("jwt: {count} issuers are too many, {JWT_ISSUERS_MAX} may be");
            self.report(value.span().start, what);
            return Vec::new();
        }
        let mut issuers: Vec<Issuer> = Vec::new();
        for (index, value) in tables.iter().enumerate() {
            let path = format!("jwt[{index}]");
            let Some(issuer) = self.read_issuer(&path, value, users) else { continue };
            if issuers.iter().any(|other| other.name == issuer.name) {
                let what = format!("{path}: another table has the same issuer: remove one of them");
                self.report(value.span().start, what);
            }
            issuers.push(issuer);
        }
        issuers
    }

    fn read_issuer(&mut self, path: &str, value: &Value<'_>, users: &Users) -> Option<Issuer> {
        let table = self.table(path, value)?;
        let (mut name, mut audience, mut keys_file) = (None, None, None);
        let (mut user_claim, mut subjects) = (Some(Box::from("sub")), None);
        for (key, value) in table {
            let path = format!("{path}.{}", shown(key.get_ref()));
            match &**key.get_ref() {
                "issuer" => name = self.short_text(&path, value, CLAIM_BYTES_MAX),
                "audience" => audience = self.short_text(&path, value, CLAIM_BYTES_MAX),
                "jwks-file" => keys_file = self.short_text(&path, value, JWKS_PATH_BYTES_MAX),
                "user-claim" => user_claim = self.short_text(&path, value, CLAIM_BYTES_MAX),
                "subjects" => subjects = self.read_subjects(&path, value, users),
                other => self.report_unknown(key.span().start, other, &path),
            }
        }
        let needed = ["issuer", "audience", "jwks-file"];
        for key in needed.into_iter().filter(|key| !table.contains_key(*key)) {
            self.report(value.span().start, format!("{path}: {key} is missing: add it"));
        }
        Some(Issuer {
            name: name?,
            audience: audience?,
            user_claim: user_claim?,
            subjects,
            keys_file: keys_file?,
            keys: None,
        })
    }

    fn read_subjects(
        &mut self,
        path: &str,
        value: &Value<'_>,
        users: &Users,
    ) -> Option<BTreeMap<Box<str>, Arc<str>>> {
        let table = self.table(path, value)?;
        if table.len() > JWT_SUBJECTS_MAX {
            let count = table.len();
            let what = format!("{path}: {count} subjects are too many, {JWT_SUBJECTS_MAX} may be");
            self.report(value.span().start, what);
            return None;
        }
        let mut subjects = BTreeMap::new();
        for (key, value) in table {
            let path = format!("{path}.{}", shown(key.get_ref()));
            if let Some(user) = self.read_user_name(&path, value, users) {
                subjects.insert(Box::from(&**key.get_ref()), user);
            }
        }
        Some(subjects)
    }

    /// A text that is not empty and has neither more bytes than that nor control characters.
    fn short_text(&mut self, path: &str, value: &Value<'_>, bytes_max: usize) -> Option<Box<str>> {
        let text = self.string(path, value)?;
        if text.is_empty() || text.len() > bytes_max || text.contains(char::is_control) {
            let what = format!(
                "{path} is empty, has more than {bytes_max} bytes or a control character: correct \
                 it"
            );
            self.report(value.span().start, what);
            return None;
        }
        Some(text.into())
    }
}
