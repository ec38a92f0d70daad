//! The scripts that clients have brought, and SCRIPT.

use alloc::sync::Arc;
use core::cell::RefCell;

use crate::context::Context;
use crate::fault::Fault;
use crate::interpreter::Interpreter;
use crate::recent_scripts::{Digest, RecentScripts};
use crate::scripting::digest_of;
use crate::words::Words;

type Said = Result<(), Fault>;

/// The scripts of all connections. Nothing of them is stored.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    pub(crate) interpreter: Option<Arc<dyn Interpreter>>,
    known: RefCell<RecentScripts<Arc<[u8]>>>,
}

impl Scripts {
    /// The source of this digest.
    pub(crate) fn find(&self, digest: &Digest) -> Option<Arc<[u8]>> {
        self.known.borrow_mut().find(digest)
    }

    pub(crate) fn remember(&self, digest: Digest, source: &Arc<[u8]>) {
        self.known.borrow_mut().keep(digest, source.len(), Arc::clone(source));
    }

    fn knows(&self, digest: &Digest) -> bool {
        self.known.borrow().knows(digest)
    }

    fn forget_all(&self) {
        *self.known.borrow_mut() = RecentScripts::default();
    }
}

/// SCRIPT LOAD
pub(crate) fn load(context: &mut Context<'_>, words: &Words) -> Said {
    let scripts = &context.shared.scripts;
    let interpreter = scripts.interpreter.as_ref().ok_or(OFF)?;
    let source: Arc<[u8]> = words.word(2).into();
    interpreter.check(&source).map_err(Fault::from_text)?;
    let digest = interpreter.digest(&source);
    scripts.remember(digest, &source);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    let text: alloc::string::String = digits.collect();
    context.answer().bulk(text.as_bytes());
    Ok(())
}

/// SCRIPT EXISTS
pub(crate) fn exist(context: &mut Context<'_>, words: &Words) -> Said {
    let known = |word| digest_of(word).is_some_and(|digest| context.shared.scripts.knows(&digest));
    let found: alloc::vec::Vec<_> = words.from(2).map(known).collect();
    let mut answer = context.answer();
    answer.array(found.len());
    found.into_iter().for_each(|known| answer.integer(known.into()));
    Ok(())
}

/// SCRIPT FLUSH
pub(crate) fn flush(context: &mut Context<'_>, words: &Words) -> Said {
    let is_known = words.is(2, "sync") || words.is(2, "async");
    if words.len() > 3 || words.len() == 3 && !is_known {
        return Err(Fault::of("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    context.shared.scripts.forget_all();
    context.answer().ok();
    Ok(())
}

/// SCRIPT KILL: a script has ended before another command is read.
pub(crate) fn kill(_context: &mut Context<'_>, _words: &Words) -> Said {
    Err(Fault::of("NOTBUSY No scripts in execution right now."))
}

/// There is no interpreter.
pub(crate) const OFF: Fault =
    Fault::of("ERR scripts are off on this server: an operator can allow them with --scripts on");
