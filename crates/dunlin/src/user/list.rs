//! Lists of users and tokens, without anything secret.

use std::time::{SystemTime, UNIX_EPOCH};

use access::Users;
use model::{Nanos, Right, Rights, Rule};
use serde_json::{Map, Value as Json, json};

use crate::client::table::print;
use crate::exit::Error;

/// Lists the users.
pub(super) fn users(users: &Users, as_json: bool) -> Result<(), Error> {
    let now = now();
    let objects: Vec<_> = users
        .iter()
        .map(|user| {
            let tokens = users.tokens().filter(|(_, token)| token.user() == &**user.name());
            let tokens: Vec<_> = tokens.map(|(name, _)| name).collect();
            let certificates: Vec<_> = user.certificates().iter().map(|name| &**name).collect();
            let unix_users: Vec<_> = user.unix_users().map(ToString::to_string).collect();
            let unix_users: Vec<_> = unix_users.iter().map(String::as_str).collect();
            let groups: Vec<_> = user.groups().iter().map(|name| &**name).collect();
            let state = match user.is_disabled() {
                true => "disabled",
                false if !user.is_active(now) => "expired",
                false => "active",
            };
            object(json!({
                "name": &**user.name(),
                "state": state,
                "password": user.has_password(),
                "groups": list(&groups, as_json),
                "certificates": list(&certificates, as_json),
                "unix-users": list(&unix_users, as_json),
                "tokens": list(&tokens, as_json),
                "expires": moment(user.expires()),
            }))
        })
        .collect();
    let columns =
        ["name", "state", "password", "groups", "certificates", "unix-users", "tokens", "expires"];
    print(&objects, &columns, as_json)
}

/// Lists the rules of a user, or its rights on one name.
pub(super) fn rights(rights: &Rights, on: Option<&str>, as_json: bool) -> Result<(), Error> {
    let Some(on) = on else {
        let (allow, deny) = rights.rules();
        let allow = allow.iter().map(|rule| ("allow", rule));
        let all = allow.chain(deny.iter().map(|rule| ("deny", rule)));
        let line =
            |(kind, rule): (&str, &Rule)| object(json!({ "kind": kind, "rule": rule.to_string() }));
        return print(&all.map(line).collect::<Vec<_>>(), &["kind", "rule"], as_json);
    };
    let held = rights.on(on, None);
    let answer = Right::ALL
        .into_iter()
        .filter(|right| *right != Right::Operate)
        .map(|right| object(json!({ "right": right.word(), "allowed": held.contains(right) })));
    print(&answer.collect::<Vec<_>>(), &["right", "allowed"], as_json)
}

/// Lists the limits of a user, also those that all users have.
pub(super) fn limits(rights: &Rights, as_json: bool) -> Result<(), Error> {
    let lines = rights
        .quotas()
        .iter()
        .map(|(quota, max)| object(json!({ "limit": quota.word(), "amount": max })));
    print(&lines.collect::<Vec<_>>(), &["limit", "amount"], as_json)
}

/// Lists the tokens.
pub(super) fn tokens(users: &Users, as_json: bool) -> Result<(), Error> {
    let now = now();
    let objects: Vec<_> = users
        .tokens()
        .map(|(name, token)| {
            let is_over = token.expires().is_some_and(|end| end <= now);
            let state = if is_over { "expired" } else { "active" };
            let expires = moment(token.expires());
            object(json!({
                "name": name, "user": token.user(), "state": state, "expires": expires,
            }))
        })
        .collect();
    print(&objects, &["name", "user", "state", "expires"], as_json)
}

fn list(names: &[&str], as_json: bool) -> Json {
    if as_json { names.into() } else { names.join(", ").into() }
}

fn moment(moment: Option<Nanos>) -> Json {
    moment.map_or(Json::Null, |moment| moment.rfc3339().to_string().into())
}

fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(object) => object,
        _ => Map::new(),
    }
}

fn now() -> Nanos {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}
