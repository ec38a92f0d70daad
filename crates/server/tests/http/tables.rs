//! Tables: values of keys, conditions, pages, and transactions with messages.

use model::StorePolicy;

use crate::client::{Answer, Http, http_too};
use crate::common::{Directory, journal, memory, start};

fn put(http: &mut Http, path: &str, headers: &[&str], value: &str) -> Answer {
    http.begin(&format!("PUT {path}"), headers, value).answer()
}

fn tag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

#[test]
fn value_is_put_read_added_to_and_deleted() {
    let directory = Directory::new("http-tables");
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    http.ask("GET /tables/accounts/17").says(404, "GET /tables/accounts lists");
    let created = put(&mut http, "/tables/accounts/17", &[], "100");
    assert_eq!(created.status, 201);
    let read = http.ask("GET /tables/accounts/17");
    assert_eq!((read.status, read.body.as_str()), (200, "100"));
    assert_eq!(tag(&read), tag(&created));
    assert_eq!(read.header("content-disposition"), Some("attachment"));
    let replaced = put(&mut http, "/tables/accounts/17", &[], "101");
    assert_eq!(replaced.status, 204);
    assert_ne!(tag(&replaced), tag(&created));
    let sum = http.ask("POST /tables/accounts/17?add=-5");
    sum.says(200, "{\"value\":96}");
    assert_eq!(tag(&sum), tag(&http.ask("GET /tables/accounts/17")));
    http.ask("POST /tables/accounts/new?add=7").says(200, "{\"value\":7}");
    assert_eq!(http.ask("DELETE /tables/accounts/new").status, 204);
    http.ask("DELETE /tables/accounts/new").says(404, "not-found");
    server.shutdown().unwrap();

    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    assert_eq!(http.ask("GET /tables/accounts/17").body, "96");
    http.ask("GET /tables").says(200, r#"{"next":null,"tables":[{"keys":1,"table":"accounts"}]}"#);
    assert_eq!(http.ask("DELETE /tables/accounts/17").status, 204);
    http.ask("GET /tables").says(200, r#"{"next":null,"tables":[]}"#);
    let head = http.begin("HEAD /tables/accounts/17", &[], "").head();
    assert_eq!(head.status, 404);
}

#[test]
fn conditions_hold_or_nothing_changes() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let path = "/tables/t/k";
    let absent = ["if-none-match: *"];
    put(&mut http, path, &["if-match: *"], "0").says(412, "condition-failed");
    let created = put(&mut http, path, &absent, "1");
    assert_eq!(created.status, 201);
    put(&mut http, path, &absent, "2").says(412, "condition-failed");
    let stale = format!("if-match: {}", tag(&created));
    let second = put(&mut http, path, &[&stale], "2");
    assert_eq!(second.status, 204);
    put(&mut http, path, &[&stale], "3").says(412, "GET it again");
    http.begin(&format!("DELETE {path}"), &[&stale], "").answer().says(412, "condition-failed");
    let add = format!("POST {path}?add=1");
    http.begin(&add, &[&stale], "").answer().says(412, "condition-failed");
    let fresh = format!("if-match: {}", tag(&second));
    http.begin(&add, &[&fresh], "").answer().says(200, "{\"value\":3}");
    let seen = format!("if-none-match: {}", tag(&http.ask("GET /tables/t/k")));
    let unchanged = http.begin(&format!("GET {path}"), &[&seen], "").answer();
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));
    let wrong = http.begin(&format!("GET {path}"), &["if-match: x"], "").answer();
    wrong.says(400, "ETags of answers before");
    let gone = http.begin(&format!("DELETE {path}"), &["if-match: *"], "").answer();
    assert_eq!(gone.status, 204);
}

