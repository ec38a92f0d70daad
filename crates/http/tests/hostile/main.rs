//! Bytes that clients may send by mistake or malice: any bytes, and requests with any words in
//! them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod gateway;
mod hanging;
mod login;
mod requests;

use requests::{LOGIN, RAW};
use testkit::Rng;

#[test]
fn fuzz_corpus_does_no_harm() {
    testkit::replay("http", requests::connection);
}

#[test]
fn damaged_requests_do_no_harm() {
    let seeds = seeds();
    testkit::write_seeds(&seeds);
    seeds.iter().for_each(|seed| requests::connection(seed));
    let mut random = Rng::new(0x5eed);
    for _ in 0..3_000 {
        let mut seed = seeds[random.index(seeds.len())].clone();
        for _ in 0..=random.index(4) {
            testkit::damage(&mut seed, &seeds, b"\"{}[],:\\0-\xff", &mut random);
        }
        requests::connection(&seed);
    }
}

/// A message is stored, and then queried.
fn seeds() -> Vec<Vec<u8>> {
    let put = request(9, "q", "", "dunlin-delay:0\ndunlin-property-n:5", "one");
    let transaction = r#"{"send":[{"queue":"q","body":"b","ttl":"1m","properties":{"n":1.5}},
        {"topic":"t","body_base64":"YQ==","delay":"5ms","key":"k"}],
        "settle":[{"lease":"1-0000000000000001","as":"accept"}]}"#;
    let lease = "1-0000000000000001";
    let asked = [
        request(10, "q", "max=5&wait=1s&lease=2m", "", ""),
        request(10, "q", "browse&selector=n+%3D+5&after=ready-1280-1-1&state=ready", "", ""),
        request(9, "q", "count=3", "idempotency-key:k", "copies"),
        request(9, "q", "lines", "content-type:application/x-ndjson", "{}\n[1]\n\n\"x\"\r\n"),
        request(9, "q", "", "dunlin-properties:{\"a\":\"\\u00fc\",\"b\":null}", "two"),
        request(9, "q", "", "dunlin-priority:9\ndunlin-ttl:1h\ndunlin-persistence:none", ""),
        request(29, "", "", "", transaction),
        request(15, lease, "", "", ""),
        request(16, lease, "delay=5s&priority=3", "", ""),
        request(17, lease, "lease=5s", "", ""),
        request(11, "q", "selector=n+>+1", "", ""),
        request(12, "q", "to=other&max=5", "", ""),
        request(13, "1", "", "", ""),
        request(25, "t", "", "", "published"),
        request(26, "t", "", "", ""),
        request(6, "", "", "", ""),
        request(28, "s", "client=c", "", ""),
    ];
    let framed = asked.iter().map(|asked| [&[1], &put[..], asked].concat());
    let raw = [
        &b"POST /queues/q/messages HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nonePUT"[..],
        b"POST /queues/q/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\none",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ];
    let raw = raw.into_iter().map(|raw| [&[RAW], raw].concat());
    let login = b"GET /queues HTTP/1.1\r\nhost: h\r\nauthorization: Basic YTpzZWNyZXQ=\r\n\r\n";
    let login = [&[RAW | LOGIN], &login[..]].concat();
    framed.chain(raw).chain([login]).collect()
}

fn request(route: u8, name: &str, query: &str, headers: &str, body: &str) -> Vec<u8> {
    let mut out = vec![route];
    for part in [name, query, headers, body] {
        out.push(u8::try_from(part.len()).unwrap());
        out.extend(part.bytes());
    }
    out
}
