//! How a client logs in: AUTH, HELLO with AUTH, or the connection itself, by its certificate.
//!
//! Without an offer there are no users, and every client is `default`. With one a client does
//! nothing but log in and leave before it is a user. Nothing is read while a login is being
//! answered, so commands that a client sends behind AUTH are done as the user that it becomes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{LoginAnswer, LoginOffer, LoginStep};

use super::{Session, Step};
use crate::clients::Principal;
use crate::fault::Fault;
use crate::greeting::{BUSY, Hello, NOT_IN_CLEAR, WRONG_PASSWORD, credentials};
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
    user: Option<Arc<str>>,
    /// The user that the connection itself gives, to which RESET returns.
    own: Option<Arc<str>>,
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
    /// A client with a certificate logs in by it at once, one without a name by the user for such
    /// clients; either may become another user by AUTH.
    fn new(offer: LoginOffer) -> Self {
        let step = offer.unasked_step();
        let pending = step.is_some().then_some(Pending::Connected);
        Self { offer, step, pending, user: None, own: None }
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
            (LoginAnswer::Granted { user, .. }, pending) => {
                if matches!(pending, Pending::Connected) {
                    login.own = Some(Arc::clone(&user));
                }
                login.user = Some(user);
                self.note_principal(shared);
                match pending {
                    Pending::Connected => {}
                    Pending::Auth => self.context(shared, out).answer().ok(),
                    Pending::Hello(hello) => hello.greet(&mut self.context(shared, out)),
                }
            }
            (_, Pending::Connected) => {}
            (LoginAnswer::Busy, _) => self.context(shared, out).refuse(&BUSY),
            (LoginAnswer::Refused | LoginAnswer::Challenge(_), _) => {
                self.context(shared, out).refuse(&WRONG_PASSWORD);
            }
        }
        self.keep_silent(before, shared, out);
    }

    /// The name by which the client has logged in.
    #[must_use]
    pub fn user(&self) -> Option<&Arc<str>> {
        self.login.as_ref()?.user.as_ref()
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
            login.user.clone_from(&login.own);
            self.note_principal(shared);
        }
    }

    /// Tells the list of clients and the reader which user it is.
    fn note_principal(&mut self, shared: &mut ListenerState) {
        self.reader.set_stranger(self.needs_login());
        let user = self.user().cloned();
        shared.clients.at_mut(self.slot).principal = match user {
            Some(user) => Principal::User(user),
            None if self.login.is_some() => Principal::Stranger,
            None => Principal::Everyone,
        };
    }
}

/// True if the command logs a client in.
pub(super) fn is_login(spec: &Spec) -> bool {
    matches!(spec.name, "auth" | "hello")
}
