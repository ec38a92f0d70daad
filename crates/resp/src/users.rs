//! ACL: which user a client is, and what it may do. Users are managed elsewhere, and none sees
//! another.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use model::Rights;

use crate::catalogue::{categories, category_names};
use crate::clients::user_name;
use crate::context::Context;
use crate::fault::{Fault, printed};
use crate::table::{self, Spec};
use crate::words::Words;

type Said = Result<(), Fault>;

/// The refusal of all that changes users.
pub(crate) const ELSEWHERE: &str =
    "ERR users are managed by 'dunlin user' on the server's machine, not by clients";

/// The rules of `default` without users, as Redis lists them.
const EVERYTHING: &str = "user default on nopass ~* &* +@all";

/// ACL WHOAMI
pub(crate) fn who_am_i(context: &mut Context<'_>, _words: &Words) -> Said {
    let principal = context.client().principal.clone();
    context.answer().bulk(user_name(&principal).as_bytes());
    Ok(())
}

/// ACL USERS. With users the client sees itself alone.
pub(crate) fn users(context: &mut Context<'_>, _words: &Words) -> Said {
    let principal = context.client().principal.clone();
    let mut answer = context.answer();
    answer.array(1);
    answer.bulk(user_name(&principal).as_bytes());
    Ok(())
}

/// ACL LIST. With users the client sees itself alone.
pub(crate) fn list(context: &mut Context<'_>, _words: &Words) -> Said {
    let principal = context.client().principal.clone();
    let line = match principal.rights() {
        None => EVERYTHING.into(),
        Some(rights) => format!("user {} on {}", rights.user(), told(rights)),
    };
    let mut answer = context.answer();
    answer.array(1);
    answer.bulk(line.as_bytes());
    Ok(())
}

/// ACL GETUSER of the client's own user: its rules in our words, for Redis has none for them.
pub(crate) fn user(context: &mut Context<'_>, words: &Words) -> Said {
    let principal = context.client().principal.clone();
    let (keys, channels, rules) = match principal.rights() {
        None => ("~*".into(), "&*".into(), None),
        Some(rights) => {
            let rules = told(rights);
            (rules.clone(), rules.clone(), Some(rules))
        }
    };
    let mut answer = context.answer();
    if words.word(2) != user_name(&principal).as_bytes() {
        answer.null();
        return Ok(());
    }
    answer.map(6);
    answer.bulk(b"flags");
    let flags: &[&str] = if rules.is_some() { &["on"] } else { &["on", "nopass"] };
    answer.set(flags.len());
    flags.iter().for_each(|flag| answer.bulk(flag.as_bytes()));
    answer.bulk(b"passwords");
    answer.array(0);
    for (field, rule) in [("commands", "+@all"), ("keys", &keys), ("channels", &channels)] {
        answer.bulk(field.as_bytes());
        answer.bulk(rule.as_bytes());
    }
    answer.bulk(b"selectors");
    answer.array(0);
    Ok(())
}

/// The rules of a user: `allow "send orders.*" deny "look *"`.
fn told(rights: &Rights) -> String {
    let (allow, deny) = rights.rules();
    let allow = allow.iter().map(|rule| format!("allow \"{rule}\""));
    let deny = deny.iter().map(|rule| format!("deny \"{rule}\""));
    allow.chain(deny).collect::<Vec<_>>().join(" ")
}

/// ACL CAT
pub(crate) fn categories_of(context: &mut Context<'_>, words: &Words) -> Said {
    let names: Vec<_> = match words.len() {
        2 => category_names().collect(),
        3 => in_category(words)?,
        _ => {
            return Err(Fault::about(
                "ERR unknown subcommand or wrong number of arguments for '",
                printed(words.word(1), 128),
                "'. Try ACL HELP.",
            ));
        }
    };
    let mut answer = context.answer();
    answer.array(names.len());
    names.into_iter().for_each(|name| answer.bulk(name.as_bytes()));
    Ok(())
}

/// The names of the commands of a category.
fn in_category(words: &Words) -> Result<Vec<&'static str>, Fault> {
    let wanted = words.lower(2);
    if !category_names().any(|name| name == wanted) {
        return Err(Fault::about("ERR Unknown category '", printed(words.word(2), 128), "'"));
    }
    let is_in =
        |spec: &&Spec| categories(spec).iter().any(|name| name.strip_prefix('@') == Some(&wanted));
    Ok(table::all().filter(is_in).map(|spec| spec.name).collect())
}
