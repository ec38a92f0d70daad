//! The users of a server: their file, which may change while the server runs, and the thread that
//! answers logins.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use access::{ConnectionId, Doorkeeper, LoginPeer, TokenFault, Users};
use model::{Introduction, LoginAnswer, LoginOffer, LoginStep, Nanos, Rights, Secrets, UserRights};

use crate::Logger;
use crate::clock::Clock;
use crate::doorkeeper::LoginQueue;
use crate::log::Complaint;
use crate::users_file::{UsersError, UsersFile};

/// The logins of a server that has users.
pub(crate) struct Logins {
    file: Mutex<UsersFile>,
    /// Clients without a name may be a user.
    has_anonymous: AtomicBool,
    /// Others issue tokens for users.
    has_issuers: AtomicBool,
    /// Users of the system whose processes are users on Unix sockets.
    unix_users: Mutex<BTreeSet<u32>>,
    /// The rights of the users that are not disabled.
    rights: Mutex<Arc<UserRights>>,
    queue: LoginQueue,
    /// Until the thread begins.
    doorkeeper: Mutex<Option<Doorkeeper>>,
    log: Logger,
    refused_tokens: Mutex<Complaint>,
}

/// The standing of a user that has logged in.
#[derive(Debug)]
pub(crate) enum Standing {
    /// It has the same rights.
    Same,
    /// It has these now, which allow at least as much.
    Changed(Arc<Rights>),
    /// It is no user any more, or has lost a right: what it has begun by that has to end.
    Ended,
}

impl Logins {
    /// Reads the file for the first time. The source gives unguessable numbers.
    ///
    /// # Errors
    /// [`UsersError`]: it cannot be used.
    pub(crate) fn open(file: PathBuf, nonces: Secrets, log: Logger) -> Result<Self, UsersError> {
        let (file, users) = UsersFile::open(file)?;
        Ok(Self {
            has_anonymous: AtomicBool::new(users.anonymous().is_some()),
            has_issuers: AtomicBool::new(!users.issuers().is_empty()),
            unix_users: Mutex::new(users.unix_user_numbers().collect()),
            rights: Mutex::new(Arc::new(users.rights())),
            doorkeeper: Mutex::new(Some(Doorkeeper::new(users, nonces))),
            queue: LoginQueue::default(),
            file: Mutex::new(file),
            log,
            refused_tokens: Mutex::default(),
        })
    }

    /// The ways of logging in for a client whose bytes other machines can read, or cannot, and that
    /// was introduced so.
    pub(crate) fn offer(&self, is_private: bool, client: &Introduction) -> LoginOffer {
        let unix = match client {
            Introduction::ListenerUser(_) => {
                return LoginOffer { listener: true, ..LoginOffer::default() };
            }
            Introduction::UnixUser(number) => {
                self.unix_users.lock().expect(POISONED).contains(number)
            }
            Introduction::Unknown => false,
        };
        LoginOffer {
            password: is_private,
            unix,
            anonymous: self.has_anonymous.load(Ordering::Relaxed),
            token: is_private && self.has_issuers.load(Ordering::Relaxed),
            ..LoginOffer::default()
        }
    }

    /// The rights of all users, as they were read last.
    pub(crate) fn rights(&self) -> Arc<UserRights> {
        Arc::clone(&self.rights.lock().expect(POISONED))
    }

    /// The standing of a user who had these rights when it logged in. The end of its token stays.
    pub(crate) fn standing(&self, then: &Arc<Rights>, now: Nanos) -> Standing {
        let all = self.rights.lock().expect(POISONED);
        let current = all.get(then.user()).filter(|_| !has_ended(then, now));
        let renewed = current.map(|current| match then.token_expires() {
            None => Arc::clone(current),
            end => Arc::new(current.by_token_until(end)),
        });
        match renewed.filter(|rights| !has_ended(rights, now)) {
            Some(renewed) if renewed.is_same(then) => Standing::Same,
            Some(renewed) if renewed.cover(then) => Standing::Changed(renewed),
            _ => Standing::Ended,
        }
    }

    /// Has a step answered: see [`LoginQueue::ask`].
    pub(crate) fn ask(
        &self,
        peer: LoginPeer,
        step: LoginStep,
        answer: impl FnOnce(LoginAnswer) + Send + 'static,
    ) {
        self.queue.ask(peer, step, answer);
    }

    /// The answer to a client of HTTP, whose logins have one step each.
    pub(crate) async fn answer(
        &self,
        step: LoginStep,
        address: Option<IpAddr>,
        certificate: Arc<[Box<str>]>,
        introduction: Introduction,
    ) -> LoginAnswer {
        let (to, from) = tokio::sync::oneshot::channel();
        let connection = ConnectionId(u64::MAX);
        let peer = LoginPeer { connection, address, certificate, introduction };
        self.queue.ask(peer, step, move |answer| {
            // A client that is gone asks no more.
            let _ = to.send(answer);
        });
        from.await.unwrap_or(LoginAnswer::Busy)
    }

