//! `dunlin user`: the users file.

pub(crate) mod cli;
mod edit;
mod list;
mod password;

use std::io::Write as _;
use std::path::Path;

use access::{User, Users, Verifier, check_user_name, limits, token_digest};
use disk::read_private;
use model::{Quota, Rule, ScramHash, Secret};
use server::read_users;

use crate::client::table::say;
use crate::exit::Error;
use crate::user::cli::{Add, Change, Limit, Source, TokenCommand, UserCommand, UsersAt};
use crate::user::edit::UsersFile;

/// Does one of the commands.
pub(crate) fn run(user: UserCommand) -> Result<(), Error> {
    match user {
        UserCommand::Add(add) => add_user(&add),
        UserCommand::Passwd { name, source, users } => set_password(&name, source, &users),
        UserCommand::Rm { name, users } => remove_user(&name, &users),
        UserCommand::Ls { users, json } => list::users(&read(&users.path)?, json),
        UserCommand::Disable { name, users } => set_disabled(&name, true, &users),
        UserCommand::Enable { name, users } => set_disabled(&name, false, &users),
        UserCommand::Grant(change) => grant(&change),
        UserCommand::Revoke(change) => revoke(&change),
        UserCommand::Join { name, groups, users } => join(&name, &groups, &users),
        UserCommand::Leave { name, groups, users } => leave(&name, &groups, &users),
        UserCommand::Rights { name, on, users, json } => {
            show_rights(&name, on.as_deref(), &users, json)
        }
        UserCommand::Limit(limit) => set_limits(&limit),
        UserCommand::Check { users } => check(&users.path),
        UserCommand::Token { token: TokenCommand::Add { name, user, expires, users } } => {
            add_token(&name, &user, expires.as_deref(), &users)
        }
        UserCommand::Token { token: TokenCommand::Rm { name, users } } => {
            remove_token(&name, &users)
        }
        UserCommand::Token { token: TokenCommand::Ls { users, json } } => {
            list::tokens(&read(&users.path)?, json)
        }
    }
}

fn add_user(add: &Add) -> Result<(), Error> {
    check_name("user", &add.name)?;
    // The lock is not held while a person types: the password is asked for in between.
    UsersFile::open(&add.users.path)?.require_no_user(&add.name)?;
    let password = if add.no_password { None } else { Some(password::ask(add.source)?) };
    let mut file = UsersFile::open(&add.users.path)?;
    file.require_no_user(&add.name)?;
    file.add_user(&add.name)?;
    if let Some(password) = &password {
        set_verifiers(&mut file, &add.name, password)?;
    }
    let lists = [("certificates", &add.certificate), ("unix-users", &add.unix_user)];
    for (key, texts) in lists.into_iter().filter(|(_, texts)| !texts.is_empty()) {
        file.set_texts(&add.name, key, texts)?;
    }
    if let Some(expires) = &add.expires {
        file.set_user(&add.name, "expires", edit::moment(expires)?)?;
    }
    for (key, texts) in [("allow", &add.allow), ("deny", &add.deny), ("groups", &add.group)] {
        if !texts.is_empty() {
            file.extend("users", &add.name, key, texts)?;
        }
    }
    file.write()?;
    if add.allow.is_empty() && add.group.is_empty() {
        let name = &add.name;
        let hint = format!("dunlin user grant {name} 'send,receive QUEUE'");
        // A closed standard error is no reason to fail.
        let _ = writeln!(std::io::stderr(), "user {name} may do nothing yet: {hint}");
    }
    show_generated(add.source, password.as_ref())
}

/// The section and the list of the file that a change is about.
fn place_of(change: &Change) -> (&'static str, &'static str) {
    let section = if change.group { "groups" } else { "users" };
    (section, if change.deny { "deny" } else { "allow" })
}

fn grant(change: &Change) -> Result<(), Error> {
    for rule in &change.rules {
        Rule::parse(rule).map_err(|error| Error::Settings(error.to_string()))?;
    }
    let mut file = UsersFile::open(&change.users.path)?;
    if change.group {
        check_name("group", &change.name)?;
        file.add_group(&change.name)?;
    } else {
        file.require_user(&change.name)?;
    }
    let (section, key) = place_of(change);
    file.extend(section, &change.name, key, &change.rules)?;
    file.write()
}

fn revoke(change: &Change) -> Result<(), Error> {
    let mut file = UsersFile::open(&change.users.path)?;
    if change.group {
        file.require_group(&change.name)?;
    } else {
        file.require_user(&change.name)?;
    }
    let (section, key) = place_of(change);
    if let Some(missing) = file.withdraw(section, &change.name, key, &change.rules)? {
        let name = &change.name;
        return Err(Error::Nothing(format!(
            "{name} has no rule to {key} '{missing}' of its own: dunlin user rights {name} shows \
             all, also those of groups"
        )));
    }
    file.write()
}

fn join(name: &str, groups: &[String], users: &UsersAt) -> Result<(), Error> {
    let mut file = UsersFile::open(&users.path)?;
    file.require_user(name)?;
    groups.iter().try_for_each(|group| file.require_group(group))?;
    file.extend("users", name, "groups", groups)?;
    file.write()
}

fn leave(name: &str, groups: &[String], users: &UsersAt) -> Result<(), Error> {
    let mut file = UsersFile::open(&users.path)?;
    file.require_user(name)?;
    if let Some(missing) = file.withdraw("users", name, "groups", groups)? {
        return Err(Error::Nothing(format!("user {name} is not in group {missing}")));
    }
    file.write()
}

fn show_rights(name: &str, on: Option<&str>, users: &UsersAt, as_json: bool) -> Result<(), Error> {
    let users = read(&users.path)?;
    list::rights(find(&users, name)?.rights(), on, as_json)
}

