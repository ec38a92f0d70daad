//! Which connections are to be closed when, unless something happens before.

use std::collections::BTreeSet;

use model::{Nanos, SessionId};

/// At most one deadline a connection. A deadline that moves away stays where it was and is looked
/// at when it comes, so that a busy connection costs nothing here.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    due: BTreeSet<(Nanos, SessionId)>,
}

impl Deadlines {
    /// Watches a connection for `deadline`; `watched` is its present deadline in the set.
    pub(crate) fn watch(
        &mut self,
        session: SessionId,
        watched: &mut Option<Nanos>,
        deadline: Option<Nanos>,
    ) {
        let Some(deadline) = deadline else { return };
        match *watched {
            Some(earlier) if earlier <= deadline => return,
            Some(later) => {
                self.due.remove(&(later, session));
            }
            None => {}
        }
        self.due.insert((deadline, session));
        *watched = Some(deadline);
    }

    /// The first deadline.
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.due.first().map(|(deadline, _)| *deadline)
    }

    /// A connection that has reached its deadline; it is no longer watched.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<SessionId> {
        self.first().filter(|deadline| *deadline <= now)?;
        self.due.pop_first().map(|(_, session)| session)
    }

    /// The connection is gone.
    pub(crate) fn forget(&mut self, session: SessionId, watched: Option<Nanos>) {
        if let Some(deadline) = watched {
            self.due.remove(&(deadline, session));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_moves_only_nearer() {
        let mut deadlines = Deadlines::default();
        let (session, mut watched) = (SessionId(1), None);
        deadlines.watch(session, &mut watched, None);
        assert_eq!(deadlines.first(), None);
        deadlines.watch(session, &mut watched, Some(Nanos(10)));
        deadlines.watch(session, &mut watched, Some(Nanos(20)));
        assert_eq!(deadlines.first(), Some(Nanos(10)));
        deadlines.watch(session, &mut watched, Some(Nanos(5)));
        assert_eq!(deadlines.first(), Some(Nanos(5)));
        assert_eq!(deadlines.pop_due(Nanos(4)), None);
        assert_eq!(deadlines.pop_due(Nanos(5)), Some(session));
        assert_eq!(deadlines.first(), None);
    }

    #[test]
    fn deadline_of_closed_session_is_forgotten() {
        let mut deadlines = Deadlines::default();
        let mut watched = None;
        deadlines.watch(SessionId(1), &mut watched, Some(Nanos(10)));
        deadlines.forget(SessionId(1), watched);
        assert_eq!(deadlines.pop_due(Nanos::MAX), None);
    }
}
