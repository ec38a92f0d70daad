//! Answers the login steps of clients.
//!
//! * A refusal never tells its reason. A name that is no user takes the same way as a user with a
//!   wrong password, and costs the same derivation. So does a disabled or expired user.
//! * A user and an address that failed wait before they may try again ([`back_off`]). Steps in that
//!   time are answered [`LoginAnswer::Busy`] and cost nothing.
//! * A right password is remembered for five minutes as a keyed hash: clients that connect again
//!   cost microseconds, not milliseconds.
//! * A user that has logged in from an address within a day is familiar there. Failures of others,
//!   as this user or from this address, do not hold it off; its own failures there do. So an
//!   attacker locks no running application out. The same holds for tokens, and for the users of
//!   those that an issuer signs. Certificates are proven by their keys: nothing is guessed, and
//!   nothing held off.
//!
//! [`back_off`]: crate::back_off

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use model::{Introduction, LoginAnswer, LoginStep, Nanos, ScramHash, Secret, Secrets};
use ring::hmac;

use crate::back_off::{BackOff, Suspect};
use crate::jwt::{Claimed, TokenFault, is_compact};
use crate::limits::{JWT_BYTES_MAX, NAME_BYTES_MAX, PASSWORD_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::name::{sent_name, sent_password};
use crate::remembered::{Mark, Remembered};
use crate::scram::{ClientFirst, Exchange};
use crate::users::{User, Users, token_digest};
use crate::verifier::Verifier;

/// A connection, as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The client of a login step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginPeer {
    /// Its connection: the steps of one SCRAM exchange have the same.
    pub connection: ConnectionId,
    /// Its address; none for Unix sockets.
    pub address: Option<IpAddr>,
    /// The names of its verified certificate, as a users file writes them; the first that a user
    /// has counts.
    pub certificate: Arc<[Box<str>]>,
    /// The one that it is before it says a word.
    pub introduction: Introduction,
}

/// Knows the users, the exchanges in progress, and the failures of late.
pub struct Doorkeeper {
    users: Users,
    /// How often users were loaded: exchanges of an earlier time are void.
    generation: u64,
    exchanges: BTreeMap<ConnectionId, Waiting>,
    back_off: BackOff,
    passwords: Remembered,
    familiar: Remembered,
    /// JWT whose signatures were right, and their addresses.
    signatures: Remembered,
    /// The fault of the last token that was refused, until it is taken.
    token_fault: Option<TokenFault>,
    nonces: Secrets,
    process_key: hmac::Key,
    /// Salts of names that are no users, if the file has no key for them.
    own_decoy_key: hmac::Key,
}

/// An exchange that waits for its last message.
#[derive(Debug)]
struct Waiting {
    exchange: Exchange,
    user: Box<str>,
    is_known: bool,
    generation: u64,
    begun: Nanos,
}

/// A claim to be a user, and those that wait if it fails.
struct Claim {
    user: Option<Box<str>>,
    suspects: Vec<Suspect>,
}

impl Doorkeeper {
    /// A doorkeeper that knows these users. The source gives unguessable numbers.
    #[must_use]
    pub fn new(users: Users, nonces: Secrets) -> Self {
        let key = || {
            let halves = [nonces.next(), nonces.next()].map(u128::to_be_bytes);
            hmac::Key::new(hmac::HMAC_SHA256, halves.as_flattened())
        };
        let (process_key, own_decoy_key) = (key(), key());
        Self {
            users,
            generation: 0,
            exchanges: BTreeMap::new(),
            back_off: BackOff::new(SUSPECTS_MAX),
            passwords: Remembered::new(PASSWORDS_MAX, PASSWORD_LIFETIME),
            familiar: Remembered::new(FAMILIAR_MAX, FAMILIAR_LIFETIME),
            signatures: Remembered::new(SIGNATURES_MAX, SIGNATURE_LIFETIME),
            token_fault: None,
            nonces,
            process_key,
            own_decoy_key,
        }
    }

