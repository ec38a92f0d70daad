//! The commands on scripts, as the table of commands has them.

use crate::catalogue;
use crate::scripting;
use crate::scripts;
use crate::table::Group::Scripting;
use crate::table::{NO_KEYS, Spec, ask, container, say};

const RUN: &[&str] = &["noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"];
const LOOK: &[&str] =
    &["readonly", "noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"];
const ABOUT: &[&str] = &["noscript"];

/// In the order of their names.
pub(crate) static SPECS: [Spec; 10] = [
    ask("eval", -3, RUN, NO_KEYS, Scripting, |it| scripting::evaluate(it, false)),
    ask("eval_ro", -3, LOOK, NO_KEYS, Scripting, |it| scripting::evaluate(it, true)),
    ask("evalsha", -3, RUN, NO_KEYS, Scripting, |it| scripting::evaluate_known(it, false)),
    ask("evalsha_ro", -3, LOOK, NO_KEYS, Scripting, |it| scripting::evaluate_known(it, true)),
    container("script", Scripting),
    say("script|exists", -3, ABOUT, Scripting, scripts::exist),
    say("script|flush", -2, ABOUT, Scripting, scripts::flush),
    say("script|help", 2, &["loading", "stale"], Scripting, catalogue::help),
    say("script|kill", 2, &["noscript", "allow_busy"], Scripting, scripts::kill),
    say("script|load", 3, &["noscript", "stale"], Scripting, scripts::load),
];
