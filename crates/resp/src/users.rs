//! ACL: which user a client is, and what users may do. Users are managed elsewhere: what a client
//! could see or change of them is refused.

use alloc::vec::Vec;

use crate::catalogue::{categories, category_names};
use crate::context::Context;
use crate::fault::{Fault, printed};
use crate::greeting::DEFAULT_USER;
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
    context.answer().bulk(principal.name().as_bytes());
    Ok(())
}

/// ACL USERS
pub(crate) fn users(context: &mut Context<'_>, _words: &Words) -> Said {
    list_default(context, DEFAULT_USER)
}

/// ACL LIST
pub(crate) fn list(context: &mut Context<'_>, _words: &Words) -> Said {
    list_default(context, EVERYTHING)
}

fn list_default(context: &mut Context<'_>, line: &str) -> Said {
    if context.client().principal.needs_user() {
        return Err(Fault::of(ELSEWHERE));
    }
    let mut answer = context.answer();
    answer.array(1);
    answer.bulk(line.as_bytes());
    Ok(())
}

/// ACL GETUSER
pub(crate) fn user(context: &mut Context<'_>, words: &Words) -> Said {
    if context.client().principal.needs_user() {
        return Err(Fault::of(ELSEWHERE));
    }
    let mut answer = context.answer();
    if words.word(2) != DEFAULT_USER.as_bytes() {
        answer.null();
        return Ok(());
    }
    answer.map(6);
    answer.bulk(b"flags");
    answer.set(2);
    for flag in ["on", "nopass"] {
        answer.bulk(flag.as_bytes());
    }
    answer.bulk(b"passwords");
    answer.array(0);
    for (field, rule) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        answer.bulk(field.as_bytes());
        answer.bulk(rule.as_bytes());
    }
    answer.bulk(b"selectors");
    answer.array(0);
    Ok(())
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
