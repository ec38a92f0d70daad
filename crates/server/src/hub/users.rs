//! The users of a server, as its threads ask for them: logins, rights that change, quotas.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use access::{ConnectionId, LoginPeer};
use model::{LoginAnswer, LoginStep, Rights, SessionId};

use crate::audit::{AuditActor, GRANTED, LoginTrial};
use crate::connections::reactor_of;
use crate::hub::Hub;
use crate::logins::{Logins, Standing};
use crate::mailbox::Mailbox;
use crate::tls::TlsKeeper;
use crate::user_quotas::{Seat, UserQuotas};

impl Hub {
    /// Tells the audit log how a step of a login went.
    pub(crate) fn note_login(
        &self,
        from: Option<SocketAddr>,
        protocol: &'static str,
        trial: &LoginTrial,
        answer: &LoginAnswer,
    ) {
        if !matches!(answer, LoginAnswer::Granted { .. } | LoginAnswer::Challenge(_)) {
            self.failed_logins.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(user) = trial.listener_user().filter(|_| *answer == LoginAnswer::Refused) {
            self.turned_away.note_user(self.log, self.clock.now(), protocol, user);
        }
        let Some(audit) = &self.audit else { return };
        let (user, outcome) = match answer {
            LoginAnswer::Granted { rights, .. } => (Some(&**rights.user()), GRANTED),
            LoginAnswer::Refused => (None, "refused"),
            LoginAnswer::Busy => (None, "busy"),
            LoginAnswer::Full(reached) => (Some(&*reached.user), "quota"),
            LoginAnswer::Challenge(_) => return,
        };
        let actor = AuditActor { user, from, protocol };
        audit.note_login(self.wall_now(), &actor, trial, outcome);
    }

    /// The users, if there are any.
    pub(crate) const fn logins(&self) -> Option<&Logins> {
        self.logins.as_ref()
    }

    /// Has a step of a session's login answered: the answer comes into the mailbox of its reactor.
    pub(crate) fn ask_doorkeeper(&self, session: SessionId, peer: LoginPeer, step: LoginStep) {
        let mailboxes = Arc::clone(&self.mailboxes);
        let answer = move |answer| {
            if let Some(mailbox) = mailboxes.get(reactor_of(session)) {
                mailbox.deliver_login(session, answer);
            }
        };
        match &self.logins {
            Some(logins) => logins.ask(peer, step, answer),
            None => answer(LoginAnswer::Refused),
        }
    }

    /// A session that has asked the doorkeeper something is closed.
    pub(crate) fn close_login(&self, session: SessionId) {
        if let Some(logins) = &self.logins {
            logins.close(ConnectionId(session.0));
        }
    }

    /// Reads the files of users and certificates again.
    pub(crate) fn reload(&self) {
        self.tls.iter().for_each(TlsKeeper::reload);
        self.audit.iter().for_each(|audit| {
            audit.reopen();
            audit.note_server(self.wall_now(), "reload", None);
        });
        self.logins
            .iter()
            .for_each(|logins| logins.reload(|user, what| self.note_user(user, what)));
        self.review_users();
    }

    fn note_user(&self, user: &str, what: &str) {
        self.audit.iter().for_each(|audit| audit.note_user(self.wall_now(), user, what));
    }

    /// The same of those that have changed.
    pub(crate) fn reload_changed(&self) {
        self.tls.iter().for_each(TlsKeeper::reload_if_changed);
        let note = |user: &str, what: &str| self.note_user(user, what);
        self.logins.iter().for_each(|logins| logins.reload_if_changed(note));
        self.review_users();
    }

    /// Has all connections held against the users as they are now: their rights may have changed,
    /// or have ended by time.
    fn review_users(&self) {
        let Some(logins) = &self.logins else { return };
        self.lock().broker.set_users(Some(logins.rights()));
        self.users_generation.fetch_add(1, Ordering::AcqRel);
        self.mailboxes.iter().for_each(Mailbox::notify_mail);
    }

    /// Tells how often users were to be reviewed.
    pub(crate) fn users_generation(&self) -> u64 {
        self.users_generation.load(Ordering::Acquire)
    }

    /// The standing of a user who had these rights.
    pub(crate) fn standing(&self, rights: &Arc<Rights>) -> Standing {
        match &self.logins {
            Some(logins) => logins.standing(rights, self.clock.now()),
            None => Standing::Ended,
        }
    }

    /// An answer to a login with the rights that the user has now: they may have changed while it
    /// was on its way.
    pub(crate) fn reviewed(&self, answer: LoginAnswer) -> LoginAnswer {
        let LoginAnswer::Granted { rights, proof } = answer else { return answer };
        match self.standing(&rights) {
            Standing::Same => LoginAnswer::Granted { rights, proof },
            Standing::Changed(rights) => LoginAnswer::Granted { rights, proof },
            Standing::Ended => LoginAnswer::Refused,
        }
    }

    /// An answer to a login of a connection with this place, and the place that it has then.
    pub(crate) fn seated(
        &self,
        answer: LoginAnswer,
        mut seat: Option<Seat>,
    ) -> (LoginAnswer, Option<Seat>) {
        let LoginAnswer::Granted { rights, proof } = answer else { return (answer, seat) };
        if let Some(mut own) = seat.take_if(|seat| seat.rights().user() == rights.user()) {
            own.set_rights(Arc::clone(&rights));
            return (LoginAnswer::Granted { rights, proof }, Some(own));
        }
        match self.user_quotas.seat(&rights) {
            Ok(other) => (LoginAnswer::Granted { rights, proof }, Some(other)),
            // A client that cannot be another user is the one that it was.
            Err(reached) => (LoginAnswer::Full(Box::new(reached)), seat),
        }
    }

    /// The quotas of users that the server keeps.
    pub(crate) const fn user_quotas(&self) -> &UserQuotas {
        &self.user_quotas
    }
}