#[test]
fn keys_are_any_bytes() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    for path in ["/tables/t/", "/tables/t/a%2Fb", "/tables/t/%FF%00", "/tables/a%2Fb/%C3%A4"] {
        assert_eq!(put(&mut http, path, &[], path).status, 201, "{path}");
    }
    for path in ["/tables/t/", "/tables/t/a%2Fb", "/tables/t/%ff%00", "/tables/a%2Fb/%c3%a4"] {
        assert_eq!(http.ask(&format!("GET {path}")).status, 200, "{path}");
    }
    let page = http.ask("GET /tables/t");
    page.says(200, r#"{"key":"","value":"/tables/t/"},{"key":"a/b","value":"/tables/t/a%2Fb"}"#);
    page.says(200, r#""key_base64":"/wA=""#);
    for (path, part) in [
        ("/tables/t/%F", "percent-encoded"),
        ("/tables/%FF/k", "percent-encoded"),
        ("/tables//k", "name"),
    ] {
        http.ask(&format!("GET {path}")).says(400, part);
    }
    http.ask("GET /tables/t/a/b").says(404, "nothing is at this path");
    let head = "PUT /tables/t/k HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n";
    http.send(head).answer().says(413, "too large");
}

#[test]
fn pages_follow_one_another() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    let keys: Vec<String> = (0..250).map(|number| format!("key/{number:03}")).collect();
    let puts: Vec<String> = keys
        .iter()
        .map(|key| format!(r#"{{"table": "t", "key": "{key}", "value": "{key}"}}"#))
        .collect();
    let body = format!(r#"{{"put": [{}]}}"#, puts.join(","));
    http.post("/transactions", &body).says(200, r#"{"sent":0,"settled":0}"#);
    let found = |http: &mut Http, query: &str| {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = http.ask(&format!("GET /tables/t?{query}{after}"));
            assert_eq!(page.status, 200, "{page:?}");
            for part in page.body.split("\"key\":\"").skip(1) {
                found.push(part.split('"').next().unwrap().to_owned());
            }
            let next = page.body.split("\"next\":").nth(1).unwrap();
            if next.starts_with("null") {
                return found;
            }
            after = format!("&after={}", next.split('"').nth(1).unwrap());
        }
    };
    assert_eq!(found(&mut http, "max=7"), keys);
    assert_eq!(found(&mut http, "max=250"), keys);
    assert_eq!(found(&mut http, "max=9&from=key/100&to=key/120"), keys[100..120]);
    assert_eq!(found(&mut http, "max=3&prefix=key/24"), keys[240..]);
    assert_eq!(found(&mut http, "max=3&prefix=key/24&from=key/245"), keys[245..]);
    assert_eq!(found(&mut http, "prefix=z"), [] as [&str; 0]);
    // All pages are of the moment of the first.
    let first = http.ask("GET /tables/t?max=3");
    let next = first.body.split("\"next\":\"").nth(1).unwrap().split('"').next().unwrap();
    put(&mut http, "/tables/t/key%2F003", &[], "changed");
    put(&mut http, "/tables/t/key%2F0035", &[], "new");
    let second = http.ask(&format!("GET /tables/t?max=2&after={next}"));
    second.says(200, r#"[{"key":"key/003","value":"key/003"},{"key":"key/004""#);
    http.ask("GET /tables/t?from=key/003&max=1").says(200, r#""value":"changed""#);
    for over in ["1.aw", "ffffffffffffffff.aw"] {
        http.ask(&format!("GET /tables/t?after={over}")).says(410, "begin anew");
    }
    assert_eq!(http.ask("DELETE /tables/t/key%2F0035").status, 204);
    http.ask("GET /tables/t?after=aw").says(400, "what next said");
    http.ask("GET /tables/t?after=%2B1.aw").says(400, "what next said");
    http.ask("GET /tables/t?limit=3").says(400, "is not known here");
    http.ask("GET /tables/none").says(200, r#"{"entries":[],"next":null,"table":"none"}"#);
}

#[test]
fn transaction_receives_sends_and_changes_tables() {
    let directory = Directory::new("http-table-transactions");
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    put(&mut http, "/tables/accounts/17", &[], "100");
    http.post("/queues/requests/messages", "r").says(201, "");
    let (_, lease) = http.receive("requests");
    let body = |expected: &str, lease: &str| {
        format!(
            r#"{{"expect": [{{"table": "accounts", "key": "17", "value": "{expected}"}},
                {{"table": "done", "key": "r", "present": false}}],
               "add": [{{"table": "accounts", "key": "17", "by": -30}},
                       {{"table": "accounts", "key": "18", "by": 30}}],
               "put": [{{"table": "done", "key": "r", "value_base64": "/w=="}}],
               "send": [{{"queue": "history", "body": "17 to 18: 30"}}],
               "settle": [{{"lease": "{lease}"}}]}}"#
        )
    };
    let conflict = http.post("/transactions", &body("99", &lease));
    conflict.says(409, "table-conflict");
    conflict.says(409, "expect[0] does not hold");
    assert_eq!(http.ask("GET /queues/history").status, 404, "nothing was sent");
    // The message is there again, and no attempt has failed.
    let again = http.ask("GET /queues/requests/messages?wait=20s");
    assert_eq!((again.status, again.header("dunlin-failed")), (200, Some("0")), "{again:?}");
    let lease = again.header("dunlin-lease").unwrap().to_owned();
    let done = http.post("/transactions", &body("100", &lease));
    done.says(200, r#"{"added":[70,30],"sent":1,"settled":1}"#);
    server.shutdown().unwrap();

    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let mut http = Http::to(&server);
    assert_eq!(http.ask("GET /tables/accounts/17").body, "70");
    http.ask("GET /tables/done").says(200, r#""value_base64":"/w==""#);
    assert_eq!(http.ask("GET /queues/requests/messages").status, 204);
    assert_eq!(http.receive("history").0, "17 to 18: 30");
    let again = r#"{"expect": [{"table": "accounts", "key": "17", "present": true},
        {"table": "done", "key": "r", "present": false}]}"#;
    http.post("/transactions", again).says(409, "expect[1]");
}

#[test]
fn refusals_name_cause_and_mend() {
    let server = start(http_too(memory()));
    let mut http = Http::to(&server);
    put(&mut http, "/tables/t/k", &[], "x");
    http.ask("POST /tables/t/k?add=1").says(409, "no integer");
    http.ask("POST /tables/t/k").says(400, "say add=5");
    http.ask("POST /tables/t/k?add=x").says(400, "an integer of 64 bits");
    http.post("/queues/list/messages", "m").says(201, "");
    put(&mut http, "/tables/list/k", &[], "x").says(409, "another kind");
    http.ask("GET /tables/list").says(409, "another kind");
    let add = r#"{"add": [{"table": "t", "key": "k", "by": 1}],
        "send": [{"queue": "sent", "body": "x"}]}"#;
    http.post("/transactions", add).says(409, "no integer");
    assert_eq!(http.ask("GET /queues/sent").status, 404, "nothing was sent");
    let allowed = http.ask("PATCH /tables/t/k");
    assert_eq!(allowed.header("allow"), Some("GET, HEAD, PUT, POST, DELETE, OPTIONS"));
}