    /// Answers a step.
    pub fn handle(&mut self, now: Nanos, peer: &LoginPeer, step: LoginStep) -> LoginAnswer {
        match step {
            LoginStep::Password { user, password } => {
                self.check_password(now, peer, &user, &password)
            }
            LoginStep::ScramFirst { hash, message } => {
                self.begin_exchange(now, peer, hash, message.expose())
            }
            LoginStep::ScramFinal { message } => self.finish_exchange(now, peer, message.expose()),
            LoginStep::Certificate { user } => self.check_certificate(now, peer, &user),
            LoginStep::UnixUser { user } => self.check_process(now, peer, &user),
            LoginStep::Anonymous => self.admit_anonymous(now),
            LoginStep::ListenerUser => self.admit_introduced(now, peer),
            LoginStep::Token { user, token } => self.check_token(now, peer, &user, token.expose()),
        }
    }

    /// The connection has closed: its exchange is void.
    pub fn handle_closed(&mut self, connection: ConnectionId) {
        self.exchanges.remove(&connection);
    }

    /// The fault of a token that was refused since the last call, for the operator. One that is no
    /// JWT and unknown has none.
    pub fn take_token_fault(&mut self) -> Option<TokenFault> {
        self.token_fault.take()
    }

    /// Goes on with other users. Exchanges in progress, remembered passwords and signatures are
    /// void; the failures stay.
    pub fn reload(&mut self, users: Users) {
        self.users = users;
        self.generation += 1;
        self.passwords.clear();
        self.signatures.clear();
    }

    /// True if the answer to a step takes the derivation of a password: milliseconds, and
    /// microseconds otherwise.
    #[must_use]
    pub fn derives(&self, now: Nanos, peer: &LoginPeer, step: &LoginStep) -> bool {
        let LoginStep::Password { user, password } = step else { return false };
        let Some(name) = sent_name(user) else { return false };
        let suspects = self.claim(now, peer, Some(&name)).suspects;
        password.expose().len() <= PASSWORD_BYTES_MAX
            && !self.back_off.holds_off(now, &suspects)
            && !self.passwords.contains(now, &self.password_mark(&name, password))
    }

    fn check_password(
        &mut self,
        now: Nanos,
        peer: &LoginPeer,
        name: &str,
        password: &Secret,
    ) -> LoginAnswer {
        let Some(name) = sent_name(name) else { return self.refuse_nameless(now, peer) };
        let claim = self.claim(now, peer, Some(&name));
        if self.back_off.holds_off(now, &claim.suspects) {
            return LoginAnswer::Busy;
        }
        // An overlong password is refused by its length, which is the client's own secret.
        if password.expose().len() > PASSWORD_BYTES_MAX {
            return self.refuse(now, &claim);
        }
        let mark = self.password_mark(&name, password);
        let prepared = sent_password(password);
        let password = prepared.as_ref().unwrap_or(password);
        let (verifier, is_known) = self.verifier(ScramHash::Sha256, &name);
        let is_right = self.passwords.contains(now, &mark) || verifier.fits(password);
        if !(is_right && is_known && prepared.is_some()) {
            return self.refuse(now, &claim);
        }
        let answer = self.admit(now, peer, &claim, Vec::new());
        if matches!(answer, LoginAnswer::Granted { .. }) {
            self.remember(now, mark);
        }
        answer
    }

    /// From the first derivation on, so that each password is derived again in time.
    fn remember(&mut self, now: Nanos, mark: Mark) {
        if !self.passwords.contains(now, &mark) {
            self.passwords.insert(now, mark);
        }
    }

    fn begin_exchange(
        &mut self,
        now: Nanos,
        peer: &LoginPeer,
        hash: ScramHash,
        message: &[u8],
    ) -> LoginAnswer {
        self.exchanges.remove(&peer.connection);
        let Some(first) = ClientFirst::parse(message) else {
            return self.refuse_nameless(now, peer);
        };
        let Some(name) = sent_name(&first.user) else { return self.refuse_nameless(now, peer) };
        let claim = self.claim(now, peer, Some(&name));
        if self.back_off.holds_off(now, &claim.suspects) || !self.has_place(now) {
            return LoginAnswer::Busy;
        }
        let authorization = first.authorization.as_deref().map(sent_name);
        if authorization.is_some_and(|it| it.as_ref() != Some(&name)) {
            return self.refuse(now, &claim);
        }
        let (verifier, is_known) = self.verifier(hash, &name);
        let nonce = format!("{:032x}", self.nonces.next());
        let (exchange, challenge) = Exchange::begin(&first, verifier.into_owned(), &nonce);
        let (user, generation) = (Box::from(&*name), self.generation);
        let waiting = Waiting { exchange, user, is_known, generation, begun: now };
        self.exchanges.insert(peer.connection, waiting);
        LoginAnswer::Challenge(challenge.into_bytes())
    }

