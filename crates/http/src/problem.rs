//! Errors as clients see them: `application/problem+json` (RFC 9457), each with its cause and its
//! remedy.

use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use model::{QueueFull, QuotaReached, Refusal};
use serde_json::json;

use crate::body::{Answer, Body};
use crate::gateway::GatewayError;
use crate::login::CHALLENGES;
use crate::tables::TABLE_CONFLICT;

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The end of its type, `urn:dunlin:problem:…`, which programs compare.
    pub(crate) kind: &'static str,
    /// The meaning of `kind`, for people; `detail` does not lean on it.
    title: &'static str,
    pub(crate) detail: String,
    allow: Option<&'static str>,
}

impl Problem {
    fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self { status, kind, title, detail: detail.into(), allow: None }
    }

    /// The request itself makes no sense.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", "The request makes no sense", detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Who asks is not let in", detail)
    }

    /// The client has to log in, or has failed to.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A login is needed", detail)
    }

    /// Nothing was decided about the client's login.
    pub(crate) fn too_many_logins() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too-many-logins",
            "Too many clients log in",
            "too many clients log in now, or too many logins of this one have failed: nothing was \
             done, try again soon",
        )
    }

    pub(crate) fn not_implemented(detail: impl Into<String>) -> Self {
        let title = "The server cannot do this";
        Self::new(StatusCode::NOT_IMPLEMENTED, "not-implemented", title, detail)
    }

    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let detail = format!("what is at this path is asked by {allow} only");
        let title = "This cannot be done here";
        Self {
            allow: Some(allow),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", title, detail)
        }
    }

    /// `mend` tells the client the remedy.
    pub(crate) fn too_large(what: &str, max: usize, mend: &str) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            "It is too large",
            format!("{what} is too large: {max} bytes may be, {mend}"),
        )
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "too-slow",
            "The body did not come in time",
            "the body did not come in time: nothing of it was stored, send it again",
        )
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "Its state does not allow it", detail)
    }

    /// A condition of the request does not hold.
    pub(crate) fn unmet() -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "condition-failed",
            "A condition does not hold",
            "the key is not as If-Match or If-None-Match says, and nothing was done: GET it again, \
             and decide anew",
        )
    }

    /// The pages before have shown a moment that is not kept any more.
    pub(crate) fn page_over() -> Self {
        Self::new(
            StatusCode::GONE,
            "page-over",
            "The pages are over",
            "what the pages before have shown is not kept any more: more than 60 s have passed, \
             too much has changed, or too many others read; begin anew, or with the last key as \
             from",
        )
    }

    fn table_conflict(step: u32) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            TABLE_CONFLICT,
            "A key is not as expected",
            format!(
                "expect[{step}] does not hold, and nothing was done: read the key again, and send \
                 the transaction anew; its leases are over, and their messages come again"
            ),
        )
    }

    pub(crate) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "Too much is asked at once",
            "too much is asked at once: nothing was done, try again soon with less",
        )
    }

    /// The disk of the log does not answer, and nothing is known that it has confirmed.
    pub(crate) fn log_hangs() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "log-hangs",
            "The log does not answer",
            "what there is now waits for the disk of the log, and there are no earlier figures of \
             this: look at the disk, or ask again",
        )
    }

    /// The client has closed its side of the connection, and is kept waiting no longer.
    pub(crate) fn client_left() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "client-left",
            "The client has closed its side",
            "the client closed its side of the connection, and nothing was done: who waits for \
             memory, a place or a message, or gets a lease, keeps it open until the answer came",
        )
    }

    fn stopping() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "The server stops",
            "the server stops, and this is not known to be done: ask again when it is back",
        )
    }

    /// The status that the check of readiness shows if it fails.
    pub(crate) fn unready(kind: &'static str, detail: &str) -> Self {
        let title = "No messages are taken";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, kind, title, detail)
    }

    fn full() -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "store-full",
            "The store is full",
            "the store is full, and nothing was stored: delete messages, or give it more device, \
             --disk-limit or open files (`ulimit -n`)",
        )
    }

    fn queue_full(full: &QueueFull) -> Self {
        let kind = "queue-full";
        let detail = format!(
            "{full}; nothing was stored, try again when messages of it were settled, in parts \
             where this is more than it may hold"
        );
        Self::new(StatusCode::INSUFFICIENT_STORAGE, kind, "The queue is full", detail)
    }

    pub(crate) fn quota_reached(reached: &QuotaReached) -> Self {
        let (kind, title) = (QUOTA_REACHED, "A quota is reached");
        Self::new(StatusCode::TOO_MANY_REQUESTS, kind, title, reached.to_string())
    }

    /// The same of a part of something, before which so much was done already.
    pub(crate) fn after(mut self, count: u64, done: &str) -> Self {
        if count > 0 {
            self.detail += &format!("; {count} were {done} before, asking again does the rest");
        }
        self
    }

    /// Nothing has to change but that time passes, or others go on.
    fn is_passing(&self) -> bool {
        let passes = ["queue-full", QUOTA_REACHED].contains(&self.kind);
        passes || self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    fn values_full(refusal: &Refusal) -> Self {
        let (kind, title) = ("values-full", "There is no room for the value");
        Self::new(StatusCode::INSUFFICIENT_STORAGE, kind, title, refusal.to_string())
    }

    fn memory_full() -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "memory-full",
            "The broker's memory is full",
            "the broker's memory is full, and nothing was stored: receive and delete messages, or \
             give it a larger --memory-limit",
        )
    }

    /// As an answer.
    pub(crate) fn answer(&self) -> Answer {
        let text = json!({
            "type": format!("urn:dunlin:problem:{}", self.kind),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut answer = Answer::new(Body::from(text.to_string()));
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            for challenge in CHALLENGES {
                headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
            }
        }
        if self.is_passing() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

impl From<GatewayError> for Problem {
    fn from(trouble: GatewayError) -> Self {
        match trouble {
            GatewayError::Refused(refusal) => refusal.into(),
            GatewayError::LeaseOver(token) => Self::new(
                StatusCode::GONE,
                "lease-over",
                "The lease is over",
                format!(
                    "lease {token} ended by time or by a settlement; nothing was done, and another \
                     consumer may have the message: receive again, with a longer lease"
                ),
            ),
            GatewayError::Busy => Self::busy(),
            GatewayError::Draining => Self::unready("draining", DRAINING),
            GatewayError::Stopping => Self::stopping(),
            GatewayError::Left => Self::client_left(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::StoreFull => Self::full(),
            Refusal::TableConflict { step } => Self::table_conflict(step),
            Refusal::TooManyValues => Self::values_full(&refusal),
            Refusal::QueueFull(full) => Self::queue_full(&full),
            Refusal::MemoryFull => Self::memory_full(),
            Refusal::Draining => GatewayError::Draining.into(),
            Refusal::TransactionTooLarge | Refusal::BatchTooLarge => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too-large",
                "It is too large",
                format!("all of it together is too much: {refusal}"),
            ),
            Refusal::InvalidSelector { position, reason } => {
                Self::bad_request(format!("selector: {reason}, at byte {position}"))
            }
            Refusal::SendIdReused => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency-key-reused",
                "The idempotency key is another message's",
                format!("nothing was stored: {refusal}"),
            ),
            Refusal::SubscriptionInUse => {
                Self::conflict("the subscription has consumers; end them first")
            }
            Refusal::NoSuchDestination | Refusal::OfAnotherSession => Self::conflict(
                "names that begin with temporary/ are for those who made them; choose another",
            ),
            Refusal::TransactionFailed | Refusal::NoSuchTransaction => Self::conflict(
                "a part of the transaction was refused, so that nothing of it was done",
            ),
            Refusal::NotPermitted(_) => Self::forbidden(refusal.to_string()),
            Refusal::QuotaReached(reached) => Self::quota_reached(&reached),
            Refusal::TooManyPolicies => Self::conflict(format!(
                "{refusal}; GET /policies lists them, DELETE /queues/NAME/policy ends one"
            )),
            refusal => Self::conflict(refusal.to_string()),
        }
    }
}

/// A user has as much as it may.
const QUOTA_REACHED: &str = "quota-reached";

/// The meaning of draining for a client.
pub(crate) const DRAINING: &str =
    "an operator asked to take no messages until the next start; send to another server";

/// How a request ends.
pub(crate) type Result<T> = std::result::Result<T, Problem>;

#[cfg(test)]
mod tests {
    use model::Quota;

    use super::*;

    #[test]
    fn full_queue_problem_has_retry_after() {
        let queue = model::QueueName::new("jobs").unwrap();
        let full = QueueFull { queue, bound: model::Bound::Bytes(9) };
        let problem = Problem::from(Refusal::QueueFull(Box::new(full)));
        assert!(problem.detail.starts_with("queue jobs is full: max-bytes=9; "), "{problem:?}");
        let answer = problem.answer();
        assert_eq!(answer.status(), 507);
        assert_eq!(answer.headers()[RETRY_AFTER], "1");
    }

    #[test]
    fn problems_say_what_to_do() {
        let token = "7-00000000000000ff".parse().unwrap();
        let reached = QuotaReached { user: "ann".into(), quota: Quota::Bytes, max: 5 };
        let reached = Refusal::QuotaReached(Box::new(reached));
        let cases = [
            (GatewayError::LeaseOver(token), 410, "receive again"),
            (GatewayError::Refused(Refusal::StoreFull), 507, "delete messages"),
            (GatewayError::Refused(Refusal::MemoryFull), 507, "--memory-limit"),
            (GatewayError::Refused(Refusal::TransactionTooLarge), 413, "in parts"),
            (GatewayError::Refused(Refusal::BatchTooLarge), 413, "in parts"),
            (GatewayError::Refused(Refusal::SendIdReused), 422, "a name of its own"),
            (GatewayError::Refused(Refusal::TooManyQueues { max: 9 }), 409, "9 queues"),
            (
                GatewayError::Refused(Refusal::TooManySubscriptions),
                409,
                "100000 subscriptions at most",
            ),
            (GatewayError::Refused(Refusal::TooManySelectors), 409, "256 different selectors"),
            (GatewayError::Refused(Refusal::TooManyPolicies), 409, "10000 queues have rules"),
            (GatewayError::Refused(Refusal::TooManyPolicies), 409, "DELETE /queues/NAME/policy"),
            (GatewayError::Refused(Refusal::PolicyAtOdds), 409, "when-full has to be"),
            (GatewayError::Refused(reached), 429, "have some received"),
            (GatewayError::Busy, 503, "try again"),
            (GatewayError::Draining, 503, "another server"),
            (GatewayError::Refused(Refusal::Draining), 503, "another server"),
            (GatewayError::Stopping, 503, "ask again"),
            (GatewayError::Left, 503, "until the answer"),
        ];
        for (trouble, status, mend) in cases {
            let problem = Problem::from(trouble);
            assert_eq!(problem.status.as_u16(), status);
            assert!(problem.detail.contains(mend), "{}", problem.detail);
        }
    }
}
