//! Logins of requests, by a broker whose users have the password `secret` and the token `good`.

use model::LoginOffer;

use crate::gateway::Ours;
use crate::requests::{Sent, answers};

const PASSWORD: LoginOffer = LoginOffer { password: true, ..LoginOffer::NOTHING };

/// `alice:secret`, `alice:wrong`, `busy:secret`.
const ALICE: &str = "authorization: Basic YWxpY2U6c2VjcmV0";
const WRONG: &str = "authorization: Basic YWxpY2U6d3Jvbmc=";
const BUSY: &str = "authorization: Basic YnVzeTpzZWNyZXQ=";

/// Answers to requests of one connection, which is closed behind them.
fn ask(requests: &[String], offer: Option<LoginOffer>, sent: Sent) -> String {
    let heard = answers(&Ours::new(), requests.concat().as_bytes(), offer, sent);
    String::from_utf8(heard).unwrap()
}

fn get(path: &str, header: &str) -> String {
    let end = if header.is_empty() { "\r\n" } else { "\r\n\r\n" };
    format!("GET {path} HTTP/1.1\r\nhost: h\r\n{header}{end}")
}

/// The status of each answer.
fn statuses(heard: &str) -> Vec<&str> {
    heard.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

#[test]
fn request_without_user_is_challenged() {
    let heard = ask(&[get("/queues", "")], Some(PASSWORD), Sent::Whole);
    assert_eq!(statuses(&heard), ["401"]);
    let lower = heard.to_lowercase();
    assert!(lower.contains("www-authenticate: basic realm=\"dunlin\", charset=\"utf-8\"\r\n"));
    assert!(lower.contains("www-authenticate: bearer realm=\"dunlin\"\r\n"));
    assert!(lower.contains("application/problem+json") && lower.contains("problem:unauthorized"));
}

#[test]
fn each_request_logs_in() {
    let requests = [
        get("/queues", ALICE),
        get("/queues", WRONG),
        get("/queues", "authorization: Bearer good"),
        get("/queues", "authorization: Bearer bad"),
        get("/queues", "authorization: Digest x"),
        get("/queues", "authorization: Basic x"),
        get("/queues", BUSY),
        get("/queues", ""),
    ];
    let expected = ["200", "401", "200", "401", "401", "400", "503", "401"];
    for sent in [Sent::Whole, Sent::InPieces] {
        let heard = ask(&requests, Some(PASSWORD), sent);
        assert_eq!(statuses(&heard), expected);
        assert_eq!(heard.matches("retry-after: 1").count(), 1);
        assert!(!heard.contains("secret"));
    }
}

/// Issuers make tokens of some KiB: the head of a request holds the longest that is looked at.
#[test]
fn long_tokens_fit_into_head() {
    let token = format!("authorization: Bearer {}", "x".repeat(8 * 1024));
    for sent in [Sent::Whole, Sent::InPieces] {
        let heard = ask(&[get("/queues", &token)], Some(PASSWORD), sent);
        assert_eq!(statuses(&heard), ["401"]);
    }
}

#[test]
fn stranger_learns_no_path_or_method() {
    let paths = ["/", "/metrics", "/journal", "/openapi.json", "/nosuch", "/queues/a%zz"];
    let mut requests: Vec<_> = paths.map(|path| get(path, "")).into();
    requests.push("OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n".into());
    requests.push("DELETE /queues HTTP/1.1\r\nhost: h\r\n\r\n".into());
    let heard = ask(&requests, Some(PASSWORD), Sent::Whole);
    assert_eq!(statuses(&heard), ["401"; 8]);
    let same = |answer: &str| answer.rsplit("\r\n\r\n").next().map(str::to_owned);
    let bodies: Vec<_> = heard.split("HTTP/1.1 ").skip(1).map(same).collect();
    assert!(bodies.windows(2).all(|two| two[0] == two[1]), "{bodies:?}");
}

#[test]
fn probes_need_no_login() {
    let options = "OPTIONS / HTTP/1.1\r\nhost: h\r\n\r\n".to_owned();
    let requests = [get("/health", ""), get("/ready", ""), options, get("/health/x", "")];
    let heard = ask(&requests, Some(PASSWORD), Sent::Whole);
    assert_eq!(statuses(&heard), ["200", "200", "204", "401"]);
}

#[test]
fn body_of_stranger_is_not_read() {
    let head = "POST /queues/q/messages HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n";
    let request = |header: &str| format!("{head}{header}content-length: 3\r\n\r\n");
    let heard = ask(&[request("")], Some(PASSWORD), Sent::Whole);
    assert_eq!(statuses(&heard), ["401"]);
    let heard = ask(&[request(&format!("{ALICE}\r\n")), "one".into()], Some(PASSWORD), Sent::Whole);
    assert_eq!(statuses(&heard), ["100", "201"]);
}

#[test]
fn certificate_or_no_name_logs_in() {
    let certificate = LoginOffer { certificate: true, ..LoginOffer::default() };
    let anonymous = LoginOffer { anonymous: true, ..LoginOffer::default() };
    for offer in [certificate, anonymous] {
        let heard = ask(&[get("/queues", ""), get("/queues", ALICE)], Some(offer), Sent::Whole);
        assert_eq!(statuses(&heard), ["200", "403"], "no password in the clear");
    }
}

#[test]
fn without_users_the_header_is_ignored() {
    let requests = [get("/queues", ""), get("/queues", WRONG), get("/queues", "authorization: x")];
    assert_eq!(statuses(&ask(&requests, None, Sent::Whole)), ["200"; 3]);
}
