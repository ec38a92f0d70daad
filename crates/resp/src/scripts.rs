//! The scripts that clients have brought, and SCRIPT.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cell::RefCell;
use core::fmt;

use crate::context::Context;
use crate::fault::Fault;
use crate::interpreter::Interpreter;
use crate::scripting::digest_of;
use crate::words::Words;

/// Scripts that are remembered, and bytes of all of them; the least recently used go.
const SCRIPTS_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// SHA-1 of a script.
pub(crate) type Digest = [u8; 20];

type Said = Result<(), Fault>;

/// The scripts of all connections. Nothing of them is stored.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    pub(crate) interpreter: Option<Arc<dyn Interpreter>>,
    known: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    /// Each with the number of its last use.
    by_digest: BTreeMap<Digest, (Arc<[u8]>, u64)>,
    by_use: BTreeMap<u64, Digest>,
    bytes: usize,
    used: u64,
}

impl Scripts {
    /// The source of this digest.
    pub(crate) fn find(&self, digest: &Digest) -> Option<Arc<[u8]>> {
        let mut known = self.known.borrow_mut();
        let source = known.by_digest.get(digest).map(|(source, _)| Arc::clone(source))?;
        known.insert(*digest, &source);
        Some(source)
    }

    pub(crate) fn remember(&self, digest: Digest, source: &Arc<[u8]>) {
        self.known.borrow_mut().insert(digest, source);
    }

    fn knows(&self, digest: &Digest) -> bool {
        self.known.borrow().by_digest.contains_key(digest)
    }

    fn forget_all(&self) {
        *self.known.borrow_mut() = Known::default();
    }
}

impl Known {
    /// Remembers a script, or that it was used, and forgets others if there are too many.
    fn insert(&mut self, digest: Digest, source: &Arc<[u8]>) {
        self.used += 1;
        match self.by_digest.insert(digest, (Arc::clone(source), self.used)) {
            Some((_, before)) => drop(self.by_use.remove(&before)),
            None => self.bytes += source.len(),
        }
        self.by_use.insert(self.used, digest);
        while self.by_digest.len() > SCRIPTS_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            if let Some((gone, _)) = self.by_digest.remove(&oldest) {
                self.bytes -= gone.len();
            }
        }
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({}, of {} bytes)", self.by_digest.len(), self.bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_scripts_are_forgotten() {
        let scripts = Scripts::default();
        let source: Arc<[u8]> = Arc::from(&b"return 1"[..]);
        let digest = |number: usize| {
            let mut digest = [0; 20];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            digest
        };
        for number in 0..SCRIPTS_MAX {
            scripts.remember(digest(number), &source);
        }
        assert!(scripts.find(&digest(0)).is_some());
        scripts.remember(digest(SCRIPTS_MAX), &source);
        assert!(scripts.knows(&digest(0)) && !scripts.knows(&digest(1)));
        let large: Arc<[u8]> = alloc::vec![b' '; BYTES_MAX].into();
        scripts.remember(digest(7_000), &large);
        assert!(scripts.knows(&digest(7_000)) && !scripts.knows(&digest(0)));
        assert_eq!(scripts.known.borrow().bytes, BYTES_MAX);
    }
}
