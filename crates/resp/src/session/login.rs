//! How a client logs in: AUTH, HELLO with AUTH, or the connection itself, by its certificate.
//!
//! Without an offer there are no users, and every client is `default`. With one a client does
//! nothing but log in and leave before it is a user. Nothing is read while a login is being
//! answered, so commands that a client sends behind AUTH are done as the user that it becomes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{LoginAnswer, LoginOffer, LoginStep, Principal, Refusal, Rights};

use super::{Session, Step};
use crate::fault::Fault;
use crate::greeting::{
    BUSY, Hello, LISTENER_HAS_USER, LISTENER_USER_GONE, NOT_IN_CLEAR, WRONG_PASSWORD, credentials,
};
use crate::shared::ListenerState;
use crate::table::Spec;
use crate::words::Words;

/// The login of a client that needs one.
#[derive(Debug)]
pub(super) struct Login {
    offer: LoginOffer,
    /// The step that the server has not taken.
    step: Option<LoginStep>,
    /// The command that waits for the answer.
    pending: Option<Pending>,
    rights: Option<Arc<Rights>>,
    /// The server has not been told of them.
    are_new: bool,
    /// Those of the user that the connection itself gives, to which RESET returns.
    own: Option<Arc<Rights>>,
}

/// The origin of the step that is being answered.
#[derive(Debug)]
enum Pending {
    /// The connection: no command waits.
    Connected,
    Auth,
    Hello(Hello),
}

impl Login {
    /// A client with a certificate, or a process that is a user, logs in by it at once, one without
    /// a name by the user for such clients; either may become another user by AUTH. One of a
    /// listener with a user stays that.
    fn new(offer: LoginOffer) -> Self {
        let step = offer.unasked_step();
        let pending = step.is_some().then_some(Pending::Connected);
        Self { offer, step, pending, rights: None, are_new: true, own: None }
    }

    /// A step is being answered, or is about to be.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

impl Session {
    /// Makes the client log in by one of the ways of the offer before it may do anything. `None`:
    /// every client may. Call it before the first [`poll_command`](Self::poll_command).
    pub fn set_offer(&mut self, offer: Option<LoginOffer>, shared: &mut ListenerState) {
        debug_assert!(!self.has_spoken, "the offer comes before the client's first command");
        self.login = offer.map(|offer| Box::new(Login::new(offer)));
        self.note_principal(shared);
    }

    /// The next step of the client's login, after [`poll_command`](Self::poll_command) gave
    /// nothing. Nothing more is read until [`handle_login`](Self::handle_login) has come.
    pub fn poll_login(&mut self) -> Option<LoginStep> {
        self.login.as_mut()?.step.take()
    }

    /// Takes the answer to the last step, and answers the command that asked for it.
    /// [`has_more`](Self::has_more) tells that there is something to read again.
    pub fn handle_login(
        &mut self,
        answer: LoginAnswer,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) {
        let Some(login) = &mut self.login else { return };
        let Some(pending) = login.pending.take() else { return };
        login.step = None;
        self.has_more = true;
        let before = out.len();
        match (answer, pending) {
            (LoginAnswer::Granted { rights, .. }, pending) => {
                if matches!(pending, Pending::Connected) {
                    login.own = Some(Arc::clone(&rights));
                }
                login.rights = Some(rights);
                login.are_new = true;
                self.note_principal(shared);
                match pending {
                    Pending::Connected => {}
                    Pending::Auth => self.context(shared, out).answer().ok(),
                    Pending::Hello(hello) => hello.greet(&mut self.context(shared, out)),
                }
            }
            (_, Pending::Connected) if login.offer.listener => {
                self.closing = true;
                self.context(shared, out).refuse(&LISTENER_USER_GONE);
            }
            (_, Pending::Connected) => {}
            (LoginAnswer::Busy, _) => self.context(shared, out).refuse(&BUSY),
            (LoginAnswer::Full(reached), _) => {
                let refusal = Fault::refused(&Refusal::QuotaReached(reached));
                self.context(shared, out).refuse(&refusal);
            }
            (LoginAnswer::Refused | LoginAnswer::Challenge(_), _) => {
                self.context(shared, out).refuse(&WRONG_PASSWORD);
            }
        }
        self.keep_silent(before, shared, out);
    }

    /// The name by which the client has logged in.
    #[must_use]
    pub fn user(&self) -> Option<&Arc<str>> {
        self.login.as_ref()?.rights.as_ref().map(|rights| rights.user())
    }

    /// The client has to log in and has not done so.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        self.login.is_some() && self.user().is_none()
    }

    /// AUTH and HELLO of a client that needs a user. The command is answered with the login.
    pub(super) fn log_in(
        &mut self,
        spec: &'static Spec,
        words: &Words,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        let (credentials, pending) = if spec.name == "auth" {
            (Some(credentials(words)?), Pending::Auth)
        } else {
            let mut hello = Hello::parse(&mut self.context(shared, out), words)?;
            (hello.take_credentials(), Pending::Hello(hello))
        };
        let is_stranger = self.needs_login();
        let Some(login) = &mut self.login else { return Ok(Step::GoOn) };
        match (credentials, pending) {
            (None, Pending::Hello(_)) if is_stranger => Err(Fault::HELLO_WITHOUT_AUTH),
            (None, Pending::Hello(hello)) => {
                hello.greet(&mut self.context(shared, out));
                Ok(Step::GoOn)
            }
            (Some(_), _) if login.offer.listener => Err(LISTENER_HAS_USER),
            (Some(_), _) if !login.offer.password => Err(NOT_IN_CLEAR),
            (Some(Ok(step)), pending) => {
                login.step = Some(step);
                login.pending = Some(pending);
                Ok(Step::NeedMore)
            }
            _ => Err(WRONG_PASSWORD),
        }
    }

    /// RESET: the client is the user again that its connection gives, if any.
    pub(super) fn log_out(&mut self, shared: &mut ListenerState) {
        if let Some(login) = &mut self.login {
            login.rights.clone_from(&login.own);
            login.are_new = true;
            self.note_principal(shared);
        }
    }

    /// Tells the list of clients and the reader which user it is.
    fn note_principal(&mut self, shared: &mut ListenerState) {
        self.reader.set_stranger(self.needs_login());
        shared.clients.at_mut(self.slot).principal = self.principal();
    }

    /// The one for whom the client's commands are done from now on, if that has changed since the
    /// last call.
    pub fn take_principal(&mut self) -> Option<Principal> {
        let are_new = core::mem::take(&mut self.login.as_mut()?.are_new);
        are_new.then(|| self.principal())
    }

    /// The rights of the client's user have changed.
    pub fn set_rights(&mut self, rights: Arc<Rights>, shared: &mut ListenerState) {
        if let Some(login) = &mut self.login {
            let of_connection = login.own.as_ref();
            if of_connection.is_some_and(|own| own.user() == rights.user()) {
                login.own = Some(Arc::clone(&rights));
            }
            login.rights = Some(rights);
            login.are_new = true;
            self.note_principal(shared);
        }
    }

    /// The one for whom the client's commands are done.
    #[must_use]
    pub fn principal(&self) -> Principal {
        match &self.login {
            None => Principal::Everyone,
            Some(login) => login.rights.clone().map_or(Principal::Stranger, Principal::User),
        }
    }
}

/// True if the command logs a client in.
pub(super) fn is_login(spec: &Spec) -> bool {
    matches!(spec.name, "auth" | "hello")
}
