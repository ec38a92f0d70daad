//! One connection without a socket.

use beanstalk::{InputBuffer, ListenerState, Session};
use model::{Command, LoginAnswer, LoginOffer, LoginStep, Reply, SessionId};

/// A session with the server's state for it.
pub(crate) struct Connection {
    session: Option<Session>,
    input: InputBuffer,
    /// Answered and not yet taken.
    out: Vec<u8>,
}

impl Connection {
    /// Just accepted.
    pub(crate) fn new(id: u64, shared: &mut ListenerState) -> Self {
        let session = Some(Session::new(SessionId(id), shared));
        Self { session, input: InputBuffer::new(), out: Vec::new() }
    }

    /// With its producer and consumer open.
    pub(crate) fn opened(id: u64, shared: &mut ListenerState) -> Self {
        let mut connection = Self::new(id, shared);
        for _ in 0..2 {
            connection.poll(shared).expect("a command that opens");
            connection.reply(Reply::Done, shared);
        }
        connection
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.input.append(bytes);
    }

    pub(crate) fn poll(&mut self, shared: &mut ListenerState) -> Option<Command> {
        let session = self.session.as_mut().expect("an open session");
        session.poll_command(&mut self.input, shared, &mut self.out)
    }

    pub(crate) fn reply(&mut self, reply: Reply, shared: &mut ListenerState) {
        let session = self.session.as_mut().expect("an open session");
        session.handle_reply(reply, shared, &mut self.out);
    }

    /// The client has to log in.
    pub(crate) fn offer(&mut self, offer: LoginOffer) {
        self.session.as_mut().expect("an open session").set_offer(Some(offer));
    }

    pub(crate) fn poll_login(&mut self) -> Option<LoginStep> {
        self.session.as_mut().expect("an open session").poll_login()
    }

    pub(crate) fn answer_login(&mut self, answer: LoginAnswer) {
        let session = self.session.as_mut().expect("an open session");
        session.handle_login(answer, &mut self.out);
    }

    pub(crate) fn half_close(&mut self) -> Option<Command> {
        self.session.as_mut().expect("an open session").handle_half_close()
    }

    pub(crate) fn close(&mut self, shared: &mut ListenerState) {
        self.session.take().expect("an open session").close(shared);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().expect("an open session")
    }

    /// Bytes received and not yet read by the session.
    pub(crate) fn unread(&self) -> usize {
        self.input.len()
    }

    /// The answers so far, to take a part of.
    pub(crate) fn out_mut(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    pub(crate) fn take_out(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }
}
