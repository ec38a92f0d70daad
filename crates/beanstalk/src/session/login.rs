//! How a client logs in: an extension of ours, since beanstalkd has no users.
//!
//! `auth USER PASSWORD` is answered `OK`. A client that may not do what it asks hears `DENIED`, and
//! the connection closes: nothing that it has sent behind is done. A client with a certificate, or
//! one that its process or its listener gives a user, logs in without a word.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use input::is_http_line;
use model::{LoginAnswer, LoginOffer, LoginStep, Principal, QueueName, RightSet, Rights, Secret};

use super::{Session, Step};
use crate::answer;
use crate::verb::Verb;

/// The login of a client that needs one.
#[derive(Debug)]
pub(super) struct Login {
    offer: LoginOffer,
    /// The step that the server has not taken.
    step: Option<LoginStep>,
    pending: Option<Pending>,
    rights: Option<Arc<Rights>>,
    /// The server has not been told of them.
    are_new: bool,
}

/// The origin of the step that is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// The connection: the client hears nothing of it.
    Connected,
    Auth,
}

impl Login {
    fn new(offer: LoginOffer) -> Self {
        let step = offer.unasked_step();
        let pending = step.is_some().then_some(Pending::Connected);
        Self { offer, step, pending, rights: None, are_new: true }
    }
}

impl Login {
    /// The rights of the client's user on a tube.
    pub(super) fn rights_on(&self, tube: &QueueName) -> RightSet {
        self.rights.as_ref().map_or(RightSet::NONE, |rights| rights.on(tube.as_str(), None))
    }
}

impl Session {
    /// Makes the client log in by one of the ways of the offer before it may do anything. `None`:
    /// every client may. Call it before the first [`poll_command`](Self::poll_command).
    pub fn set_offer(&mut self, offer: Option<LoginOffer>) {
        debug_assert!(!self.has_spoken, "the offer comes before the client's first command");
        self.login = offer.map(|offer| Box::new(Login::new(offer)));
    }

    /// The next step of the client's login, after [`poll_command`](Self::poll_command) gave
    /// nothing. Nothing more is read until [`handle_login`](Self::handle_login) has come.
    pub fn poll_login(&mut self) -> Option<LoginStep> {
        self.login.as_mut()?.step.take()
    }

    /// Takes the answer to the last step. [`has_more`](Self::has_more) tells that there is
    /// something to read again.
    pub fn handle_login(&mut self, answer: LoginAnswer, out: &mut Vec<u8>) {
        let Some(login) = &mut self.login else { return };
        let Some(pending) = login.pending.take() else { return };
        login.step = None;
        self.has_more = true;
        let is_asked = pending == Pending::Auth;
        match answer {
            LoginAnswer::Granted { rights, .. } => {
                login.rights = Some(rights);
                login.are_new = true;
                if is_asked {
                    answer::word(out, answer::OK);
                }
            }
            // A certificate that is no user's: the client may still have a password.
            _ if !is_asked && !login.offer.listener => {}
            // In the words of the protocol: try again later.
            LoginAnswer::Busy | LoginAnswer::Full(_) => self.close_with(answer::OUT_OF_MEMORY, out),
            LoginAnswer::Refused | LoginAnswer::Challenge(_) => {
                self.close_with(answer::DENIED, out);
            }
        }
    }

    /// The name by which the client has logged in.
    #[must_use]
    pub fn user(&self) -> Option<&Arc<str>> {
        self.login.as_ref()?.rights.as_ref().map(|rights| rights.user())
    }

    /// The one for whom the client's commands are done from now on, if that has changed since the
    /// last call.
    pub fn take_principal(&mut self) -> Option<Principal> {
        let are_new = core::mem::take(&mut self.login.as_mut()?.are_new);
        are_new.then(|| self.principal())
    }

    /// The rights of the client's user have changed.
    pub fn set_rights(&mut self, rights: Arc<Rights>) {
        if let Some(login) = &mut self.login {
            login.rights = Some(rights);
            login.are_new = true;
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

    /// The client has to log in and has not done so.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        self.login.is_some() && self.user().is_none()
    }

    /// A step is being answered, or is about to be.
    pub(super) fn is_logging_in(&self) -> bool {
        self.login.as_ref().is_some_and(|login| login.pending.is_some())
    }

    /// Does what a line says about logging in, and denies what it says too early. `None`: it is a
    /// command like others.
    pub(super) fn read_login(&mut self, line: &[u8], out: &mut Vec<u8>) -> Option<Step> {
        let login = self.login.as_mut()?;
        if let Some(arguments) = line.strip_prefix(AUTH) {
            self.has_spoken = true;
            match password_step(arguments).filter(|_| login.offer.password) {
                Some(step) => {
                    login.step = Some(step);
                    login.pending = Some(Pending::Auth);
                }
                None => self.close_with(answer::DENIED, out),
            }
            return Some(Step::GoOn);
        }
        if !self.needs_login() {
            return None;
        }
        let verb = Verb::of(line).map(|(verb, _)| verb);
        if verb.is_none() && is_http_line(line) {
            return Some(self.close_for_http());
        }
        self.has_spoken |= verb.is_some();
        if verb == Some(Verb::Quit) {
            return Some(self.quit());
        }
        Some(self.deny(out))
    }

    /// Refuses what a client asks before its login. It closes: the lines behind could be a body.
    pub(super) fn deny(&mut self, out: &mut Vec<u8>) -> Step {
        self.close_with(answer::DENIED, out);
        Step::GoOn
    }

    fn close_with(&mut self, word: &'static str, out: &mut Vec<u8>) {
        answer::word(out, word);
        self.closing = true;
    }
}

/// The step of `USER PASSWORD`. The password may have spaces.
fn password_step(arguments: &[u8]) -> Option<LoginStep> {
    let space = arguments.iter().position(|byte| *byte == b' ')?;
    let (user, password) = arguments.split_at(space);
    let user = core::str::from_utf8(user).ok().filter(|user| !user.is_empty())?;
    let password = Secret::from(password.get(1..)?);
    Some(LoginStep::Password { user: user.into(), password })
}

const AUTH: &[u8] = b"auth ";