    fn finish_exchange(&mut self, now: Nanos, peer: &LoginPeer, message: &[u8]) -> LoginAnswer {
        let Some(waiting) = self.exchanges.remove(&peer.connection) else {
            return self.refuse_nameless(now, peer);
        };
        let claim = self.claim(now, peer, Some(&waiting.user));
        // Exchanges begun side by side before the first failure are held off as well.
        let is_void = waiting.generation != self.generation || !waiting.is_in_time(now);
        if is_void || self.back_off.holds_off(now, &claim.suspects) {
            return LoginAnswer::Busy;
        }
        match waiting.exchange.finish(message) {
            Some(proof) if waiting.is_known => self.admit(now, peer, &claim, proof),
            _ => self.refuse(now, &claim),
        }
    }

    /// True if there is room for an exchange; those that have waited for too long make it.
    fn has_place(&mut self, now: Nanos) -> bool {
        if self.exchanges.len() >= EXCHANGES_MAX {
            self.exchanges.retain(|_, waiting| waiting.is_in_time(now));
        }
        self.exchanges.len() < EXCHANGES_MAX
    }

    /// The client has proven to have the key of its certificate: nothing is guessed, so no failure
    /// is counted, and none of others holds it off.
    fn check_certificate(&self, now: Nanos, peer: &LoginPeer, wanted: &str) -> LoginAnswer {
        admit_proven(now, self.users.of_certificate(&peer.certificate), wanted)
    }

    /// The system has said which of its users the client's process belongs to: as with a
    /// certificate.
    fn check_process(&self, now: Nanos, peer: &LoginPeer, wanted: &str) -> LoginAnswer {
        let Introduction::UnixUser(number) = peer.introduction else { return LoginAnswer::Refused };
        admit_proven(now, self.users.of_unix_user(number), wanted)
    }

    /// The listener's own user.
    fn admit_introduced(&self, now: Nanos, peer: &LoginPeer) -> LoginAnswer {
        let Introduction::ListenerUser(name) = &peer.introduction else {
            return LoginAnswer::Refused;
        };
        admit_proven(now, self.users.user(name), "")
    }

    fn admit_anonymous(&self, now: Nanos) -> LoginAnswer {
        let user = self.users.anonymous().and_then(|name| self.users.user(name));
        user.filter(|user| user.is_active(now)).map_or(LoginAnswer::Refused, granted)
    }

    fn check_token(
        &mut self,
        now: Nanos,
        peer: &LoginPeer,
        wanted: &str,
        token: &[u8],
    ) -> LoginAnswer {
        let may_be_jwt = !self.users.issuers().is_empty() && is_compact(token);
        if token.len() > if may_be_jwt { JWT_BYTES_MAX } else { TOKEN_BYTES_MAX } {
            return self.refuse_nameless(now, peer);
        }
        // A token that was right at its address is familiar there, as users are.
        let digest = token_digest(token);
        let network = peer.address.map(network_of);
        let mark = self.mark(&[b"token", &digest, network.as_ref().map_or(&[], |it| &it[..])]);
        let is_signed = self.signatures.contains(now, &mark);
        let is_familiar = is_signed || self.familiar.contains(now, &mark);
        let claimed = may_be_jwt.then(|| self.users.claimed(token));
        let claim = self.token_claim(now, peer, claimed.as_ref().and_then(|it| it.as_ref().ok()));
        if !is_familiar && self.back_off.holds_off(now, &claim.suspects) {
            return LoginAnswer::Busy;
        }
        let (holder, remembered) = match (self.users.of_token(&digest, now), claimed) {
            (Some(holder), _) => (Ok(holder), &mut self.familiar),
            // Short-lived tokens are many: they drive no user out of those that are familiar.
            (None, Some(claimed)) => {
                let holder = claimed.and_then(|it| self.users.of_jwt(&it, now, is_signed));
                (holder, &mut self.signatures)
            }
            (None, None) => return self.refuse(now, &claim),
        };
        let admitted = holder.and_then(|(user, end)| {
            permitted(user, now, wanted)?;
            Ok((Arc::clone(user.name()), granted_until(user, end)))
        });
        match admitted {
            Ok((user, answer)) => {
                remembered.insert(now, mark);
                if may_be_jwt {
                    self.note_familiar(now, peer, &user);
                }
                answer
            }
            Err(fault) => {
                self.token_fault = Some(fault);
                self.refuse(now, &claim)
            }
        }
    }

