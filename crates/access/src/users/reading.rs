//! Reads a users file, and collects its faults.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::rights_limits::USER_RULES_MAX;
use model::{Nanos, Quota, Quotas, Rights, Rule, ScramHash};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{BearerToken, DIGEST_BYTES, Passwords, UnixUser, User, Users, index_of, shown};
use crate::limits::{
    CERTIFICATE_BYTES_MAX, GROUPS_MAX, PROBLEMS_MAX, TOKENS_MAX, USER_CERTIFICATES_MAX,
    USER_GROUPS_MAX, USER_UNIX_USERS_MAX, USERS_FILE_BYTES_MAX, USERS_MAX,
};
use crate::name::check_user_name;
use crate::problem::{Problem, Problems};
use crate::verifier::Verifier;

pub(super) type Value<'t> = Spanned<DeValue<'t>>;
type Groups = BTreeMap<Box<str>, Rules>;

/// The rules of a group, or a user's own.
#[derive(Debug, Default)]
struct Rules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

/// Settings that all users have in common.
struct Common {
    groups: Groups,
    /// The quotas of users that have no other.
    quotas: Quotas,
}

/// A users file that is being read.
pub(super) struct Reader<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, problems: Vec::new() }
    }

    pub(super) fn read(mut self) -> Result<Users, Problems> {
        let users = self.read_document();
        if self.problems.is_empty() {
            return Ok(users);
        }
        self.problems.sort_by_key(|problem| problem.line);
        Err(Problems(self.problems))
    }

    fn read_document(&mut self) -> Users {
        let mut users = Users::default();
        if self.text.len() > USERS_FILE_BYTES_MAX {
            self.report(0, format!("the file has more than {USERS_FILE_BYTES_MAX} bytes"));
            return users;
        }
        let document = match DeTable::parse(self.text) {
            Ok(document) => document.into_inner(),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                self.report(at, format!("this is no TOML: {}", one_line(error.message())));
                return users;
            }
        };
        // Users name groups, tokens and the anonymous user name users: each comes first.
        let groups = document.get("groups").map(|table| self.read_groups(table));
        let limits = document.get("limits").map(|table| self.quotas("limits", table));
        let common =
            Common { groups: groups.unwrap_or_default(), quotas: limits.unwrap_or_default() };
        if let Some(table) = document.get("users") {
            self.read_users(&mut users, &common, table);
        }
        for (key, value) in &document {
            match &**key.get_ref() {
                "users" | "groups" | "limits" => {}
                "tokens" => self.read_tokens(&mut users, value),
                "jwt" => users.issuers = self.read_issuers(value, &users),
                "anonymous" => users.anonymous = self.read_user_name("anonymous", value, &users),
                "decoy-key" => users.decoy_key = self.read_decoy_key(value),
                other => self.report_unknown(key.span().start, other, ""),
            }
        }
        users
    }

    fn read_groups(&mut self, value: &Value<'_>) -> Groups {
        let mut groups = Groups::new();
        let Some(table) = self.table("groups", value) else { return groups };
        if table.len() > GROUPS_MAX {
            let count = table.len();
            let what = format!("groups: {count} groups are too many, {GROUPS_MAX} may be");
            self.report(value.span().start, what);
            return groups;
        }
        for (key, value) in table {
            let name = &**key.get_ref();
            let path = format!("groups.{}", shown(name));
            if let Err(fault) = check_user_name(name) {
                self.report(
                    key.span().start,
                    format!("{path}: the name {fault}: rename the group"),
                );
                continue;
            }
            let Some(table) = self.table(&path, value) else { continue };
            let mut rules = Rules::default();
            for (key, value) in table {
                let path = format!("{path}.{}", shown(key.get_ref()));
                match &**key.get_ref() {
                    "allow" => rules.allow = self.rules(&path, value),
                    "deny" => rules.deny = self.rules(&path, value),
                    other => self.report_unknown(key.span().start, other, &path),
                }
            }
            groups.insert(name.into(), rules);
        }
        groups
    }

    /// The quotas of a table.
    fn quotas(&mut self, path: &str, value: &Value<'_>) -> Quotas {
        let mut quotas = Quotas::default();
        let Some(table) = self.table(path, value) else { return quotas };
        for (key, value) in table {
            let path = format!("{path}.{}", shown(key.get_ref()));
            let Some(quota) = Quota::of_word(key.get_ref()) else {
                let known = Quota::ALL.map(Quota::word).join(", ");
                let what = format!("{path} is no limit of users: they are {known}");
                self.report(key.span().start, what);
                continue;
            };
            let text = match value.get_ref() {
                DeValue::String(text) => text.clone(),
                DeValue::Integer(number) => {
                    let number = i64::from_str_radix(number.as_str(), number.radix());
                    number.unwrap_or(i64::MIN).to_string().into()
                }
                _ => {
                    self.report_type(&path, value, "a number or a text");
                    continue;
                }
            };
            match quota.parse_max(&text) {
                Ok(max) => quotas.set(quota, Some(max)),
                Err(error) => self.report(value.span().start, format!("{path}: {error}")),
            }
        }
        quotas
    }

    /// The rules of a list of texts.
    fn rules(&mut self, path: &str, value: &Value<'_>) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (at, text) in self.texts(path, value, USER_RULES_MAX) {
            match Rule::parse(text) {
                Ok(rule) => rules.push(rule),
                Err(error) => self.report(at, format!("{path}: {error}")),
            }
        }
        rules
    }

    /// The texts of a list, each with its place.
    fn texts<'v>(&mut self, path: &str, value: &'v Value<'_>, max: usize) -> Vec<(usize, &'v str)> {
        let DeValue::Array(array) = value.get_ref() else {
            self.report_type(path, value, "a list of texts");
            return Vec::new();
        };
        if array.len() > max {
            self.report(value.span().start, format!("{path}: {max} may be at most"));
            return Vec::new();
        }
        let text = |value: &'v Value<'_>| Some((value.span().start, self.string(path, value)?));
        array.iter().filter_map(text).collect()
    }

    /// The user's groups that exist.
    fn groups(&mut self, path: &str, value: &Value<'_>, groups: &Groups) -> Vec<Box<str>> {
        let mut names = Vec::new();
        for (at, name) in self.texts(path, value, USER_GROUPS_MAX) {
            if groups.contains_key(name) {
                names.push(name.into());
            } else {
                let what = format!("{path}: there is no group {}: add or remove it", shown(name));
                self.report(at, what);
            }
        }
        names
    }

    fn read_users(&mut self, users: &mut Users, common: &Common, value: &Value<'_>) {
        let Some(table) = self.table("users", value) else { return };
        if table.len() > USERS_MAX {
            let count = table.len();
            let what = format!("users: {count} users are too many, {USERS_MAX} may be");
            return self.report(value.span().start, what);
        }
        for (key, value) in table {
            let name = &**key.get_ref();
            let path = format!("users.{}", shown(name));
            if let Err(fault) = check_user_name(name) {
                self.report(key.span().start, format!("{path}: the name {fault}: rename the user"));
                continue;
            }
            let name = Arc::<str>::from(name);
            if let Some(user) = self.read_user(&name, &path, value, common, &mut users.certificates)
            {
                users.users.insert(name, user);
            }
        }
    }

    fn read_user(
        &mut self,
        name: &Arc<str>,
        path: &str,
        value: &Value<'_>,
        common: &Common,
        certificates: &mut BTreeMap<Box<str>, Arc<str>>,
    ) -> Option<User> {
        let table = self.table(path, value)?;
        let (mut sha_256, mut sha_512) = (None, None);
        let Common { groups, quotas } = common;
        let (mut own, mut expires) = (Rules::default(), None);
        let mut limits = Quotas::default();
        let mut user = User {
            name: Arc::clone(name),
            password: None,
            certificates: Vec::new(),
            unix_users: Vec::new(),
            is_disabled: false,
            groups: Vec::new(),
            rights: Arc::new(Rights::new(Arc::clone(name), [], [])),
        };
        for (key, value) in table {
            let path = format!("{path}.{}", shown(key.get_ref()));
            match &**key.get_ref() {
                "scram-sha-256" => sha_256 = self.verifier(&path, value, ScramHash::Sha256),
                "scram-sha-512" => sha_512 = self.verifier(&path, value, ScramHash::Sha512),
                "certificates" => {
                    user.certificates = self.certificates(&path, value, name, certificates);
                }
                "unix-users" => user.unix_users = self.unix_users(&path, value),
                "disabled" => user.is_disabled = self.boolean(&path, value),
                "expires" => expires = self.moment(&path, value),
                "groups" => user.groups = self.groups(&path, value, groups),
                "allow" => own.allow = self.rules(&path, value),
                "deny" => own.deny = self.rules(&path, value),
                "limits" => limits = self.quotas(&path, value),
                other => self.report_unknown(key.span().start, other, &path),
            }
        }
        let of_groups = user.groups.iter().filter_map(|group| groups.get(group));
        let all = || of_groups.clone().chain([&own]);
        let allow = all().flat_map(|rules| &rules.allow);
        let deny = all().flat_map(|rules| &rules.deny);
        let count = allow.clone().count() + deny.clone().count();
        if count > USER_RULES_MAX {
            let what = format!(
                "{path}: {count} rules with those of the groups are too many, {USER_RULES_MAX} may \
                 be: use patterns"
            );
            self.report(value.span().start, what);
        }
        let rights = Rights::new(Arc::clone(name), allow, deny).until(expires);
        user.rights = Arc::new(rights.within(limits.or(quotas)));
        if table.contains_key("scram-sha-512") && !table.contains_key("scram-sha-256") {
            let what = format!(
                "{path} has scram-sha-512 without scram-sha-256, which passwords in the clear are \
                 compared with: set the password again (dunlin user passwd)"
            );
            self.report(value.span().start, what);
        }
        user.password = sha_256.map(|sha_256| Passwords { sha_256, sha_512 });
        Some(user)
    }

    fn read_tokens(&mut self, users: &mut Users, value: &Value<'_>) {
        let Some(table) = self.table("tokens", value) else { return };
        if table.len() > TOKENS_MAX {
            let count = table.len();
            let what = format!("tokens: {count} tokens are too many, {TOKENS_MAX} may be");
            return self.report(value.span().start, what);
        }
        for (key, value) in table {
            let name = &**key.get_ref();
            let path = format!("tokens.{}", shown(name));
            if let Err(fault) = check_user_name(name) {
                let what = format!("{path}: the name {fault}: rename the token");
                self.report(key.span().start, what);
                continue;
            }
            let Some(token) = self.read_token(&path, value, users) else { continue };
            let same = users.token_index.entry(index_of(&token.digest)).or_default();
            let mut others = same.iter().filter_map(|name| users.tokens.get(name));
            if others.any(|other| other.digest == token.digest) {
                let what = format!("{path}: another token has the same sha256: remove one of them");
                self.report(value.span().start, what);
                continue;
            }
            same.push(name.into());
            users.tokens.insert(name.into(), token);
        }
    }

    fn read_token(&mut self, path: &str, value: &Value<'_>, users: &Users) -> Option<BearerToken> {
        let table = self.table(path, value)?;
        let (mut digest, mut user, mut expires) = (None, None, None);
        for (key, value) in table {
            let path = format!("{path}.{}", shown(key.get_ref()));
            match &**key.get_ref() {
                "sha256" => digest = self.digest(&path, value),
                "user" => user = self.read_user_name(&path, value, users),
                "expires" => expires = self.moment(&path, value),
                other => self.report_unknown(key.span().start, other, &path),
            }
        }
        for key in ["sha256", "user"].into_iter().filter(|key| !table.contains_key(*key)) {
            let what = format!("{path}: {key} is missing: make the token anew with dunlin user");
            self.report(value.span().start, what);
        }
        Some(BearerToken { digest: digest?, user: user?, expires })
    }

    pub(super) fn read_user_name(
        &mut self,
        path: &str,
        value: &Value<'_>,
        users: &Users,
    ) -> Option<Arc<str>> {
        let name = self.string(path, value)?;
        let user = users.user(name);
        if user.is_none() {
            let what = format!("{path}: there is no user {}: add or choose one", shown(name));
            self.report(value.span().start, what);
        }
        user.map(|user| Arc::clone(user.name()))
    }

    fn read_decoy_key(&mut self, value: &Value<'_>) -> Option<[u8; 32]> {
        let text = self.string("decoy-key", value)?;
        let key = STANDARD.decode(text).ok().and_then(|key| <[u8; 32]>::try_from(key).ok());
        if key.is_none() {
            let what = "decoy-key is not 32 bytes in base64: remove the line, and the next change \
                        by dunlin user writes another";
            self.report(value.span().start, what);
        }
        key
    }

    fn certificates(
        &mut self,
        path: &str,
        value: &Value<'_>,
        user: &Arc<str>,
        all: &mut BTreeMap<Box<str>, Arc<str>>,
    ) -> Vec<Box<str>> {
        let DeValue::Array(array) = value.get_ref() else {
            self.report_type(path, value, "a list of texts");
            return Vec::new();
        };
        if array.len() > USER_CERTIFICATES_MAX {
            let what = format!("{path}: at most {USER_CERTIFICATES_MAX} certificates may be");
            self.report(value.span().start, what);
            return Vec::new();
        }
        let mut certificates = Vec::new();
        for value in array.iter() {
            let Some(text) = self.string(path, value) else { continue };
            let text = Box::<str>::from(text);
            if !is_certificate(&text) {
                let what = format!(
                    "{path}: {} does not name a certificate: begin with SAN:URI:, SAN:DNS:, \
                     SAN:EMAIL: or CN=",
                    shown(&text)
                );
                self.report(value.span().start, what);
                continue;
            }
            match all.entry(text.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(Arc::clone(user));
                    certificates.push(text);
                }
                Entry::Occupied(other) => {
                    let (text, other) = (shown(&text), shown(other.get()));
                    let what = format!("{path}: {text} is of user {other} as well: remove one");
                    self.report(value.span().start, what);
                }
            }
        }
        certificates
    }

    fn unix_users(&mut self, path: &str, value: &Value<'_>) -> Vec<(usize, UnixUser)> {
        let mut users = Vec::new();
        for (at, text) in self.texts(path, value, USER_UNIX_USERS_MAX) {
            match UnixUser::parse(text) {
                Some(user) => users.push((self.line_of(at), user)),
                None => {
                    let what = format!(
                        "{path}: {} is no user of the system: write its name or its number",
                        shown(text)
                    );
                    self.report(at, what);
                }
            }
        }
        users
    }

    fn verifier(&mut self, path: &str, value: &Value<'_>, hash: ScramHash) -> Option<Verifier> {
        let text = self.string(path, value)?;
        let verifier = Verifier::of_text(hash, text);
        let mend = "set the password again (dunlin user passwd)";
        verifier
            .map_err(|fault| self.report(value.span().start, format!("{path} {fault}: {mend}")))
            .ok()
    }

    fn digest(&mut self, path: &str, value: &Value<'_>) -> Option<[u8; DIGEST_BYTES]> {
        let text = self.string(path, value)?;
        let digest = hexadecimal(text);
        if digest.is_none() {
            let what = format!("{path} is not 64 hexadecimal digits in small letters");
            self.report(value.span().start, what);
        }
        digest
    }

    fn moment(&mut self, path: &str, value: &Value<'_>) -> Option<Nanos> {
        let moment = match value.get_ref() {
            DeValue::Datetime(moment) => moment_of(&moment.to_string()),
            _ => None,
        };
        if moment.is_none() {
            let what =
                format!("{path} is no date such as 2027-01-01, nor a moment: 2027-01-01T12:00:00Z");
            self.report(value.span().start, what);
        }
        moment
    }

    fn boolean(&mut self, path: &str, value: &Value<'_>) -> bool {
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.report_type(path, value, "true or false");
        }
        boolean.unwrap_or_default()
    }

    pub(super) fn string<'v>(&mut self, path: &str, value: &'v Value<'_>) -> Option<&'v str> {
        let string = value.get_ref().as_str();
        if string.is_none() {
            self.report_type(path, value, "a text");
        }
        string
    }

    pub(super) fn table<'v, 'd>(
        &mut self,
        path: &str,
        value: &'v Value<'d>,
    ) -> Option<&'v DeTable<'d>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.report_type(path, value, "a table");
        }
        table
    }

    fn report_type(&mut self, path: &str, value: &Value<'_>, wanted: &str) {
        let found = value.get_ref().type_str();
        self.report(value.span().start, format!("{path} is of type {found}, not {wanted}"));
    }

    pub(super) fn report_unknown(&mut self, at: usize, key: &str, path: &str) {
        let path = if path.is_empty() { shown(key) } else { path.to_string() };
        self.report(at, format!("{path} is no key that is known here: correct or remove it"));
    }

    pub(super) fn report(&mut self, at: usize, what: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { line: self.line_of(at), what: what.into() });
        }
    }

    fn line_of(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

fn is_certificate(text: &str) -> bool {
    let name = ["SAN:URI:", "SAN:DNS:", "SAN:EMAIL:", "CN="]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    let is_whole = name.is_some_and(|name| !name.is_empty() && name.trim() == name);
    is_whole && text.len() <= CERTIFICATE_BYTES_MAX && !text.contains(char::is_control)
}

/// A date is the midnight that begins it, in UTC; a moment has to be in UTC as well.
fn moment_of(text: &str) -> Option<Nanos> {
    let Some((date, time)) = text.split_once('T') else {
        return Nanos::of_rfc3339(&format!("{text}T00:00:00.000Z"));
    };
    let time = time.strip_suffix('Z')?;
    let whole = time.split_once('.').map_or(time, |(whole, _)| whole);
    let seconds = if whole.len() == MINUTES { ":00" } else { "" };
    Nanos::of_rfc3339(&format!("{date}T{whole}{seconds}.000Z"))
}

/// The length of a time without seconds.
const MINUTES: usize = "12:00".len();

fn hexadecimal(text: &str) -> Option<[u8; DIGEST_BYTES]> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * DIGEST_BYTES || !text.bytes().all(is_plain) {
        return None;
    }
    let mut digest = [0; DIGEST_BYTES];
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

fn one_line(text: &str) -> String {
    text.replace('\n', ", ")
}
