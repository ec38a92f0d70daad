//! Headers for browsers in every answer, whichever client asked.
//!
//! A message may be a page with a script. A browser that showed it at its address would run the
//! script as this server's own, which could do all that a request can.

use hyper::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};

use crate::body::Answer;

/// The same answer. A browser runs nothing of it, and gives nothing of it to another site.
pub(crate) fn guarded(mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// The same answer, which carries messages: a browser saves it and does not show it.
pub(crate) fn attachment(mut answer: Answer) -> Answer {
    let attachment = HeaderValue::from_static("attachment");
    answer.headers_mut().insert(CONTENT_DISPOSITION, attachment);
    answer
}

/// Nothing is loaded and nothing runs, in no frame of any page.
const POLICY: &str = "sandbox; default-src 'none'; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