fn set_limits(limit: &Limit) -> Result<(), Error> {
    let (name, words) = match &*limit.words {
        [name, words @ ..] if !limit.all => (Some(&**name), words),
        words => (None, words),
    };
    let path = &limit.users.path;
    if let (Some(name), []) = (name, words) {
        return list::limits(find(&read(path)?, name)?.rights(), limit.json);
    }
    let mut file = UsersFile::open(path)?;
    name.map_or(Ok(()), |name| file.require_user(name))?;
    for word in words {
        let (quota, amount) = parse_limit(word)?;
        if !file.set_limit(name, quota.word(), amount)? {
            let whose = name.map_or("all users".into(), |name| format!("user {name}"));
            let what = format!("{whose} has no limit {} of its own: nothing changed", quota.word());
            return Err(Error::Nothing(what));
        }
    }
    file.write()
}

/// A limit and its amount; none: it is to go.
fn parse_limit(word: &str) -> Result<(Quota, Option<&str>), Error> {
    let known = Quota::ALL.map(Quota::word).join(", ");
    let (limit, amount) = word.split_once('=').ok_or_else(|| {
        Error::Settings(format!(
            "{word:?} is no limit: write bytes=2G or the like; there are {known}"
        ))
    })?;
    let quota = Quota::of_word(limit).ok_or_else(|| {
        Error::Settings(format!("there is no limit {limit:?}: there are {known}"))
    })?;
    if amount == "none" {
        return Ok((quota, None));
    }
    quota.parse_max(amount).map_err(|error| Error::Settings(error.to_string()))?;
    Ok((quota, Some(amount)))
}

fn find<'u>(users: &'u Users, name: &str) -> Result<&'u User, Error> {
    users.user(name).ok_or_else(|| {
        Error::Nothing(format!("there is no user {name}: dunlin user ls shows which there are"))
    })
}

fn set_password(name: &str, source: Source, users: &UsersAt) -> Result<(), Error> {
    UsersFile::open(&users.path)?.require_user(name)?;
    let password = password::ask(source)?;
    let mut file = UsersFile::open(&users.path)?;
    file.require_user(name)?;
    set_verifiers(&mut file, name, &password)?;
    file.write()?;
    show_generated(source, Some(&password))
}

fn set_verifiers(file: &mut UsersFile, name: &str, password: &Secret) -> Result<(), Error> {
    for (key, hash) in [("scram-sha-256", ScramHash::Sha256), ("scram-sha-512", ScramHash::Sha512)]
    {
        let verifier = Verifier::derive(hash, password, &password::random::<16>()?);
        file.set_user(name, key, verifier.text().into())?;
    }
    Ok(())
}

fn show_generated(source: Source, password: Option<&Secret>) -> Result<(), Error> {
    match password.filter(|_| source.generate) {
        Some(password) => say(&[password.expose(), b"\n"].concat()),
        None => Ok(()),
    }
}

fn remove_user(name: &str, users: &UsersAt) -> Result<(), Error> {
    let mut file = UsersFile::open(&users.path)?;
    file.require_user(name)?;
    if file.users().anonymous() == Some(name) {
        return Err(Error::Other(format!(
            "user {name} is the user of clients without a name: remove or change the line \
             `anonymous` in {} first",
            users.path.display()
        )));
    }
    let tokens = file.users().tokens().filter(|(_, token)| token.user() == name);
    let tokens: Vec<String> = tokens.map(|(name, _)| name.to_owned()).collect();
    for token in &tokens {
        file.remove("tokens", token);
    }
    file.remove("users", name);
    file.write()
}

fn set_disabled(name: &str, disabled: bool, users: &UsersAt) -> Result<(), Error> {
    let mut file = UsersFile::open(&users.path)?;
    file.require_user(name)?;
    file.set_user(name, "disabled", disabled.into())?;
    file.write()
}

fn add_token(name: &str, user: &str, expires: Option<&str>, users: &UsersAt) -> Result<(), Error> {
    check_name("token", name)?;
    let mut file = UsersFile::open(&users.path)?;
    file.require_user(user)?;
    if file.has_token(name) {
        return Err(Error::Other(format!(
            "token {name} is there already: remove it first, or choose another name"
        )));
    }
    let token = password::new_token()?;
    let expires = expires.map(edit::moment).transpose()?;
    file.add_token(name, &token_digest(token.expose()), user, expires)?;
    file.write()?;
    say(&[token.expose(), b"\n"].concat())
}

fn remove_token(name: &str, users: &UsersAt) -> Result<(), Error> {
    let mut file = UsersFile::open(&users.path)?;
    if !file.has_token(name) {
        return Err(Error::Nothing(format!(
            "there is no token {name}: dunlin user token ls shows which there are"
        )));
    }
    file.remove("tokens", name);
    file.write()
}

fn check(path: &Path) -> Result<(), Error> {
    let users = read(path)?;
    // The files of keys, too.
    read_users(path).map_err(|error| Error::Other(error.to_string()))?;
    let (count, tokens) = (users.iter().count(), users.tokens().count());
    let issuers = match users.issuers().len() {
        0 => String::new(),
        1 => ", 1 issuer of JWT".into(),
        many => format!(", {many} issuers of JWT"),
    };
    say(format!("sound: {count} users, {tokens} tokens{issuers}\n").as_bytes())
}

fn read(path: &Path) -> Result<Users, Error> {
    let text = read_private(path, limits::USERS_FILE_BYTES_MAX);
    let text = text.map_err(|error| Error::Other(error.to_string()))?;
    edit::parse(&text, path)
}

fn check_name(what: &str, name: &str) -> Result<(), Error> {
    check_user_name(name)
        .map_err(|fault| Error::Settings(format!("the name of a {what} may not be so: it {fault}")))
}