    /// The claim of a token. One of an issuer says a user: if that is familiar at the address, it
    /// waits for no failures but its own there. Else its failure is the address's alone, since
    /// nothing of the user was guessed.
    fn token_claim(
        &self,
        now: Nanos,
        peer: &LoginPeer,
        claimed: Option<&Claimed<'_, '_>>,
    ) -> Claim {
        let network = peer.address.map(network_of);
        let is_familiar =
            |name: &&str| network.is_some_and(|network| self.is_familiar(now, name, &network));
        self.claim(now, peer, claimed.and_then(Claimed::user).filter(is_familiar))
    }

    /// The user of a claim that is proven, if it may log in.
    fn admit(
        &mut self,
        now: Nanos,
        peer: &LoginPeer,
        claim: &Claim,
        proof: Vec<u8>,
    ) -> LoginAnswer {
        let name = claim.user.as_deref();
        let user = name.and_then(|name| self.users.user(name)).filter(|it| it.is_active(now));
        let Some(rights) = user.map(|user| Arc::clone(user.rights())) else {
            return self.refuse(now, claim);
        };
        self.note_familiar(now, peer, rights.user());
        LoginAnswer::Granted { rights, proof }
    }

    /// The user has logged in from its address.
    fn note_familiar(&mut self, now: Nanos, peer: &LoginPeer, user: &str) {
        if let Some(network) = peer.address.map(network_of) {
            let mark = self.mark(&[b"familiar", user.as_bytes(), &network]);
            self.familiar.insert(now, mark);
        }
    }

    fn refuse(&mut self, now: Nanos, claim: &Claim) -> LoginAnswer {
        self.back_off.record(now, &claim.suspects);
        LoginAnswer::Refused
    }

    /// Refuses a step that names no possible user.
    fn refuse_nameless(&mut self, now: Nanos, peer: &LoginPeer) -> LoginAnswer {
        let claim = self.claim(now, peer, None);
        if self.back_off.holds_off(now, &claim.suspects) {
            return LoginAnswer::Busy;
        }
        self.refuse(now, &claim)
    }

    fn claim(&self, now: Nanos, peer: &LoginPeer, name: Option<&str>) -> Claim {
        let network = peer.address.map(network_of);
        let suspect = |what: &[u8], name: &str, network: &[u8]| {
            let mark = self.mark(&[what, name.as_bytes(), network]);
            *mark.first_chunk::<16>().expect("invariant: a mark is longer")
        };
        let suspects = match (name, network) {
            (Some(name), Some(network)) if self.is_familiar(now, name, &network) => {
                vec![suspect(b"user at address", name, &network)]
            }
            (name, network) => {
                let of_user = name.map(|name| suspect(b"user", name, &[]));
                let of_address = network.map(|network| suspect(b"address", "", &network));
                of_user.into_iter().chain(of_address).collect()
            }
        };
        Claim { user: name.map(Box::from), suspects }
    }

    fn is_familiar(&self, now: Nanos, name: &str, network: &[u8]) -> bool {
        let mark = self.mark(&[b"familiar", name.as_bytes(), network]);
        self.familiar.contains(now, &mark)
    }