    /// A connection that has asked something has closed.
    pub(crate) fn close(&self, connection: ConnectionId) {
        self.queue.close(connection);
    }

    /// Answers logins until [`Logins::end`].
    pub(crate) fn run(&self, clock: Clock) {
        let doorkeeper = self.doorkeeper.lock().expect(POISONED).take();
        if let Some(doorkeeper) = doorkeeper {
            let complain = |peer: &LoginPeer, fault| self.complain(clock.now(), peer, fault);
            self.queue.run(clock, doorkeeper, complain);
        }
    }

    /// Tells the operator why a token was refused: its client never hears it.
    fn complain(&self, now: Nanos, peer: &LoginPeer, fault: TokenFault) {
        let from = peer.address.map_or_else(|| "a Unix socket".into(), |from| from.to_string());
        let mut complaint = self.refused_tokens.lock().expect(POISONED);
        complaint.line(self.log, now, format_args!("a token from {from} is refused: {fault}"));
    }

    /// No login is answered any more.
    pub(crate) fn end(&self) {
        self.queue.end();
    }

    /// From now on the users are in another file.
    pub(crate) fn set_file(&self, file: PathBuf) {
        self.file.lock().expect(POISONED).move_to(file);
    }

    /// Reads the file again; the log tells how it went.
    pub(crate) fn reload(&self, note: impl Fn(&str, &str)) {
        let complain = |error| {
            let what = "keys of tokens stay as they were, the new ones cannot be used";
            self.log.line(format_args!("{what}: {error}"));
        };
        match self.file.lock().expect(POISONED).read(complain) {
            Ok(users) => self.replace(users, note),
            Err(error) => {
                let what = "users stay as they were, the new ones cannot be used";
                self.log.line(format_args!("{what}: {error}"));
            }
        }
    }

    fn replace(&self, users: Users, note: impl Fn(&str, &str)) {
        self.has_anonymous.store(users.anonymous().is_some(), Ordering::Relaxed);
        self.has_issuers.store(!users.issuers().is_empty(), Ordering::Relaxed);
        *self.unix_users.lock().expect(POISONED) = users.unix_user_numbers().collect();
        let rights = Arc::new(users.rights());
        let mut held = self.rights.lock().expect(POISONED);
        let before = std::mem::replace(&mut *held, Arc::clone(&rights));
        drop(held);
        tell_changes(&before, &rights, note);
        self.log.line(format_args!("{} users are read again", users.iter().count()));
        self.queue.reload(users);
    }

    /// The same if the file has changed since.
    pub(crate) fn reload_if_changed(&self, note: impl Fn(&str, &str)) {
        let has_changed = self.file.lock().expect(POISONED).has_changed();
        if has_changed {
            self.reload(note);
        }
    }
}

/// Tells which users were added, removed or changed; one that is disabled counts as removed.
fn tell_changes(before: &UserRights, after: &UserRights, note: impl Fn(&str, &str)) {
    for (user, rights) in after {
        match before.get(user) {
            None => note(user, "added"),
            Some(old) if old != rights => note(user, "changed"),
            Some(_) => {}
        }
    }
    before.keys().filter(|user| !after.contains_key(*user)).for_each(|user| note(user, "removed"));
}

fn has_ended(rights: &Rights, now: Nanos) -> bool {
    rights.expires().is_some_and(|end| end <= now)
}

const POISONED: &str = "invariant: no thread panics with the users";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use testkit::Directory;

    use super::*;

    fn write(directory: &Directory, text: &str) -> PathBuf {
        let file = directory.file("users.toml", text);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        file
    }

    #[test]
    fn token_end_outlives_reviews() {
        let directory = Directory::new("logins-standing");
        let file = write(&directory, "[users.ann]\nallow = [\"send a\"]\n");
        let logins = Logins::open(file, Secrets::default(), Logger::default()).unwrap();
        let at = Nanos::from_secs;
        let then = Arc::new(logins.rights()["ann"].by_token_until(Some(at(5))));
        assert!(matches!(logins.standing(&then, at(4)), Standing::Same));
        assert!(matches!(logins.standing(&then, at(5)), Standing::Ended));
        write(&directory, "[users.ann]\nallow = [\"send a\", \"send b\"]\n");
        logins.reload(|_, _| {});
        let Standing::Changed(now) = logins.standing(&then, at(4)) else { panic!("it may more") };
        assert_eq!(now.token_expires(), Some(at(5)));
        assert!(matches!(logins.standing(&now, at(4)), Standing::Same));
        assert!(matches!(logins.standing(&now, at(5)), Standing::Ended));
    }
}