    /// The verifier of a user, or of a name that is none.
    fn verifier(&self, hash: ScramHash, name: &str) -> (Cow<'_, Verifier>, bool) {
        match self.users.user(name).and_then(|user| user.verifier(hash)) {
            Some(verifier) => (Cow::Borrowed(verifier), true),
            None => {
                let of_file =
                    self.users.decoy_key().map(|key| hmac::Key::new(hmac::HMAC_SHA256, key));
                let key = of_file.as_ref().unwrap_or(&self.own_decoy_key);
                (Cow::Owned(Verifier::decoy(hash, key, name)), false)
            }
        }
    }

    fn password_mark(&self, name: &str, sent: &Secret) -> Mark {
        self.mark(&[b"password", name.as_bytes(), sent.expose()])
    }

    /// A keyed hash of the parts, which only this process can make.
    fn mark(&self, parts: &[&[u8]]) -> Mark {
        let mut context = hmac::Context::with_key(&self.process_key);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let tag = context.sign();
        tag.as_ref().try_into().expect("invariant: a tag has 32 bytes")
    }
}

impl fmt::Debug for Doorkeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doorkeeper").field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl Waiting {
    fn is_in_time(&self, now: Nanos) -> bool {
        now.since(self.begun) < EXCHANGE_LIFETIME
    }
}

/// Checks that a user may log in, and that its client wants to be that one or says nothing.
fn permitted(user: &User, now: Nanos, wanted: &str) -> Result<(), TokenFault> {
    if !user.is_active(now) {
        return Err(TokenFault::User);
    }
    let is_wanted = || sent_name(wanted).is_some_and(|wanted| *wanted == **user.name());
    if wanted.is_empty() || is_wanted() { Ok(()) } else { Err(TokenFault::OtherUser) }
}

/// The answer to a client that is proven to be this user, and wants to be one; empty: the same.
fn admit_proven(now: Nanos, user: Option<&User>, wanted: &str) -> LoginAnswer {
    let user = user.filter(|user| permitted(user, now, wanted).is_ok());
    user.map_or(LoginAnswer::Refused, granted)
}

fn granted(user: &User) -> LoginAnswer {
    granted_until(user, None)
}

/// The user's rights end with what it has shown, if that is sooner.
fn granted_until(user: &User, end: Option<Nanos>) -> LoginAnswer {
    let rights = match end {
        Some(_) => Arc::new(user.rights().by_token_until(end)),
        None => Arc::clone(user.rights()),
    };
    LoginAnswer::Granted { rights, proof: Vec::new() }
}

/// The network whose clients count as one: an address of IPv4, the first 64 bits of one of IPv6,
/// which a single machine may have all addresses of.
fn network_of(address: IpAddr) -> [u8; 9] {
    let (version, bytes) = match address.to_canonical() {
        IpAddr::V4(address) => (4, [address.octets(), [0; 4]].as_flattened().to_vec()),
        IpAddr::V6(address) => (6, address.octets().iter().copied().take(8).collect()),
    };
    let mut network = [version; 9];
    for (to, byte) in network.iter_mut().skip(1).zip(bytes) {
        *to = byte;
    }
    network
}

/// Users and addresses whose failures are counted.
const SUSPECTS_MAX: usize = 4_096;

/// SCRAM exchanges in progress.
const EXCHANGES_MAX: usize = 1_024;

/// A client has this long to answer a challenge.
const EXCHANGE_LIFETIME: Nanos = Nanos::from_secs(60);

/// Passwords that need not be derived again, and for how long.
const PASSWORDS_MAX: usize = 4_096;
const PASSWORD_LIFETIME: Nanos = Nanos::from_secs(300);

/// JWT whose signatures need not be checked again, and for how long. All else of a token is checked
/// at each login. A client of HTTP sends the same one until it ends, often after some minutes.
const SIGNATURES_MAX: usize = 16_384;
const SIGNATURE_LIFETIME: Nanos = Nanos::from_secs(3_600);

/// Users and addresses that are familiar with each other, and for how long.
const FAMILIAR_MAX: usize = 16_384;
const FAMILIAR_LIFETIME: Nanos = Nanos::from_secs(86_400);

const _: () = assert!(NAME_BYTES_MAX <= 255, "a name fits where protocols count it in a byte");

#[cfg(test)]
#[path = "doorkeeper_test.rs"]
mod tests;
